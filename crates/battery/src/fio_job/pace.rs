//! Times at which a clone may issue its I/Os: the rate of each direction, and the time limits of
//! the job.

use super::stream::FileIo;
use crate::random::RandomDraws;
use diskperf_fio::job::ArrivalProcess;
use diskperf_fio::{Direction, JobDefinition, PerDirection};
use diskperf_timeline::Nanoseconds;

const INTERARRIVAL_STREAMS: PerDirection<u128> = PerDirection {
    read: 12,
    write: 13,
    trim: 14,
};

#[derive(Clone, Debug)]
pub(super) struct RateLimits {
    limits_by_direction: PerDirection<Option<RateLimit>>,
}

/// I/O that the rate limits permit at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateDecision {
    /// Permission to issue an I/O of this direction, with the time at which it was due if the
    /// direction has a rate.
    IssueNow(Direction, Option<Nanoseconds>),
    /// Wait until this time, before which no I/O may be issued.
    WaitUntil(Nanoseconds),
}

impl RateLimits {
    pub(super) fn new(job: &JobDefinition, (start, seed): (Nanoseconds, u64)) -> Self {
        let limit = |direction: Direction| {
            let least_bytes = job.blocks.choice(direction).bounds_bytes().0;
            let of_iops = job.rate.iops.get(direction);
            // With several sizes the least counts.
            let of_iops = of_iops.map(|iops| u64::from(iops) * least_bytes);
            let bytes_per_s = job.rate.bytes_per_s.get(direction).or(of_iops)?;
            let is_done = job.pattern.access.includes(direction);
            (is_done && bytes_per_s > 0).then(|| RateLimit {
                bytes_per_s,
                block_bytes_min: least_bytes,
                arrival_process: job.rate.arrival_process,
                issued_bytes: 0,
                next_due_ns: 0.0,
                start_time: start,
                random: RandomDraws::new(seed, *INTERARRIVAL_STREAMS.get(direction)),
            })
        };
        Self {
            limits_by_direction: PerDirection {
                read: limit(Direction::Read),
                write: limit(Direction::Write),
                trim: limit(Direction::Trim),
            },
        }
    }

    /// Returns the direction that may issue now, if the mix of directions has drawn `drawn`. A
    /// direction that is ahead of its rate gives way to another.
    pub(super) fn decide_issue(
        &self,
        drawn: Direction,
        job: &JobDefinition,
        now: Nanoseconds,
    ) -> RateDecision {
        let due = |direction| {
            self.limits_by_direction
                .get(direction)
                .as_ref()
                .map(RateLimit::next_due)
        };
        let issues = |direction| match due(direction) {
            None => Some(RateDecision::IssueNow(direction, None)),
            Some(due) => (due <= now).then_some(RateDecision::IssueNow(direction, Some(due))),
        };
        let others = job.pattern.access.directions().iter().copied();
        let mut others = others.filter(|direction| *direction != drawn);
        issues(drawn)
            .or_else(|| others.clone().find_map(issues))
            .unwrap_or_else(|| {
                let first = due(drawn).into_iter().chain(others.find_map(due)).min();
                RateDecision::WaitUntil(first.unwrap_or(now))
            })
    }

    /// Excludes a pause after an I/O of a direction from its rate (`rate_ignore_thinktime`). The
    /// clone does not catch up on the pause, except for one block.
    pub(super) fn exclude_pause(&mut self, direction: Direction, pause: Nanoseconds) {
        if let Some(limit) = self.limits_by_direction.get_mut(direction) {
            limit.exclude_pause(pause);
        }
    }

    /// Counts an issued I/O against the rate of its direction.
    pub(super) fn count_issued(&mut self, io: &FileIo) {
        if let Some(limit) = self.limits_by_direction.get_mut(io.direction) {
            limit.count_issued(u64::from(io.bytes));
        }
    }
}

#[derive(Clone, Debug)]
struct RateLimit {
    bytes_per_s: u64,
    block_bytes_min: u64,
    arrival_process: ArrivalProcess,
    issued_bytes: u64,
    next_due_ns: f64,
    start_time: Nanoseconds,
    random: RandomDraws,
}

impl RateLimit {
    /// Returns the time at which the next I/O is due, independent of the previous one's completion.
    fn next_due(&self) -> Nanoseconds {
        self.start_time + Nanoseconds(self.next_due_ns as u64)
    }

    fn exclude_pause(&mut self, pause: Nanoseconds) {
        let missed = pause.seconds() * self.bytes_per_s as f64;
        // The next one is issued at once behind the pause.
        let over = (missed as u64).min(self.block_bytes_min);
        self.issued_bytes += (missed as u64).saturating_sub(over);
        self.next_due_ns = match self.arrival_process {
            ArrivalProcess::Linear => self.issued_bytes as f64 * 1e9 / self.bytes_per_s as f64,
            ArrivalProcess::Poisson => self.next_due_ns + pause.0 as f64,
        };
    }

    fn count_issued(&mut self, bytes: u64) {
        let rate = self.bytes_per_s as f64;
        self.issued_bytes += bytes;
        self.next_due_ns = match self.arrival_process {
            // Of the sum, so that no rounding adds up.
            ArrivalProcess::Linear => self.issued_bytes as f64 * 1e9 / rate,
            ArrivalProcess::Poisson => {
                let mean_ns = self.block_bytes_min as f64 * 1e9 / rate;
                self.next_due_ns + self.random.draw_exponential() * mean_ns
            }
        };
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimits {
    /// End of the ramp, or `None` after it or without one.
    pub(super) ramp_end: Option<Nanoseconds>,
    /// Last time at which an I/O may be issued, or `None` if only the amount of I/O ends the job.
    pub(super) time_limit_end: Option<Nanoseconds>,
}

impl TimeLimits {
    pub(super) fn new(job: &JobDefinition, start: Nanoseconds) -> Self {
        let after = |microseconds: u64| start + Nanoseconds(microseconds.saturating_mul(1000));
        let (ramp_us, runtime_us) = (job.durations.ramp_us, job.durations.runtime_us);
        Self {
            ramp_end: (ramp_us > 0).then(|| after(ramp_us)),
            time_limit_end: (runtime_us > 0).then(|| after(ramp_us.saturating_add(runtime_us))),
        }
    }
}
