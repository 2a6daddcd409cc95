//! What a disk's firmware takes for a command, by kind.

use diskperf_sim::Time;

/// What commands take, in ms. DiskSim's files have the same kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct OverheadSpecification {
    /// What each sector of a write takes besides.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_sector_ms: f64,
    /// Reads that the buffer answers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_hit: After,
    /// Reads that the arm has to move for.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_miss: After,
    /// Writes; flushes too.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write: After,
    /// Telling the host that a read is done.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_completion_ms: f64,
    /// Telling the host that a write is done.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_completion_ms: f64,
}

/// By the kind of the command that was completed last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct After {
    /// After a read, in ms.
    pub after_read_ms: f64,
    /// After a write, in ms.
    pub after_write_ms: f64,
    /// Of a command for the sectors behind those of one of its kind, the last before it, in
    /// ms; as of others if absent. While the arm reads on, `reading_ahead_ms` goes before it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sequential_ms: Option<f64>,
    /// While the arm reads on, in ms; as at other times if absent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reading_ahead_ms: Option<f64>,
}

impl After {
    /// The same after both.
    pub fn both(ms: f64) -> Self {
        Self {
            after_read_ms: ms,
            after_write_ms: ms,
            ..Self::default()
        }
    }

    /// All of them, in ms.
    pub fn times_ms(&self) -> impl Iterator<Item = f64> {
        let plain = [self.after_read_ms, self.after_write_ms];
        let others = [self.sequential_ms, self.reading_ahead_ms];
        plain.into_iter().chain(others.into_iter().flatten())
    }
}

/// What was before a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A read was completed last.
    Read,
    /// A write was.
    Write,
    /// One of its kind, for the sectors before its own.
    Sequential,
    /// The arm still reads on behind a read.
    ReadingAhead,
}

/// What a command is to the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// A read that the buffer answers.
    ReadHit,
    /// A read that the arm has to move for.
    ReadMiss,
    /// A write, or a flush.
    Write,
}

/// The same in whole nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Overheads {
    /// By kind, and by what was before.
    commands: [[Time; 4]; 3],
    /// By kind, whether its own time is given where it follows another command, and while the
    /// arm reads on.
    given: [[bool; 2]; 3],
    /// Whether any of these is.
    by_state: bool,
    write_sector_ns: f64,
    /// Of a read and of a write.
    completions: [Time; 2],
}

impl Overheads {
    /// As they are specified.
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

    /// Before anything is done for a command.
    #[inline]
    pub fn command(&self, kind: CommandKind, before: Before) -> Time {
        self.commands[kind as usize][before as usize]
    }

    /// Whether more than the last command's kind makes a difference.
    #[inline]
    pub fn go_by_state(&self) -> bool {
        self.by_state
    }

    /// What a command goes by: the first that its kind has a time for of reading ahead, of
    /// following another command, and of what was completed last.
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

    /// What the sectors of a write take besides.
    pub fn write_sectors(&self, sectors: u32) -> Time {
        Time((self.write_sector_ns * f64::from(sectors) + 0.5) as u64)
    }

    /// After all was done for it.
    #[inline]
    pub fn completion(&self, write: bool) -> Time {
        self.completions[usize::from(write)]
    }
}
