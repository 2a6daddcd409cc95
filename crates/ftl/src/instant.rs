//! Drive whose dies take no time: each operation is complete when its call returns.

use crate::collection::Progress;
use crate::ftl::Ftl;

/// Number of copies issued together. Their map entries are then fetched side by side.
const BATCH: u32 = 64;

/// Translation layer whose operations take no time.
#[derive(Debug)]
pub struct Instant {
    ftl: Ftl,
    copies: Vec<crate::Copy>,
}

impl Instant {
    /// Creates an instant drive from a translation layer.
    pub fn new(ftl: Ftl) -> Self {
        Self {
            ftl,
            copies: Vec::with_capacity(BATCH as usize),
        }
    }

    /// Returns the translation layer.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Writes a mapping unit, after garbage collection until enough superblocks are free.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write(&mut self, logical: u32, stream: u32) {
        while self.ftl.wants_collection() && self.collect() {}
        self.place(logical, stream);
    }

    /// Writes a mapping unit with paced garbage collection: makes the copies that are due, or all
    /// of them when the host must wait.
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

    /// Writes a mapping unit of the layer's own, after garbage collection until enough superblocks
    /// are free.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn write_system(&mut self, index: u32) {
        while self.ftl.wants_collection() && self.collect() {}
        let placement = (self.ftl.write_system(index)).expect("collection left superblocks free");
        self.ftl.programmed(placement);
    }

    /// Pads and programs the stream's open program unit.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad(&mut self, stream: u32) {
        if let Some(placement) = self.ftl.pad(stream) {
            self.ftl.programmed(placement);
        }
    }

    /// Folds the superblock of the SLC cache that was closed first. Returns `false` when there is
    /// none.
    pub fn fold(&mut self) -> bool {
        let begun = self.ftl.begin_folding().is_some();
        begun && self.finish()
    }

    /// Rewrites a closed superblock elsewhere (refresh). Returns `false` when it is not closed.
    pub fn refresh(&mut self, superblock: u32) -> bool {
        let begun = self.ftl.begin_refresh(superblock);
        begun && self.finish()
    }

    /// Trims a mapping unit, and returns whether it was mapped.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn trim(&mut self, logical: u32) -> bool {
        self.ftl.trim(logical)
    }

    /// Returns the physical unit that a read of `logical` senses, like [`Ftl::locate`].
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn locate(&mut self, logical: u32) -> Option<u32> {
        self.ftl.locate(logical)
    }

    /// Collects one victim completely. Returns `false` when there is none.
    fn collect(&mut self) -> bool {
        self.ftl.begin_collection();
        self.finish()
    }

    /// Makes all changes of the map durable, if power cuts are modelled.
    fn journal(&mut self) {
        let journal = self.ftl.begin_journal();
        self.ftl.journalled(journal);
    }

    /// Makes all copies of the collection in progress, and erases the victim. Returns `false` when
    /// no collection is in progress.
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
