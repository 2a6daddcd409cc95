//! A drive whose dies take no time: what it is asked, it has done.

use crate::collection::Progress;
use crate::ftl::Ftl;

/// Copies that are handed out together: their map entries are fetched side by side.
const BATCH: u32 = 64;

/// A translation layer with its work done in a blink.
#[derive(Debug)]
pub struct Instant {
    ftl: Ftl,
    copies: Vec<crate::Copy>,
}

impl Instant {
    /// Does the work of this layer.
    pub fn new(ftl: Ftl) -> Self {
        Self {
            ftl,
            copies: Vec::with_capacity(BATCH as usize),
        }
    }

    /// The layer.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Collects until enough superblocks are free, then writes the unit.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write(&mut self, logical: u32, stream: u32) {
        while self.ftl.wants_collection() && self.collect() {}
        self.ftl
            .write(logical, stream)
            .expect("collection left superblocks free");
    }

    /// Makes the copies that are due, all of them when the host must wait, then writes.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write_paced(&mut self, logical: u32, stream: u32) {
        while self.ftl.must_collect() && self.collect() {}
        self.ftl
            .write(logical, stream)
            .expect("collection left superblocks free");
        if self.ftl.wants_collection() {
            self.ftl.begin_collection();
        }
        self.copy(self.ftl.copies_due());
        if let Progress::Erase(_) = self.ftl.progress() {
            self.ftl.erased();
        }
    }

    /// Unmaps a unit; says whether it was mapped.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn trim(&mut self, logical: u32) -> bool {
        self.ftl.trim(logical)
    }

    /// Collects one superblock whole; false when there is none.
    fn collect(&mut self) -> bool {
        self.ftl.begin_collection();
        loop {
            match self.ftl.progress() {
                Progress::Idle => return false,
                Progress::Copies | Progress::Waiting => self.copy(BATCH),
                Progress::Erase(_) => {
                    self.ftl.erased();
                    return true;
                }
            }
        }
    }

    fn copy(&mut self, most: u32) {
        if most == 0 {
            return;
        }
        self.copies.clear();
        self.ftl.next_copies(most, &mut self.copies);
        for &copy in &self.copies {
            if let Some(placement) = self.ftl.place_copy(copy) {
                self.ftl.copied(copy, placement);
            }
        }
    }
}
