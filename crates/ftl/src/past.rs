//! Preconditioning: the state of a drive after long writing, built directly.

use crate::anonymous::UntouchedUnits;
use crate::collection::draw_below;
use crate::features::Features;
use crate::ftl::{Ftl, SuperblockRecord, SuperblockState};
use crate::shuffled::ShuffledOrder;
use crate::skew::{self, AccessClass};
use crate::small_drive;
use crate::specification::{DataSeparation, ImpossibleSpecification, Specification, VictimPolicy};
use crate::steady::{self, SteadyState};
use crate::traffic::{ProgramCause, ProgrammedUnits};

/// Precondition state: the way a drive was written before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreconditionState {
    /// Fresh drive that was never written.
    Fresh,
    /// Drive that was filled once, sequentially.
    Sequential,
    /// Drive written uniformly at random to the steady state.
    Random,
    /// Drive written at random to the steady state, with hot and cold mapping units.
    HotCold {
        /// Percentage of the writes that go to the hot mapping units, which are the first ones.
        writes_percent: u8,
        /// Percentage of the mapping units that are hot.
        space_percent: u8,
    },
    /// Drive written at random to the steady state by Zipf's law: the k-th mapping unit in
    /// proportion to k^-theta.
    Zipf {
        /// Exponent theta of Zipf's law, in hundredths.
        theta_percent: u8,
    },
}

impl Ftl {
    /// Creates a drive with a precondition state, statistically equal to one that was really
    /// written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn new_preconditioned(
        specification: Specification,
        past: PreconditionState,
    ) -> Result<Self, ImpossibleSpecification> {
        let filled = specification.logical_units;
        Self::new_preconditioned_with_features(specification, Features::default(), past, filled)
    }

    /// Creates a drive with optional features whose first `filled` mapping units have a
    /// precondition state; the others were never written. Sequential preconditioning uses memory
    /// only for units that are written again. So does random preconditioning if the features make
    /// its units anonymous; otherwise it uses memory from the start.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason, or has fewer units than `filled`.
    pub fn new_preconditioned_with_features(
        specification: Specification,
        features: Features,
        past: PreconditionState,
        filled: u32,
    ) -> Result<Self, ImpossibleSpecification> {
        let mut ftl = Self::with_features(specification, features)?;
        if filled > specification.logical_units {
            return Err(ImpossibleSpecification::OverfilledPrecondition {
                filled,
                logical: specification.logical_units,
            });
        }
        match past {
            PreconditionState::Fresh => {}
            PreconditionState::Sequential => ftl.precondition_in_order(filled),
            PreconditionState::Random
            | PreconditionState::HotCold { .. }
            | PreconditionState::Zipf { .. } => {
                ftl.precondition_to_steady_state(&skew::access_classes(past, filled)?, filled)?;
            }
        }
        // Its last program was programmed, however full.
        ftl.close_partial_programs();
        // The past is not part of what is counted.
        ftl.traffic = ProgrammedUnits::default();
        ftl.parity_due.clear();
        ftl.settle_preconditioning();
        Ok(ftl)
    }

    fn precondition_to_steady_state(
        &mut self,
        classes: &[AccessClass],
        filled: u32,
    ) -> Result<(), ImpossibleSpecification> {
        if filled == 0 {
            return Ok(());
        }
        let steady = match self.steady_state_by_formula(filled, classes) {
            Some(steady) => steady,
            None => {
                let written = self.mean_written_units(filled, classes);
                let units = self.superblock_data_units;
                small_drive::simulate_steady_state(
                    &self.specification,
                    units,
                    (filled, written),
                    classes,
                )?
            }
        };
        self.fill_to_steady_state(&steady, &skew::class_ends(classes, filled));
        Ok(())
    }

    /// Returns the steady state by formula; `None` where no formula exists.
    fn steady_state_by_formula(
        &mut self,
        filled: u32,
        classes: &[AccessClass],
    ) -> Option<SteadyState> {
        let (policy, units) = (self.specification.policy, self.superblock_data_units);
        let count = self.closed_superblock_count();
        let spare = 1.0 - f64::from(filled) / self.mean_written_units(filled, classes);
        let victim = steady::victim_share(policy, spare, units, classes);
        let open = self.frontier_left_open();
        let fill = open.map(|_| steady::draw_open_fill(victim, &mut self.random));
        let written = (f64::from(count) + fill.unwrap_or(0.0)) * f64::from(units);
        let spare = 1.0 - f64::from(filled) / written;
        let closed = steady::steady_state_by_formula(policy, spare, units, count, classes)?;
        // What is moved is as the newest.
        let open = closed.last().cloned().zip(fill);
        Some(SteadyState {
            closed_superblocks: closed,
            open_superblock: open,
        })
    }

    /// Returns the mean number of mapping units written in superblocks that are not free, at the
    /// time when the host is about to open a superblock.
    pub(crate) fn mean_written_units(&self, filled: u32, classes: &[AccessClass]) -> f64 {
        let (closed, units) = (
            f64::from(self.closed_superblock_count()),
            self.superblock_data_units,
        );
        let open = self.frontier_left_open().map_or(0.0, |_| {
            let spare = 1.0 - f64::from(filled) / (closed * f64::from(units));
            let policy = self.specification.policy;
            f64::midpoint(steady::victim_share(policy, spare, units, classes), 1.0)
        });
        (closed + open) * f64::from(units)
    }

    /// Returns the write frontier that long preconditioning leaves open: that of moved data. The
    /// host is about to open a superblock, which makes garbage collection due; the drive returns to
    /// this state only when the host has filled that superblock.
    fn frontier_left_open(&self) -> Option<usize> {
        match self.specification.separation {
            DataSeparation::Mixed => None,
            DataSeparation::MovedApart | DataSeparation::ByStream => {
                Some(self.frontier_of_moved_data(0))
            }
        }
    }

    /// Returns the number of superblocks that long preconditioning has closed: all except the open
    /// one, those of the SLC cache, and the free ones.
    pub(crate) fn closed_superblock_count(&self) -> u32 {
        let specification = &self.specification;
        specification.geometry.superblock_count
            - self.features.fixed_superblocks()
            - specification.soft_free_superblocks
            - u32::from(self.frontier_left_open().is_some())
    }

    /// Fills superblocks according to a steady state, with mapping units of classes that end at
    /// `ends`.
    pub(crate) fn fill_to_steady_state(&mut self, steady: &SteadyState, ends: &[u32]) {
        let closed = self.closed_superblock_count() as usize;
        let left = |index: usize| {
            &steady.closed_superblocks[index * steady.closed_superblocks.len() / closed]
        };
        let mut shares: Vec<&[f64]> = (0..closed)
            .map(|it| left(it).shares_by_class.as_slice())
            .collect();
        let mut rooms = vec![self.superblock_data_units; closed];
        if let Some((left, fill)) = &steady.open_superblock {
            shares.push(&left.shares_by_class);
            rooms.push(self.units_of_whole_programs(*fill));
        }
        let mut filler = SteadyStateFiller::new(self, ends);
        let counts = steady::units_by_superblock(&shares, &rooms, &filler.class_lengths);
        for (index, (counts, &room)) in counts.into_iter().zip(&rooms).enumerate() {
            let open = self.frontier_left_open().filter(|_| index >= closed);
            let frontier = open.unwrap_or(0);
            match self.features.anonymous_precondition {
                true => self.fill_untouched(frontier, room, &counts),
                false => filler.fill_superblock(self, frontier, room, counts),
            }
        }
        if self.specification.policy == VictimPolicy::CostBenefit {
            let ages: Vec<f64> = (0..closed).map(|index| left(index).age_in_writes).collect();
            self.set_closing_ages(&ages);
        }
    }

    /// Returns the number of units in a share of a superblock, in whole program units.
    fn units_of_whole_programs(&self, share: f64) -> u32 {
        let program_units = self.specification.geometry.units_per_program;
        let units = libm::round(share * f64::from(self.superblock_data_units)) as u32;
        units.min(self.superblock_data_units) / program_units * program_units
    }

    /// Sets the ages of the closed superblocks, the oldest first.
    fn set_closing_ages(&mut self, ages: &[f64]) {
        let age =
            |share: f64| (share * f64::from(self.superblock_data_units) * ages.len() as f64) as u64;
        let ages: Vec<u64> = ages.iter().map(|&it| age(it)).collect();
        let mut closed: Vec<&mut SuperblockRecord> = (self.superblocks.iter_mut())
            .filter(|it| it.state == SuperblockState::Closed)
            .collect();
        closed.sort_by_key(|it| it.closed_at_clock);
        self.placed_clock += ages.first().copied().unwrap_or(0);
        for (block, age) in closed.into_iter().zip(ages) {
            block.closed_at_clock = self.placed_clock - age;
        }
    }

    /// Fills `room` mapping units of a write frontier with units that have no addresses.
    fn fill_untouched(&mut self, frontier: usize, room: u32, counts: &[u32]) {
        if room == 0 {
            return;
        }
        if room < self.superblock_data_units {
            let place = self.place_unit(frontier, 0, cause_of_frontier(frontier));
            let superblock = place.expect("the reserve is left free").superblock;
            self.add_untouched(superblock, counts);
            for _ in 1..room {
                self.place_unit(frontier, 0, cause_of_frontier(frontier));
            }
            return;
        }
        let superblock = self
            .open_superblock(frontier, 0, cause_of_frontier(frontier))
            .expect("the reserve is left free");
        self.open_superblocks[frontier] = None;
        self.placed_clock += u64::from(room);
        self.superblocks[superblock as usize].placed_count = room;
        self.add_untouched(superblock, counts);
        self.close_if_full(superblock);
    }

    /// Places a mapping unit of the preconditioning; `None` stands for a unit that is no longer
    /// valid.
    pub(crate) fn place_preconditioned_unit(&mut self, frontier: usize, logical: Option<u32>) {
        let placement = self
            .place_unit(frontier, 0, cause_of_frontier(frontier))
            .expect("the reserve is left free");
        match logical {
            Some(logical) => self.map_to_placement(logical, placement),
            None => self.close_if_full(placement.superblock),
        }
    }
}

fn cause_of_frontier(frontier: usize) -> ProgramCause {
    if frontier == 0 {
        ProgramCause::Host
    } else {
        ProgramCause::GarbageCollection
    }
}

/// Distribution of the mapping units of random preconditioning over superblocks.
struct SteadyStateFiller {
    /// Number of logical units in each class of the preconditioning.
    class_lengths: Vec<u32>,
    /// First mapping unit of each class, the random order of its units, and the number of units
    /// already placed.
    class_orders: Vec<(u32, ShuffledOrder, u32)>,
}

impl SteadyStateFiller {
    fn new(ftl: &mut Ftl, ends: &[u32]) -> Self {
        let starts = std::iter::once(&0).chain(ends);
        let lengths: Vec<u32> = (starts.clone().zip(ends))
            .map(|(start, end)| end - start)
            .collect();
        if ftl.features.anonymous_precondition {
            let superblocks = ftl.specification.geometry.superblock_count;
            ftl.untouched = Some(Box::new(UntouchedUnits::new(superblocks, ends)));
        }
        let orders = (starts.zip(&lengths))
            .map(|(&start, &length)| (start, ShuffledOrder::new(length.max(1), &mut ftl.random), 0))
            .collect();
        Self {
            class_lengths: lengths,
            class_orders: orders,
        }
    }

    /// Writes `room` mapping units of a write frontier, with a given number of mapped units of each
    /// class at random positions.
    fn fill_superblock(&mut self, ftl: &mut Ftl, frontier: usize, room: u32, mut counts: Vec<u32>) {
        for place in 0..room {
            let mut drawn = draw_below(&mut ftl.random, room - place);
            let class = counts.iter().position(|&count| {
                let is = drawn < count;
                drawn = drawn.saturating_sub(count);
                is
            });
            let logical = class.map(|class| {
                counts[class] -= 1;
                let (start, order, placed) = &mut self.class_orders[class];
                *placed += 1;
                *start + order.number_at(*placed - 1)
            });
            ftl.place_preconditioned_unit(frontier, logical);
        }
    }
}
