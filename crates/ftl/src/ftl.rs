//! Translation layer: map, write frontiers and free superblocks.

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

/// State of a superblock in its life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Open,
    /// Full, but copies of a garbage collection in it are not yet programmed.
    Closing,
    Closed,
    /// Full, and part of the SLC cache.
    Cached,
    Victim,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Superblock {
    pub(crate) state: State,
    pub(crate) valid: u32,
    pub(crate) written: u32,
    /// Number of copies placed in the superblock and not yet programmed.
    pub(crate) pending: u32,
    pub(crate) erases: u32,
    /// Value of the layer's clock (mapping units placed on the drive) when the superblock was
    /// closed.
    pub(crate) closed_at: u64,
    pub(crate) stream: u32,
    /// Whether the superblock is programmed with one bit per cell (SLC cache).
    pub(crate) cached: bool,
    /// Whether sequential preconditioning wrote the superblock and it was not erased since. Mapping
    /// units without an entry in the tables are then at their original place.
    pub(crate) in_order: bool,
    /// Number of reads since the last erase that the device reported.
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

/// Physical place at which a mapping unit is to be programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Index of the physical unit to be programmed.
    pub physical: u32,
    /// Index of the superblock that contains the mapping unit.
    pub superblock: u32,
    /// Index of the die that programs the mapping unit.
    pub die: u32,
    /// Row of the program unit: its index among those of the die in the superblock.
    pub row: u32,
    /// Whether the program unit is full now, and can be programmed.
    pub full: bool,
}

/// Error of a write that cannot be placed until garbage collection has erased a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no superblock is free for the host: the write waits for an erase")
    }
}

impl std::error::Error for Full {}

/// Page-mapped flash translation layer.
#[derive(Debug, Clone)]
pub struct Ftl {
    pub(crate) specification: Specification,
    pub(crate) features: Features,
    /// Number of mapping units in a superblock, and of those that hold data rather than parity.
    pub(crate) units: u32,
    pub(crate) data_units: u32,
    pub(crate) parity: Option<Parity>,
    /// Parity programs that the device has not yet taken.
    pub(crate) parity_due: VecDeque<Placement>,
    pub(crate) division: Division,
    /// Physical unit + 1 of each logical unit; 0 if unmapped.
    pub(crate) map: Entries,
    /// Reverse map: logical unit + 1 that was programmed at each physical unit; 0 if none.
    pub(crate) reverse: Vec<u32>,
    pub(crate) valid: Vec<u64>,
    /// Words of the bitmap `valid` per superblock.
    pub(crate) words: u32,
    pub(crate) superblocks: Vec<Superblock>,
    pub(crate) buckets: Buckets,
    pub(crate) closing_order: VecDeque<(u32, u64)>,
    /// Free superblocks by erase count, the lowest first.
    pub(crate) free: BTreeSet<(u32, u32)>,
    /// Free superblocks of the fixed part of the SLC cache.
    pub(crate) fixed_free: BTreeSet<(u32, u32)>,
    /// Full superblocks of the SLC cache, in order of closing.
    pub(crate) cached: VecDeque<u32>,
    /// Number of valid mapping units in superblocks that joined the SLC cache.
    pub(crate) lent_valid: u64,
    /// Number of superblocks that joined the SLC cache.
    pub(crate) dynamic: u32,
    /// Open superblock of each write frontier: host streams, garbage collection, wear levelling,
    /// the layer's own, SLC cache.
    pub(crate) frontiers: Vec<Option<u32>>,
    /// Position of each write frontier; empty where dies take turns.
    pub(crate) cursors: Vec<Cursor>,
    pub(crate) preferred: Option<u32>,
    pub(crate) collection: Option<Collection>,
    /// Copies of mapping units that were located in the victim at an offset already examined.
    pub(crate) located: Vec<Copy>,
    /// Untouched mapping units of the preconditioning, if these have no addresses.
    pub(crate) anonymous: Option<Box<Anonymous>>,
    /// End of the logical units that sequential preconditioning wrote. A unit below it is at its
    /// original place while its map entry is 0.
    pub(crate) in_order: u32,
    /// Changes that a power cut could still lose; `None` unless power cuts are modelled.
    pub(crate) unsafe_changes: Option<Box<Unsafe>>,
    /// Number of copies that host writes have paid for, with fraction.
    pub(crate) tokens: f64,
    /// Number of host writes since the current collection issued its last copy.
    pub(crate) unpaid: u32,
    /// Number of mapped units, including the layer's own.
    pub(crate) mapped: u64,
    pub(crate) system_mapped: u64,
    pub(crate) clock: u64,
    pub(crate) traffic: Traffic,
    pub(crate) random: Pcg64Mcg,
}

impl Ftl {
    /// Creates a drive that was never written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn fresh(specification: Specification) -> Result<Self, Impossible> {
        Self::with_features(specification, Features::default())
    }

    /// Creates a drive with optional features that was never written.
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

    /// Returns the specification of the translation layer.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// Returns the optional features of the translation layer.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the counts of programmed mapping units and erases, by cause.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Returns the number of erased superblocks that are not open. Those of the fixed SLC cache do
    /// not count.
    pub fn free_superblocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns the number of mapped logical units of the host.
    pub fn mapped_units(&self) -> u64 {
        self.mapped - self.system_mapped
    }

    /// Returns the difference between the highest and the lowest erase count. The fixed part of the
    /// SLC cache wears separately and does not count.
    pub fn wear_spread(&self) -> u32 {
        let fixed = self.features.fixed_superblocks() as usize;
        let erases = || (self.superblocks[fixed..].iter()).map(|superblock| superblock.erases);
        erases().max().unwrap_or(0) - erases().min().unwrap_or(0)
    }

    /// Returns the physical unit that a read of `logical` senses; `None` if unmapped.
    ///
    /// # Panics
    /// If the drive has no such unit, or the unit has no address and must be
    /// [located](Self::locate) first.
    pub fn read(&self, logical: u32) -> Option<u32> {
        assert!(!self.is_untouched(logical), "unit {logical} is not located");
        self.entry(logical).checked_sub(1)
    }

    /// Places a mapping unit that the host writes to `stream`. The map switches immediately; until
    /// the unit is programmed, the drive's buffer serves reads of it.
    ///
    /// # Errors
    /// [`Full`] when the write must wait for an erase. Nothing has changed then.
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

    /// Places a mapping unit that the host writes to `stream`, bypassing the SLC cache.
    ///
    /// # Errors
    /// [`Full`] when the write must wait for an erase. Nothing has changed then.
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

    /// Places a mapping unit of the layer's own: a page of its map, or of its journal's ring. The
    /// previous version becomes invalid, and garbage collection treats the unit like any other.
    ///
    /// # Errors
    /// [`Full`] when the write must wait for an erase. Nothing has changed then.
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

    /// Returns the physical unit of one of the layer's own units; `None` if it was never written.
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

    /// Maps a logical unit to its new place, and closes the superblock if it is full.
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

    /// Unmaps an untouched mapping unit. Locates it first if power cuts are modelled, because
    /// recovery may need its old version.
    fn forget_place(&mut self, logical: u32) {
        if self.features.power_cuts {
            self.locate(logical);
        } else {
            self.drop_untouched(logical);
            self.map.set(logical, self.unmapped());
            self.mapped -= 1;
        }
    }

    /// Trims a mapping unit, and returns whether it was mapped.
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

    /// Pads the stream's open program unit, so that it can be programmed now, and returns the last
    /// padded place. Returns `None` if no program unit was begun.
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

    /// Points the map entry of a logical unit to a place, and marks the place as valid.
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

    /// Decrements the valid count of a superblock.
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

    /// Marks a mapping unit of a full superblock as valid again, for recovery from a power cut.
    pub(crate) fn revalidate(&mut self, logical: u32, physical: u32) {
        let (superblock, _) = self.division.superblock(physical);
        let block = &self.superblocks[superblock as usize];
        if block.state == State::Closed {
            self.buckets.remove(superblock, block.valid);
            self.buckets.insert(superblock, block.valid + 1);
        }
        self.switch(logical, self.placement(physical));
    }

    /// Returns the write frontier that takes data moved out of a superblock of `stream`.
    pub(crate) fn moving_frontier(&self, stream: u32) -> usize {
        match self.specification.separation {
            Separation::Mixed => stream as usize,
            Separation::Apart => self.specification.streams as usize,
            Separation::ByStream => (self.specification.streams + stream) as usize,
        }
    }
}
