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
    #[cfg_attr(feature = "serde", serde(rename = "read_hit"))]
    pub read_hit_ms: OverheadByState,
    /// Overhead of a read that misses the buffer and needs the arm.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "read_miss"))]
    pub read_miss_ms: OverheadByState,
    /// Overhead of a write or a flush.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "write"))]
    pub write_ms: OverheadByState,
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
pub struct OverheadByState {
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

impl OverheadByState {
    /// Returns an overhead that is the same after reads and writes.
    pub fn same_after_both(ms: f64) -> Self {
        Self {
            after_read_ms: ms,
            after_write_ms: ms,
            ..Self::default()
        }
    }

    /// Iterates over all overheads that are given, in ms.
    pub fn list_times_ms(&self) -> impl Iterator<Item = f64> {
        let plain = [self.after_read_ms, self.after_write_ms];
        let others = [self.sequential_ms, self.reading_ahead_ms];
        plain.into_iter().chain(others.into_iter().flatten())
    }
}

/// State of the drive before a command, on which its overhead depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecedingState {
    /// The command that completed last was a read.
    AfterRead,
    /// The command that completed last was a write.
    AfterWrite,
    /// The previous command was of the same kind, for the directly preceding sectors.
    Sequential,
    /// A read-ahead is active when the command arrives.
    ReadingAhead,
}

/// Kind of a command, as firmware overheads distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverheadKind {
    /// Read whose sectors are all in the buffer.
    ReadHit,
    /// Read that needs the arm, because the buffer does not hold all its sectors.
    ReadMiss,
    /// Write or flush command.
    Write,
}

/// Firmware overheads of commands, in whole nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CommandOverheads {
    /// Overheads by kind of command ([`OverheadKind`]) and by previous state ([`PrecedingState`]).
    commands: [[Time; 4]; 3],
    /// Whether each kind has its own overhead for sequential commands, and for commands during a
    /// read-ahead.
    given: [[bool; 2]; 3],
    /// Whether any entry of `given` is set.
    is_by_state: bool,
    write_sector_ns: f64,
    completions: [Time; 2],
}

impl CommandOverheads {
    /// Converts the specified overheads to nanoseconds.
    pub fn new(of: &OverheadSpecification) -> Self {
        let time = |ms: f64| Time((ms * 1e6 + 0.5) as u64);
        let all = [of.read_hit_ms, of.read_miss_ms, of.write_ms];
        let after = |of: OverheadByState| {
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
            is_by_state: given.iter().flatten().any(|given| *given),
            given,
            write_sector_ns: of.write_sector_ms * 1e6,
            completions: [time(of.read_completion_ms), time(of.write_completion_ms)],
        }
    }

    /// Returns the overhead of a command before the drive starts to serve it.
    #[inline]
    pub fn command_overhead(&self, kind: OverheadKind, before: PrecedingState) -> Time {
        self.commands[kind as usize][before as usize]
    }

    /// Reports whether overheads depend on more than the kind of the last command.
    #[inline]
    pub fn depend_on_state(&self) -> bool {
        self.is_by_state
    }

    /// Returns the state that determines a command's overhead. Read-ahead has precedence, then
    /// sequential access, if the kind has an overhead for it; else the kind of the last completed
    /// command counts.
    pub fn classify_state(
        &self,
        kind: OverheadKind,
        (reads_on, follows): (bool, bool),
        after_write: bool,
    ) -> PrecedingState {
        let [sequential, reading_ahead] = self.given[kind as usize];
        match after_write {
            _ if reads_on && reading_ahead => PrecedingState::ReadingAhead,
            _ if follows && sequential => PrecedingState::Sequential,
            true => PrecedingState::AfterWrite,
            false => PrecedingState::AfterRead,
        }
    }

    /// Returns the additional overhead of a write for its sectors.
    pub fn write_sectors_time(&self, sectors: u32) -> Time {
        Time((self.write_sector_ns * f64::from(sectors) + 0.5) as u64)
    }

    /// Returns the overhead between the end of a command's work and its completion at the host.
    #[inline]
    pub fn completion_time(&self, write: bool) -> Time {
        self.completions[usize::from(write)]
    }
}
