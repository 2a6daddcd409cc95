//! Devices: what requests are of.
//!
//! A bare mechanism is commanded by the controller of a part, sector by sector. What
//! takes requests and completes them by events of its own (with a queue, a cache, a
//! processor) is a part; here only its sectors are known.

use super::mechanism::{Busy, CIRCLE, Mechanism};
use diskperf_sim::Time;
use diskperf_timeline::trace::{DiskPosition, Position, TracedDrive};
use std::ops::{Index, IndexMut};

/// A device, of one of the kinds that there are.
#[derive(Clone, Debug)]
pub enum Device {
    /// Platters and an arm, which a controller commands.
    Mechanism(Box<Mechanism>),
    /// Sectors, of which nothing more is known.
    Sectors(Sectors),
}

/// A device that serves requests itself.
#[derive(Clone, Copy, Debug)]
pub struct Sectors {
    /// Bytes of one.
    pub sector_bytes: u32,
    /// What it has done so far.
    pub busy: Busy,
}

impl Device {
    /// The mechanism that it is, if it is one.
    pub fn mechanism(&self) -> Option<&Mechanism> {
        match self {
            Self::Mechanism(mechanism) => Some(mechanism),
            Self::Sectors(_) => None,
        }
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            Self::Mechanism(mechanism) => mechanism.geometry().sector_bytes(),
            Self::Sectors(sectors) => sectors.sector_bytes,
        }
    }

    /// The cylinder of a sector, which drivers order their queues by: all are on one
    /// where there is no arm.
    pub fn cylinder(&self, sector: u64) -> u32 {
        match self {
            Self::Mechanism(mechanism) => mechanism.geometry().locate(sector).cylinder,
            Self::Sectors(_) => 0,
        }
    }

    /// Where a sector is, if that is known.
    pub fn position(&self, sector: u64) -> Option<Position> {
        let place = self.mechanism()?.geometry().locate(sector);
        Some(Position::Disk(DiskPosition {
            cylinder: place.cylinder,
            head: place.head,
            slot: place.slot,
            slots: place.slots,
        }))
    }

    /// What it has done so far.
    pub fn busy(&self) -> Busy {
        match self {
            Self::Mechanism(mechanism) => mechanism.busy(),
            Self::Sectors(sectors) => sectors.busy,
        }
    }

    /// How it turned, if it does.
    pub(crate) fn traced(&self) -> TracedDrive {
        let sector_bytes = self.sector_bytes();
        match self {
            Self::Mechanism(mechanism) => TracedDrive {
                revolution_ns: mechanism.rotation().exact_period_ns(),
                phase: mechanism.rotation().angle(Time::ZERO).parts() as f64 / CIRCLE as f64,
                sector_bytes,
            },
            Self::Sectors(_) => TracedDrive {
                revolution_ns: 0.0,
                phase: 0.0,
                sector_bytes,
            },
        }
    }
}

/// The devices of a computer, by number. Whoever commands mechanisms finds them by the
/// same numbers: a specification whose controller commands mechanisms has no other
/// device on it.
#[derive(Clone, Debug, Default)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// The device of this number.
    pub fn get(&self, number: usize) -> &Device {
        &self.0[number]
    }

    /// The sectors of a device that serves requests itself, for who does that.
    ///
    /// # Panics
    ///
    /// When it is a mechanism.
    pub fn sectors(&mut self, number: usize) -> &mut Sectors {
        match &mut self.0[number] {
            Device::Sectors(sectors) => sectors,
            Device::Mechanism(_) => panic!("device {number} is a mechanism"),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Device> {
        self.0.iter()
    }
}

impl FromIterator<Device> for Devices {
    fn from_iter<I: IntoIterator<Item = Device>>(devices: I) -> Self {
        Self(devices.into_iter().collect())
    }
}

impl FromIterator<Mechanism> for Devices {
    fn from_iter<I: IntoIterator<Item = Mechanism>>(mechanisms: I) -> Self {
        let device = |mechanism| Device::Mechanism(Box::new(mechanism));
        mechanisms.into_iter().map(device).collect()
    }
}

impl Index<usize> for Devices {
    type Output = Mechanism;

    #[inline]
    fn index(&self, number: usize) -> &Mechanism {
        match &self.0[number] {
            Device::Mechanism(mechanism) => mechanism,
            Device::Sectors(_) => panic!("device {number} is no mechanism"),
        }
    }
}

impl IndexMut<usize> for Devices {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Mechanism {
        match &mut self.0[number] {
            Device::Mechanism(mechanism) => mechanism,
            Device::Sectors(_) => panic!("device {number} is no mechanism"),
        }
    }
}
