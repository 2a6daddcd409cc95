//! The map, the frontiers and the free superblocks.

use std::collections::{BTreeSet, VecDeque};

use rand_core::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use thiserror::Error;

use crate::buckets::Buckets;
use crate::collection::Collection;
use crate::specification::{Impossible, Separation, Specification};
use crate::traffic::{Cause, Traffic};

/// What a superblock is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Open,
    /// Full, but units of it are still to be programmed by a collection.
    Closing,
    Closed,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no superblock is free for the host: the write waits for an erase")]
pub struct Full;

/// A page-mapped translation layer.
#[derive(Debug)]
pub struct Ftl {
    pub(crate) specification: Specification,
    pub(crate) units: u32,
    /// Physical unit + 1 of each logical one; 0: unmapped.
    pub(crate) map: Vec<u32>,
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
    /// Host streams, then collection's, then wear levelling's.
    pub(crate) frontiers: Vec<Option<u32>>,
    pub(crate) collection: Option<Collection>,
    /// Copies that the host's writes have paid for.
    pub(crate) tokens: f64,
    pub(crate) mapped: u64,
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
        specification.check()?;
        let (units, count) = (
            specification.geometry.superblock_units(),
            specification.geometry.superblocks,
        );
        let words = units.div_ceil(64);
        let empty = Superblock {
            state: State::Free,
            valid: 0,
            written: 0,
            pending: 0,
            erases: 0,
            closed_at: 0,
            stream: 0,
        };
        let frontiers = specification.streams + specification.moving_frontiers();
        Ok(Self {
            units,
            words,
            // Zeroed allocations: memory is used where units are touched.
            map: vec![0; specification.logical_units as usize],
            reverse: vec![0; units as usize * count as usize],
            valid: vec![0; words as usize * count as usize],
            superblocks: vec![empty; count as usize],
            buckets: Buckets::new(count, units),
            closing_order: VecDeque::new(),
            free: (0..count).map(|superblock| (0, superblock)).collect(),
            frontiers: vec![None; frontiers as usize],
            collection: None,
            tokens: 0.0,
            mapped: 0,
            clock: 0,
            traffic: Traffic::default(),
            random: Pcg64Mcg::seed_from_u64(specification.seed),
            specification,
        })
    }

    /// What this layer was made for.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// What was programmed and erased.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Superblocks that are erased and in no frontier.
    pub fn free_superblocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Logical units that are mapped.
    pub fn mapped_units(&self) -> u64 {
        self.mapped
    }

    /// The greatest difference between two superblocks' erases.
    pub fn wear_spread(&self) -> u32 {
        let erases = || self.superblocks.iter().map(|superblock| superblock.erases);
        erases().max().unwrap_or(0) - erases().min().unwrap_or(0)
    }

    /// The physical unit that a read of `logical` senses; none if it is unmapped.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn read(&self, logical: u32) -> Option<u32> {
        self.map[logical as usize].checked_sub(1)
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
        assert!(
            stream < self.specification.streams,
            "stream {stream} is not open"
        );
        let old = self.map[logical as usize];
        let placement = self
            .place(stream as usize, stream, Cause::Host)
            .ok_or(Full)?;
        match old.checked_sub(1) {
            Some(old) => self.invalidate(old),
            None => self.mapped += 1,
        }
        self.reverse[placement.physical as usize] = logical + 1;
        self.switch(logical, placement);
        self.pay_for_copies();
        self.close_if_full(placement.superblock);
        Ok(placement)
    }

    /// Unmaps a unit; says whether it was mapped.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn trim(&mut self, logical: u32) -> bool {
        let Some(old) = std::mem::take(&mut self.map[logical as usize]).checked_sub(1) else {
            return false;
        };
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
        assert!(
            stream < self.specification.streams,
            "stream {stream} is not open"
        );
        let mut last = None;
        while let Some(open) = self.frontiers[stream as usize] {
            let written = self.superblocks[open as usize].written;
            if written.is_multiple_of(self.specification.geometry.program_units) {
                break;
            }
            last = self.place(stream as usize, stream, Cause::Padding);
            self.close_if_full(open);
        }
        last
    }

    /// The next place of a frontier; none when no superblock is free for it.
    pub(crate) fn place(
        &mut self,
        frontier: usize,
        stream: u32,
        cause: Cause,
    ) -> Option<Placement> {
        let superblock = match self.frontiers[frontier] {
            Some(open) => open,
            None => self.open(frontier, stream, cause)?,
        };
        let block = &mut self.superblocks[superblock as usize];
        let offset = block.written;
        assert!(
            offset < self.units && block.state == State::Open,
            "programs of {superblock} in order, once"
        );
        block.written += 1;
        if block.written == self.units {
            self.frontiers[frontier] = None;
        }
        self.clock += 1;
        self.traffic.add(cause);
        let physical = superblock * self.units + offset;
        assert_eq!(
            self.reverse[physical as usize], 0,
            "unit {physical} programmed twice"
        );
        Some(self.placement(physical))
    }

    fn placement(&self, physical: u32) -> Placement {
        let geometry = &self.specification.geometry;
        let (superblock, offset) = (physical / self.units, physical % self.units);
        let program = offset / geometry.program_units;
        Placement {
            physical,
            superblock,
            die: program % geometry.dies,
            row: program / geometry.dies,
            full: (offset + 1).is_multiple_of(geometry.program_units),
        }
    }

    /// Opens the least erased free superblock; the most erased for static wear levelling.
    fn open(&mut self, frontier: usize, stream: u32, cause: Cause) -> Option<u32> {
        // The host leaves what collection needs to go on.
        let kept = self.specification.moving_frontiers().max(1) as usize;
        if matches!(cause, Cause::Host | Cause::Padding) && self.free.len() <= kept {
            return None;
        }
        let (_, superblock) = match cause {
            Cause::WearLevelling => self.free.pop_last()?,
            _ => self.free.pop_first()?,
        };
        let block = &mut self.superblocks[superblock as usize];
        block.state = State::Open;
        block.stream = stream;
        self.frontiers[frontier] = Some(superblock);
        Some(superblock)
    }

    /// Closes a superblock when its last unit has its place and no copy is under way.
    pub(crate) fn close_if_full(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        if block.written < self.units || !matches!(block.state, State::Open | State::Closing) {
            return;
        }
        if block.pending > 0 {
            block.state = State::Closing;
            return;
        }
        block.state = State::Closed;
        block.closed_at = self.clock;
        self.buckets.insert(superblock, block.valid);
        self.closing_order.push_back((superblock, block.closed_at));
    }

    fn bit(&self, physical: u32) -> (usize, u64) {
        let (superblock, offset) = (physical / self.units, physical % self.units);
        (
            (superblock * self.words + offset / 64) as usize,
            1 << (offset % 64),
        )
    }

    /// Makes the placed unit the logical one's.
    pub(crate) fn switch(&mut self, logical: u32, placement: Placement) {
        self.map[logical as usize] = placement.physical + 1;
        let (word, bit) = self.bit(placement.physical);
        self.valid[word] |= bit;
        self.superblocks[placement.superblock as usize].valid += 1;
    }

    pub(crate) fn invalidate(&mut self, physical: u32) {
        let (word, bit) = self.bit(physical);
        self.valid[word] &= !bit;
        let superblock = physical / self.units;
        let block = &mut self.superblocks[superblock as usize];
        block.valid -= 1;
        if block.state == State::Closed {
            let valid = block.valid;
            self.buckets.remove(superblock, valid + 1);
            self.buckets.insert(superblock, valid);
        }
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
