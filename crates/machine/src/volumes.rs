//! Volumes of a computer: the partitions in use, and their contents.

use crate::medium::PartitionContents;
use std::cell::RefCell;

/// Partition of a drive that programs see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VolumePartition {
    pub(crate) drive: usize,
    pub(crate) first_sector: u64,
    /// Length of the partition, in sectors.
    pub(crate) sector_count: u32,
    pub(crate) sector_bytes: u32,
}

impl VolumePartition {
    pub(crate) fn size_bytes(&self) -> u64 {
        u64::from(self.sector_count) * u64::from(self.sector_bytes)
    }
}

/// Volumes of a machine by number, mounted or not.
pub(crate) struct Volumes {
    partitions: Vec<VolumePartition>,
    volume_contents: RefCell<Vec<PartitionContents>>,
}

impl Volumes {
    /// Returns volumes of the given partitions and their contents.
    pub(crate) fn new(volumes: impl Iterator<Item = (VolumePartition, PartitionContents)>) -> Self {
        let (partitions, media) = volumes.unzip();
        Self {
            partitions,
            volume_contents: RefCell::new(media),
        }
    }

    /// Number of volumes of the machine.
    pub(crate) fn volume_count(&self) -> usize {
        self.partitions.len()
    }

    /// Reports whether a volume with the given number exists.
    pub(crate) fn has_volume(&self, volume: u32) -> bool {
        (volume as usize) < self.partitions.len()
    }

    #[inline]
    pub(crate) fn partition(&self, volume: u32) -> VolumePartition {
        self.partitions[volume as usize]
    }

    #[inline]
    pub(crate) fn with_contents<T>(
        &self,
        volume: u32,
        with: impl FnOnce(&mut PartitionContents) -> T,
    ) -> T {
        with(&mut self.volume_contents.borrow_mut()[volume as usize])
    }

    pub(crate) fn make_file_systems<M, T>(
        &self,
        of: impl IntoIterator<Item = M>,
        mut make: impl FnMut(&mut PartitionContents, M) -> T,
    ) -> Vec<T> {
        let mut media = self.volume_contents.borrow_mut();
        let both = media.iter_mut().zip(of);
        both.map(|(medium, of)| make(medium, of)).collect()
    }

    /// Memory of the blocks that were allocated for the volumes, in bytes.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.volume_contents
            .borrow()
            .iter()
            .map(PartitionContents::allocated_bytes)
            .sum()
    }
}
