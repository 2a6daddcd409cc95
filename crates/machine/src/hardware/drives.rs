//! Drives of a computer: bare mechanisms, which controllers command sector by sector, and devices,
//! which serve requests without a controller.
//!
//! Requests name a drive by its number. Mechanisms and devices are stored apart, under numbers that
//! carry their kind, so that a controller cannot confuse them.

use super::mechanism::Mechanism;
use crate::id::ComponentId;
use diskperf_device::BusyTimes;
use diskperf_device::Device;
use diskperf_device::Request;
use diskperf_device::WhatIf;
use diskperf_device::disk::device::MediaCacheState;
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_sim::Time;
use diskperf_timeline::trace::{
    DiskPosition, FlashBusy, Position, TracedArm, TracedDrive, TracedFlash,
};
use std::ops::{Index, IndexMut};

/// Drives of a computer.
#[derive(Clone, Debug, Default)]
pub struct Drives {
    mechanisms: Vec<Mechanism>,
    devices: Vec<Device>,
    /// Typed number (mechanism or device) of each drive, indexed by the drive number that requests
    /// use.
    drive_refs: Vec<DriveKindId>,
}

#[derive(Clone, Copy, Debug)]
enum DriveKindId {
    Mechanism(ComponentId<Mechanism>),
    Device(ComponentId<Device>),
}

/// Drive that a request is for: a bare mechanism or a device.
#[derive(Clone, Copy, Debug)]
pub enum Drive<'a> {
    /// Bare mechanism of platters and an arm.
    Mechanism(&'a Mechanism),
    /// Device that serves requests without a controller.
    Device(&'a Device),
}

impl Drives {
    /// Adds a mechanism under the next drive number.
    pub fn add_mechanism(&mut self, mechanism: Mechanism) {
        let id = ComponentId::from_index(self.mechanisms.len());
        self.mechanisms.push(mechanism);
        self.drive_refs.push(DriveKindId::Mechanism(id));
    }

    /// Adds a device under the next drive number.
    pub fn add_device(&mut self, device: Device) {
        let id = ComponentId::from_index(self.devices.len());
        self.devices.push(device);
        self.drive_refs.push(DriveKindId::Device(id));
    }

    /// Returns the drive with the given number.
    #[inline]
    pub fn drive_at(&self, number: usize) -> Drive<'_> {
        match self.drive_refs[number] {
            DriveKindId::Mechanism(id) => Drive::Mechanism(&self[id]),
            DriveKindId::Device(id) => Drive::Device(&self[id]),
        }
    }

    /// Returns all drives in the order of their numbers.
    pub fn iter_drives(&self) -> impl Iterator<Item = Drive<'_>> {
        (0..self.drive_refs.len()).map(|number| self.drive_at(number))
    }

    fn devices_mut(&mut self) -> impl Iterator<Item = (u32, &mut Device)> {
        let Self {
            devices,
            drive_refs,
            ..
        } = self;
        // Devices have their numbers in the order in which they were added.
        let numbers = drive_refs.iter().enumerate();
        let numbers = numbers.filter(|(_, one)| matches!(one, DriveKindId::Device(_)));
        let device_numbers = numbers.zip(devices);
        device_numbers.map(|((number, _), device)| (number as u32, device))
    }

    pub(crate) fn set_flash_timing<'a>(
        &mut self,
        of: impl Fn(usize) -> Option<&'a FlashSpecification>,
        what_if: WhatIf,
    ) {
        for (number, device) in self.devices_mut() {
            let specification = of(number as usize);
            if let (Some(flash), Some(specification)) = (device.flash_mut(), specification) {
                flash.apply_what_if(specification, what_if);
            }
        }
    }

    /// Enables the recording of flash activity and of arm activity, for [`Self::take_flash_traces`] and
    /// [`Self::take_arm_traces`].
    pub(crate) fn start_recording(&mut self) {
        self.devices_mut()
            .for_each(|(_, device)| device.start_recording());
    }

    /// Returns the recorded background work of disk arms since the last call.
    pub(crate) fn take_arm_traces(&mut self, now: Time) -> Vec<TracedArm> {
        let all = self.devices_mut();
        all.flat_map(|(number, device)| device.take_recorded_arm(now, number))
            .collect()
    }

    /// Returns the recorded activity of flash drives since the last call.
    pub(crate) fn take_flash_traces(&mut self, now: Time) -> Vec<TracedFlash> {
        let all = self.devices_mut();
        all.filter_map(|(number, device)| device.take_recorded_flash(now, number))
            .collect()
    }

    /// Returns the busy time of the parts of each flash drive up to `now`.
    pub(crate) fn flash_busy_times(&self, now: Time) -> Vec<FlashBusy> {
        let drives = self.iter_drives().enumerate();
        drives
            .filter_map(|(number, drive)| match drive {
                Drive::Device(Device::Flash(flash)) => {
                    Some(flash.component_busy_times(number as u32, now))
                }
                Drive::Device(_) | Drive::Mechanism(_) => None,
            })
            .collect()
    }

    /// Memory of the recordings inside the drives, in bytes.
    pub(crate) fn recorded_bytes(&self) -> usize {
        self.devices.iter().map(Device::recorded_bytes).sum()
    }

    /// Drives that are bare mechanisms.
    pub fn mechanisms(&self) -> &[Mechanism] {
        &self.mechanisms
    }

    /// Returns the mechanisms among the given drives, for the controller that they are attached to.
    pub(crate) fn mechanisms_among(&self, drives: &[usize]) -> MechanismIds {
        let mechanism = |drive: &usize| match self.drive_refs[*drive] {
            DriveKindId::Mechanism(id) => Some((*drive, id)),
            DriveKindId::Device(_) => None,
        };
        MechanismIds(drives.iter().filter_map(mechanism).collect())
    }

    pub(crate) fn devices_among(&self, drives: &[usize]) -> Vec<(usize, ComponentId<Device>)> {
        let device = |drive: &usize| match self.drive_refs[*drive] {
            DriveKindId::Device(id) => Some((*drive, id)),
            DriveKindId::Mechanism(_) => None,
        };
        drives.iter().filter_map(device).collect()
    }
}

impl Drive<'_> {
    /// Size of a sector, in bytes.
    pub fn sector_bytes(self) -> u32 {
        match self {
            Self::Mechanism(mechanism) => mechanism.geometry().sector_bytes(),
            Self::Device(device) => device.sector_bytes(),
        }
    }

    /// Returns the cylinder of a sector, by which drivers sort their queues. All sectors of a
    /// device are on cylinder 0, because a device orders its requests itself.
    pub fn cylinder(self, sector: u64) -> u32 {
        match self {
            Self::Mechanism(mechanism) => mechanism.geometry().locate_sector(sector).cylinder,
            Self::Device(_) => 0,
        }
    }

    /// Returns the physical position of a sector, if known.
    pub fn position(self, sector: u64) -> Option<Position> {
        match self {
            Self::Mechanism(mechanism) => {
                let place = mechanism.geometry().locate_sector(sector);
                Some(Position::Disk(DiskPosition {
                    cylinder: place.cylinder,
                    head: place.head,
                    slot: place.sector,
                    slots: place.sectors_per_track,
                }))
            }
            Self::Device(device) => device.position(sector),
        }
    }

    /// Maximum size of a request, in bytes. None if the drive's commands have no limit.
    pub(crate) fn request_bytes_max(self) -> Option<usize> {
        match self {
            Self::Mechanism(_) => None,
            Self::Device(device) => device.request_bytes_max(),
        }
    }

    /// Reports whether written data may be in a volatile cache of the drive.
    pub(crate) fn has_write_back_cache(self) -> bool {
        match self {
            Self::Mechanism(_) => false,
            Self::Device(device) => device.has_volatile_cache(),
        }
    }

    /// Returns the busy times of the drive so far.
    pub fn busy_times(self) -> BusyTimes {
        match self {
            Self::Mechanism(mechanism) => mechanism.busy_times(),
            Self::Device(device) => device.busy_times(),
        }
    }

    /// Returns the state of the media cache. None for a drive without shingled tracks.
    pub fn media_cache_state(self) -> Option<MediaCacheState> {
        match self {
            Self::Mechanism(_) => None,
            Self::Device(device) => device.media_cache_state(),
        }
    }

    /// Returns the rotation and other fixed properties of the drive for a trace.
    pub(crate) fn describe_for_trace(self) -> TracedDrive {
        let spindle = match self {
            Self::Mechanism(mechanism) => Some(mechanism.spindle()),
            Self::Device(Device::Disk(disk)) => Some(disk.mechanism().spindle()),
            Self::Device(_) => None,
        };
        let (revolution_ns, phase) = spindle.map_or((0.0, 0.0), |spindle| {
            let phase = spindle.angle_at(Time::ZERO).to_revolutions();
            (spindle.exact_period_ns(), phase)
        });
        TracedDrive {
            revolution_ns,
            rotational_phase: phase,
            sector_bytes: self.sector_bytes(),
            has_bus_link: matches!(self, Self::Device(Device::Disk(_))),
        }
    }
}

/// Mechanisms attached to a controller, in the order of their places on it, each with its drive
/// number.
#[derive(Clone, Debug)]
pub struct MechanismIds(Vec<(usize, ComponentId<Mechanism>)>);

impl MechanismIds {
    /// Number of mechanisms on the controller.
    pub fn mechanism_count(&self) -> usize {
        self.0.len()
    }

    /// Returns the place of a drive on the controller.
    ///
    /// # Panics
    ///
    /// If the drive is attached to another controller.
    #[inline]
    pub fn index_of_drive(&self, drive: usize) -> usize {
        let place = self.0.iter().position(|(number, _)| *number == drive);
        place.expect("the drive hangs on this controller")
    }

    /// Returns the number of the drive at a place of the controller.
    pub fn drive_index(&self, place: usize) -> usize {
        self.0[place].0
    }

    /// Returns the mechanism at a place of the controller.
    #[inline]
    pub fn mechanism_id_at(&self, index: usize) -> ComponentId<Mechanism> {
        self.0[index].1
    }

    /// Returns the mechanism that a request is for.
    ///
    /// # Panics
    ///
    /// If the mechanism is attached to another controller.
    #[inline]
    pub fn mechanism_id_for_request(&self, request: &Request) -> ComponentId<Mechanism> {
        self.mechanism_id_at(self.index_of_drive(request.device))
    }
}

impl FromIterator<Mechanism> for Drives {
    fn from_iter<I: IntoIterator<Item = Mechanism>>(mechanisms: I) -> Self {
        let mut drives = Self::default();
        mechanisms
            .into_iter()
            .for_each(|mechanism| drives.add_mechanism(mechanism));
        drives
    }
}

impl Index<ComponentId<Mechanism>> for Drives {
    type Output = Mechanism;

    #[inline]
    fn index(&self, id: ComponentId<Mechanism>) -> &Mechanism {
        &self.mechanisms[id.index()]
    }
}

impl IndexMut<ComponentId<Mechanism>> for Drives {
    #[inline]
    fn index_mut(&mut self, id: ComponentId<Mechanism>) -> &mut Mechanism {
        &mut self.mechanisms[id.index()]
    }
}

impl Index<ComponentId<Device>> for Drives {
    type Output = Device;

    fn index(&self, id: ComponentId<Device>) -> &Device {
        &self.devices[id.index()]
    }
}

impl IndexMut<ComponentId<Device>> for Drives {
    fn index_mut(&mut self, id: ComponentId<Device>) -> &mut Device {
        &mut self.devices[id.index()]
    }
}
