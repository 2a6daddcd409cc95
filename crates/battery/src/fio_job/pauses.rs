//! Pauses of a clone that `thinktime` asks for.

use diskperf_fio::Job;
use diskperf_fio::job::Think;
use diskperf_timeline::Nanoseconds;

#[derive(Clone, Debug)]
pub(super) struct Pauses {
    think: Think,
    /// Whether pauses follow after a number of I/Os (`thinktime_blocks`).
    follow_ios: bool,
    /// I/Os since the last pause that a number of I/Os caused.
    ios: u32,
    /// Start of the last pause, or start of the job before the first pause.
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

    /// Counts an I/O and returns whether a pause follows it.
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

    /// Reports whether I/O has run for as long as `thinktime_iotime` says. As in fio, the time
    /// counts from the start of the last pause or of the job and includes the length of a pause.
    fn is_of_time(&self, now: Nanoseconds) -> bool {
        let cycle_us = self.think.after_us + u64::from(self.think.time_us);
        self.think.after_us > 0 && now.since(self.last) >= Nanoseconds(cycle_us * 1000)
    }
}
