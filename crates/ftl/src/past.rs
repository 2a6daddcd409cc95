//! A drive that was written long ago, made at once.

use crate::anonymous::Anonymous;
use crate::collection::below;
use crate::features::Features;
use crate::ftl::Ftl;
use crate::shuffled::Shuffled;
use crate::skew::{self, Class};
use crate::small_drive;
use crate::specification::{Impossible, Separation, Specification};
use crate::steady;
use crate::traffic::{Cause, Traffic};

/// How the drive was written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// Never.
    Fresh,
    /// All of it, in order.
    Sequential,
    /// Until its state no longer changed, at random.
    Random,
    /// As long, at random, some units more than others.
    HotCold {
        /// Percent of the writes that went to the first units.
        writes_percent: u8,
        /// Percent of the units that are these.
        space_percent: u8,
    },
    /// As long, at random, the k-th unit in proportion to k^-theta.
    Zipf {
        /// Theta in hundredths.
        theta_percent: u8,
    },
}

impl Ftl {
    /// A drive with this past, statistically as if it had really been written.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason.
    pub fn with_past(specification: Specification, past: Past) -> Result<Self, Impossible> {
        let filled = specification.logical_units;
        Self::written(specification, Features::default(), past, filled)
    }

    /// A drive with these features whose first `filled` units have this past; the others
    /// were never written. A past in order takes memory when its units are written again;
    /// a random one too if the features have its units anonymous, else at once.
    ///
    /// # Errors
    /// When the specification cannot work, with the reason, or has fewer units.
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
        let ends = skew::ends(classes, filled);
        let ages = match classes {
            [_] => self.uniform_ages(filled),
            _ => None,
        };
        let ages = match ages {
            Some(ages) => ages,
            None => small_drive::ages(
                &self.specification,
                self.data_units,
                self.spare_of(filled),
                classes,
            )?,
        };
        self.fill_by_age(&ages, &ends);
        Ok(())
    }

    /// The state after uniform writes by formula, where there is one.
    pub(crate) fn uniform_ages(&self, filled: u32) -> Option<Vec<Vec<f64>>> {
        let (closed, policy) = (self.closed_by_past(), self.specification.policy);
        steady::uniform(policy, self.spare_of(filled), self.data_units, closed)
    }

    /// The spare of closed superblocks: open ones are half full on average.
    pub(crate) fn spare_of(&self, filled: u32) -> f64 {
        let rooms: u32 = self.rooms().iter().sum();
        1.0 - f64::from(filled) / f64::from(rooms)
    }

    /// The frontier that a long past has open: that of what is moved. The host is about to
    /// open one, and with that collection is due: from there on nothing is as it was until
    /// the host has filled it.
    fn frontier_of_past(&self) -> Option<usize> {
        match self.specification.separation {
            Separation::Mixed => None,
            Separation::Apart | Separation::ByStream => Some(self.moving_frontier(0)),
        }
    }

    /// Superblocks that a long past has closed: all but the open one, those of the cache,
    /// and the free ones.
    fn closed_by_past(&self) -> u32 {
        let specification = &self.specification;
        specification.geometry.superblocks
            - self.features.fixed_superblocks()
            - specification.soft_free
            - u32::from(self.frontier_of_past().is_some())
    }

    /// Units written in each superblock of a long past, the oldest first: the open one is
    /// half full, in whole program units.
    fn rooms(&self) -> Vec<u32> {
        let program_units = self.specification.geometry.program_units;
        let half = self.data_units / 2 / program_units * program_units;
        let mut rooms = vec![self.data_units; self.closed_by_past() as usize];
        rooms.extend(self.frontier_of_past().map(|_| half));
        rooms
    }

    /// Fills superblocks, the oldest first, with as many units of each class as `ages` has.
    pub(crate) fn fill_by_age(&mut self, ages: &[Vec<f64>], ends: &[u32]) {
        let mut filler = Filler::new(self, ends);
        let rooms = self.rooms();
        let closed = self.closed_by_past() as usize;
        let counts = steady::counts(ages, &rooms, &filler.lengths);
        for (index, (counts, &room)) in counts.into_iter().zip(&rooms).enumerate() {
            let open = self.frontier_of_past().filter(|_| index >= closed);
            let frontier = open.unwrap_or(0);
            match self.features.anonymous {
                true => self.fill_untouched(frontier, room, &counts),
                false => filler.fill(self, frontier, room, counts),
            }
        }
    }

    /// Fills so much of a frontier with units that have no addresses.
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

    /// Places a unit of the past; none: one that is no longer valid.
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

/// Where the units of a random past go.
struct Filler {
    /// Units of each class.
    lengths: Vec<u32>,
    /// The first unit of each class, the order of its units, and how many have a place.
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

    /// Writes so much of a frontier, with so many mapped units of each class at random
    /// places.
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
