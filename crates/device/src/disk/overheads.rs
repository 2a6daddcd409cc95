//! Firmware overheads of a disk, by kind of command.

use diskperf_sim::Time;

/// Firmware overheads of commands, in ms. DiskSim's files distinguish the same kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct OverheadSpecification {
    /// Additional overhead of each sector of a write, in ms.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_sector_ms: f64,
    /// Overhead of a read that hits the buffer.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_hit: After,
    /// Overhead of a read that misses the buffer and needs the arm.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_miss: After,
    /// Overhead of a write or a flush.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write: After,
    /// Time to report the completion of a read to the host, in ms.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_completion_ms: f64,
    /// Time to report the completion of a write to the host, in ms.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_completion_ms: f64,
}

/// Overhead of one kind of command, by the state of the drive and the kind of the command that
/// completed last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct After {
    /// Overhead of a command that follows a read, in ms.
    pub after_read_ms: f64,
    /// Overhead of a command that follows a write, in ms.
    pub after_write_ms: f64,
    /// Overhead of a command whose sectors directly follow those of the last command, of the same
    /// kind, in ms. As for other commands if absent. During a read-ahead, `reading_ahead_ms` has
    /// precedence.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sequential_ms: Option<f64>,
    /// Overhead during a read-ahead, in ms; as at other times if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reading_ahead_ms: Option<f64>,
}

impl After {
    /// Returns an overhead that is the same after reads and writes.
    pub fn both(ms: f64) -> Self {
        Self {
            after_read_ms: ms,
            after_write_ms: ms,
            ..Self::default()
        }
    }

    /// Iterates over all overheads that are given, in ms.
    pub fn times_ms(&self) -> impl Iterator<Item = f64> {
        let plain = [self.after_read_ms, self.after_write_ms];
        let others = [self.sequential_ms, self.reading_ahead_ms];
        plain.into_iter().chain(others.into_iter().flatten())
    }
}

/// State of the drive before a command, on which its overhead depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The command that completed last was a read.
    Read,
    /// The command that completed last was a write.
    Write,
    /// The previous command was of the same kind, for the directly preceding sectors.
    Sequential,
    /// A read-ahead is active when the command arrives.
    ReadingAhead,
}

/// Kind of a command, as firmware overheads distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Read whose sectors are all in the buffer.
    ReadHit,
    /// Read that needs the arm, because the buffer does not hold all its sectors.
    ReadMiss,
    /// Write or flush command.
    Write,
}

/// Firmware overheads of commands, in whole nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Overheads {
    /// Overheads by kind of command ([`CommandKind`]) and by previous state ([`Before`]).
    commands: [[Time; 4]; 3],
    /// Whether each kind has its own overhead for sequential commands, and for commands during a
    /// read-ahead.
    given: [[bool; 2]; 3],
    /// Whether any entry of `given` is set.
    by_state: bool,
    write_sector_ns: f64,
    /// Completion overheads of a read and of a write.
    completions: [Time; 2],
}

impl Overheads {
    /// Converts the specified overheads to nanoseconds.
    pub fn new(of: &OverheadSpecification) -> Self {
        let time = |ms: f64| Time((ms * 1e6 + 0.5) as u64);
        let all = [of.read_hit, of.read_miss, of.write];
        let after = |of: After| {
            // Those that are absent are not asked for.
            [
                of.after_read_ms,
                of.after_write_ms,
                of.sequential_ms.unwrap_or(0.0),
                of.reading_ahead_ms.unwrap_or(0.0),
            ]
            .map(time)
        };
        let given = all.map(|of| [of.sequential_ms, of.reading_ahead_ms].map(|ms| ms.is_some()));
        Self {
            commands: all.map(after),
            by_state: given.iter().flatten().any(|given| *given),
            given,
            write_sector_ns: of.write_sector_ms * 1e6,
            completions: [time(of.read_completion_ms), time(of.write_completion_ms)],
        }
    }

    /// Returns the overhead of a command before the drive starts to serve it.
    #[inline]
    pub fn command(&self, kind: CommandKind, before: Before) -> Time {
        self.commands[kind as usize][before as usize]
    }

    /// Reports whether overheads depend on more than the kind of the last command.
    #[inline]
    pub fn go_by_state(&self) -> bool {
        self.by_state
    }

    /// Returns the state that determines a command's overhead. Read-ahead has precedence, then
    /// sequential access, if the kind has an overhead for it; else the kind of the last completed
    /// command counts.
    pub fn before(
        &self,
        kind: CommandKind,
        (reads_on, follows): (bool, bool),
        after_write: bool,
    ) -> Before {
        let [sequential, reading_ahead] = self.given[kind as usize];
        match after_write {
            _ if reads_on && reading_ahead => Before::ReadingAhead,
            _ if follows && sequential => Before::Sequential,
            true => Before::Write,
            false => Before::Read,
        }
    }

    /// Returns the additional overhead of a write for its sectors.
    pub fn write_sectors(&self, sectors: u32) -> Time {
        Time((self.write_sector_ns * f64::from(sectors) + 0.5) as u64)
    }

    /// Returns the overhead between the end of a command's work and its completion at the host.
    #[inline]
    pub fn completion(&self, write: bool) -> Time {
        self.completions[usize::from(write)]
    }
}
