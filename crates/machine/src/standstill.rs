//! Reasons for which a machine stops before its processes have ended.

use crate::budget::ExceededLimit;
use diskperf_sim::{Deadlock, Time};

/// Reason why [`crate::Machine::run_to_end`] returned before its processes had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEndReason {
    /// Deadlock: no process can continue.
    Deadlock(Deadlock),
    /// Hard error: a driver gave up on a transfer.
    HardError(HardError),
    /// Stop by the caller that runs the machine.
    StoppedByUser,
    /// Exceeded limit of the machine's budget.
    LimitExceeded(ExceededLimit),
}

/// Transfer that failed as often as its driver retries it. 4.2BSD prints `hard error`, and the
/// program gets EIO, or no error at all after an asynchronous write. From then on, the measurement
/// is no longer of the program's work, so the machine halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardError {
    /// Time of the hard error.
    pub error_time: Time,
    /// Number of the drive in the machine, counted from 0.
    pub drive: usize,
    /// First sector of the transfer on the drive.
    pub sector: u64,
    /// Number of tries of the transfer.
    pub attempt_count: u32,
}

impl std::fmt::Display for HardError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            error_time: at,
            sector,
            attempt_count: tries,
            ..
        } = self;
        // People count drives from 1 on, as tables do.
        let drive = self.drive + 1;
        write!(
            formatter,
            "hard error on drive {drive} at {at}: the data of the transfer from sector {sector} on were late {tries} times, and its driver gave up; controller.data_late_per_sector says how often a sector is late"
        )
    }
}

impl std::fmt::Display for RunEndReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Deadlock(deadlock) => deadlock.fmt(formatter),
            Self::HardError(error) => error.fmt(formatter),
            Self::StoppedByUser => formatter.write_str("stopped"),
            Self::LimitExceeded(exceeded) => exceeded.fmt(formatter),
        }
    }
}

impl std::error::Error for RunEndReason {}
