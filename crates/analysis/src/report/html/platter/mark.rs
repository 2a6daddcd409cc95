//! Meaning of the marks in the platter picture, each with a colour.

use crate::report::html::family::Family;
use diskperf_timeline::Stage;
use diskperf_timeline::trace::ArmWork;

/// Meaning of a mark in the platter picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// Stage of a request, of the processor or of the arm.
    Stage(Family),
    /// Transfer of buffered data over the drive's link.
    Hit,
    /// Media transfer of the arm's background work.
    Arm(ArmWork),
}

impl Mark {
    /// Returns the mark of a stage of the processor or of a request.
    pub(super) fn of(stage: Stage) -> Self {
        match stage {
            Stage::CacheHit => Self::Hit,
            stage => Self::Stage(Family::of(stage)),
        }
    }

    /// Returns the mark of the arm's background work in a stage. Its seeks and rotational waits
    /// have the marks of any request.
    pub(super) fn of_arm(work: ArmWork, stage: Stage) -> Self {
        match stage {
            Stage::MediaTransfer => Self::Arm(work),
            stage => Self::of(stage),
        }
    }

    /// Returns the text of the mark in the legend.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Stage(Family::Memory) => "slowed by transfers to memory",
            Self::Stage(family) => family.words(),
            Self::Hit => "served from the drive's buffer",
            Self::Arm(ArmWork::Destage) => "destaging from the drive's buffer",
            Self::Arm(ArmWork::Cleaning) => "cleaning of bands",
            Self::Arm(ArmWork::ReadAhead) => "reading ahead",
        }
    }

    /// Returns the variable of the page's style sheet that holds the mark's colour.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Stage(family) => family.variable(),
            Self::Hit => "--hit",
            Self::Arm(ArmWork::Destage) => "--destage",
            Self::Arm(ArmWork::Cleaning) => "--cleaning",
            Self::Arm(ArmWork::ReadAhead) => "--read-ahead",
        }
    }
}
