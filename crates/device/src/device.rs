//! Devices: what takes requests and completes them by events of its own, with a queue, a
//! cache or a processor inside.
//!
//! A device is told of a request, and says when something happens in it next; whoever it
//! hangs on comes back then. A kind of devices is an arm of [`Device`].

use super::disk::device::{Disk, MediaCacheState};
use super::fixed::Fixed;
use super::flash::device::Flash;
use super::{RequestId, Requests, WhatIf};
use crate::Busy;
use diskperf_sim::Time;
use diskperf_spans::{Position, TracedArm, TracedFlash};

/// What the sixteen bits of a command count, 0 as all of them (ATA-6 READ DMA EXT); as many
/// as NVMe's, which count from 0.
const MOST_COMMAND_SECTORS: usize = 1 << 16;

/// A device, of one of the kinds that there are.
#[derive(Clone, Debug)]
pub enum Device {
    /// Servers and a queue, without mechanics.
    Fixed(Box<Fixed>),
    /// A disk with firmware, a buffer and a link.
    Disk(Box<Disk>),
    /// A flash drive.
    Flash(Box<Flash>),
}

impl Device {
    /// The same device, with something supposed of it.
    #[must_use]
    pub fn supposing(self, what_if: WhatIf) -> Self {
        match self {
            Self::Fixed(_) => self,
            Self::Disk(disk) => Self::Disk(Box::new(disk.supposing(what_if))),
            Self::Flash(flash) => Self::Flash(Box::new(flash.supposing(what_if))),
        }
    }

    /// The disk, if it is one.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Self::Disk(disk) => Some(disk),
            Self::Fixed(_) | Self::Flash(_) => None,
        }
    }

    /// The flash drive, if it is one.
    pub fn flash(&self) -> Option<&Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            Self::Fixed(_) | Self::Disk(_) => None,
        }
    }

    /// The flash drive, if it is one, to be changed.
    pub fn flash_mut(&mut self) -> Option<&mut Flash> {
        match self {
            Self::Flash(flash) => Some(flash),
            Self::Fixed(_) | Self::Disk(_) => None,
        }
    }

    /// Records from now on what an arm does for no request, and what a flash drive does.
    pub fn record(&mut self) {
        match self {
            Self::Fixed(_) => {}
            Self::Disk(disk) => disk.record(),
            Self::Flash(flash) => flash.record(),
        }
    }

    /// Work of a disk's arm for no request since this was asked last, as that of the drive of
    /// this number.
    pub fn recorded_arm(&mut self, now: Time, number: u32) -> Vec<TracedArm> {
        match self {
            Self::Disk(disk) => disk.take_recorded(now, number),
            Self::Fixed(_) | Self::Flash(_) => Vec::new(),
        }
    }

    /// Work of a flash drive since this was asked last, as that of the drive of this number.
    pub fn recorded_flash(&mut self, now: Time, number: u32) -> Option<TracedFlash> {
        self.flash_mut()?.take_recorded(now, number)
    }

    /// Memory of what is recorded.
    pub fn recorded_bytes(&self) -> usize {
        match self {
            Self::Fixed(_) => 0,
            Self::Disk(disk) => disk.recorded_bytes(),
            Self::Flash(flash) => flash.recorded_bytes(),
        }
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        match self {
            Self::Fixed(fixed) => fixed.sector_bytes(),
            Self::Disk(disk) => disk.sector_bytes(),
            Self::Flash(flash) => flash.sector_bytes(),
        }
    }

    /// How many sectors it has.
    pub fn sectors(&self) -> u64 {
        match self {
            Self::Fixed(fixed) => fixed.sectors(),
            Self::Disk(disk) => disk.sectors(),
            Self::Flash(flash) => flash.sectors(),
        }
    }

    /// Where a sector is, if that is known.
    pub fn position(&self, sector: u64) -> Option<Position> {
        match self {
            Self::Fixed(_) => None,
            Self::Disk(disk) => Some(Position::Disk(disk.position(sector))),
            Self::Flash(flash) => flash.position(sector),
        }
    }

    /// The most bytes that one request of it moves, where its commands say that.
    pub fn most_bytes(&self) -> Option<usize> {
        match self {
            Self::Fixed(_) => None,
            Self::Disk(disk) => Some(MOST_COMMAND_SECTORS * disk.sector_bytes() as usize),
            Self::Flash(flash) => Some(MOST_COMMAND_SECTORS * flash.sector_bytes() as usize),
        }
    }

    /// Whether some of what was written to it may be in a cache that it loses.
    pub fn keeps_writes(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Disk(disk) => disk.keeps_writes(),
            Self::Flash(flash) => flash.keeps_writes(),
        }
    }

    /// What it has done so far.
    pub fn busy(&self) -> Busy {
        match self {
            Self::Fixed(fixed) => fixed.busy(),
            Self::Disk(disk) => disk.busy(),
            Self::Flash(flash) => flash.busy(),
        }
    }

    /// What it has done with its media cache, of a disk with shingled tracks.
    pub fn media_cache(&self) -> Option<MediaCacheState> {
        match self {
            Self::Fixed(_) | Self::Flash(_) => None,
            Self::Disk(disk) => disk.media_cache(),
        }
    }

    /// Whether it takes another request.
    pub fn takes_requests(&self) -> bool {
        match self {
            Self::Fixed(fixed) => fixed.takes_requests(),
            Self::Disk(disk) => disk.takes_requests(),
            Self::Flash(flash) => flash.takes_requests(),
        }
    }

    /// Takes a request.
    ///
    /// # Panics
    ///
    /// When it takes none now.
    pub fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        match self {
            Self::Fixed(fixed) => fixed.take(now, requests, id),
            Self::Disk(disk) => disk.take(now, requests, id),
            Self::Flash(flash) => flash.take(now, requests, id),
        }
    }

    /// When something happens in it next, if nobody asks it for more.
    pub fn next_event(&self) -> Option<Time> {
        match self {
            Self::Fixed(fixed) => fixed.next_event(),
            Self::Disk(disk) => disk.next_event(),
            Self::Flash(flash) => flash.next_event(),
        }
    }

    /// Does what it had to do up to now; whether a request is done by that.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        match self {
            Self::Fixed(fixed) => fixed.advance(now, requests),
            Self::Disk(disk) => disk.advance(now, requests),
            Self::Flash(flash) => flash.advance(now, requests),
        }
    }

    /// Whether a request is done that was not taken off.
    pub fn has_done(&self) -> bool {
        match self {
            Self::Fixed(fixed) => fixed.has_done(),
            Self::Disk(disk) => disk.has_done(),
            Self::Flash(flash) => flash.has_done(),
        }
    }

    /// The next request that is done, once.
    pub fn take_done(&mut self) -> Option<RequestId> {
        match self {
            Self::Fixed(fixed) => fixed.take_done(),
            Self::Disk(disk) => disk.take_done(),
            Self::Flash(flash) => flash.take_done(),
        }
    }
}
