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
pub const INTERVAL_COUNT_MAX: usize = 1 << 19;

/// Maximum number of level samples. When it is reached, every other sample is dropped.
pub const LEVEL_SAMPLE_COUNT_MAX: usize = 1 << 12;

/// Minimum time between two level samples.
const SAMPLE_STEP_MIN: Time = Time(10_000);

#[derive(Clone, Copy, Debug, Default)]
struct DieInterval {
    activity: Option<DieBusy>,
    is_suspended: bool,
    start: Time,
}

/// Recorder of a flash drive's busy intervals and fill levels.
#[derive(Clone, Debug)]
pub(super) struct FlashRecorder {
    open_intervals: Vec<DieInterval>,
    recorded_intervals: VecDeque<DieBusyPeriod>,
    omitted_count: u64,
    complete_since: Time,
    level_samples: Vec<FlashLevelSample>,
    next_sample_at: Time,
    sample_step: Time,
}

/// Recorded intervals and levels, without data that the drive's specification has anyway.
#[derive(Debug)]
pub(super) struct FlashRecording {
    pub(super) intervals: Vec<DieBusyPeriod>,
    pub(super) omitted_count: u64,
    pub(super) complete_since: Time,
    pub(super) level_samples: Vec<FlashLevelSample>,
}

impl FlashRecorder {
    pub(super) fn new(dies: usize) -> Self {
        Self {
            open_intervals: vec![DieInterval::default(); dies],
            recorded_intervals: VecDeque::new(),
            omitted_count: 0,
            complete_since: Time::ZERO,
            level_samples: Vec::new(),
            next_sample_at: Time::ZERO,
            sample_step: SAMPLE_STEP_MIN,
        }
    }

    /// Notes the work that keeps a die busy from now on. `stands` tells whether a program or erase
    /// is suspended.
    pub(super) fn note_activity(
        &mut self,
        now: Time,
        die: u32,
        (by, stands): (Option<DieBusy>, bool),
    ) {
        let before = self.open_intervals[die as usize];
        if (before.activity, before.is_suspended) == (by, stands) {
            return;
        }
        self.end_interval(now, die);
        self.open_intervals[die as usize] = DieInterval {
            activity: by,
            is_suspended: stands,
            start: now,
        };
    }

    fn end_interval(&mut self, now: Time, die: u32) {
        let kept = self.open_intervals[die as usize];
        let Some(by) = kept.activity.filter(|_| kept.start < now) else {
            return;
        };
        if self.recorded_intervals.len() == INTERVAL_COUNT_MAX {
            let first = self.recorded_intervals.pop_front().expect("there are some");
            self.complete_since = Time(first.busy_end.0);
            self.omitted_count += 1;
        }
        self.recorded_intervals.push_back(DieBusyPeriod {
            die_index: die,
            busy_with: by,
            is_suspended: kept.is_suspended,
            busy_start: moment(kept.start),
            busy_end: moment(now),
        });
    }

    #[inline]
    pub(super) fn is_sample_due(&self, now: Time) -> bool {
        now >= self.next_sample_at
    }

    /// Adds a level sample, and doubles the sampling interval when the list is full.
    pub(super) fn add_level_sample(&mut self, now: Time, levels: FlashLevelSample) {
        if self.level_samples.len() == LEVEL_SAMPLE_COUNT_MAX {
            let mut number = 0;
            self.level_samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.sample_step = self.sample_step + self.sample_step;
        }
        self.level_samples.push(levels);
        self.next_sample_at = now + self.sample_step;
    }

    pub(super) fn take_recording(&mut self, now: Time) -> FlashRecording {
        for die in 0..self.open_intervals.len() as u32 {
            self.end_interval(now, die);
            self.open_intervals[die as usize].start = now;
        }
        let next = Self {
            open_intervals: std::mem::take(&mut self.open_intervals),
            ..Self::new(0)
        };
        let taken = std::mem::replace(self, next);
        FlashRecording {
            intervals: taken.recorded_intervals.into(),
            omitted_count: taken.omitted_count,
            complete_since: taken.complete_since,
            level_samples: taken.level_samples,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<DieBusyPeriod>() * self.recorded_intervals.capacity()
            + size_of::<FlashLevelSample>() * self.level_samples.capacity()
    }
}
