//! What a mark of the picture stands for, with a colour each.

use crate::report::html::family::Family;
use diskperf_timeline::Stage;
use diskperf_timeline::trace::ArmWork;

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// A stage of a request, of the processor or of the arm.
    Stage(Family),
    /// Data that the drive's buffer had cross its link.
    Hit,
    /// Sectors that the arm has pass for no request.
    Arm(ArmWork),
}

impl Mark {
    /// Of a stage that the processor or a request is in.
    pub(super) fn of(stage: Stage) -> Self {
        match stage {
            Stage::CacheHit => Self::Hit,
            stage => Self::Stage(Family::of(stage)),
        }
    }

    /// Of what the arm does for no request: its ways and its waiting are those of any.
    pub(super) fn of_arm(work: ArmWork, stage: Stage) -> Self {
        match stage {
            Stage::MediaTransfer => Self::Arm(work),
            stage => Self::of(stage),
        }
    }

    /// The words of the legend.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Stage(Family::Memory) => "slowed by transfers to memory",
            Self::Stage(family) => family.words(),
            Self::Hit => "answered by the drive's buffer",
            Self::Arm(ArmWork::Destage) => "writing from the drive's buffer",
            Self::Arm(ArmWork::Cleaning) => "cleaning of bands",
            Self::Arm(ArmWork::ReadAhead) => "reading ahead",
        }
    }

    /// The variable of the page's style that holds its colour.
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
