//! Meaning of the marks in the platter picture, each with a colour.

use crate::report::html::family::StageFamily;
use diskperf_timeline::Stage;
use diskperf_timeline::trace::ArmWork;

/// Meaning of a mark in the platter picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimelineMark {
    /// Stage of a request, of the processor or of the arm.
    Stage(StageFamily),
    /// Transfer of buffered data over the drive's link.
    BufferHit,
    /// Media transfer of the arm's background work.
    ArmWork(ArmWork),
}

impl TimelineMark {
    pub(super) fn from_stage(stage: Stage) -> Self {
        match stage {
            Stage::CacheHit => Self::BufferHit,
            stage => Self::Stage(StageFamily::from_stage(stage)),
        }
    }

    /// Returns the mark of the arm's background work in a stage. Its seeks and rotational waits
    /// have the marks of any request.
    pub(super) fn from_arm_work(work: ArmWork, stage: Stage) -> Self {
        match stage {
            Stage::MediaTransfer => Self::ArmWork(work),
            stage => Self::from_stage(stage),
        }
    }

    /// Returns the text of the mark in the legend.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Stage(StageFamily::Memory) => "slowed by transfers to memory",
            Self::Stage(family) => family.label(),
            Self::BufferHit => "served from the drive's buffer",
            Self::ArmWork(ArmWork::Destage) => "destaging from the drive's buffer",
            Self::ArmWork(ArmWork::Cleaning) => "cleaning of bands",
            Self::ArmWork(ArmWork::ReadAhead) => "reading ahead",
        }
    }

    /// Returns the variable of the page's style sheet that holds the mark's colour.
    pub(super) fn css_variable(self) -> &'static str {
        match self {
            Self::Stage(family) => family.css_variable(),
            Self::BufferHit => "--hit",
            Self::ArmWork(ArmWork::Destage) => "--destage",
            Self::ArmWork(ArmWork::Cleaning) => "--cleaning",
            Self::ArmWork(ArmWork::ReadAhead) => "--read-ahead",
        }
    }
}
