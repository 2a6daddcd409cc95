//! What a drive did, for those who want to see it: what kept its dies, and its levels.
//!
//! A drive may do more than anybody can look at. Of what kept dies the last is kept; of
//! levels, samples of the whole time, further apart the longer it gets.

use crate::moment;
use diskperf_sim::Time;
use diskperf_spans::DieBusy;
use diskperf_spans::{FlashLevels, TracedDie};
use std::collections::VecDeque;

/// Intervals that are kept.
pub const MOST_INTERVALS: usize = 1 << 19;

/// Samples of levels at the most: with these, every other one is given up.
pub const MOST_LEVELS: usize = 1 << 12;

/// The least time between two samples.
const LEAST_STEP: Time = Time(10_000);

/// What keeps a die, and since when.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    by: Option<DieBusy>,
    stands: bool,
    since: Time,
}

/// What was recorded so far.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    dies: Vec<Kept>,
    kept: VecDeque<TracedDie>,
    left_out: u64,
    complete_from: Time,
    levels: Vec<FlashLevels>,
    /// When levels are sampled next, and how long after that.
    due: Time,
    step: Time,
}

/// What was recorded, without what is known of the drive anyway.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) kept: Vec<TracedDie>,
    pub(super) left_out: u64,
    pub(super) complete_from: Time,
    pub(super) levels: Vec<FlashLevels>,
}

impl Recorder {
    pub(super) fn new(dies: usize) -> Self {
        Self {
            dies: vec![Kept::default(); dies],
            kept: VecDeque::new(),
            left_out: 0,
            complete_from: Time::ZERO,
            levels: Vec::new(),
            due: Time::ZERO,
            step: LEAST_STEP,
        }
    }

    /// From now on a die is kept by this; `stands`: a program or an erase stands still.
    pub(super) fn note(&mut self, now: Time, die: u32, (by, stands): (Option<DieBusy>, bool)) {
        let before = self.dies[die as usize];
        if (before.by, before.stands) == (by, stands) {
            return;
        }
        self.end(now, die);
        self.dies[die as usize] = Kept {
            by,
            stands,
            since: now,
        };
    }

    fn end(&mut self, now: Time, die: u32) {
        let kept = self.dies[die as usize];
        let Some(by) = kept.by.filter(|_| kept.since < now) else {
            return;
        };
        if self.kept.len() == MOST_INTERVALS {
            let first = self.kept.pop_front().expect("there are some");
            self.complete_from = Time(first.until.0);
            self.left_out += 1;
        }
        self.kept.push_back(TracedDie {
            die,
            by,
            stands: kept.stands,
            from: moment(kept.since),
            until: moment(now),
        });
    }

    /// Whether levels are to be sampled.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// A sample of levels.
    pub(super) fn sample(&mut self, now: Time, levels: FlashLevels) {
        if self.levels.len() == MOST_LEVELS {
            let mut number = 0;
            self.levels.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step = self.step + self.step;
        }
        self.levels.push(levels);
        self.due = now + self.step;
    }

    /// What was recorded up to now; it begins anew.
    pub(super) fn take(&mut self, now: Time) -> Recorded {
        for die in 0..self.dies.len() as u32 {
            self.end(now, die);
            self.dies[die as usize].since = now;
        }
        let next = Self {
            dies: std::mem::take(&mut self.dies),
            ..Self::new(0)
        };
        let taken = std::mem::replace(self, next);
        Recorded {
            kept: taken.kept.into(),
            left_out: taken.left_out,
            complete_from: taken.complete_from,
            levels: taken.levels,
        }
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<TracedDie>() * self.kept.capacity()
            + size_of::<FlashLevels>() * self.levels.capacity()
    }
}
