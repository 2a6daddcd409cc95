//! Limits of a modelled run, and the limit that a run exceeded.
//!
//! All limits are counts, not wall-clock times: a run that ends on one computer ends on every other
//! computer at the same event, and no result depends on the limits.

use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::fmt;

/// Limits on the simulated machines that do the work of one command: events, virtual time and
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBudget {
    /// Event limit, summed over all machines that run in sequence. Events determine the processor
    /// time. An event of a computer with a kernel costs as much as two events of a rig, or three of
    /// a controller's rehearsals, and counts as one.
    pub event_count_max: u64,
    /// Limit of the virtual time of one [`crate::Machine::run_to_end`].
    pub virtual_time_max: Time,
    /// Memory limit, in bytes. It covers the tables of the machine, drive contents that programs
    /// did not write in whole blocks, and recordings. Cached data are shared with the program that
    /// wrote them and do not count.
    pub memory_bytes_max: u64,
    /// Memory limit of the machine's tables alone, in bytes.
    pub table_bytes_max: u64,
}

const ONE_DAY: Time = Time::from_millis(24 * 60 * 60 * 1000);

impl RunBudget {
    /// Default limits. They are far above the needs of one repetition of any suite on any system of
    /// the catalogue. An engine that processes some millions of events a second needs a minute for
    /// them.
    pub const DEFAULT: Self = Self {
        event_count_max: 200_000_000,
        virtual_time_max: Time(7 * ONE_DAY.0),
        memory_bytes_max: 2 << 30,
        table_bytes_max: 2 << 30,
    };

    /// Absence of limits, except that of the clock, which counts nanoseconds in 64 bits.
    pub const UNLIMITED: Self = Self {
        event_count_max: u64::MAX,
        virtual_time_max: Time(500 * 365 * ONE_DAY.0),
        memory_bytes_max: u64::MAX,
        table_bytes_max: u64::MAX,
    };

    /// Returns the limits for a number of repetitions that run in sequence.
    pub fn for_repetitions(self, repetitions: u64) -> Self {
        Self {
            event_count_max: self.event_count_max.saturating_mul(repetitions),
            ..self
        }
    }

    /// Returns the limits for systems with user settings. `requested_bytes` is the amount of data that
    /// the user's programs transfer.
    pub fn with_settings(requested_bytes: u64) -> Self {
        let requested_events = (requested_bytes >> 10).saturating_mul(EVENTS_PER_SETTINGS_KIB);
        Self {
            event_count_max: EVENT_COUNT_WITH_SETTINGS_MAX.saturating_add(requested_events),
            table_bytes_max: 512 << 20,
            ..Self::DEFAULT
        }
    }

    /// Returns the stricter of two sets of limits, limit by limit.
    pub fn stricter_of(self, other: Self) -> Self {
        Self {
            event_count_max: self.event_count_max.min(other.event_count_max),
            virtual_time_max: self.virtual_time_max.min(other.virtual_time_max),
            memory_bytes_max: self.memory_bytes_max.min(other.memory_bytes_max),
            table_bytes_max: self.table_bytes_max.min(other.table_bytes_max),
        }
    }

    /// Returns the default limits, or no limits if they are lifted.
    pub fn default_unless_lifted(lifted: bool) -> Self {
        match lifted {
            true => Self::UNLIMITED,
            false => Self::DEFAULT,
        }
    }
}

/// Number of events of a rig that count as one event of the budget. Measured per second of
/// processor time: 1.1 million events of a computer, 2.3 million of a rig, and 2.6 million of a
/// controller's rehearsals.
pub(crate) const EVENTS_PER_RIG_REQUEST: u64 = 2;
pub(crate) const EVENTS_PER_REHEARSED_EVENT: u64 = 3;

/// Event limit with user settings; so many events end within ten seconds. Without settings, the
/// most expensive run of the catalogue, the suite of `sun3-rimfire-2344:adaptive`, needs 8.1
/// million.
const EVENT_COUNT_WITH_SETTINGS_MAX: u64 = 9_000_000;

/// Event limit per KiB of transferred data, for a slow system. On most systems, a random 4 KiB
/// transfer needs five events in all.
const EVENTS_PER_SETTINGS_KIB: u64 = 4;

impl Default for RunBudget {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Limit of a [`RunBudget`] that a run exceeded, with the amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Number of events above the limit.
    Events {
        /// Number of events when the limit was exceeded, summed over all machines of the command.
        events: u64,
        /// Virtual time since the last [`crate::Machine::run_to_end`] began.
        time: Time,
        /// Stage in which the programs spent the most time. None if it is unknown.
        stage: Option<LongestStage>,
    },
    /// Virtual time limit exceeded.
    Time {
        /// Virtual time of the run when the limit was exceeded.
        time: Time,
        /// Stage in which the programs spent the most time. None if it is unknown.
        stage: Option<LongestStage>,
    },
    /// Memory limit exceeded while the machine ran.
    Memory {
        /// Memory of the machine, in bytes.
        bytes: u64,
        /// Part of the memory that recordings use, in bytes.
        recorded: u64,
    },
    /// Memory limit of the machine's tables exceeded, before the machine is built.
    Tables {
        /// Memory of all tables, in bytes.
        bytes: u64,
        /// Parameter that determines the size of the largest table.
        parameter: &'static str,
        /// Size of the largest table, in bytes.
        part: u64,
        /// Memory limit of the tables, in bytes.
        limit: u64,
    },
}

impl ExceededLimit {
    /// Reports whether the exceeded limit is known before the machine runs.
    pub fn is_known_before_run(&self) -> bool {
        matches!(self, Self::Tables { .. })
    }
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events {
                events,
                time,
                stage,
            } => write!(
                formatter,
                "the model was stopped after {events} events in all repetitions, after {} of virtual time in one{}; change those parameters back towards their defaults, give a smaller --size, or lift the limit with --no-budget",
                FormattedDuration(*time),
                FormattedLongestStage(*stage),
            ),
            Self::Time { time, stage } => write!(
                formatter,
                "the model was stopped after {} of virtual time in one repetition{}; make that stage faster, give a smaller --size, or lift the limit with --no-budget",
                FormattedDuration(*time),
                FormattedLongestStage(*stage),
            ),
            Self::Memory { bytes, recorded } => write!(
                formatter,
                "the model was stopped when it used {} of memory, {} of it for recorded events; give a smaller --size, or lift the limit with --no-budget",
                FormattedMebibytes(*bytes),
                FormattedMebibytes(*recorded),
            ),
            Self::Tables {
                bytes,
                parameter,
                part,
                limit,
            } => write!(
                formatter,
                "the model needs {} of memory, {parameter} alone {}, and the limit is {}; reduce {parameter}, or lift the limit with --no-budget",
                FormattedMebibytes(*bytes),
                FormattedMebibytes(*part),
                FormattedMebibytes(*limit),
            ),
        }
    }
}

struct FormattedDuration(Time);

impl fmt::Display for FormattedDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_seconds();
        let (value, unit) = match seconds {
            ..120.0 => (seconds, "seconds"),
            ..7200.0 => (seconds / 60.0, "minutes"),
            ..172_800.0 => (seconds / 3600.0, "hours"),
            _ => (seconds / 86_400.0, "days"),
        };
        write!(formatter, "{value:.1} {unit}")
    }
}

struct FormattedMebibytes(u64);

impl fmt::Display for FormattedMebibytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} MiB", self.0.div_ceil(1 << 20))
    }
}

/// Stage in which the programs of a computer or a rig spent the most time. A rig is a set of drives
/// without a computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestStage {
    /// Stage in which the programs spent the most time.
    pub stage: Stage,
    /// Whether the programs ran on a rig (drives without a computer).
    pub is_on_rig: bool,
}

impl LongestStage {
    fn parameters(self) -> Option<&'static str> {
        match self.stage {
            Stage::Completion if self.is_on_rig => Some("drive.*completion*"),
            Stage::ControllerQueue | Stage::Command | Stage::CacheHit | Stage::Destage
                if self.is_on_rig =>
            {
                Some("the drive's times: drive.*_ms or drive.*_us")
            }
            Stage::User if self.is_on_rig => Some("program.think_ns"),
            stage => parameters_for_stage(stage)
                .filter(|parameters| !self.is_on_rig || parameters.starts_with("drive.")),
        }
    }
}

struct FormattedLongestStage(Option<LongestStage>);

impl fmt::Display for FormattedLongestStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(longest) = self.0 else { return Ok(()) };
        write!(formatter, ", most of it in {}", longest.stage.name())?;
        match longest.parameters() {
            Some(parameters) => write!(formatter, " ({parameters})"),
            None => Ok(()),
        }
    }
}

/// Returns the parameters with the most influence on the time of a stage of a computer.
fn parameters_for_stage(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::User => Some("host.speed, program.think_ns"),
        Stage::SystemCall | Stage::Allocate | Stage::CacheLookup => {
            Some("the kernel's times: kernel.*_ms, and host.speed")
        }
        Stage::Copy => Some("host.copy_ms_per_kb"),
        Stage::Clear => Some("host.clear_ms_per_kb"),
        Stage::Driver => Some("the driver's times: driver.*_ms, and host.speed"),
        Stage::Interrupt | Stage::Completion => {
            Some("kernel.interrupt_ms, driver.*_ms, host.clock_hz and host.serial_lines")
        }
        Stage::MemoryContention => Some("bus.memory_contention_share"),
        Stage::ChannelWait | Stage::BusWait | Stage::BusTransfer => Some("bus.bytes_per_s"),
        Stage::ControllerQueue | Stage::Command | Stage::CacheHit | Stage::Destage => {
            Some("the controller's times: controller.*_ms")
        }
        Stage::Seek => Some("drive.seek_*_ms"),
        Stage::Settle => Some("drive.settle_ms"),
        Stage::WriteSettle => Some("drive.write_settle_ms"),
        Stage::HeadSwitch => Some("drive.head_switch_ms"),
        Stage::RotationalLatency | Stage::MissedRevolution(_) | Stage::MediaTransfer => {
            Some("drive.spindle_rpm, drive.interleave")
        }
        Stage::RateLimit(_) => Some("the volume's limits: drive.iops, drive.bytes_per_s"),
        Stage::Cleaning => Some("drive.band_bytes"),
        Stage::FlashRead | Stage::ReadRetry => Some("drive.read_ns"),
        Stage::FlashProgram | Stage::BufferFull | Stage::Journal => Some("drive.program_us"),
        Stage::FlashErase | Stage::Collection => Some("drive.spare_share"),
        Stage::DieWait(_) => Some("drive.dies_per_channel"),
        Stage::ChannelTransfer => Some("drive.channel_bytes_per_s"),
        Stage::Decode => Some("drive.decode_us"),
        Stage::CpuWait
        | Stage::BufferWait
        | Stage::DriverQueue
        | Stage::MapMiss
        | Stage::Think
        | Stage::CgroupThrottle
        | Stage::TagWait
        | Stage::PlugWait
        | Stage::FlushWait
        | Stage::Flush
        | Stage::WorkQueueWait
        | Stage::HandOver
        | Stage::OtherTask
        | Stage::DirtyThrottle
        | Stage::Reclaim
        | Stage::Device
        | Stage::Unattributed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rig has no computer, so no message may send its user to parameters of one.
    #[test]
    fn a_rig_depends_on_parameters_of_drives_and_programs_only() {
        let of_a_computer = ["kernel", "host", "bus", "driver", "controller", "interrupt"];
        for stage in Stage::ALL {
            let longest = LongestStage {
                stage,
                is_on_rig: true,
            };
            let parameters = longest.parameters().unwrap_or_default();
            for word in of_a_computer {
                assert!(!parameters.contains(word), "{stage:?}: {parameters}");
            }
        }
    }
}
