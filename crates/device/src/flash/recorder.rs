//! Recorder of a flash drive's work: busy intervals of its dies, and its fill levels.
//!
//! A drive may do more than anyone can inspect. The recorder keeps the last busy intervals, and
//! samples levels over the entire time, at intervals that grow with its length.

use crate::moment;
use diskperf_sim::Time;
use diskperf_spans::DieBusy;
use diskperf_spans::{DieBusyPeriod, FlashLevelSample};
use std::collections::VecDeque;

/// Maximum number of busy intervals of dies that are kept.
pub const INTERVALS_MAX: usize = 1 << 19;

/// Maximum number of level samples. When it is reached, every other sample is dropped.
pub const LEVEL_SAMPLES_MAX: usize = 1 << 12;

/// Minimum time between two level samples.
const SAMPLE_STEP_MIN: Time = Time(10_000);

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    by: Option<DieBusy>,
    stands: bool,
    since: Time,
}

/// Recorder of a flash drive's busy intervals and fill levels.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    dies: Vec<Kept>,
    kept: VecDeque<DieBusyPeriod>,
    left_out: u64,
    complete_from: Time,
    levels: Vec<FlashLevelSample>,
    /// Time of the next level sample, and the sampling interval.
    due: Time,
    step: Time,
}

/// Recorded intervals and levels, without data that the drive's specification has anyway.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) kept: Vec<DieBusyPeriod>,
    pub(super) left_out: u64,
    pub(super) complete_from: Time,
    pub(super) levels: Vec<FlashLevelSample>,
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
            step: SAMPLE_STEP_MIN,
        }
    }

    /// Notes the work that keeps a die busy from now on. `stands` tells whether a program or erase
    /// is suspended.
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
        if self.kept.len() == INTERVALS_MAX {
            let first = self.kept.pop_front().expect("there are some");
            self.complete_from = Time(first.busy_end.0);
            self.left_out += 1;
        }
        self.kept.push_back(DieBusyPeriod {
            die_index: die,
            busy_with: by,
            is_suspended: kept.stands,
            busy_start: moment(kept.since),
            busy_end: moment(now),
        });
    }

    /// Tests whether a level sample is due.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// Adds a level sample, and doubles the sampling interval when the list is full.
    pub(super) fn sample(&mut self, now: Time, levels: FlashLevelSample) {
        if self.levels.len() == LEVEL_SAMPLES_MAX {
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

    /// Returns all records up to now, and starts anew.
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

    /// Returns the memory of the records, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<DieBusyPeriod>() * self.kept.capacity()
            + size_of::<FlashLevelSample>() * self.levels.capacity()
    }
}
