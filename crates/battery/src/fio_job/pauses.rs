//! Pauses of a clone that `thinktime` asks for.

use diskperf_fio::JobDefinition;
use diskperf_fio::job::ThinkTime;
use diskperf_timeline::Nanoseconds;

#[derive(Clone, Debug)]
pub(super) struct ThinkPauses {
    think_options: ThinkTime,
    /// Whether pauses follow after a number of I/Os (`thinktime_blocks`).
    follow_io_count: bool,
    /// I/Os since the last pause that a number of I/Os caused.
    ios_since_pause: u32,
    /// Start of the last pause, or start of the job before the first pause.
    last_pause_start: Nanoseconds,
}

impl ThinkPauses {
    pub(super) fn new(job: &JobDefinition, start: Nanoseconds) -> Self {
        let think = job.think;
        Self {
            think_options: think,
            // The default of one I/O does not count beside a time of I/O, as in fio.
            follow_io_count: think.interval_us == 0 || job.has_option("thinktime_blocks"),
            ios_since_pause: 0,
            last_pause_start: start,
        }
    }

    /// Counts an I/O and returns whether a pause follows it.
    pub(super) fn count_io(&mut self, now: Nanoseconds) -> bool {
        if self.think_options.pause_us == 0 {
            return false;
        }
        self.ios_since_pause = (self.ios_since_pause + 1) % self.think_options.ios_between.max(1);
        let is_due =
            (self.follow_io_count && self.ios_since_pause == 0) || self.has_io_time_elapsed(now);
        if is_due {
            self.last_pause_start = now;
        }
        is_due
    }

    /// Reports whether I/O has run for as long as `thinktime_iotime` says. As in fio, the time
    /// counts from the start of the last pause or of the job and includes the length of a pause.
    fn has_io_time_elapsed(&self, now: Nanoseconds) -> bool {
        let cycle_us = self.think_options.interval_us + u64::from(self.think_options.pause_us);
        self.think_options.interval_us > 0
            && now.since(self.last_pause_start) >= Nanoseconds(cycle_us * 1000)
    }
}
