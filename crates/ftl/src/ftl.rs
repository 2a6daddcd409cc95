//! The map, the frontiers and the free superblocks.

use std::collections::{BTreeSet, VecDeque};

use crate::anonymous::Anonymous;
use crate::buckets::Buckets;
use crate::collection::{Collection, Copy};
use crate::division::Division;
use crate::entries::Entries;
use crate::features::{Allocation, Features};
use crate::frontier::{Cursor, Writer};
use crate::parity::Parity;
use crate::recovery::Unsafe;
use crate::specification::{Geometry, Impossible, Separation, Specification};
use crate::traffic::{Cause, Traffic};
use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

/// What a superblock is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Open,
    /// Full, but units of it are still to be programmed by a collection.
    Closing,
    Closed,
    /// Full, and of the cache of one bit a cell.
    Cached,
    Victim,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Superblock {
    pub(crate) state: State,
    pub(crate) valid: u32,
    pub(crate) written: u32,
    /// Copies that have a place here and are not yet programmed.
    pub(crate) pending: u32,
    pub(crate) erases: u32,
    /// Units programmed on the drive when it was closed.
    pub(crate) closed_at: u64,
    pub(crate) stream: u32,
    /// Programmed with one bit a cell.
    pub(crate) cached: bool,
    /// Written in order by the past and not erased since: what no array names is as it was.
    pub(crate) in_order: bool,
    /// Reads since its erase that the device told.
    pub(crate) reads: u32,
}

impl Superblock {
    const ERASED: Self = Self {
        state: State::Free,
        valid: 0,
        written: 0,
        pending: 0,
        erases: 0,
        closed_at: 0,
        stream: 0,
        cached: false,
        in_order: false,
        reads: 0,
    };
}

/// Where a unit is to be programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The physical unit.
    pub physical: u32,
    /// Its superblock.
    pub superblock: u32,
    /// The die that programs it.
    pub die: u32,
    /// Which of the die's program units in the superblock it is in.
    pub row: u32,
    /// Whether the program unit is now full, and can be programmed.
    pub full: bool,
}

/// A unit cannot be placed until collection has erased a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no superblock is free for the host: the write waits for an erase")
    }
}

impl std::error::Error for Full {}

/// A page-mapped translation layer.
#[derive(Debug, Clone)]
pub struct Ftl {
    pub(crate) specification: Specification,
    pub(crate) features: Features,
    /// Units of a superblock, and those of them that hold data.
    pub(crate) units: u32,
    pub(crate) data_units: u32,
    pub(crate) parity: Option<Parity>,
    /// Programs of parity that the device has not taken.
    pub(crate) parity_due: VecDeque<Placement>,
    pub(crate) division: Division,
    /// Physical unit + 1 of each logical one; 0: unmapped.
    pub(crate) map: Entries,
    /// Logical unit + 1 that was programmed at each physical one; 0: nothing.
    pub(crate) reverse: Vec<u32>,
    pub(crate) valid: Vec<u64>,
    /// Words of `valid` for each superblock.
    pub(crate) words: u32,
    pub(crate) superblocks: Vec<Superblock>,
    pub(crate) buckets: Buckets,
    pub(crate) closing_order: VecDeque<(u32, u64)>,
    /// Free superblocks, the least erased first.
    pub(crate) free: BTreeSet<(u32, u32)>,
    /// Erased superblocks that are always of the cache.
    pub(crate) fixed_free: BTreeSet<(u32, u32)>,
    /// Full superblocks of the cache, in the order in which they were closed.
    pub(crate) cached: VecDeque<u32>,
    /// Valid units of the superblocks that joined the cache.
    pub(crate) lent_valid: u64,
    /// Superblocks that joined the cache.
    pub(crate) dynamic: u32,
    /// Host streams, then collection's, then wear levelling's, the layer's own, the cache's.
    pub(crate) frontiers: Vec<Option<u32>>,
    /// Of each frontier, where dies do not take turns.
    pub(crate) cursors: Vec<Cursor>,
    pub(crate) preferred: Option<u32>,
    pub(crate) collection: Option<Collection>,
    /// Units that were given a place in the victim behind where the collection is.
    pub(crate) located: Vec<Copy>,
    /// Units of the past that were not touched since, where they have no addresses.
    pub(crate) anonymous: Option<Box<Anonymous>>,
    /// Logical units below this one are where a past in order left them, while their map
    /// entry is 0.
    pub(crate) in_order: u32,
    /// What is not yet safe from a power cut, where that counts.
    pub(crate) unsafe_changes: Option<Box<Unsafe>>,
    /// Copies that the host's writes have paid for.
    pub(crate) tokens: f64,
    /// Writes since the last copy of the collection under way was handed out.
    pub(crate) unpaid: u32,
    /// Units mapped, the layer's own with them.
    pub(crate) mapped: u64,
    pub(crate) system_mapped: u64,
    pub(crate) clock: u64,
    pub(crate) traffic: Traffic,
    pub(crate) random: Pcg64Mcg,
}

impl Ftl {
    /// A drive that was never written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn fresh(specification: Specification) -> Result<Self, Impossible> {
        Self::with_features(specification, Features::default())
    }

    /// A drive that was never written, with these features.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn with_features(
        specification: Specification,
        features: Features,
    ) -> Result<Self, Impossible> {
        specification.check_with(&features)?;
        let Geometry {
            superblocks: count,
            dies,
            ..
        } = specification.geometry;
        let units = specification.geometry.superblock_units();
        let words = units.div_ceil(64);
        let frontiers =
            specification.streams + specification.moving_frontiers() + features.frontiers();
        let cursors = match features.allocation {
            Allocation::InTurn => Vec::new(),
            Allocation::NextFree => vec![Cursor::new(dies); frontiers as usize],
        };
        let fixed = features.fixed_superblocks();
        let mut superblocks = vec![Superblock::ERASED; count as usize];
        (superblocks.iter_mut().take(fixed as usize)).for_each(|block| block.cached = true);
        Ok(Self {
            units,
            data_units: features.data_units(units),
            parity: (features.parity).map(|stripe| Parity::new(stripe, dies)),
            parity_due: VecDeque::new(),
            division: Division::new(&specification.geometry),
            words,
            map: Entries::new(specification.logical_units + features.system_units),
            // Zeroed allocations: memory is used where units are touched.
            reverse: vec![0; units as usize * count as usize],
            valid: vec![0; words as usize * count as usize],
            superblocks,
            buckets: Buckets::new(specification.policy, count, units),
            closing_order: VecDeque::new(),
            free: (fixed..count).map(|superblock| (0, superblock)).collect(),
            fixed_free: (0..fixed).map(|superblock| (0, superblock)).collect(),
            cached: VecDeque::new(),
            lent_valid: 0,
            dynamic: 0,
            frontiers: vec![None; frontiers as usize],
            cursors,
            preferred: None,
            collection: None,
            located: Vec::new(),
            anonymous: None,
            in_order: 0,
            unsafe_changes: (features.power_cuts)
                .then(|| Box::new(Unsafe::new(words as usize * count as usize, count))),
            tokens: 0.0,
            unpaid: 0,
            mapped: 0,
            system_mapped: 0,
            clock: 0,
            traffic: Traffic::default(),
            random: Pcg64Mcg::seed_from_u64(specification.seed),
            specification,
            features,
        })
    }

    /// What this layer was made for.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// What this layer does beside mapping and collecting.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// What was programmed and erased.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Superblocks that are erased and in no frontier.
    pub fn free_superblocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Logical units of the host that are mapped.
    pub fn mapped_units(&self) -> u64 {
        self.mapped - self.system_mapped
    }

    /// The greatest difference between two superblocks' erases; those that are always of
    /// the cache wear apart.
    pub fn wear_spread(&self) -> u32 {
        let fixed = self.features.fixed_superblocks() as usize;
        let erases = || (self.superblocks[fixed..].iter()).map(|superblock| superblock.erases);
        erases().max().unwrap_or(0) - erases().min().unwrap_or(0)
    }

    /// The physical unit that a read of `logical` senses; none if it is unmapped.
    ///
    /// # Panics
    /// If the drive has no such unit, or it is one without address that is to be
    /// [located](Self::locate) first.
    pub fn read(&self, logical: u32) -> Option<u32> {
        assert!(!self.is_untouched(logical), "unit {logical} is not located");
        self.entry(logical).checked_sub(1)
    }

    /// Places a unit that the host writes to `stream`. The map is switched at once:
    /// until the unit is programmed, the drive's buffer serves it.
    ///
    /// # Errors
    /// [`Full`] when the write must wait for an erase; nothing has changed then.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write(&mut self, logical: u32, stream: u32) -> Result<Placement, Full> {
        self.check_request(logical, stream);
        let cached = match self.features.cache {
            Some(_) => self.place(self.cache_frontier(), stream, Cause::Host),
            None => None,
        };
        let placement = match cached {
            Some(placement) => placement,
            None => {
                let placed = self.place(stream as usize, stream, Cause::Host);
                let placement = placed.ok_or(Full)?;
                self.traffic.past_cache += u64::from(self.features.cache.is_some());
                placement
            }
        };
        self.remap(logical, placement);
        Ok(placement)
    }

    /// Places a unit that the host writes to `stream` past the cache of one bit a cell.
    ///
    /// # Errors
    /// [`Full`] when the write must wait for an erase; nothing has changed then.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write_past_cache(&mut self, logical: u32, stream: u32) -> Result<Placement, Full> {
        self.check_request(logical, stream);
        let placement = self
            .place(stream as usize, stream, Cause::Host)
            .ok_or(Full)?;
        self.remap(logical, placement);
        Ok(placement)
    }

    /// Places a unit of the layer's own: a page of its map, or of its journal's ring. What
    /// was there before is invalid, and collection moves it as any other.
    ///
    /// # Errors
    /// [`Full`] when the write must wait for an erase; nothing has changed then.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn write_system(&mut self, index: u32) -> Result<Placement, Full> {
        let logical = self.system_unit(index);
        let placement = self
            .place(self.system_frontier(), 0, Cause::Map)
            .ok_or(Full)?;
        self.system_mapped += u64::from(self.entry(logical) == 0);
        self.remap(logical, placement);
        Ok(placement)
    }

    /// Where a unit of the layer's own is; none if it was never written.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn read_system(&self, index: u32) -> Option<u32> {
        self.read(self.system_unit(index))
    }

    fn check_request(&self, logical: u32, stream: u32) {
        let Specification {
            logical_units,
            streams,
            ..
        } = self.specification;
        assert!(logical < logical_units, "no unit {logical}");
        assert!(stream < streams, "stream {stream} is not open");
    }

    fn system_unit(&self, index: u32) -> u32 {
        assert!(index < self.features.system_units, "no unit {index}");
        self.specification.logical_units + index
    }

    /// Makes what was placed the unit's, and closes what is full.
    pub(crate) fn remap(&mut self, logical: u32, placement: Placement) {
        if self.is_untouched(logical) {
            self.forget_place(logical);
        }
        self.change(logical, placement.physical + 1);
        match self.entry(logical).checked_sub(1) {
            Some(old) => self.invalidate(old),
            None => self.mapped += 1,
        }
        self.reverse[placement.physical as usize] = logical + 1;
        self.switch(logical, placement);
        self.pay_for_copies();
        self.close_if_full(placement.superblock);
    }

    /// Gives an untouched unit a place if a power cut may need it, or unmaps it.
    fn forget_place(&mut self, logical: u32) {
        if self.features.power_cuts {
            self.locate(logical);
        } else {
            self.drop_untouched(logical);
            self.map.set(logical, self.unmapped());
            self.mapped -= 1;
        }
    }

    /// Unmaps a unit; says whether it was mapped.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn trim(&mut self, logical: u32) -> bool {
        assert!(
            logical < self.specification.logical_units,
            "no unit {logical}"
        );
        let untouched = self.is_untouched(logical);
        if untouched {
            self.forget_place(logical);
        }
        let Some(old) = self.read(logical) else {
            return untouched;
        };
        self.change(logical, 0);
        self.map.set(logical, self.unmapped());
        self.mapped -= 1;
        self.invalidate(old);
        true
    }

    /// Fills the rest of the stream's open program unit, so that it can be programmed
    /// now; gives the last place padded, or none if no program unit was begun.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad(&mut self, stream: u32) -> Option<Placement> {
        self.pad_writer(Writer::Host(stream))
    }

    pub(crate) fn bit(&self, physical: u32) -> (usize, u64) {
        let (superblock, offset) = self.division.superblock(physical);
        (
            (superblock * self.words + offset / 64) as usize,
            1 << (offset % 64),
        )
    }

    /// Makes the placed unit the logical one's.
    pub(crate) fn switch(&mut self, logical: u32, placement: Placement) {
        self.map.set(logical, placement.physical + 1);
        let (word, bit) = self.bit(placement.physical);
        self.valid[word] |= bit;
        self.gain_valid(placement.superblock);
    }

    pub(crate) fn gain_valid(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        block.valid += 1;
        if block.cached {
            self.lent_valid += u64::from(self.is_lent(superblock));
        }
    }

    pub(crate) fn invalidate(&mut self, physical: u32) {
        let (superblock, offset) = self.division.superblock(physical);
        let word = superblock * self.words + offset / 64;
        self.valid[word as usize] &= !(1 << (offset % 64));
        self.lose_valid(superblock);
    }

    /// A superblock has one valid unit less.
    pub(crate) fn lose_valid(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        block.valid -= 1;
        if block.state == State::Closed {
            let valid = block.valid;
            self.buckets.lower(superblock, valid);
        } else if block.cached {
            self.lent_valid -= u64::from(self.is_lent(superblock));
        }
    }

    /// Makes a unit of a full superblock valid again.
    pub(crate) fn revalidate(&mut self, logical: u32, physical: u32) {
        let (superblock, _) = self.division.superblock(physical);
        let block = &self.superblocks[superblock as usize];
        if block.state == State::Closed {
            self.buckets.remove(superblock, block.valid);
            self.buckets.insert(superblock, block.valid + 1);
        }
        self.switch(logical, self.placement(physical));
    }

    /// The frontier that takes what is collected from a superblock of `stream`.
    pub(crate) fn moving_frontier(&self, stream: u32) -> usize {
        match self.specification.separation {
            Separation::Mixed => stream as usize,
            Separation::Apart => self.specification.streams as usize,
            Separation::ByStream => (self.specification.streams + stream) as usize,
        }
    }
}
