//! Volumes of a computer: the partitions in use, and their contents.

use crate::medium::Medium;
use std::cell::RefCell;

/// Partition of a drive that programs see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// Number of the drive.
    pub(crate) drive: usize,
    /// First sector of the partition on the drive.
    pub(crate) first_sector: u64,
    /// Length of the partition, in sectors.
    pub(crate) sectors: u32,
    pub(crate) sector_bytes: u32,
}

impl Partition {
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.sectors) * u64::from(self.sector_bytes)
    }
}

/// Volumes of a machine by number, mounted or not.
pub(crate) struct Volumes {
    partitions: Vec<Partition>,
    media: RefCell<Vec<Medium>>,
}

impl Volumes {
    /// Returns volumes of the given partitions and their contents.
    pub(crate) fn new(volumes: impl Iterator<Item = (Partition, Medium)>) -> Self {
        let (partitions, media) = volumes.unzip();
        Self {
            partitions,
            media: RefCell::new(media),
        }
    }

    /// Number of volumes of the machine.
    pub(crate) fn count(&self) -> usize {
        self.partitions.len()
    }

    /// Reports whether a volume with the given number exists.
    pub(crate) fn has_volume(&self, volume: u32) -> bool {
        (volume as usize) < self.partitions.len()
    }

    /// Returns the partition of a volume.
    #[inline]
    pub(crate) fn partition(&self, volume: u32) -> Partition {
        self.partitions[volume as usize]
    }

    /// Passes the contents of a volume to a function and returns its result.
    #[inline]
    pub(crate) fn with_medium<T>(&self, volume: u32, with: impl FnOnce(&mut Medium) -> T) -> T {
        with(&mut self.media.borrow_mut()[volume as usize])
    }

    /// Passes the contents of each volume to a function that makes a file system.
    pub(crate) fn make_file_systems<M, T>(
        &self,
        of: impl IntoIterator<Item = M>,
        mut make: impl FnMut(&mut Medium, M) -> T,
    ) -> Vec<T> {
        let mut media = self.media.borrow_mut();
        let both = media.iter_mut().zip(of);
        both.map(|(medium, of)| make(medium, of)).collect()
    }

    /// Memory of the blocks that were allocated for the volumes, in bytes.
    pub(crate) fn made_bytes(&self) -> u64 {
        self.media.borrow().iter().map(Medium::made_bytes).sum()
    }
}
