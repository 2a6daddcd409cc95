//! Pictures of a drive's activity: platters or dies.

use super::{dies, platter};
use diskperf_timeline::Trace;

/// Picture of a drive's activity in a trace, for a disk or a flash drive.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Picture of a disk over a few revolutions.
    Platter(Box<platter::PlatterPicture>),
    /// Picture of a flash drive's dies over time.
    Dies(Box<dies::DiePicture>),
}

impl Picture {
    /// Selects the picture for a trace; `None` without requests of a disk or of flash.
    pub fn from_trace(trace: &Trace) -> Option<Self> {
        let of_platter = || platter::PlatterPicture::from_trace(trace).map(Box::new);
        let of_dies = || dies::DiePicture::from_trace(trace).map(Box::new);
        of_platter()
            .map(Self::Platter)
            .or_else(|| of_dies().map(Self::Dies))
    }

    /// Returns the prefix for the name of a picture: platter or dies.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Self::Platter(_) => "platter",
            Self::Dies(_) => "dies",
        }
    }

    /// Draws the pictures of a result; `name` is that of the first one, `title` describes the
    /// measurement.
    pub(super) fn render_figures(&self, name: &str, title: &str) -> String {
        match self {
            Self::Platter(picture) => platter::render_figure(picture, name, title),
            Self::Dies(picture) => dies::render_figures(picture, name, title),
        }
    }
}
