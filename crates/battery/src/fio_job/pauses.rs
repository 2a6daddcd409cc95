//! `thinktime`: when a clone pauses.

use diskperf_fio::Job;
use diskperf_fio::job::Think;
use diskperf_timeline::Nanoseconds;

/// Pauses of a clone.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    think: Think,
    /// Whether a number of I/Os is followed by a pause.
    follow_ios: bool,
    /// I/Os since a pause that followed a number of them.
    ios: u32,
    /// Start of the last pause; before the first one, that of the job.
    last: Nanoseconds,
}

impl Pauses {
    pub(super) fn new(job: &Job, start: Nanoseconds) -> Self {
        let think = job.think;
        Self {
            think,
            // The default of one I/O does not count beside a time of I/O, as in fio.
            follow_ios: think.after_us == 0 || job.says("thinktime_blocks"),
            ios: 0,
            last: start,
        }
    }

    /// Counts an I/O, and returns whether a pause follows it.
    pub(super) fn follow(&mut self, now: Nanoseconds) -> bool {
        if self.think.time_us == 0 {
            return false;
        }
        self.ios = (self.ios + 1) % self.think.after_ios.max(1);
        let is_due = (self.follow_ios && self.ios == 0) || self.is_of_time(now);
        if is_due {
            self.last = now;
        }
        is_due
    }

    /// Whether there was I/O for as long as `thinktime_iotime` says. As fio, this counts
    /// from the start of a pause, or of the job, the length of a pause included.
    fn is_of_time(&self, now: Nanoseconds) -> bool {
        let cycle_us = self.think.after_us + u64::from(self.think.time_us);
        self.think.after_us > 0 && now.since(self.last) >= Nanoseconds(cycle_us * 1000)
    }
}
