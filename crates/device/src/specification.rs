//! Specifications of devices; with the feature `catalogue`, read from an entry of the catalogue.

#[cfg(feature = "catalogue")]
mod disk;
#[cfg(feature = "catalogue")]
mod fixed;
#[cfg(feature = "catalogue")]
mod flash;

#[cfg(feature = "catalogue")]
pub use disk::{AGED_SPTF_MS_PER_S_DEFAULT, V_SCAN_SHARE_DEFAULT};

use crate::Device;
use crate::disk::device::{Disk, DiskSpecification};
use crate::disk::spindle::{RotationAngle, Spindle};
use crate::fixed::{FixedConfig, FixedDevice};
use crate::flash::device::Flash;
use crate::flash::specification::{FlashSpecification, UNIT_BYTES};
use crate::kinds::each_device;
#[cfg(feature = "catalogue")]
use diskperf_catalogue::{Catalogue, Component, Errors, Reader, ResolvedSystem};
use diskperf_ftl::PreconditionState;
use diskperf_sim::RandomStreams;

/// Specification from which devices of one kind are built.
pub trait BuildDevice: Sized {
    /// Type of the device that the specification builds.
    type Device;

    /// Reads the specification from an entry of the catalogue. The reader collects errors.
    #[cfg(feature = "catalogue")]
    fn read(reader: &mut Reader<'_>) -> Self;

    /// Builds an idle device from the specification.
    ///
    /// # Panics
    ///
    /// When the specification contradicts itself.
    fn build(&self, streams: &RandomStreams, unit: Unit) -> Self::Device;

    /// Returns the sector size of the device, in bytes.
    fn sector_bytes(&self) -> u32;

    /// Returns the size of a sector of the medium, in bytes. A write of a part of one reads it first,
    /// and a power cut can spoil all of it.
    fn medium_sector_bytes(&self) -> u64 {
        u64::from(self.sector_bytes())
    }

    /// Returns the number of sectors of the device; `None` if the specification contradicts itself.
    fn sectors(&self) -> Option<u64>;

    /// Returns the size of the device's cache for reads and writes together, in bytes; 0 without a
    /// cache.
    fn cache_bytes(&self) -> u64;
}

macro_rules! specifications {
    ($($(#[$doc:meta])* $kind:literal is $Kind:ident($device:ty, $specification:ty);)*) => {
        /// Specification of a device of any kind.
        #[derive(Clone, Debug)]
        pub enum DeviceSpecification {
            $($(#[$doc])* $Kind(Box<$specification>),)*
        }

        impl DeviceSpecification {
            /// Reads the specification of a device of a kind of the catalogue (`drive`, `flash`,
            /// `volume` or `fixed`); `None` for another kind. The reader collects errors.
            #[cfg(feature = "catalogue")]
            pub fn read(reader: &mut Reader<'_>, kind: &str) -> Option<Self> {
                Some(match kind {
                    $($kind => Self::$Kind(Box::new(BuildDevice::read(reader))),)*
                    _ => return None,
                })
            }

            /// Builds an idle device from the specification.
            ///
            /// # Panics
            ///
            /// When the specification contradicts itself.
            pub fn build(&self, streams: &RandomStreams, unit: Unit) -> Device {
                match self {
                    $(Self::$Kind(of) => Device::$Kind(Box::new(of.build(streams, unit))),)*
                }
            }

            /// Returns the sector size of the device, in bytes.
            pub fn sector_bytes(&self) -> u32 {
                match self {
                    $(Self::$Kind(of) => BuildDevice::sector_bytes(&**of),)*
                }
            }

            /// Returns the size of a sector of the medium, in bytes.
            pub fn medium_sector_bytes(&self) -> u64 {
                match self {
                    $(Self::$Kind(of) => BuildDevice::medium_sector_bytes(&**of),)*
                }
            }

            /// Returns the number of sectors of the device; `None` if the specification contradicts
            /// itself.
            pub fn sectors(&self) -> Option<u64> {
                match self {
                    $(Self::$Kind(of) => BuildDevice::sectors(&**of),)*
                }
            }

            /// Returns the size of the device's cache for reads and writes together, in bytes; 0
            /// without a cache.
            pub fn cache_bytes(&self) -> u64 {
                match self {
                    $(Self::$Kind(of) => BuildDevice::cache_bytes(&**of),)*
                }
            }
        }
    };
}
each_device! { specifications }

impl BuildDevice for FixedConfig {
    type Device = FixedDevice;

    #[cfg(feature = "catalogue")]
    fn read(reader: &mut Reader<'_>) -> Self {
        fixed::read_fixed(reader)
    }

    fn build(&self, streams: &RandomStreams, unit: Unit) -> FixedDevice {
        let draws = streams.named_stream(&format!("controller.{}.service", unit.number));
        FixedDevice::new(self.clone(), draws)
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn sectors(&self) -> Option<u64> {
        Some(self.sectors)
    }

    fn cache_bytes(&self) -> u64 {
        0
    }
}

impl BuildDevice for DiskSpecification {
    type Device = Disk;

    #[cfg(feature = "catalogue")]
    fn read(reader: &mut Reader<'_>) -> Self {
        disk::read(reader)
    }

    fn build(&self, _: &RandomStreams, unit: Unit) -> Disk {
        let mut disk = Disk::new(self, unit.phase).unwrap_or_else(|error| panic!("{error}"));
        if unit.slower_share > 0.0 {
            let period_ns = self.mechanism.period_ns / (1.0 - unit.slower_share);
            disk.set_spindle(Spindle::new(period_ns, unit.phase));
        }
        disk
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn medium_sector_bytes(&self) -> u64 {
        self.medium_sector_bytes()
    }

    fn sectors(&self) -> Option<u64> {
        Disk::new(self, RotationAngle::ZERO)
            .ok()
            .map(|disk| disk.sectors())
    }

    fn cache_bytes(&self) -> u64 {
        self.cache_bytes()
    }
}

impl BuildDevice for FlashSpecification {
    type Device = Flash;

    #[cfg(feature = "catalogue")]
    fn read(reader: &mut Reader<'_>) -> Self {
        flash::read(reader)
    }

    fn build(&self, streams: &RandomStreams, unit: Unit) -> Flash {
        let number = unit.number;
        let mut past = streams.named_stream(&format!("drive.{number}.past"));
        let retries = streams.named_stream(&format!("drive.{number}.retries"));
        let flash = Flash::new(self, (past.draw_below(1 << 32), retries));
        flash.unwrap_or_else(|error| panic!("{error}"))
    }

    fn sector_bytes(&self) -> u32 {
        UNIT_BYTES
    }

    fn sectors(&self) -> Option<u64> {
        Some(self.translation.logical_units.into())
    }

    fn cache_bytes(&self) -> u64 {
        self.buffer_bytes()
    }
}

/// Differences between two devices of the same specification.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit {
    /// Number of the device, which names its random streams.
    pub number: usize,
    /// Angle of the platters at time zero.
    pub phase: RotationAngle,
    /// Share by which the platters turn slower than specified.
    pub slower_share: f64,
}

impl DeviceSpecification {
    /// Reads the specification of a drive of the catalogue by its name.
    ///
    /// # Errors
    ///
    /// An unknown name, an entry that contradicts itself, or a bare mechanism, which is no drive
    /// without a controller.
    #[cfg(feature = "catalogue")]
    pub fn from_catalogue(catalogue: &Catalogue, name: &str) -> Result<Self, Errors> {
        Self::from_rig(catalogue.component_entry(Component::Drive, name)?)
    }

    /// Reads the specification of the only drive of a system, with the settings with which the
    /// system was resolved.
    ///
    /// # Errors
    ///
    /// A drive that contradicts itself, a bare mechanism, or a system with other components or more
    /// drives.
    #[cfg(feature = "catalogue")]
    pub fn from_rig(entry: ResolvedSystem) -> Result<Self, Errors> {
        let mut reader = entry.reader(Component::Drive, Some(1));
        let kind = reader.optional_text("kind", "disk, drive, flash, volume or fixed");
        let kind = kind.as_deref().unwrap_or("disk");
        let read = Self::read(&mut reader, kind);
        if read.is_none() {
            let what =
                "a disk mechanism needs a controller, and cannot be used as a drive by itself";
            reader.fail_with_choices("kind", what, "drive, flash, volume or fixed");
        } else {
            reader.finish();
        }
        entry.finish()?;
        Ok(read.expect("a kind that was not read is a problem"))
    }

    /// Returns the specification of a disk; `None` for another kind of device.
    pub fn disk(&self) -> Option<&DiskSpecification> {
        match self {
            Self::Disk(disk) => Some(disk),
            _ => None,
        }
    }

    /// Returns the specification of a flash drive; `None` for another kind of device.
    pub fn flash(&self) -> Option<&FlashSpecification> {
        match self {
            Self::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// Returns the specification of a drive in use: a flash drive is preconditioned with random
    /// writes to its steady state. A flash drive that was never written answers reads without its
    /// dies. Other devices stay as they are.
    #[must_use]
    pub fn written_at_random(mut self) -> Self {
        if let Self::Flash(flash) = &mut self {
            flash.translation.precondition = PreconditionState::Random;
        }
        self
    }
}
