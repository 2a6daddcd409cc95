//! Controllers: what stands between the bus and the drives.

pub mod acsi;
pub mod massbus;
pub mod uda50;
pub mod vme;
pub mod wd1003;

use super::{Parts, Surroundings};
use acsi::{Acsi, AcsiEvent};
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::trace::Counted;
use massbus::{Massbus, MassbusEvent};
use uda50::{Uda50, Uda50Event};
use vme::{CacheStatistics, Vme, VmeEvent};
use wd1003::{Wd1003, Wd1003Event};

/// A controller, of one of the kinds that there are.
pub enum Controller {
    /// A MASSBUS adaptor, or what looks like one.
    Massbus(Massbus),
    /// DEC's UDA50.
    Uda50(Uda50),
    /// A controller of the PC-AT's kind.
    Wd1003(Wd1003),
    /// A controller for the VMEbus.
    Vme(Vme),
    /// A disk on the DMA port of an Atari ST.
    Acsi(Acsi),
}

/// What a controller schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum ControllerEvent {
    /// Of a MASSBUS adaptor.
    Massbus(MassbusEvent),
    /// Of a UDA50.
    Uda50(Uda50Event),
    /// Of a WD1003.
    Wd1003(Wd1003Event),
    /// Of a controller for the VMEbus.
    Vme(VmeEvent),
    /// Of a disk on the DMA port of an Atari ST.
    Acsi(AcsiEvent),
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
            (Self::Wd1003(wd1003), ControllerEvent::Wd1003(event)) => {
                wd1003.handle(around, parts, event);
            }
            (Self::Vme(vme), ControllerEvent::Vme(event)) => vme.handle(around, parts, event),
            (Self::Acsi(acsi), ControllerEvent::Acsi(event)) => {
                acsi.handle(around, parts, event);
            }
            (
                Self::Massbus(_) | Self::Uda50(_) | Self::Wd1003(_) | Self::Vme(_) | Self::Acsi(_),
                _,
            ) => {
                panic!("an event reached a controller of another kind")
            }
        }
    }

    /// For how long it was busy up to now, and what of it, if that is counted.
    pub fn busy(&self, now: Time) -> Option<(Counted, Time)> {
        match self {
            Self::Massbus(massbus) => Some((Counted::Channel, massbus.channel_busy(now))),
            Self::Uda50(uda50) => Some((Counted::Processor, uda50.engine_busy())),
            Self::Vme(_) | Self::Wd1003(_) | Self::Acsi(_) => None,
        }
    }

    /// What its cache did, if it has one that counts.
    pub fn cache_statistics(&self) -> Option<[CacheStatistics; 3]> {
        match self {
            Self::Vme(vme) => vme.statistics(),
            Self::Massbus(_) | Self::Uda50(_) | Self::Wd1003(_) | Self::Acsi(_) => None,
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
            Self::Uda50(_) | Self::Wd1003(_) | Self::Vme(_) | Self::Acsi(_) => {
                panic!("the hp driver serves MASSBUS adaptors")
            }
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
            Self::Massbus(_) | Self::Wd1003(_) | Self::Vme(_) | Self::Acsi(_) => {
                panic!("the uda driver serves the UDA50")
            }
        }
    }

    /// The controller of the PC-AT's kind that this is.
    ///
    /// # Panics
    ///
    /// As [`Controller::massbus`].
    pub fn wd1003(&mut self) -> &mut Wd1003 {
        match self {
            Self::Wd1003(wd1003) => wd1003,
            Self::Massbus(_) | Self::Uda50(_) | Self::Vme(_) | Self::Acsi(_) => {
                panic!("the hd driver serves the WD1003")
            }
        }
    }

    /// The controller for the VMEbus that this is.
    ///
    /// # Panics
    ///
    /// As [`Controller::massbus`].
    pub fn vme(&mut self) -> &mut Vme {
        match self {
            Self::Vme(vme) => vme,
            Self::Massbus(_) | Self::Uda50(_) | Self::Wd1003(_) | Self::Acsi(_) => {
                panic!("the vme driver serves controllers for the VMEbus")
            }
        }
    }

    /// The disk on the DMA port of an Atari ST that this is.
    ///
    /// # Panics
    ///
    /// As [`Controller::massbus`].
    pub fn acsi(&mut self) -> &mut Acsi {
        match self {
            Self::Acsi(acsi) => acsi,
            Self::Massbus(_) | Self::Uda50(_) | Self::Wd1003(_) | Self::Vme(_) => {
                panic!("Minix's disk task serves the ST's DMA port")
            }
        }
    }

    /// The task that its interrupts wake.
    pub(crate) fn connect(&mut self, task: TaskId) {
        match self {
            Self::Massbus(massbus) => massbus.connect(task),
            Self::Uda50(uda50) => uda50.connect(task),
            Self::Wd1003(wd1003) => wd1003.connect(task),
            Self::Vme(vme) => vme.connect(task),
            Self::Acsi(acsi) => acsi.connect(task),
        }
    }
}
