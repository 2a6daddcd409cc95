//! Description of a fault: its kind, where and when it strikes, and its seed.

use crate::Operation;
use diskperf_sim::Time;
use std::ops::Range;

/// Kind of an operation, without its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// Read of a range of sectors.
    Read,
    /// Write of sectors, with or without force unit access.
    Write,
    /// Flush of the volatile cache.
    Flush,
    /// Discard of a range of sectors.
    Trim,
    /// Write of zeroes without data from the host.
    WriteZeroes,
}

impl OperationKind {
    /// List of all kinds of operations.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Trim,
        Self::WriteZeroes,
    ];

    /// Returns the kind of an operation.
    pub fn from_operation(operation: Operation) -> Self {
        match operation {
            Operation::Read => Self::Read,
            Operation::Write { .. } => Self::Write,
            Operation::Flush => Self::Flush,
            Operation::Discard => Self::Trim,
            Operation::WriteZeroes => Self::WriteZeroes,
        }
    }

    /// Returns the name of the kind in files and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::WriteZeroes => "write_zeroes",
        }
    }
}

/// Placement of runs of sectors at random in the range of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorRuns {
    /// Number of runs of sectors.
    pub count: u64,
    /// Number of sectors of each run.
    pub sectors: u64,
}

/// Kind of a fault, with its parameters. Probabilities are those of a request that the fault
/// applies to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Latent sector errors: reads fail until the sectors are written as a whole.
    UnreadableSectors {
        /// Placement of the sectors; all sectors of the range without one.
        runs: Option<SectorRuns>,
        /// Time that the drive retries before a read fails.
        retry: Time,
        /// Additional time of the write that reassigns sectors.
        reassignment: Time,
    },
    /// Sectors that cost additional time at each access.
    SlowSectors {
        /// Placement of the sectors; all sectors of the range without one.
        runs: Option<SectorRuns>,
        /// Additional time of a request that touches such sectors.
        delay: Time,
    },
    /// A drive that takes a multiple of its service time.
    SlowDrive {
        /// Factor of the service time, at least 1.
        factor: f64,
    },
    /// A drive that completes nothing for a while.
    Hang {
        /// Duration of a hang.
        length: Time,
        /// Time from the start of one hang to the start of the next; one hang alone without it.
        interval: Option<Time>,
    },
    /// Requests that fail at random.
    Error {
        /// Probability of a failure.
        probability: f64,
    },
    /// Writes that are completed and leave the old data.
    LostWrite {
        /// Probability that a write is lost.
        probability: f64,
    },
    /// Writes whose later sectors keep their old data.
    TornWrite {
        /// Probability that a write of several sectors is torn.
        probability: f64,
    },
    /// Writes that reach other sectors than the addressed ones.
    MisdirectedWrite {
        /// Probability that a write is misdirected.
        probability: f64,
    },
    /// Sectors in which one bit is read wrongly, without an error.
    BitRot {
        /// Share of the sectors that are affected.
        share: f64,
    },
    /// A drive on which every request fails.
    Death,
    /// Flushes and force unit access that are completed at once and make nothing durable.
    LyingFlush {
        /// Probability that a flush or a write with force unit access is ignored.
        probability: f64,
    },
}

impl FaultKind {
    /// Returns the name of the kind in files and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::UnreadableSectors { .. } => "unreadable_sectors",
            Self::SlowSectors { .. } => "slow_sectors",
            Self::SlowDrive { .. } => "slow_drive",
            Self::Hang { .. } => "hang",
            Self::Error { .. } => "error",
            Self::LostWrite { .. } => "lost_write",
            Self::TornWrite { .. } => "torn_write",
            Self::MisdirectedWrite { .. } => "misdirected_write",
            Self::BitRot { .. } => "bit_rot",
            Self::Death => "death",
            Self::LyingFlush { .. } => "lying_flush",
        }
    }

    /// Whether the fault changes data without an error.
    pub(super) fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::LostWrite { .. }
                | Self::TornWrite { .. }
                | Self::MisdirectedWrite { .. }
                | Self::BitRot { .. }
        )
    }
}

/// Start of a fault's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultStart {
    /// Virtual time; or the time at which the fault is switched on, if that is later.
    Time(Time),
    /// Number of the request, from 1, at whose arrival the fault starts.
    Request(u64),
}

/// Length of a fault's activity, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultLength {
    /// The fault never ends.
    Unlimited,
    /// Duration in virtual time.
    Time(Time),
    /// Number of requests of the drive.
    Requests(u64),
}

/// Description of one fault of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSpecification {
    /// Name of the fault, unique in its drive.
    pub name: String,
    /// Kind of the fault, with its parameters.
    pub kind: FaultKind,
    /// Whether the fault is on from the start.
    pub is_on: bool,
    /// Seed of the fault's random choices.
    pub seed: u64,
    /// Range of sectors that the fault concerns. Flushes have no address, and always concern it.
    pub sectors: Range<u64>,
    /// Operations that the fault concerns, where its kind leaves a choice.
    pub operations: Vec<OperationKind>,
    /// Start of the fault's activity.
    pub start: FaultStart,
    /// Length of the fault's activity.
    pub length: FaultLength,
}
