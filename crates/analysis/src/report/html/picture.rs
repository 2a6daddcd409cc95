//! Pictures of a drive's activity: platters or dies.

use super::{dies, platter};
use diskperf_timeline::Trace;

/// Picture of a drive's activity in a trace, for a disk or a flash drive.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Picture of a disk over a few revolutions.
    Platter(Box<platter::Picture>),
    /// Picture of a flash drive's dies over time.
    Dies(Box<dies::Picture>),
}

impl Picture {
    /// Selects the picture for a trace; `None` without requests of a disk or of flash.
    pub fn of(trace: &Trace) -> Option<Self> {
        let of_platter = || platter::Picture::of(trace).map(Box::new);
        let of_dies = || dies::Picture::of(trace).map(Box::new);
        of_platter()
            .map(Self::Platter)
            .or_else(|| of_dies().map(Self::Dies))
    }

    /// Returns the prefix for the name of a picture: platter or dies.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Platter(_) => "platter",
            Self::Dies(_) => "dies",
        }
    }

    /// Draws the pictures of a result; `name` is that of the first one, `title` describes the
    /// measurement.
    pub(super) fn figures(&self, name: &str, title: &str) -> String {
        match self {
            Self::Platter(picture) => platter::figure(picture, name, title),
            Self::Dies(picture) => dies::figures(picture, name, title),
        }
    }
}
