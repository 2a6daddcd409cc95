//! What a disk's firmware takes for a command, by kind.

use diskperf_sim::Time;
use serde::Deserialize;

/// What commands take, in ms. DiskSim's files have the same kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadSpecification {
    /// Reads that the buffer answers.
    #[serde(default)]
    pub read_hit: After,
    /// Reads that the arm has to move for.
    #[serde(default)]
    pub read_miss: After,
    /// Writes; flushes too.
    #[serde(default)]
    pub write: After,
    /// Telling the host that a read is done.
    #[serde(default)]
    pub read_completion_ms: f64,
    /// Telling the host that a write is done.
    #[serde(default)]
    pub write_completion_ms: f64,
}

/// By the kind of the command that was completed last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// After a read, in ms.
    pub after_read_ms: f64,
    /// After a write, in ms.
    pub after_write_ms: f64,
}

impl After {
    /// The same after both.
    pub fn both(ms: f64) -> Self {
        Self {
            after_read_ms: ms,
            after_write_ms: ms,
        }
    }
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
    /// By kind, after a read and after a write.
    commands: [[Time; 2]; 3],
    /// Of a read and of a write.
    completions: [Time; 2],
}

impl Overheads {
    /// As they are specified.
    pub fn new(of: &OverheadSpecification) -> Self {
        let time = |ms: f64| Time((ms * 1e6 + 0.5) as u64);
        let after = |of: After| [time(of.after_read_ms), time(of.after_write_ms)];
        Self {
            commands: [after(of.read_hit), after(of.read_miss), after(of.write)],
            completions: [time(of.read_completion_ms), time(of.write_completion_ms)],
        }
    }

    /// Before anything is done for a command.
    #[inline]
    pub fn command(&self, kind: CommandKind, after_write: bool) -> Time {
        self.commands[kind as usize][usize::from(after_write)]
    }

    /// After all was done for it.
    #[inline]
    pub fn completion(&self, write: bool) -> Time {
        self.completions[usize::from(write)]
    }
}
