//! The volumes of a computer: partitions that are used, and what is written on them.

use crate::medium::Medium;
use std::cell::RefCell;

/// The partition of a drive that programs see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// The number of the drive.
    pub(crate) drive: usize,
    /// Where it starts on it.
    pub(crate) first_sector: u64,
    /// How long it is.
    pub(crate) sectors: u32,
    pub(crate) sector_bytes: u32,
}

impl Partition {
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.sectors) * u64::from(self.sector_bytes)
    }
}

/// The volumes, mounted or not, by number.
pub(crate) struct Volumes {
    partitions: Vec<Partition>,
    media: RefCell<Vec<Medium>>,
}

impl Volumes {
    /// These partitions, each with its medium.
    pub(crate) fn new(volumes: impl Iterator<Item = (Partition, Medium)>) -> Self {
        let (partitions, media) = volumes.unzip();
        Self {
            partitions,
            media: RefCell::new(media),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.partitions.len()
    }

    /// Whether there is a volume of this number.
    pub(crate) fn has(&self, volume: u32) -> bool {
        (volume as usize) < self.partitions.len()
    }

    /// Where a volume is.
    #[inline]
    pub(crate) fn partition(&self, volume: u32) -> Partition {
        self.partitions[volume as usize]
    }

    /// Does something with what is written on a volume.
    #[inline]
    pub(crate) fn medium<T>(&self, volume: u32, with: impl FnOnce(&mut Medium) -> T) -> T {
        with(&mut self.media.borrow_mut()[volume as usize])
    }

    /// Does something with each volume's medium, as file systems are made.
    pub(crate) fn make<M, T>(
        &self,
        of: impl IntoIterator<Item = M>,
        mut make: impl FnMut(&mut Medium, M) -> T,
    ) -> Vec<T> {
        let mut media = self.media.borrow_mut();
        let both = media.iter_mut().zip(of);
        both.map(|(medium, of)| make(medium, of)).collect()
    }

    /// Memory of blocks that were made on them.
    pub(crate) fn made_bytes(&self) -> u64 {
        self.media.borrow().iter().map(Medium::made_bytes).sum()
    }
}
