//! Controllers: what stands between the bus and the drives.

pub mod massbus;
pub mod uda50;

use super::{Parts, Surroundings};
use massbus::{Massbus, MassbusEvent};
use uda50::{Uda50, Uda50Event};

/// A controller, of one of the kinds that there are.
pub enum Controller {
    /// A MASSBUS adaptor, or what looks like one.
    Massbus(Massbus),
    /// DEC's UDA50.
    Uda50(Uda50),
}

/// What a controller schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum ControllerEvent {
    /// Of a MASSBUS adaptor.
    Massbus(MassbusEvent),
    /// Of a UDA50.
    Uda50(Uda50Event),
}

impl Controller {
    pub(super) fn handle(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        event: ControllerEvent,
    ) {
        match (self, event) {
            (Self::Massbus(massbus), ControllerEvent::Massbus(event)) => {
                massbus.handle(around, parts, event);
            }
            (Self::Uda50(uda50), ControllerEvent::Uda50(event)) => {
                uda50.handle(around, parts, event);
            }
            (Self::Massbus(_), ControllerEvent::Uda50(_))
            | (Self::Uda50(_), ControllerEvent::Massbus(_)) => {
                panic!("an event reached a controller of another kind")
            }
        }
    }

    /// The MASSBUS adaptor that this is.
    ///
    /// # Panics
    ///
    /// When it is none: the driver of one kind was given a controller of
    /// another.
    #[inline]
    pub fn massbus(&mut self) -> &mut Massbus {
        match self {
            Self::Massbus(massbus) => massbus,
            Self::Uda50(_) => panic!("the hp driver was given a UDA50"),
        }
    }

    /// The UDA50 that this is.
    ///
    /// # Panics
    ///
    /// As [`Controller::massbus`].
    pub fn uda50(&mut self) -> &mut Uda50 {
        match self {
            Self::Uda50(uda50) => uda50,
            Self::Massbus(_) => panic!("the uda driver was given a MASSBUS adaptor"),
        }
    }
}
