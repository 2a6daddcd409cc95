//! Where the sectors are on the platters: the files' skews are rounded to sectors, and
//! their zone origins are often not the drive's.

mod joint;
mod scan;

use crate::parameter::{Interval, Parameter};
use crate::places::Place;
pub(crate) use scan::{Reference, mean_direction as scan_mean_direction};

/// What a drive's sectors are turned by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Angles {
    /// As the drive's files have them.
    Filed,
    /// Skews that are one angle over all zones.
    Fitted(Skews),
}

/// Skews in revolutions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Skews {
    /// From a track to the next one of its cylinder.
    pub track: f64,
    /// From a cylinder's first track to the next one's first.
    pub cylinder: f64,
    /// Zones: the angle of the first sector.
    pub origins: Vec<f64>,
    /// Zones: what a range of cylinders with spares adds to the one before it.
    pub range_steps: Vec<f64>,
}

impl Angles {
    /// A place's angle, in revolutions.
    pub(crate) fn of(&self, place: &Place) -> f64 {
        match (self, place.in_zone) {
            (Angles::Fitted(skews), Some(at)) => {
                skews.origins[at.zone]
                    + f64::from(at.order) * skews.track
                    + f64::from(at.cylinder) * skews.cylinder
                    + f64::from(at.range) * skews.range_steps[at.zone]
                    + at.within
            }
            _ => place.filed,
        }
    }
}

/// The spindle and the angles, as a trace shows them.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) angles: Angles,
    pub(crate) period_us: f64,
    pub(crate) parameters: Vec<Parameter>,
    /// R of all references, once the angles are right.
    pub(crate) r: f64,
}

/// Finds the angles from requests that waited for the platter, beginning with the period
/// and a block's time on the bus.
pub(crate) fn find(
    references: &[Reference],
    zones: usize,
    surfaces: u32,
    (period_us, crossing_us): (f64, f64),
) -> Found {
    let start = (period_us, crossing_us);
    let filed = joint::refine(references, &Angles::Filed, start);
    let skews = scan::skews(references, zones, surfaces, start);
    let Some(skews) = skews else {
        return filed;
    };
    let fitted = joint::refine(references, &Angles::Fitted(skews), start);
    // The files' skews hold if they explain as much: they are not fitted.
    if fitted.r > filed.r { fitted } else { filed }
}

/// An angle within half a revolution of 0.
pub(crate) fn wrapped(turns: f64) -> f64 {
    turns - turns.round()
}

fn angle_parameter(name: String, value: f64, error: f64) -> Parameter {
    Parameter {
        name,
        value: value.rem_euclid(1.0),
        interval: Interval::around(value.rem_euclid(1.0), error),
    }
}
