//! Families of stages by the part of the system that spends them, each with a colour.

use diskperf_timeline::Stage;

/// Part of a system that spends time in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Processor,
    Memory,
    Queue,
    Controller,
    Arm,
    Rotation,
    Missed,
    Media,
    Other,
}

impl Family {
    pub(super) const ALL: [Self; 9] = [
        Self::Processor,
        Self::Memory,
        Self::Queue,
        Self::Controller,
        Self::Arm,
        Self::Rotation,
        Self::Missed,
        Self::Media,
        Self::Other,
    ];

    pub(super) fn of(stage: Stage) -> Self {
        match stage {
            Stage::User
            | Stage::SystemCall
            | Stage::Copy
            | Stage::Clear
            | Stage::Allocate
            | Stage::CacheLookup
            | Stage::Driver
            | Stage::Interrupt
            | Stage::Completion => Self::Processor,
            Stage::CpuWait | Stage::MemoryContention | Stage::BufferWait => Self::Memory,
            Stage::DriverQueue
            | Stage::ControllerQueue
            | Stage::ChannelWait
            | Stage::BusWait
            | Stage::DieWait(_)
            | Stage::BufferFull
            | Stage::Collection => Self::Queue,
            Stage::Command
            | Stage::BusTransfer
            | Stage::CacheHit
            | Stage::Destage
            | Stage::MapMiss
            | Stage::ChannelTransfer
            | Stage::Decode
            | Stage::Journal => Self::Controller,
            Stage::Seek | Stage::Settle | Stage::WriteSettle | Stage::HeadSwitch => Self::Arm,
            Stage::RotationalLatency => Self::Rotation,
            Stage::MissedRevolution(_) => Self::Missed,
            Stage::MediaTransfer
            | Stage::FlashRead
            | Stage::ReadRetry
            | Stage::FlashProgram
            | Stage::FlashErase
            | Stage::Cleaning
            | Stage::Device => Self::Media,
            Stage::Think | Stage::Unattributed => Self::Other,
        }
    }

    /// Returns the name of the family for a legend.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Memory => "waiting for processor, memory, buffer",
            Self::Queue => "queue, die, channel, bus",
            Self::Controller => "controller, interface transfer",
            Self::Arm => "arm and heads",
            Self::Rotation => "rotational latency",
            Self::Missed => "missed revolution",
            Self::Media => "media transfer",
            Self::Other => "other",
        }
    }

    /// Returns the variable of the page's style sheet that holds the family's colour.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Processor => "--processor",
            Self::Memory => "--memory",
            Self::Queue => "--queue",
            Self::Controller => "--controller",
            Self::Arm => "--arm",
            Self::Rotation => "--rotation",
            Self::Missed => "--missed",
            Self::Media => "--media",
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
            Self::Rotation => "#e8883a",
            Self::Missed => "#d8403d",
            Self::Media => "#479b3c",
            Self::Other => "#8b9299",
        }
    }
}
