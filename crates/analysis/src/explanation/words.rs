//! Wording of stages, deadlines and times for the user.

use super::chains::OperationPart;
use diskperf_chains::Purpose;
use diskperf_timeline::{Deadline, DieBusy, Stage, VolumeLimit};

/// Returns the name of a stage for a table.
pub fn stage_label(stage: Stage) -> String {
    match stage {
        Stage::User => "user".to_owned(),
        Stage::SystemCall => "system call".to_owned(),
        Stage::Copy => "copy".to_owned(),
        Stage::Clear => "clear".to_owned(),
        Stage::Allocate => "allocate".to_owned(),
        Stage::CacheLookup => "cache lookup".to_owned(),
        Stage::Driver => "driver".to_owned(),
        Stage::Interrupt => "interrupts".to_owned(),
        Stage::CpuWait => "waiting for the processor".to_owned(),
        Stage::MemoryContention => "memory contention".to_owned(),
        Stage::BufferWait => "waiting for a buffer".to_owned(),
        Stage::DriverQueue => "driver queue".to_owned(),
        Stage::ControllerQueue => "controller queue".to_owned(),
        Stage::ChannelWait => "waiting for the channel".to_owned(),
        Stage::BusWait => "waiting for the interface".to_owned(),
        Stage::Command => "controller's command".to_owned(),
        Stage::Seek => "seek".to_owned(),
        Stage::Settle => "settle".to_owned(),
        Stage::WriteSettle => "write settle".to_owned(),
        Stage::HeadSwitch => "head switch".to_owned(),
        Stage::RotationalLatency => "rotational latency".to_owned(),
        Stage::MissedRevolution(deadline) => {
            format!("missed revolution: {}", self::deadline_label(deadline))
        }
        Stage::MediaTransfer => "media transfer".to_owned(),
        Stage::BusTransfer => "interface transfer".to_owned(),
        Stage::CacheHit => "controller's cache".to_owned(),
        Stage::Destage => "destage".to_owned(),
        Stage::FlashRead => "flash read".to_owned(),
        Stage::FlashProgram => "flash program".to_owned(),
        Stage::FlashErase => "flash erase".to_owned(),
        Stage::DieWait(busy) => format!("die busy: {}", die_activity_label(busy)),
        Stage::MapMiss => "map look-up".to_owned(),
        Stage::BufferFull => "drive's buffer full".to_owned(),
        Stage::Collection => "writes blocked by garbage collection".to_owned(),
        Stage::ReadRetry => "flash read again".to_owned(),
        Stage::ChannelTransfer => "channel transfer".to_owned(),
        Stage::Decode => "correcting errors".to_owned(),
        Stage::Journal => "journal".to_owned(),
        Stage::Cleaning => "cleaning of bands".to_owned(),
        Stage::RateLimit(limit) => rate_limit_label(limit).to_owned(),
        Stage::Completion => "completion".to_owned(),
        Stage::Think => "asleep".to_owned(),
        Stage::CgroupThrottle => "throttled by the cgroup".to_owned(),
        Stage::TagWait => "waiting for a request (tag)".to_owned(),
        Stage::PlugWait => "plug".to_owned(),
        Stage::FlushWait => "waiting to flush".to_owned(),
        Stage::Flush => "device flush".to_owned(),
        Stage::WorkQueueWait => "waiting for a kernel worker".to_owned(),
        Stage::HandOver => "hand-over between tasks".to_owned(),
        Stage::OtherTask => "another task's work".to_owned(),
        Stage::DirtyThrottle => "throttled: too many dirty pages".to_owned(),
        Stage::Reclaim => "reclaiming memory".to_owned(),
        Stage::Device => "device".to_owned(),
        Stage::Unattributed => "unattributed".to_owned(),
    }
}

/// Returns the name of a rate limit.
pub fn rate_limit_label(limit: VolumeLimit) -> &'static str {
    match limit {
        VolumeLimit::VolumeRequests => "the volume's limit of requests/s",
        VolumeLimit::VolumeBytes => "the volume's limit of bytes/s",
        VolumeLimit::InstanceRequests => "the instance's limit of requests/s",
        VolumeLimit::InstanceBytes => "the instance's limit of bytes/s",
    }
}

/// Returns the description of a missed deadline.
pub fn deadline_label(deadline: Deadline) -> &'static str {
    match deadline {
        Deadline::Search => "search too late",
        Deadline::TransferCommand => "transfer command too late",
        Deadline::DataLate => "data late",
        Deadline::ChannelHeld => "channel held",
        Deadline::ReadAhead => "issued too late",
        Deadline::Interleave => "interleave too tight",
        Deadline::PartOfSector => "part of a sector written",
    }
}

/// Returns the description of the die activity that a request waited for.
pub fn die_activity_label(busy: DieBusy) -> &'static str {
    match busy {
        DieBusy::Read => "other reads",
        DieBusy::Program => "program",
        DieBusy::Erase => "erase",
        DieBusy::Collection => "collection",
        DieBusy::Suspension => "suspension",
        DieBusy::Channel => "channel",
    }
}

/// Returns the description of a stage that follows a duration in a sentence.
pub fn describe_stage_cause(of: Stage) -> String {
    match of {
        Stage::DieWait(DieBusy::Read) => "behind other reads".to_owned(),
        Stage::DieWait(DieBusy::Program) => "behind a program of host data".to_owned(),
        Stage::DieWait(DieBusy::Erase) => {
            "behind an erase that garbage collection began".to_owned()
        }
        Stage::DieWait(DieBusy::Collection) => {
            "behind reads and programs of garbage collection".to_owned()
        }
        Stage::DieWait(DieBusy::Channel) => {
            "until the channel had transferred the die's previous read".to_owned()
        }
        Stage::DieWait(DieBusy::Suspension) => {
            "until a program or an erase was suspended".to_owned()
        }
        of => stage_label(of),
    }
}

/// Returns the name of the purpose of an operation's time for a table.
pub fn purpose_label(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Call => "the call itself",
        Purpose::Read => "read",
        Purpose::Data => "data write",
        Purpose::LogBlocks => "journal's log blocks",
        Purpose::CommitBlock => "journal's commit block",
        Purpose::Commit => "journal's commit",
        Purpose::EarlierCommit => "earlier commit of the journal",
        Purpose::Metadata => "metadata write",
        Purpose::Flush => "flush after the data",
        Purpose::Worker => "kernel worker",
        Purpose::OtherTask => "another task",
    }
}

/// Returns the description of a part of an operation that follows a duration in a sentence.
pub fn describe_part(part: &OperationPart) -> String {
    let stage = match part.stage {
        Stage::SystemCall => "on the processor in the call".to_owned(),
        Stage::Device => "at the device".to_owned(),
        Stage::DriverQueue => "in the driver's queue".to_owned(),
        Stage::Flush => "flushing the device".to_owned(),
        Stage::OtherTask => "of work".to_owned(),
        Stage::Completion => "of completion".to_owned(),
        stage => stage_label(stage),
    };
    let purpose = match part.purpose {
        Purpose::Call => return stage,
        Purpose::Worker => "in a kernel worker".to_owned(),
        Purpose::OtherTask => "in another task".to_owned(),
        Purpose::Read => "for a read".to_owned(),
        Purpose::Data => "for the data".to_owned(),
        Purpose::Metadata => "for metadata".to_owned(),
        Purpose::Flush => "after the data".to_owned(),
        Purpose::EarlierCommit => "in an earlier commit of the journal".to_owned(),
        Purpose::Commit => "in the journal's commit".to_owned(),
        Purpose::LogBlocks | Purpose::CommitBlock => {
            format!("for the {}", purpose_label(part.purpose))
        }
    };
    format!("{stage} {purpose}")
}

/// Returns the name of a missed deadline as the subject of a sentence.
pub fn describe_late_event(deadline: Deadline) -> &'static str {
    match deadline {
        Deadline::Search => "the search command is issued",
        Deadline::TransferCommand => "the transfer command is issued",
        Deadline::DataLate => "a sector reaches memory, or leaves it,",
        Deadline::ChannelHeld => "the channel, which another drive occupies, is free",
        Deadline::ReadAhead => "the request reaches the drive",
        Deadline::Interleave => "the controller is ready for the next sector",
        Deadline::PartOfSector => "the drive has read a sector that is partly written",
    }
}

/// Formats a time in milliseconds with its significant digits.
pub fn format_time_ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let digits = match ms.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{ms:.digits$} ms")
}

/// Formats a number of bytes for people.
pub fn format_bytes(bytes: u64) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KB", bytes / 1024)
    } else {
        format!("{bytes} bytes")
    }
}

/// Formats a share as a percentage.
pub fn format_percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = usize::from(percent.abs() < 9.95 && percent.abs() > 0.0);
    format!("{percent:.digits$} %")
}
