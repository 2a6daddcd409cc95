//! Drive whose dies take no time: each operation is complete when its call returns.

use crate::collection::CollectionStep;
use crate::ftl::Ftl;

/// Number of copies issued together. Their map entries are then fetched side by side.
const COPIES_PER_BATCH: u32 = 64;

/// Translation layer whose operations take no time.
#[derive(Debug)]
pub struct UntimedFtl {
    ftl: Ftl,
    copy_batch: Vec<crate::UnitCopy>,
}

impl UntimedFtl {
    /// Creates an instant drive from a translation layer.
    pub fn new(ftl: Ftl) -> Self {
        Self {
            ftl,
            copy_batch: Vec::with_capacity(COPIES_PER_BATCH as usize),
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
        while self.ftl.wants_collection() && self.collect_victim() {}
        self.write_with_collection(logical, stream);
    }

    /// Writes a mapping unit with paced garbage collection: makes the copies that are due, or all
    /// of them when the host must wait.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write_paced(&mut self, logical: u32, stream: u32) {
        while self.ftl.must_host_wait() && self.collect_victim() {}
        self.write_with_collection(logical, stream);
        if self.ftl.wants_collection() {
            self.ftl.begin_collection();
        }
        self.copy_batch_of_units(self.ftl.copies_due());
        if let CollectionStep::EraseVictim(_) = self.ftl.next_collection_step() {
            self.ftl.complete_erase();
        }
    }

    fn write_with_collection(&mut self, logical: u32, stream: u32) {
        let placement =
            (self.ftl.write(logical, stream)).expect("collection left superblocks free");
        self.ftl.complete_program(placement);
    }

    /// Writes a mapping unit of the layer's own, after garbage collection until enough superblocks
    /// are free.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn write_system(&mut self, index: u32) {
        while self.ftl.wants_collection() && self.collect_victim() {}
        let placement = (self.ftl.write_system(index)).expect("collection left superblocks free");
        self.ftl.complete_program(placement);
    }

    /// Pads and programs the stream's open program unit.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad_program(&mut self, stream: u32) {
        if let Some(placement) = self.ftl.pad_program(stream) {
            self.ftl.complete_program(placement);
        }
    }

    /// Folds the superblock of the SLC cache that was closed first. Returns `false` when there is
    /// none.
    pub fn fold_cache_superblock(&mut self) -> bool {
        let begun = self.ftl.begin_folding().is_some();
        begun && self.finish_collection()
    }

    /// Rewrites a closed superblock elsewhere (refresh). Returns `false` when it is not closed.
    pub fn refresh_superblock(&mut self, superblock: u32) -> bool {
        let begun = self.ftl.begin_refresh(superblock);
        begun && self.finish_collection()
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
    fn collect_victim(&mut self) -> bool {
        self.ftl.begin_collection();
        self.finish_collection()
    }

    /// Makes all changes of the map durable, if power cuts are modelled.
    fn journal_map_changes(&mut self) {
        let journal = self.ftl.begin_journal();
        self.ftl.complete_journal(journal);
    }

    /// Makes all copies of the collection in progress, and erases the victim. Returns `false` when
    /// no collection is in progress.
    fn finish_collection(&mut self) -> bool {
        loop {
            match self.ftl.next_collection_step() {
                CollectionStep::Idle => return false,
                CollectionStep::CopyUnits => self.copy_batch_of_units(COPIES_PER_BATCH),
                // Nothing else is under way here.
                CollectionStep::AwaitPrograms => self.journal_map_changes(),
                CollectionStep::EraseVictim(_) => {
                    self.ftl.complete_erase();
                    return true;
                }
            }
        }
    }

    fn copy_batch_of_units(&mut self, most: u32) {
        if most == 0 {
            return;
        }
        self.copy_batch.clear();
        self.ftl.next_copies(most, &mut self.copy_batch);
        for &copy in &self.copy_batch {
            if let Some(placement) = self.ftl.place_copy(copy) {
                self.ftl.complete_copy(copy, placement);
            }
        }
    }
}
