//! What a modelled run may take, and what of it was too much.
//!
//! All of it is counted and nothing is timed: what ends a run on one computer ends
//! it on every other at the same event, and no figure hangs on it.

use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::fmt;

/// The most that machines may take which do the work of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events of all machines, one after the other: they are what takes processor time. One of
    /// a computer with its kernel takes as much as two of a rig, and as three of a controller's
    /// rehearsals, and counts as one.
    pub events: u64,
    /// Virtual time that passes in one [`crate::Machine::run`].
    pub time: Time,
    /// Bytes of memory: the tables that the machine is built with, what its drives
    /// hold that programs did not write in whole blocks, and what is recorded of it.
    /// What its cache holds is shared with who wrote it.
    pub bytes: u64,
    /// Bytes of the tables alone.
    pub table_bytes: u64,
}

const DAY: Time = Time::from_millis(24 * 60 * 60 * 1000);

impl Budget {
    /// Far above what one repetition of any suite takes on any system of the catalogue; an
    /// engine that does some millions of events a second is at it for a minute.
    pub const USUAL: Self = Self {
        events: 200_000_000,
        time: Time(7 * DAY.0),
        bytes: 2 << 30,
        table_bytes: 2 << 30,
    };

    /// No limit but that of the clock, which counts nanoseconds in 64 bits.
    pub const NONE: Self = Self {
        events: u64::MAX,
        time: Time(500 * 365 * DAY.0),
        bytes: u64::MAX,
        table_bytes: u64::MAX,
    };

    /// The same for so many repetitions, one after the other.
    pub fn for_repetitions(self, repetitions: u64) -> Self {
        Self {
            events: self.events.saturating_mul(repetitions),
            ..self
        }
    }

    /// That of systems with settings of the user's, who also chose that programs move so
    /// many bytes.
    pub fn with_settings(asked_bytes: u64) -> Self {
        let asked = (asked_bytes >> 10).saturating_mul(EVENTS_PER_KIB);
        Self {
            events: EVENTS_WITH_SETTINGS.saturating_add(asked),
            table_bytes: 512 << 20,
            ..Self::USUAL
        }
    }

    /// What is within both.
    pub fn min(self, other: Self) -> Self {
        Self {
            events: self.events.min(other.events),
            time: self.time.min(other.time),
            bytes: self.bytes.min(other.bytes),
            table_bytes: self.table_bytes.min(other.table_bytes),
        }
    }

    /// The usual one, unless it is lifted.
    pub fn unless(lifted: bool) -> Self {
        match lifted {
            true => Self::NONE,
            false => Self::USUAL,
        }
    }
}

/// Events of a rig, and of a controller's rehearsals, that count as one: measured, a computer
/// does 1.1 millions in a second of processor time, a rig 2.3, rehearsals 2.6.
pub(crate) const RIG_EVENTS: u64 = 2;
pub(crate) const REHEARSED_EVENTS: u64 = 3;

/// Events that end within ten seconds. Without settings, what takes most of the catalogue, the
/// suite of `sun3-rimfire-2344:adaptive`, takes 8.1 millions.
const EVENTS_WITH_SETTINGS: u64 = 9_000_000;

/// Events that a slow system may take for each KiB: 4 KiB at random take five in all on most.
const EVENTS_PER_KIB: u64 = 4;

impl Default for Budget {
    fn default() -> Self {
        Self::USUAL
    }
}

/// What grew beyond its [`Budget`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// Events.
    Events {
        /// How many there were, of all machines of the command.
        events: u64,
        /// The virtual time since the last [`crate::Machine::run`] began.
        time: Time,
        /// What the programs were at for the longest part of it.
        stage: Option<LongestStage>,
    },
    /// Virtual time.
    Time {
        /// How much passed.
        time: Time,
        /// What the programs were at for the longest part of it.
        stage: Option<LongestStage>,
    },
    /// Memory, while the machine ran.
    Memory {
        /// How much it held.
        bytes: u64,
        /// Of that, what was recorded of it.
        recorded: u64,
    },
    /// Memory that it would be built with.
    Tables {
        /// How much, in all.
        bytes: u64,
        /// What the largest part of it is for.
        parameter: &'static str,
        /// That part.
        part: u64,
        /// The most that it may be.
        limit: u64,
    },
}

impl Exceeded {
    /// Whether that is known before the machine runs.
    pub fn is_known_before(&self) -> bool {
        matches!(self, Self::Tables { .. })
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events {
                events,
                time,
                stage,
            } => write!(
                formatter,
                "the model was stopped after {events} events of all repetitions, {} of its time into one{}; set what that hangs on nearer to what it was, give a smaller --size, or lift the limit with --no-budget",
                Span(*time),
                Most(*stage),
            ),
            Self::Time { time, stage } => write!(
                formatter,
                "the model was stopped after {} of its time in one repetition{}; make that faster, give a smaller --size, or lift the limit with --no-budget",
                Span(*time),
                Most(*stage),
            ),
            Self::Memory { bytes, recorded } => write!(
                formatter,
                "the model was stopped when it held {}, of which {} were a record of what happened; give a smaller --size, or lift the limit with --no-budget",
                Mebibytes(*bytes),
                Mebibytes(*recorded),
            ),
            Self::Tables {
                bytes,
                parameter,
                part,
                limit,
            } => write!(
                formatter,
                "the model would take {} of memory, of which {parameter} takes {}, and up to {} is allowed; make {parameter} smaller, or lift the limit with --no-budget",
                Mebibytes(*bytes),
                Mebibytes(*part),
                Mebibytes(*limit),
            ),
        }
    }
}

/// Virtual time, in the unit that fits.
struct Span(Time);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.seconds();
        let (value, unit) = match seconds {
            ..120.0 => (seconds, "seconds"),
            ..7200.0 => (seconds / 60.0, "minutes"),
            ..172_800.0 => (seconds / 3600.0, "hours"),
            _ => (seconds / 86_400.0, "days"),
        };
        write!(formatter, "{value:.1} {unit}")
    }
}

struct Mebibytes(u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} MiB", self.0.div_ceil(1 << 20))
    }
}

/// The stage that took most of the time of a computer, or of a rig, which is drives by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestStage {
    /// The stage.
    pub stage: Stage,
    /// Whether it is of a rig.
    pub on_rig: bool,
}

impl LongestStage {
    /// The parameters that its time hangs on first. A rig has those of its drives alone.
    fn parameters(self) -> Option<&'static str> {
        match self.stage {
            Stage::Completion if self.on_rig => Some("drive.*completion*"),
            Stage::ControllerQueue | Stage::Command | Stage::CacheHit | Stage::Destage
                if self.on_rig =>
            {
                Some("the times of the drive, drive.*_ms or drive.*_us")
            }
            Stage::User if self.on_rig => Some("program.think_ns"),
            stage => parameters_of(stage)
                .filter(|parameters| !self.on_rig || parameters.starts_with("drive.")),
        }
    }
}

/// What took most of the time, and the parameters that it hangs on.
struct Most(Option<LongestStage>);

impl fmt::Display for Most {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(longest) = self.0 else { return Ok(()) };
        write!(formatter, ", most of it in {}", longest.stage.name())?;
        match longest.parameters() {
            Some(parameters) => write!(formatter, " ({parameters})"),
            None => Ok(()),
        }
    }
}

/// The parameters that the time of a stage of a computer hangs on first.
fn parameters_of(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::User => Some("host.speed, program.think_ns"),
        Stage::SystemCall | Stage::Allocate | Stage::CacheLookup => {
            Some("the times of the kernel, as kernel.*_ms, and host.speed")
        }
        Stage::Copy => Some("host.copy_ms_per_kb"),
        Stage::Clear => Some("host.clear_ms_per_kb"),
        Stage::Driver => Some("the times of the driver, as driver.*_ms, and host.speed"),
        Stage::Interrupt | Stage::Completion => Some(
            "kernel.interrupt_ms, the times of the driver, host.clock_hz and host.serial_lines",
        ),
        Stage::MemoryContention => Some("bus.memory_contention_share"),
        Stage::ChannelWait | Stage::BusWait | Stage::BusTransfer => Some("bus.bytes_per_s"),
        Stage::ControllerQueue | Stage::Command | Stage::CacheHit | Stage::Destage => {
            Some("the times of the controller, as controller.command_ms")
        }
        Stage::Seek => Some("drive.seek_*_ms"),
        Stage::Settle => Some("drive.settle_ms"),
        Stage::WriteSettle => Some("drive.write_settle_ms"),
        Stage::HeadSwitch => Some("drive.head_switch_ms"),
        Stage::RotationalLatency | Stage::MissedRevolution(_) | Stage::MediaTransfer => {
            Some("drive.spindle_rpm, drive.interleave")
        }
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
        | Stage::Device
        | Stage::Unattributed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rig has no computer, so no message may send its user to parameters of one.
    #[test]
    fn a_rig_hangs_on_parameters_of_drives_and_programs() {
        let of_a_computer = ["kernel", "host", "bus", "driver", "controller", "interrupt"];
        for stage in Stage::ALL {
            let longest = LongestStage {
                stage,
                on_rig: true,
            };
            let parameters = longest.parameters().unwrap_or_default();
            for word in of_a_computer {
                assert!(!parameters.contains(word), "{stage:?}: {parameters}");
            }
        }
    }
}
