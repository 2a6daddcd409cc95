//! Storage devices: models that accept requests and complete them through their own events, with a
//! queue, a cache or a processor inside.
//!
//! A device accepts a request and reports the time of its next event; the caller advances it to
//! that time. The list in `kinds` has all kinds of devices.

use super::disk::device::{Disk, MediaCacheState};
use super::flash::device::Flash;
use super::kinds::each_device;
use super::{RequestId, Requests, WhatIf};
use crate::BusyTimes;
use diskperf_sim::Time;
use diskperf_spans::{Position, TracedArm, TracedFlash};

/// Maximum number of sectors per command: the range of a 16-bit sector count, with 0 as the maximum
/// (ATA-6 READ DMA EXT). NVMe counts from 0 and has the same maximum.
pub(crate) const COMMAND_SECTORS_MAX: usize = 1 << 16;

macro_rules! devices {
    ($($(#[$doc:meta])* $kind:literal is $Kind:ident($device:ty, $specification:ty);)*) => {
        /// Storage device of any kind.
        #[derive(Clone, Debug)]
        pub enum Device {
            $($(#[$doc])* $Kind(Box<$device>),)*
        }

        impl Device {
            /// Returns the sector size of the device, in bytes.
            pub fn sector_bytes(&self) -> u32 {
                match self {
                    $(Self::$Kind(device) => device.sector_bytes(),)*
                }
            }

            /// Returns the number of sectors of the device.
            pub fn sectors(&self) -> u64 {
                match self {
                    $(Self::$Kind(device) => device.sectors(),)*
                }
            }

            /// Returns the maximum transfer size of one request, in bytes; `None` if the device's
            /// commands set no limit.
            pub fn request_bytes_max(&self) -> Option<usize> {
                match self {
                    $(Self::$Kind(device) => device.request_bytes_max(),)*
                }
            }

            /// Reports whether completed writes may be in a cache that a power cut loses.
            pub fn has_volatile_cache(&self) -> bool {
                match self {
                    $(Self::$Kind(device) => device.has_volatile_cache(),)*
                }
            }

            /// Returns the busy times and transfer counts of the device so far.
            pub fn busy_times(&self) -> BusyTimes {
                match self {
                    $(Self::$Kind(device) => device.busy_times(),)*
                }
            }

            /// Reports whether the device accepts another request.
            pub fn can_accept_request(&self) -> bool {
                match self {
                    $(Self::$Kind(device) => device.can_accept_request(),)*
                }
            }

            /// Submits a request to the device.
            ///
            /// # Panics
            ///
            /// When the device's queue is full.
            pub fn accept_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
                match self {
                    $(Self::$Kind(device) => device.accept_request(now, requests, id),)*
                }
            }

            /// Returns the time of the next event in the device if no request arrives; `None`
            /// without one.
            pub fn next_event(&self) -> Option<Time> {
                match self {
                    $(Self::$Kind(device) => device.next_event(),)*
                }
            }

            /// Advances the device to time `now`, and returns whether a request completed by then.
            pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
                match self {
                    $(Self::$Kind(device) => device.advance(now, requests),)*
                }
            }

            /// Reports whether a completed request waits to be reaped.
            pub fn has_completed_requests(&self) -> bool {
                match self {
                    $(Self::$Kind(device) => device.has_completed_requests(),)*
                }
            }

            /// Removes and returns the oldest completed request, if any.
            pub fn take_completed_request(&mut self) -> Option<RequestId> {
                match self {
                    $(Self::$Kind(device) => device.take_completed_request(),)*
                }
            }
        }
    };
}
each_device! { devices }

impl Device {
    /// Returns the device with a counterfactual assumption applied. A device without mechanics
    /// stays as it is.
    #[must_use]
    pub fn with_what_if(self, what_if: WhatIf) -> Self {
        match self {
            Self::Disk(disk) => Self::Disk(Box::new(disk.with_what_if(what_if))),
            Self::Flash(flash) => Self::Flash(Box::new(flash.with_what_if(what_if))),
            other => other,
        }
    }

    /// Returns the disk; `None` for another kind of device.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Self::Disk(disk) => Some(disk),
            _ => None,
        }
    }

    /// Returns the flash drive; `None` for another kind of device.
    pub fn flash(&self) -> Option<&Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// Returns the flash drive for modification; `None` for another kind of device.
    pub fn flash_mut(&mut self) -> Option<&mut Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// Starts to record background work of a disk's actuator, or all work of a flash drive.
    pub fn start_recording(&mut self) {
        match self {
            Self::Disk(disk) => disk.start_recording(),
            Self::Flash(flash) => flash.start_recording(),
            _ => {}
        }
    }

    /// Returns the background work of a disk's actuator since the last call, labelled with a drive
    /// number. Empty for other devices.
    pub fn take_recorded_arm(&mut self, now: Time, number: u32) -> Vec<TracedArm> {
        match self {
            Self::Disk(disk) => disk.take_recorded(now, number),
            _ => Vec::new(),
        }
    }

    /// Returns the work of a flash drive since the last call, labelled with a drive number; `None`
    /// for other devices.
    pub fn take_recorded_flash(&mut self, now: Time, number: u32) -> Option<TracedFlash> {
        self.flash_mut()?.take_recorded(now, number)
    }

    /// Returns the memory of the recorded work, in bytes.
    pub fn recorded_bytes(&self) -> usize {
        match self {
            Self::Disk(disk) => disk.recorded_bytes(),
            Self::Flash(flash) => flash.recorded_bytes(),
            _ => 0,
        }
    }

    /// Returns the physical position of a sector; `None` if unknown.
    pub fn position(&self, sector: u64) -> Option<Position> {
        match self {
            Self::Disk(disk) => Some(Position::Disk(disk.position(sector))),
            Self::Flash(flash) => flash.position(sector),
            _ => None,
        }
    }

    /// Returns the fill level and traffic of a disk's media cache; `None` for a device without
    /// shingled tracks.
    pub fn media_cache_state(&self) -> Option<MediaCacheState> {
        match self {
            Self::Disk(disk) => disk.media_cache_state(),
            _ => None,
        }
    }
}
