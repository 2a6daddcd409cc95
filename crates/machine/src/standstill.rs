//! Why a machine stands still although its processes have not ended.

use crate::budget::Exceeded;
use diskperf_sim::{Deadlock, Time};

/// Why [`crate::Machine::run`] came back before its processes had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// None of them can go on.
    Deadlock(Deadlock),
    /// A driver gave a transfer up.
    HardError(HardError),
    /// Whoever runs the machine ended it.
    Stopped,
    /// It took more than it may.
    Exceeded(Exceeded),
}

/// A transfer that failed as often as its driver tries it. 4.2BSD prints `hard
/// error`, and the program gets EIO, or never learns of it where the write was
/// asynchronous: what is measured from then on is no longer the program's work, so
/// the machine halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardError {
    /// When.
    pub at: Time,
    /// Of the machine's drives, from 0 on.
    pub drive: usize,
    /// The transfer's first sector, of the drive.
    pub sector: u64,
    /// How often it was tried.
    pub tries: u32,
}

impl std::fmt::Display for HardError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            at, sector, tries, ..
        } = self;
        // People count drives from 1 on, as tables do.
        let drive = self.drive + 1;
        write!(
            formatter,
            "hard error on drive {drive} at {at}: the data of the transfer from sector {sector} on were late {tries} times, and its driver gave up; controller.data_late_per_sector says how often a sector is late"
        )
    }
}

impl std::fmt::Display for Standstill {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Deadlock(deadlock) => deadlock.fmt(formatter),
            Self::HardError(error) => error.fmt(formatter),
            Self::Stopped => formatter.write_str("stopped"),
            Self::Exceeded(exceeded) => exceeded.fmt(formatter),
        }
    }
}

impl std::error::Error for Standstill {}
