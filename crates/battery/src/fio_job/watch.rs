//! Conditions that can end a clone while it runs: the maximum latency of an I/O, the minimum rate,
//! and the steady state.

use super::steadiness::SteadyStateCheck;
use crate::company::{CompletedIos, EndScope, WorkerGroupMember};
use crate::program::ProgramError;
use diskperf_fio::{Direction, JobDefinition, PerDirection};
use diskperf_system::{IoOperation, Submission};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::format_nanoseconds;

/// Time after the start of a clone, and its ramp, in which minimum rates are not checked, as in
/// fio.
const RATE_CHECK_DELAY: Nanoseconds = Nanoseconds::from_millis(2000);

/// Limits that a clone must keep.
#[derive(Clone, Debug)]
pub(super) struct JobMonitor {
    job_name: String,
    /// Maximum latency of an I/O (`max_latency`).
    latency_max: Option<Nanoseconds>,
    rate_floors: PerDirection<Option<RateFloor>>,
    steady_check: Option<SteadyStateCheck>,
    /// Reporting group whose steady state ends the job, instead of the steady state of the clone
    /// alone.
    steady_group: Option<SteadyGroup>,
    completed_ios: PerDirection<CompletedIos>,
}

/// Reporting group of a clone that must become steady.
#[derive(Clone, Debug)]
struct SteadyGroup {
    worker_group: WorkerGroupMember,
    group_number: u32,
    /// Whether this clone checks the group. As in fio, the last clone of the group does.
    is_checker: bool,
}

impl JobMonitor {
    pub(super) fn new(
        job: &JobDefinition,
        start: Nanoseconds,
        company: &WorkerGroupMember,
    ) -> Self {
        let settled =
            start + Nanoseconds(job.durations.ramp_us.saturating_mul(1000)) + RATE_CHECK_DELAY;
        let floor = |direction: Direction| {
            let bytes_per_s = *job.rate.bytes_per_s_min.get(direction);
            let iops = job.rate.iops_min.get(direction).map(u64::from);
            let least = match (bytes_per_s, iops) {
                (Some(least), _) => RateMin::MinBytesPerSecond(least),
                (None, Some(least)) => RateMin::MinIops(least),
                (None, None) => return None,
            };
            Some(RateFloor {
                rate_min: least,
                check_interval: Nanoseconds::from_millis(job.rate.cycle_ms.into()),
                checked_from: settled,
                check_cycle_start: None,
            })
        };
        Self {
            job_name: job.name.clone(),
            latency_max: (job.latency.limit_us > 0)
                .then(|| Nanoseconds(job.latency.limit_us.saturating_mul(1000))),
            rate_floors: PerDirection {
                read: floor(Direction::Read),
                write: floor(Direction::Write),
                trim: floor(Direction::Trim),
            },
            steady_check: SteadyStateCheck::from_job(job, start),
            steady_group: super::is_in_steady_group(job).then(|| SteadyGroup {
                worker_group: company.clone(),
                group_number: job.group,
                is_checker: company.is_last_in_steady_group(),
            }),
            completed_ios: PerDirection::default(),
        }
    }

    /// Returns the time of the next check of a clone, whether or not an I/O completes.
    pub(super) fn next_check(&self) -> Option<Nanoseconds> {
        self.steady_check
            .as_ref()
            .map(SteadyStateCheck::next_sample_due)
    }

    /// Counts a completed I/O and checks its latency.
    ///
    /// # Errors
    ///
    /// Fails if the response time exceeds `max_latency`.
    pub(super) fn record_completion(
        &mut self,
        request: &Submission,
        response: Nanoseconds,
        path: impl FnOnce() -> String,
    ) -> Result<(), ProgramError> {
        let Some(direction) = direction_of_operation(request.operation) else {
            return Ok(());
        };
        let done = self.completed_ios.get_mut(direction);
        done.io_count += 1;
        done.bytes += u64::from(request.bytes);
        done.response_ns_total += response.0;
        match self.latency_max {
            Some(most) if response > most => Err(ProgramError::ThresholdMissed(format!(
                "[{}]: a {} at byte {} of {} took {}, longer than its max_latency of {}",
                self.job_name,
                direction_name(direction),
                request.offset_bytes,
                path(),
                format_nanoseconds(response),
                format_nanoseconds(most)
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the error for an I/O that exceeds `latency_target` at a queue depth of one.
    pub(super) fn no_depth_within_target_error(
        &self,
        request: &Submission,
        response: Nanoseconds,
        path: String,
    ) -> ProgramError {
        let word = direction_of_operation(request.operation).map_or("sync", direction_name);
        ProgramError::ThresholdMissed(format!(
            "[{}]: a {word} at byte {} of {path} took {} with nothing else in flight, longer than latency_target allows for all I/Os; raise it, or lower latency_percentile",
            self.job_name,
            request.offset_bytes,
            format_nanoseconds(response),
        ))
    }

    /// Checks the clone's rates and its steady state, and returns whether the job ends because it
    /// is steady.
    ///
    /// # Errors
    ///
    /// Fails if the rate of a direction is below its minimum.
    pub(super) fn run_checks(&mut self, now: Nanoseconds) -> Result<bool, ProgramError> {
        for direction in Direction::ALL {
            let done = *self.completed_ios.get(direction);
            if let Some(floor) = self.rate_floors.get_mut(direction)
                && let Some(missed) = floor.check_rate(now, done)
            {
                let (name, word) = (&self.job_name, direction_name(direction));
                let text = format!("[{name}]: its {word}s {missed}");
                return Err(ProgramError::ThresholdMissed(text));
            }
        }
        let Some(steady) = &mut self.steady_check else {
            return Ok(false);
        };
        let mut all = CompletedIos::default();
        for direction in Direction::ALL {
            all.add_ios(*self.completed_ios.get(direction));
        }
        let Some(group) = &self.steady_group else {
            return Ok(steady.take_sample(now, all));
        };
        group.worker_group.publish_completed_ios(all);
        if !group.is_checker {
            steady.skip_sample(now);
            return Ok(false);
        }
        let is_steady = steady.take_sample(now, group.worker_group.completed_ios_of_group());
        if is_steady {
            group
                .worker_group
                .end_other_jobs(EndScope::ExitGroup(group.group_number));
        }
        Ok(is_steady)
    }

    /// Describes whether the job became steady, if it had to.
    pub(super) fn describe_outcome(&mut self) -> Option<String> {
        let looks = self
            .steady_group
            .as_ref()
            .is_none_or(|group| group.is_checker);
        let steady = self.steady_check.as_mut().filter(|_| looks);
        steady.map(SteadyStateCheck::describe_outcome)
    }
}

fn direction_of_operation(operation: IoOperation) -> Option<Direction> {
    match operation {
        IoOperation::Read => Some(Direction::Read),
        IoOperation::Write => Some(Direction::Write),
        IoOperation::DiscardRange => Some(Direction::Trim),
        IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => None,
    }
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
        Direction::Trim => "trim",
    }
}

/// Minimum rate of a direction: `rate_min` or `rate_iops_min`.
#[derive(Clone, Copy, Debug)]
enum RateMin {
    MinBytesPerSecond(u64),
    MinIops(u64),
}

/// Check of a direction's minimum rate over each cycle.
#[derive(Clone, Debug)]
struct RateFloor {
    rate_min: RateMin,
    /// Length of a check interval (`rate_cycle`).
    check_interval: Nanoseconds,
    /// Time before which the rate is not checked.
    checked_from: Nanoseconds,
    /// Start of the current cycle, and the I/Os completed by then.
    check_cycle_start: Option<(Nanoseconds, CompletedIos)>,
}

impl RateFloor {
    /// Describes by how much the cycle that ends now missed its minimum rate, or returns `None`.
    fn check_rate(&mut self, now: Nanoseconds, done: CompletedIos) -> Option<String> {
        // As fio, a direction in which nothing was done yet is not looked at.
        if now < self.checked_from || done.io_count == 0 {
            return None;
        }
        let Some((since, before)) = self.check_cycle_start else {
            self.check_cycle_start = Some((now, done));
            return None;
        };
        let spent = now.since(since);
        if spent < self.check_interval || spent.is_zero() {
            return None;
        }
        self.check_cycle_start = Some((now, done));
        let (key, unit, least, amount) = match self.rate_min {
            RateMin::MinBytesPerSecond(least) => {
                ("rate_min", "B/s", least, done.bytes - before.bytes)
            }
            RateMin::MinIops(least) => (
                "rate_iops_min",
                "IOPS",
                least,
                done.io_count - before.io_count,
            ),
        };
        let rate = amount as f64 / spent.seconds();
        (rate < least as f64).then(|| {
            format!(
                "came to {rate:.0} {unit} over {:.1} s, less than the {least} of {key}",
                spent.seconds()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_that_is_too_slow_is_told_after_it_settled() {
        let mut floor = RateFloor {
            rate_min: RateMin::MinIops(100),
            check_interval: Nanoseconds::from_millis(1000),
            checked_from: Nanoseconds::from_millis(2000),
            check_cycle_start: None,
        };
        let mut look = |at_ms, ios| {
            let done = CompletedIos {
                io_count: ios,
                ..CompletedIos::default()
            };
            floor.check_rate(Nanoseconds::from_millis(at_ms), done)
        };
        assert_eq!(look(1000, 1), None);
        assert_eq!(look(2000, 2), None);
        assert_eq!(look(2500, 2), None);
        assert_eq!(look(3000, 102), None);
        let missed = look(4000, 201).expect("99 I/Os in a second");
        assert!(
            missed.contains("99 IOPS") && missed.contains("rate_iops_min"),
            "{missed}"
        );
    }
}
