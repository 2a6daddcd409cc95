//! Pictures of what a drive did: of platters, or of dies.

use super::{dies, platter};
use diskperf_timeline::Trace;

/// What is drawn of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Of a disk: a few revolutions.
    Platter(Box<platter::Picture>),
    /// Of a flash drive: its dies over time.
    Dies(Box<dies::Picture>),
}

impl Picture {
    /// What is to be seen in a trace; nothing of one without requests of a disk or of flash.
    pub fn of(trace: &Trace) -> Option<Self> {
        let of_platter = || platter::Picture::of(trace).map(Box::new);
        let of_dies = || dies::Picture::of(trace).map(Box::new);
        of_platter()
            .map(Self::Platter)
            .or_else(|| of_dies().map(Self::Dies))
    }

    /// What pictures of this kind are called, with a space or a hyphen to go on with.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Platter(_) => "platter",
            Self::Dies(_) => "dies",
        }
    }

    /// The figures; `name` is of the first, `title` of what was measured.
    pub(super) fn figures(&self, name: &str, title: &str) -> String {
        match self {
            Self::Platter(picture) => platter::figure(picture, name, title),
            Self::Dies(picture) => dies::figures(picture, name, title),
        }
    }
}
