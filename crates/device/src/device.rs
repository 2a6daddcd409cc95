//! Devices: what takes requests and completes them by events of its own, with a queue, a
//! cache or a processor inside.
//!
//! A device is told of a request, and says when something happens in it next; whoever it
//! hangs on comes back then. The list in `kinds` has all kinds.

use super::disk::device::{Disk, MediaCacheState};
use super::flash::device::Flash;
use super::kinds::each_device;
use super::{RequestId, Requests, WhatIf};
use crate::Busy;
use diskperf_sim::Time;
use diskperf_spans::{Position, TracedArm, TracedFlash};

/// What the sixteen bits of a command count, 0 as all of them (ATA-6 READ DMA EXT); as many
/// as NVMe's, which count from 0.
pub(crate) const MOST_COMMAND_SECTORS: usize = 1 << 16;

macro_rules! devices {
    ($($(#[$doc:meta])* $kind:literal is $Kind:ident($device:ty, $specification:ty);)*) => {
        /// A device, of one of the kinds that there are.
        #[derive(Clone, Debug)]
        pub enum Device {
            $($(#[$doc])* $Kind(Box<$device>),)*
        }

        impl Device {
            /// Bytes of a sector.
            pub fn sector_bytes(&self) -> u32 {
                match self {
                    $(Self::$Kind(device) => device.sector_bytes(),)*
                }
            }

            /// How many sectors it has.
            pub fn sectors(&self) -> u64 {
                match self {
                    $(Self::$Kind(device) => device.sectors(),)*
                }
            }

            /// The most bytes that one request of it moves, where its commands say that.
            pub fn most_bytes(&self) -> Option<usize> {
                match self {
                    $(Self::$Kind(device) => device.most_bytes(),)*
                }
            }

            /// Whether some of what was written to it may be in a cache that it loses.
            pub fn keeps_writes(&self) -> bool {
                match self {
                    $(Self::$Kind(device) => device.keeps_writes(),)*
                }
            }

            /// What it has done so far.
            pub fn busy(&self) -> Busy {
                match self {
                    $(Self::$Kind(device) => device.busy(),)*
                }
            }

            /// Whether it takes another request.
            pub fn takes_requests(&self) -> bool {
                match self {
                    $(Self::$Kind(device) => device.takes_requests(),)*
                }
            }

            /// Takes a request.
            ///
            /// # Panics
            ///
            /// When it takes none now.
            pub fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
                match self {
                    $(Self::$Kind(device) => device.take(now, requests, id),)*
                }
            }

            /// When something happens in it next, if nobody asks it for more.
            pub fn next_event(&self) -> Option<Time> {
                match self {
                    $(Self::$Kind(device) => device.next_event(),)*
                }
            }

            /// Does what it had to do up to now; whether a request is done by that.
            pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
                match self {
                    $(Self::$Kind(device) => device.advance(now, requests),)*
                }
            }

            /// Whether a request is done that was not taken off.
            pub fn has_done(&self) -> bool {
                match self {
                    $(Self::$Kind(device) => device.has_done(),)*
                }
            }

            /// The next request that is done, once.
            pub fn take_done(&mut self) -> Option<RequestId> {
                match self {
                    $(Self::$Kind(device) => device.take_done(),)*
                }
            }
        }
    };
}
each_device! { devices }

impl Device {
    /// The same device, with something supposed of it.
    #[must_use]
    pub fn supposing(self, what_if: WhatIf) -> Self {
        match self {
            Self::Disk(disk) => Self::Disk(Box::new(disk.supposing(what_if))),
            Self::Flash(flash) => Self::Flash(Box::new(flash.supposing(what_if))),
            other => other,
        }
    }

    /// The disk, if it is one.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Self::Disk(disk) => Some(disk),
            _ => None,
        }
    }

    /// The flash drive, if it is one.
    pub fn flash(&self) -> Option<&Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// The flash drive, if it is one, to be changed.
    pub fn flash_mut(&mut self) -> Option<&mut Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            _ => None,
        }
    }

    /// Records from now on what an arm does for no request, and what a flash drive does.
    pub fn record(&mut self) {
        match self {
            Self::Disk(disk) => disk.record(),
            Self::Flash(flash) => flash.record(),
            _ => {}
        }
    }

    /// Work of a disk's arm for no request since this was asked last, as that of the drive of
    /// this number.
    pub fn recorded_arm(&mut self, now: Time, number: u32) -> Vec<TracedArm> {
        match self {
            Self::Disk(disk) => disk.take_recorded(now, number),
            _ => Vec::new(),
        }
    }

    /// Work of a flash drive since this was asked last, as that of the drive of this number.
    pub fn recorded_flash(&mut self, now: Time, number: u32) -> Option<TracedFlash> {
        self.flash_mut()?.take_recorded(now, number)
    }

    /// Memory of what is recorded.
    pub fn recorded_bytes(&self) -> usize {
        match self {
            Self::Disk(disk) => disk.recorded_bytes(),
            Self::Flash(flash) => flash.recorded_bytes(),
            _ => 0,
        }
    }

    /// Where a sector is, if that is known.
    pub fn position(&self, sector: u64) -> Option<Position> {
        match self {
            Self::Disk(disk) => Some(Position::Disk(disk.position(sector))),
            Self::Flash(flash) => flash.position(sector),
            _ => None,
        }
    }

    /// What it has done with its media cache, of a disk with shingled tracks.
    pub fn media_cache(&self) -> Option<MediaCacheState> {
        match self {
            Self::Disk(disk) => disk.media_cache(),
            _ => None,
        }
    }
}
