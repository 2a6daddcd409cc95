//! Preconditioning: the state of a drive after long writing, built directly.

use crate::anonymous::Anonymous;
use crate::collection::below;
use crate::features::Features;
use crate::ftl::{Ftl, State, Superblock};
use crate::shuffled::Shuffled;
use crate::skew::{self, Class};
use crate::small_drive;
use crate::specification::{Impossible, Policy, Separation, Specification};
use crate::steady::{self, Steady};
use crate::traffic::{Cause, Traffic};

/// Precondition state: the way a drive was written before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
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
    pub fn with_past(specification: Specification, past: Past) -> Result<Self, Impossible> {
        let filled = specification.logical_units;
        Self::written(specification, Features::default(), past, filled)
    }

    /// Creates a drive with optional features whose first `filled` mapping units have a
    /// precondition state; the others were never written. Sequential preconditioning uses memory
    /// only for units that are written again. So does random preconditioning if the features make
    /// its units anonymous; otherwise it uses memory from the start.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason, or has fewer units than `filled`.
    pub fn written(
        specification: Specification,
        features: Features,
        past: Past,
        filled: u32,
    ) -> Result<Self, Impossible> {
        let mut ftl = Self::with_features(specification, features)?;
        if filled > specification.logical_units {
            return Err(Impossible::Overfilled {
                filled,
                logical: specification.logical_units,
            });
        }
        match past {
            Past::Fresh => {}
            Past::Sequential => ftl.write_in_order(filled),
            Past::Random | Past::HotCold { .. } | Past::Zipf { .. } => {
                ftl.write_for_long(&skew::classes(past, filled)?, filled)?;
            }
        }
        // Its last program was programmed, however full.
        ftl.leave_begun();
        // The past is not part of what is counted.
        ftl.traffic = Traffic::default();
        ftl.parity_due.clear();
        ftl.settle();
        Ok(ftl)
    }

    fn write_for_long(&mut self, classes: &[Class], filled: u32) -> Result<(), Impossible> {
        if filled == 0 {
            return Ok(());
        }
        let steady = match self.by_formula(filled, classes) {
            Some(steady) => steady,
            None => {
                let written = self.mean_written(filled, classes);
                let units = self.data_units;
                small_drive::steady(&self.specification, units, (filled, written), classes)?
            }
        };
        self.fill_as(&steady, &skew::ends(classes, filled));
        Ok(())
    }

    /// Returns the steady state by formula; `None` where no formula exists.
    fn by_formula(&mut self, filled: u32, classes: &[Class]) -> Option<Steady> {
        let (policy, units) = (self.specification.policy, self.data_units);
        let count = self.closed_by_past();
        let spare = 1.0 - f64::from(filled) / self.mean_written(filled, classes);
        let victim = steady::victim_share(policy, spare, units, classes);
        let open = self.frontier_of_past();
        let fill = open.map(|_| steady::fill_of_open(victim, &mut self.random));
        let written = (f64::from(count) + fill.unwrap_or(0.0)) * f64::from(units);
        let spare = 1.0 - f64::from(filled) / written;
        let closed = steady::by_formula(policy, spare, units, count, classes)?;
        // What is moved is as the newest.
        let open = closed.last().cloned().zip(fill);
        Some(Steady { closed, open })
    }

    /// Returns the mean number of mapping units written in superblocks that are not free, at the
    /// time when the host is about to open a superblock.
    pub(crate) fn mean_written(&self, filled: u32, classes: &[Class]) -> f64 {
        let (closed, units) = (f64::from(self.closed_by_past()), self.data_units);
        let open = self.frontier_of_past().map_or(0.0, |_| {
            let spare = 1.0 - f64::from(filled) / (closed * f64::from(units));
            let policy = self.specification.policy;
            f64::midpoint(steady::victim_share(policy, spare, units, classes), 1.0)
        });
        (closed + open) * f64::from(units)
    }

    /// Returns the write frontier that long preconditioning leaves open: that of moved data. The
    /// host is about to open a superblock, which makes garbage collection due; the drive returns to
    /// this state only when the host has filled that superblock.
    fn frontier_of_past(&self) -> Option<usize> {
        match self.specification.separation {
            Separation::Mixed => None,
            Separation::Apart | Separation::ByStream => Some(self.moving_frontier(0)),
        }
    }

    /// Returns the number of superblocks that long preconditioning has closed: all except the open
    /// one, those of the SLC cache, and the free ones.
    pub(crate) fn closed_by_past(&self) -> u32 {
        let specification = &self.specification;
        specification.geometry.superblocks
            - self.features.fixed_superblocks()
            - specification.soft_free
            - u32::from(self.frontier_of_past().is_some())
    }

    /// Fills superblocks according to a steady state, with mapping units of classes that end at
    /// `ends`.
    pub(crate) fn fill_as(&mut self, steady: &Steady, ends: &[u32]) {
        let closed = self.closed_by_past() as usize;
        let left = |index: usize| &steady.closed[index * steady.closed.len() / closed];
        let mut shares: Vec<&[f64]> = (0..closed).map(|it| left(it).shares.as_slice()).collect();
        let mut rooms = vec![self.data_units; closed];
        if let Some((left, fill)) = &steady.open {
            shares.push(&left.shares);
            rooms.push(self.whole_programs(*fill));
        }
        let mut filler = Filler::new(self, ends);
        let counts = steady::counts(&shares, &rooms, &filler.lengths);
        for (index, (counts, &room)) in counts.into_iter().zip(&rooms).enumerate() {
            let open = self.frontier_of_past().filter(|_| index >= closed);
            let frontier = open.unwrap_or(0);
            match self.features.anonymous {
                true => self.fill_untouched(frontier, room, &counts),
                false => filler.fill(self, frontier, room, counts),
            }
        }
        if self.specification.policy == Policy::CostBenefit {
            let ages: Vec<f64> = (0..closed).map(|index| left(index).age).collect();
            self.set_ages(&ages);
        }
    }

    /// Returns the number of units in a share of a superblock, in whole program units.
    fn whole_programs(&self, share: f64) -> u32 {
        let program_units = self.specification.geometry.program_units;
        let units = libm::round(share * f64::from(self.data_units)) as u32;
        units.min(self.data_units) / program_units * program_units
    }

    /// Sets the ages of the closed superblocks, the oldest first.
    fn set_ages(&mut self, ages: &[f64]) {
        let age = |share: f64| (share * f64::from(self.data_units) * ages.len() as f64) as u64;
        let ages: Vec<u64> = ages.iter().map(|&it| age(it)).collect();
        let mut closed: Vec<&mut Superblock> = (self.superblocks.iter_mut())
            .filter(|it| it.state == State::Closed)
            .collect();
        closed.sort_by_key(|it| it.closed_at);
        self.clock += ages.first().copied().unwrap_or(0);
        for (block, age) in closed.into_iter().zip(ages) {
            block.closed_at = self.clock - age;
        }
    }

    /// Fills `room` mapping units of a write frontier with units that have no addresses.
    fn fill_untouched(&mut self, frontier: usize, room: u32, counts: &[u32]) {
        if room == 0 {
            return;
        }
        if room < self.data_units {
            let place = self.place(frontier, 0, past_cause(frontier));
            let superblock = place.expect("the reserve is left free").superblock;
            self.add_untouched(superblock, counts);
            for _ in 1..room {
                self.place(frontier, 0, past_cause(frontier));
            }
            return;
        }
        let superblock = self
            .open(frontier, 0, past_cause(frontier))
            .expect("the reserve is left free");
        self.frontiers[frontier] = None;
        self.clock += u64::from(room);
        self.superblocks[superblock as usize].written = room;
        self.add_untouched(superblock, counts);
        self.close_if_full(superblock);
    }

    /// Places a mapping unit of the preconditioning; `None` stands for a unit that is no longer
    /// valid.
    pub(crate) fn place_of_past(&mut self, frontier: usize, logical: Option<u32>) {
        let placement = self
            .place(frontier, 0, past_cause(frontier))
            .expect("the reserve is left free");
        match logical {
            Some(logical) => self.remap(logical, placement),
            None => self.close_if_full(placement.superblock),
        }
    }
}

fn past_cause(frontier: usize) -> Cause {
    if frontier == 0 {
        Cause::Host
    } else {
        Cause::Collection
    }
}

/// Distribution of the mapping units of random preconditioning over superblocks.
struct Filler {
    /// Number of logical units in each class of the preconditioning.
    lengths: Vec<u32>,
    /// First mapping unit of each class, the random order of its units, and the number of units
    /// already placed.
    orders: Vec<(u32, Shuffled, u32)>,
}

impl Filler {
    fn new(ftl: &mut Ftl, ends: &[u32]) -> Self {
        let starts = std::iter::once(&0).chain(ends);
        let lengths: Vec<u32> = (starts.clone().zip(ends))
            .map(|(start, end)| end - start)
            .collect();
        if ftl.features.anonymous {
            let superblocks = ftl.specification.geometry.superblocks;
            ftl.anonymous = Some(Box::new(Anonymous::new(superblocks, ends)));
        }
        let orders = (starts.zip(&lengths))
            .map(|(&start, &length)| (start, Shuffled::new(length.max(1), &mut ftl.random), 0))
            .collect();
        Self { lengths, orders }
    }

    /// Writes `room` mapping units of a write frontier, with a given number of mapped units of each
    /// class at random positions.
    fn fill(&mut self, ftl: &mut Ftl, frontier: usize, room: u32, mut counts: Vec<u32>) {
        for place in 0..room {
            let mut drawn = below(&mut ftl.random, room - place);
            let class = counts.iter().position(|&count| {
                let is = drawn < count;
                drawn = drawn.saturating_sub(count);
                is
            });
            let logical = class.map(|class| {
                counts[class] -= 1;
                let (start, order, placed) = &mut self.orders[class];
                *placed += 1;
                *start + order.at(*placed - 1)
            });
            ftl.place_of_past(frontier, logical);
        }
    }
}
