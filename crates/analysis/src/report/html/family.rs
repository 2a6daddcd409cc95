//! Families of stages by the part of the system that spends them, each with a colour.

use diskperf_timeline::Stage;

/// Part of a system that spends time in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StageFamily {
    Processor,
    Memory,
    Queue,
    Controller,
    Arm,
    RotationalLatency,
    MissedRevolution,
    MediaTransfer,
    Other,
}

impl StageFamily {
    pub(super) const ALL: [Self; 9] = [
        Self::Processor,
        Self::Memory,
        Self::Queue,
        Self::Controller,
        Self::Arm,
        Self::RotationalLatency,
        Self::MissedRevolution,
        Self::MediaTransfer,
        Self::Other,
    ];

    pub(super) fn from_stage(stage: Stage) -> Self {
        match stage {
            Stage::User
            | Stage::SystemCall
            | Stage::Copy
            | Stage::Clear
            | Stage::Allocate
            | Stage::CacheLookup
            | Stage::Driver
            | Stage::Interrupt
            | Stage::Completion
            | Stage::OtherTask
            | Stage::Reclaim => Self::Processor,
            Stage::CpuWait | Stage::MemoryContention | Stage::BufferWait => Self::Memory,
            Stage::DriverQueue
            | Stage::ControllerQueue
            | Stage::ChannelWait
            | Stage::BusWait
            | Stage::DieWait(_)
            | Stage::BufferFull
            | Stage::RateLimit(_)
            | Stage::Collection
            | Stage::CgroupThrottle
            | Stage::TagWait
            | Stage::PlugWait
            | Stage::FlushWait
            | Stage::WorkQueueWait
            | Stage::HandOver
            | Stage::DirtyThrottle => Self::Queue,
            Stage::Command
            | Stage::BusTransfer
            | Stage::CacheHit
            | Stage::Destage
            | Stage::MapMiss
            | Stage::ChannelTransfer
            | Stage::Decode
            | Stage::Journal => Self::Controller,
            Stage::Seek | Stage::Settle | Stage::WriteSettle | Stage::HeadSwitch => Self::Arm,
            Stage::RotationalLatency => Self::RotationalLatency,
            Stage::MissedRevolution(_) => Self::MissedRevolution,
            Stage::MediaTransfer
            | Stage::FlashRead
            | Stage::ReadRetry
            | Stage::FlashProgram
            | Stage::FlashErase
            | Stage::Cleaning
            | Stage::Flush
            | Stage::Device => Self::MediaTransfer,
            Stage::Think | Stage::Unattributed => Self::Other,
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Memory => "waiting for processor, memory, buffer",
            Self::Queue => "queue, die, channel, bus",
            Self::Controller => "controller, interface transfer",
            Self::Arm => "arm and heads",
            Self::RotationalLatency => "rotational latency",
            Self::MissedRevolution => "missed revolution",
            Self::MediaTransfer => "media transfer",
            Self::Other => "other",
        }
    }

    /// Returns the variable of the page's style sheet that holds the family's colour.
    pub(super) fn css_variable(self) -> &'static str {
        match self {
            Self::Processor => "--processor",
            Self::Memory => "--memory",
            Self::Queue => "--queue",
            Self::Controller => "--controller",
            Self::Arm => "--arm",
            Self::RotationalLatency => "--rotation",
            Self::MissedRevolution => "--missed",
            Self::MediaTransfer => "--media",
            Self::Other => "--other",
        }
    }

    /// Returns a colour of the family that is visible on white and on black.
    pub(super) fn colour(self) -> &'static str {
        match self {
            Self::Processor => "#4c78a8",
            Self::Memory => "#86a8cf",
            Self::Queue => "#9d6fb0",
            Self::Controller => "#3f9c98",
            Self::Arm => "#c9992e",
            Self::RotationalLatency => "#e8883a",
            Self::MissedRevolution => "#d8403d",
            Self::MediaTransfer => "#479b3c",
            Self::Other => "#8b9299",
        }
    }
}
