//! Translation layer: map, write frontiers and free superblocks.

use std::collections::{BTreeSet, VecDeque};

use crate::anonymous::UntouchedUnits;
use crate::buckets::ClosedSuperblocks;
use crate::collection::{ActiveCollection, UnitCopy};
use crate::division::GeometryDivision;
use crate::entries::MapEntries;
use crate::features::{DieAllocation, Features};
use crate::frontier::{FrontierCursor, Writer};
use crate::parity::ParityLayout;
use crate::recovery::UndurableChanges;
use crate::specification::{DataSeparation, Geometry, ImpossibleSpecification, Specification};
use crate::traffic::{ProgramCause, ProgrammedUnits};
use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

/// State of a superblock in its life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuperblockState {
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
pub(crate) struct SuperblockRecord {
    pub(crate) state: SuperblockState,
    pub(crate) valid_count: u32,
    pub(crate) placed_count: u32,
    /// Number of copies placed in the superblock and not yet programmed.
    pub(crate) unprogrammed_copies: u32,
    pub(crate) erase_count: u32,
    /// Value of the layer's clock (mapping units placed on the drive) when the superblock was
    /// closed.
    pub(crate) closed_at_clock: u64,
    pub(crate) stream: u32,
    /// Whether the superblock is programmed with one bit per cell (SLC cache).
    pub(crate) is_slc: bool,
    /// Whether sequential preconditioning wrote the superblock and it was not erased since. Mapping
    /// units without an entry in the tables are then at their original place.
    pub(crate) is_in_order: bool,
    /// Number of reads since the last erase that the device reported.
    pub(crate) read_count: u32,
}

impl SuperblockRecord {
    const ERASED: Self = Self {
        state: SuperblockState::Free,
        valid_count: 0,
        placed_count: 0,
        unprogrammed_copies: 0,
        erase_count: 0,
        closed_at_clock: 0,
        stream: 0,
        is_slc: false,
        is_in_order: false,
        read_count: 0,
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
    pub completes_program: bool,
}

/// Error of a write that cannot be placed until garbage collection has erased a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoFreeSuperblock;

impl std::fmt::Display for NoFreeSuperblock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no superblock is free for the host: the write waits for an erase")
    }
}

impl std::error::Error for NoFreeSuperblock {}

/// Page-mapped flash translation layer.
#[derive(Debug, Clone)]
pub struct Ftl {
    pub(crate) specification: Specification,
    pub(crate) features: Features,
    /// Number of mapping units in a superblock, and of those that hold data rather than parity.
    pub(crate) superblock_units: u32,
    pub(crate) superblock_data_units: u32,
    pub(crate) parity: Option<ParityLayout>,
    /// Parity programs that the device has not yet taken.
    pub(crate) parity_due: VecDeque<Placement>,
    pub(crate) division: GeometryDivision,
    /// Physical unit + 1 of each logical unit; 0 if unmapped.
    pub(crate) map: MapEntries,
    /// Reverse map: logical unit + 1 that was programmed at each physical unit; 0 if none.
    pub(crate) reverse: Vec<u32>,
    pub(crate) valid_bitmap: Vec<u64>,
    /// Words of the bitmap `valid` per superblock.
    pub(crate) bitmap_words_per_superblock: u32,
    pub(crate) superblocks: Vec<SuperblockRecord>,
    pub(crate) closed_superblocks: ClosedSuperblocks,
    pub(crate) closed_fifo: VecDeque<(u32, u64)>,
    /// Free superblocks by erase count, the lowest first.
    pub(crate) free_by_erase_count: BTreeSet<(u32, u32)>,
    /// Free superblocks of the fixed part of the SLC cache.
    pub(crate) fixed_cache_free: BTreeSet<(u32, u32)>,
    /// Full superblocks of the SLC cache, in order of closing.
    pub(crate) full_cache_superblocks: VecDeque<u32>,
    /// Number of valid mapping units in superblocks that joined the SLC cache.
    pub(crate) lent_valid_count: u64,
    /// Number of superblocks that joined the SLC cache.
    pub(crate) lent_superblocks: u32,
    /// Open superblock of each write frontier: host streams, garbage collection, wear levelling,
    /// the layer's own, SLC cache.
    pub(crate) open_superblocks: Vec<Option<u32>>,
    /// Position of each write frontier; empty where dies take turns.
    pub(crate) cursors: Vec<FrontierCursor>,
    pub(crate) preferred_die: Option<u32>,
    pub(crate) collection: Option<ActiveCollection>,
    /// Copies of mapping units that were located in the victim at an offset already examined.
    pub(crate) located_copies: Vec<UnitCopy>,
    /// Untouched mapping units of the preconditioning, if these have no addresses.
    pub(crate) untouched: Option<Box<UntouchedUnits>>,
    /// End of the logical units that sequential preconditioning wrote. A unit below it is at its
    /// original place while its map entry is 0.
    pub(crate) in_order_end: u32,
    /// Changes that a power cut could still lose; `None` unless power cuts are modelled.
    pub(crate) undurable_changes: Option<Box<UndurableChanges>>,
    /// Number of copies that host writes have paid for, with fraction.
    pub(crate) copies_paid: f64,
    /// Number of host writes since the current collection issued its last copy.
    pub(crate) unpaid_writes: u32,
    /// Number of mapped units, including the layer's own.
    pub(crate) mapped_count: u64,
    pub(crate) system_mapped_count: u64,
    pub(crate) placed_clock: u64,
    pub(crate) traffic: ProgrammedUnits,
    pub(crate) random: Pcg64Mcg,
}

impl Ftl {
    /// Creates a drive that was never written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn new_unwritten(specification: Specification) -> Result<Self, ImpossibleSpecification> {
        Self::with_features(specification, Features::default())
    }

    /// Creates a drive with optional features that was never written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn with_features(
        specification: Specification,
        features: Features,
    ) -> Result<Self, ImpossibleSpecification> {
        specification.check_with(&features)?;
        let Geometry {
            superblock_count: count,
            die_count: dies,
            ..
        } = specification.geometry;
        let units = specification.geometry.superblock_units();
        let words = units.div_ceil(64);
        let frontiers = specification.stream_count
            + specification.moved_data_frontiers()
            + features.added_frontier_count();
        let cursors = match features.allocation {
            DieAllocation::RoundRobin => Vec::new(),
            DieAllocation::PreferredDie => vec![FrontierCursor::new(dies); frontiers as usize],
        };
        let fixed = features.fixed_superblocks();
        let mut superblocks = vec![SuperblockRecord::ERASED; count as usize];
        (superblocks.iter_mut().take(fixed as usize)).for_each(|block| block.is_slc = true);
        Ok(Self {
            superblock_units: units,
            superblock_data_units: features.data_units(units),
            parity: (features.parity_stripe_programs).map(|stripe| ParityLayout::new(stripe, dies)),
            parity_due: VecDeque::new(),
            division: GeometryDivision::new(&specification.geometry),
            bitmap_words_per_superblock: words,
            map: MapEntries::new(specification.logical_units + features.system_units),
            // Zeroed allocations: memory is used where units are touched.
            reverse: vec![0; units as usize * count as usize],
            valid_bitmap: vec![0; words as usize * count as usize],
            superblocks,
            closed_superblocks: ClosedSuperblocks::new(specification.policy, count, units),
            closed_fifo: VecDeque::new(),
            free_by_erase_count: (fixed..count).map(|superblock| (0, superblock)).collect(),
            fixed_cache_free: (0..fixed).map(|superblock| (0, superblock)).collect(),
            full_cache_superblocks: VecDeque::new(),
            lent_valid_count: 0,
            lent_superblocks: 0,
            open_superblocks: vec![None; frontiers as usize],
            cursors,
            preferred_die: None,
            collection: None,
            located_copies: Vec::new(),
            untouched: None,
            in_order_end: 0,
            undurable_changes: (features.tracks_power_cuts).then(|| {
                Box::new(UndurableChanges::new(
                    words as usize * count as usize,
                    count,
                ))
            }),
            copies_paid: 0.0,
            unpaid_writes: 0,
            mapped_count: 0,
            system_mapped_count: 0,
            placed_clock: 0,
            traffic: ProgrammedUnits::default(),
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
    pub fn traffic(&self) -> &ProgrammedUnits {
        &self.traffic
    }

    /// Returns the number of erased superblocks that are not open. Those of the fixed SLC cache do
    /// not count.
    pub fn free_superblocks(&self) -> u32 {
        self.free_by_erase_count.len() as u32
    }

    /// Returns the number of mapped logical units of the host.
    pub fn mapped_host_units(&self) -> u64 {
        self.mapped_count - self.system_mapped_count
    }

    /// Returns the difference between the highest and the lowest erase count. The fixed part of the
    /// SLC cache wears separately and does not count.
    pub fn erase_count_spread(&self) -> u32 {
        let fixed = self.features.fixed_superblocks() as usize;
        let erases = || (self.superblocks[fixed..].iter()).map(|superblock| superblock.erase_count);
        erases().max().unwrap_or(0) - erases().min().unwrap_or(0)
    }

    /// Returns the physical unit that a read of `logical` senses; `None` if unmapped.
    ///
    /// # Panics
    /// If the drive has no such unit, or the unit has no address and must be
    /// [located](Self::locate) first.
    pub fn read(&self, logical: u32) -> Option<u32> {
        assert!(!self.is_untouched(logical), "unit {logical} is not located");
        self.effective_entry(logical).checked_sub(1)
    }

    /// Places a mapping unit that the host writes to `stream`. The map switches immediately; until
    /// the unit is programmed, the drive's buffer serves reads of it.
    ///
    /// # Errors
    /// [`NoFreeSuperblock`] when the write must wait for an erase. Nothing has changed then.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write(&mut self, logical: u32, stream: u32) -> Result<Placement, NoFreeSuperblock> {
        self.assert_request_valid(logical, stream);
        let cached = match self.features.slc_cache {
            Some(_) => self.place_unit(self.cache_frontier(), stream, ProgramCause::Host),
            None => None,
        };
        let placement = match cached {
            Some(placement) => placement,
            None => {
                let placed = self.place_unit(stream as usize, stream, ProgramCause::Host);
                let placement = placed.ok_or(NoFreeSuperblock)?;
                self.traffic.past_cache_units += u64::from(self.features.slc_cache.is_some());
                placement
            }
        };
        self.map_to_placement(logical, placement);
        Ok(placement)
    }

    /// Places a mapping unit that the host writes to `stream`, bypassing the SLC cache.
    ///
    /// # Errors
    /// [`NoFreeSuperblock`] when the write must wait for an erase. Nothing has changed then.
    ///
    /// # Panics
    /// If the drive has no such unit or stream.
    pub fn write_past_cache(
        &mut self,
        logical: u32,
        stream: u32,
    ) -> Result<Placement, NoFreeSuperblock> {
        self.assert_request_valid(logical, stream);
        let placement = self
            .place_unit(stream as usize, stream, ProgramCause::Host)
            .ok_or(NoFreeSuperblock)?;
        self.map_to_placement(logical, placement);
        Ok(placement)
    }

    /// Places a mapping unit of the layer's own: a page of its map, or of its journal's ring. The
    /// previous version becomes invalid, and garbage collection treats the unit like any other.
    ///
    /// # Errors
    /// [`NoFreeSuperblock`] when the write must wait for an erase. Nothing has changed then.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn write_system(&mut self, index: u32) -> Result<Placement, NoFreeSuperblock> {
        let logical = self.logical_of_system_unit(index);
        let placement = self
            .place_unit(self.system_frontier(), 0, ProgramCause::MapUpdate)
            .ok_or(NoFreeSuperblock)?;
        self.system_mapped_count += u64::from(self.effective_entry(logical) == 0);
        self.map_to_placement(logical, placement);
        Ok(placement)
    }

    /// Returns the physical unit of one of the layer's own units; `None` if it was never written.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn read_system(&self, index: u32) -> Option<u32> {
        self.read(self.logical_of_system_unit(index))
    }

    fn assert_request_valid(&self, logical: u32, stream: u32) {
        let Specification {
            logical_units,
            stream_count: streams,
            ..
        } = self.specification;
        assert!(logical < logical_units, "no unit {logical}");
        assert!(stream < streams, "stream {stream} is not open");
    }

    fn logical_of_system_unit(&self, index: u32) -> u32 {
        assert!(index < self.features.system_units, "no unit {index}");
        self.specification.logical_units + index
    }

    /// Maps a logical unit to its new place, and closes the superblock if it is full.
    pub(crate) fn map_to_placement(&mut self, logical: u32, placement: Placement) {
        if self.is_untouched(logical) {
            self.invalidate_mapping(logical);
        }
        self.record_change(logical, placement.physical + 1);
        match self.effective_entry(logical).checked_sub(1) {
            Some(old) => self.invalidate(old),
            None => self.mapped_count += 1,
        }
        self.reverse[placement.physical as usize] = logical + 1;
        self.switch_mapping(logical, placement);
        self.pay_for_copies();
        self.close_if_full(placement.superblock);
    }

    /// Unmaps an untouched mapping unit. Locates it first if power cuts are modelled, because
    /// recovery may need its old version.
    fn invalidate_mapping(&mut self, logical: u32) {
        if self.features.tracks_power_cuts {
            self.locate(logical);
        } else {
            self.drop_untouched(logical);
            self.map.set(logical, self.unmapped_entry());
            self.mapped_count -= 1;
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
            self.invalidate_mapping(logical);
        }
        let Some(old) = self.read(logical) else {
            return untouched;
        };
        self.record_change(logical, 0);
        self.map.set(logical, self.unmapped_entry());
        self.mapped_count -= 1;
        self.invalidate(old);
        true
    }

    /// Pads the stream's open program unit, so that it can be programmed now, and returns the last
    /// padded place. Returns `None` if no program unit was begun.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad_program(&mut self, stream: u32) -> Option<Placement> {
        self.pad_program_of_writer(Writer::Host(stream))
    }

    pub(crate) fn valid_bit(&self, physical: u32) -> (usize, u64) {
        let (superblock, offset) = self.division.split_by_superblock(physical);
        (
            (superblock * self.bitmap_words_per_superblock + offset / 64) as usize,
            1 << (offset % 64),
        )
    }

    /// Points the map entry of a logical unit to a place, and marks the place as valid.
    pub(crate) fn switch_mapping(&mut self, logical: u32, placement: Placement) {
        self.map.set(logical, placement.physical + 1);
        let (word, bit) = self.valid_bit(placement.physical);
        self.valid_bitmap[word] |= bit;
        self.increment_valid_count(placement.superblock);
    }

    pub(crate) fn increment_valid_count(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        block.valid_count += 1;
        if block.is_slc {
            self.lent_valid_count += u64::from(self.is_lent_to_cache(superblock));
        }
    }

    pub(crate) fn invalidate(&mut self, physical: u32) {
        let (superblock, offset) = self.division.split_by_superblock(physical);
        let word = superblock * self.bitmap_words_per_superblock + offset / 64;
        self.valid_bitmap[word as usize] &= !(1 << (offset % 64));
        self.decrement_valid_count(superblock);
    }

    pub(crate) fn decrement_valid_count(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        block.valid_count -= 1;
        if block.state == SuperblockState::Closed {
            let valid = block.valid_count;
            self.closed_superblocks.lower_valid_count(superblock, valid);
        } else if block.is_slc {
            self.lent_valid_count -= u64::from(self.is_lent_to_cache(superblock));
        }
    }

    /// Marks a mapping unit of a full superblock as valid again, for recovery from a power cut.
    pub(crate) fn revalidate(&mut self, logical: u32, physical: u32) {
        let (superblock, _) = self.division.split_by_superblock(physical);
        let block = &self.superblocks[superblock as usize];
        if block.state == SuperblockState::Closed {
            self.closed_superblocks
                .remove(superblock, block.valid_count);
            self.closed_superblocks
                .insert(superblock, block.valid_count + 1);
        }
        self.switch_mapping(logical, self.placement_of_physical(physical));
    }

    /// Returns the write frontier that takes data moved out of a superblock of `stream`.
    pub(crate) fn frontier_of_moved_data(&self, stream: u32) -> usize {
        match self.specification.separation {
            DataSeparation::Mixed => stream as usize,
            DataSeparation::MovedApart => self.specification.stream_count as usize,
            DataSeparation::ByStream => (self.specification.stream_count + stream) as usize,
        }
    }
}
