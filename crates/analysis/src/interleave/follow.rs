//! Sector after sector, with the interrupts where they fall.
//!
//! Bass reckons with one service and with what may interrupt it. Two things
//! make more of that than a window at a random time. An interrupt that is being
//! served when the sector ends delays the disk's; and a sector that is missed
//! comes again a revolution later, so that clocks and disk stand to each other
//! as the sector before left them: with a tick a revolution either every sector
//! that follows is hit, or none. So the sectors are followed in time, from a
//! number of ways in which drive and interrupts may stand at first.
//!
//! There is no chance in it: the first phases are the points of a lattice.

use std::collections::VecDeque;

/// A nanosecond: what rounding makes of two times that are equal.
pub(super) const ROUNDING_MS: f64 = 1e-6;
/// First phases, and sectors that are followed from each.
pub(super) const STARTS: u32 = 32;
pub(super) const SECTORS: u32 = 400;
/// The first of them find drive and interrupts as they never are later.
const LEFT_OUT: u32 = 16;
/// How many are counted of each start.
pub(super) const COUNTED: f64 = (SECTORS - LEFT_OUT) as f64;
/// Points of the lattice, a prime, and its generator: powers of it are the
/// steps of the coordinates.
const POINTS: u64 = 16_381;
const GENERATOR: u64 = 9_979;

/// What interrupts at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Source {
    /// From one interrupt to the next.
    pub(super) period_ms: f64,
    /// What each takes of the processor.
    pub(super) cost_ms: f64,
    /// Which coordinate of the lattice is its phase. No two sources share one.
    pub(super) dimension: u32,
    /// Whether it waits while the driver starts a transfer, with interrupts of
    /// the disk's level and below held off.
    pub(super) held_off: bool,
}

/// A track that is read with some factor.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// From the start of each sector of a track to the start of the next, in
    /// slots.
    pub(super) spacings: Vec<u32>,
    /// How long a sector takes to pass.
    pub(super) sector_ms: f64,
    /// What a sector that is missed takes to come again.
    pub(super) revolution_ms: f64,
}

/// What follows for each sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lateness {
    /// The share of sectors that come by before they are asked for.
    pub(super) missed_share: f64,
    /// Mean revolutions that are waited for them.
    pub(super) lost_revolutions: f64,
    /// The mean time from a sector's end until its service is done, as far as
    /// it does not wait for the one before.
    pub(super) service_ms: f64,
}

/// What the processor does from a sector's end until the next is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// All of it.
    pub(super) service_ms: f64,
    /// Its end, in which the driver starts the next transfer.
    pub(super) start_ms: f64,
}

/// A processor that serves sectors while interrupts come.
pub(super) struct Processor {
    service: Work,
    sources: Vec<Source>,
    /// How many requests stand at a time: the next sector's, or as many as the
    /// controller holds.
    depth: usize,
    /// Whether two consecutive services are averaged.
    averages: bool,
}

impl Processor {
    /// One whose service of a sector takes this long when nothing interrupts
    /// it.
    pub(super) fn new(
        service: Work,
        sources: Vec<Source>,
        (depth, averages): (usize, bool),
    ) -> Self {
        Self {
            service,
            sources,
            depth,
            averages,
        }
    }

    /// Follows the sectors of a course.
    pub(super) fn follow(&self, course: &Course) -> Lateness {
        let mut sum = Lateness {
            missed_share: 0.0,
            lost_revolutions: 0.0,
            service_ms: 0.0,
        };
        // Without interrupts every start is the same.
        let starts = if self.sources.is_empty() { 1 } else { STARTS };
        for start in 0..starts {
            let one = self.follow_from(course, start);
            sum.missed_share += one.missed_share;
            sum.lost_revolutions += one.lost_revolutions;
            sum.service_ms += one.service_ms;
        }
        let share = |value: f64| value / f64::from(starts);
        Lateness {
            missed_share: share(sum.missed_share),
            lost_revolutions: share(sum.lost_revolutions),
            service_ms: share(sum.service_ms),
        }
    }

    fn follow_from(&self, course: &Course, start: u32) -> Lateness {
        let mut interrupts = Interrupts::new(&self.sources, start);
        // When each of the last services was done, which is when the request
        // `depth` sectors on was made.
        let mut done: VecDeque<f64> = VecDeque::from(vec![0.0; self.depth]);
        // How late the service before was, or how early.
        let mut earlier_ms = 0.0;
        let (mut ended_ms, mut missed, mut lost, mut served_ms) = (0.0, 0_u32, 0.0, 0.0);
        for sector in 0..SECTORS {
            let before_ms = *done.back().expect("a service before this one");
            let begins_ms = before_ms.max(ended_ms);
            let ends_ms = interrupts.work(begins_ms, self.service);
            done.push_back(ends_ms);
            done.pop_front();
            let asked_ms = *done.front().expect("as many as stand at a time");
            let place = sector as usize % course.spacings.len();
            let spacing_ms = f64::from(course.spacings[place]) * course.sector_ms;
            let comes_ms = ended_ms + spacing_ms - course.sector_ms;
            let own_ms = asked_ms - comes_ms - ROUNDING_MS;
            let late_ms = if self.averages && own_ms + earlier_ms <= 0.0 {
                0.0
            } else {
                own_ms
            };
            earlier_ms = own_ms;
            let revolutions = (late_ms.max(0.0) / course.revolution_ms).ceil();
            ended_ms += spacing_ms + revolutions * course.revolution_ms;
            if sector >= LEFT_OUT {
                missed += u32::from(revolutions > 0.0);
                lost += revolutions;
                served_ms += ends_ms - begins_ms;
            }
        }
        Lateness {
            missed_share: f64::from(missed) / COUNTED,
            lost_revolutions: lost / COUNTED,
            service_ms: served_ms / COUNTED,
        }
    }
}

/// The interrupts of a processor, as time goes on.
struct Interrupts<'s> {
    sources: &'s [Source],
    /// When each source interrupts next.
    next_ms: Vec<f64>,
    /// Until when the processor works on those that have come.
    busy_ms: f64,
}

impl<'s> Interrupts<'s> {
    fn new(sources: &'s [Source], start: u32) -> Self {
        let phase = |source: &Source| {
            let step = (0..source.dimension).fold(1, |power, _| power * GENERATOR % POINTS);
            let point = u64::from(start) * (POINTS / u64::from(STARTS));
            let place = point * step % POINTS;
            (place as f64 + 0.5) / POINTS as f64 * source.period_ms
        };
        Self {
            sources,
            next_ms: sources.iter().map(phase).collect(),
            busy_ms: 0.0,
        }
    }

    /// When work is done that begins at a moment, interrupts coming first. What
    /// is held off while the transfer is started comes after it, when the next
    /// sector has been asked for.
    fn work(&mut self, begins_ms: f64, work: Work) -> f64 {
        while let Some((source, at_ms)) = self.first_before(begins_ms, |_| true) {
            self.busy_ms = self.busy_ms.max(at_ms);
            self.serve(source);
        }
        self.busy_ms = begins_ms.max(self.busy_ms) + work.service_ms - work.start_ms;
        self.serve_meanwhile(|_| true);
        self.busy_ms += work.start_ms;
        self.serve_meanwhile(|source| !source.held_off);
        self.busy_ms
    }

    /// Serves all that come before the processor has done what it does, each of
    /// which makes that later: in whatever order, it is done at the same time.
    fn serve_meanwhile(&mut self, counts: impl Fn(&Source) -> bool) {
        loop {
            let until_ms = self.busy_ms - ROUNDING_MS;
            let before_ms = self.busy_ms;
            for (source, next_ms) in self.sources.iter().zip(&mut self.next_ms) {
                if *next_ms < until_ms && counts(source) {
                    let come = ((until_ms - *next_ms) / source.period_ms).ceil();
                    self.busy_ms += come * source.cost_ms;
                    *next_ms += come * source.period_ms;
                }
            }
            if self.busy_ms == before_ms {
                return;
            }
        }
    }

    fn serve(&mut self, source: usize) {
        self.busy_ms += self.sources[source].cost_ms;
        self.next_ms[source] += self.sources[source].period_ms;
    }

    fn first_before(
        &self,
        until_ms: f64,
        counts: impl Fn(&Source) -> bool,
    ) -> Option<(usize, f64)> {
        let first = self
            .next_ms
            .iter()
            .copied()
            .enumerate()
            .filter(|(source, _)| counts(&self.sources[*source]))
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        (first.1 < until_ms).then_some(first)
    }
}
