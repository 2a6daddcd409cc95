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
        self.place(logical, stream);
    }

    /// Makes the copies that are due, all of them when the host must wait, then writes.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write_paced(&mut self, logical: u32, stream: u32) {
        while self.ftl.must_collect() && self.collect() {}
        self.place(logical, stream);
        if self.ftl.wants_collection() {
            self.ftl.begin_collection();
        }
        self.copy(self.ftl.copies_due());
        if let Progress::Erase(_) = self.ftl.progress() {
            self.ftl.erased();
        }
    }

    fn place(&mut self, logical: u32, stream: u32) {
        let placement =
            (self.ftl.write(logical, stream)).expect("collection left superblocks free");
        self.ftl.programmed(placement);
    }

    /// Collects until enough superblocks are free, then writes a unit of the layer's own.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn write_system(&mut self, index: u32) {
        while self.ftl.wants_collection() && self.collect() {}
        let placement = (self.ftl.write_system(index)).expect("collection left superblocks free");
        self.ftl.programmed(placement);
    }

    /// Programs what the stream has begun, its rest filled.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad(&mut self, stream: u32) {
        if let Some(placement) = self.ftl.pad(stream) {
            self.ftl.programmed(placement);
        }
    }

    /// Folds the superblock of the cache that was closed first; false when there is none.
    pub fn fold(&mut self) -> bool {
        let begun = self.ftl.begin_folding().is_some();
        begun && self.finish()
    }

    /// Writes a closed superblock anew; false when it is not closed.
    pub fn refresh(&mut self, superblock: u32) -> bool {
        let begun = self.ftl.begin_refresh(superblock);
        begun && self.finish()
    }

    /// Unmaps a unit; says whether it was mapped.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn trim(&mut self, logical: u32) -> bool {
        self.ftl.trim(logical)
    }

    /// The physical unit that a read of `logical` senses, as [`Ftl::locate`] has it.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn locate(&mut self, logical: u32) -> Option<u32> {
        self.ftl.locate(logical)
    }

    /// Collects one superblock whole; false when there is none.
    fn collect(&mut self) -> bool {
        self.ftl.begin_collection();
        self.finish()
    }

    /// Makes all changes of the map durable, where power cuts count.
    fn journal(&mut self) {
        let journal = self.ftl.begin_journal();
        self.ftl.journalled(journal);
    }

    /// Makes all copies of the collection under way, and erases.
    fn finish(&mut self) -> bool {
        loop {
            match self.ftl.progress() {
                Progress::Idle => return false,
                Progress::Copies => self.copy(BATCH),
                // Nothing else is under way here.
                Progress::Waiting => self.journal(),
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
