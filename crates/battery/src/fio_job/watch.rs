//! Conditions that can end a clone while it runs: the maximum latency of an I/O, the minimum rate,
//! and the steady state.

use super::steadiness::Steadiness;
use crate::company::{Company, Done, Ended};
use crate::program::ProgramError;
use diskperf_fio::{Direction, Job, PerDirection};
use diskperf_system::{Operation, Submission};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::format_nanoseconds;

/// Time after the start of a clone, and its ramp, in which minimum rates are not checked, as in
/// fio.
const SETTLING: Nanoseconds = Nanoseconds::from_millis(2000);

/// Limits that a clone must keep.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    name: String,
    /// Maximum latency of an I/O (`max_latency`).
    most: Option<Nanoseconds>,
    floors: PerDirection<Option<Floor>>,
    steady: Option<Steadiness>,
    /// Reporting group whose steady state ends the job, instead of the steady state of the clone
    /// alone.
    group: Option<SteadyGroup>,
    done: PerDirection<Done>,
}

/// Reporting group of a clone that must become steady.
#[derive(Clone, Debug)]
struct SteadyGroup {
    company: Company,
    number: u32,
    /// Whether this clone checks the group. As in fio, the last clone of the group does.
    looks: bool,
}

impl Watch {
    pub(super) fn new(job: &Job, start: Nanoseconds, company: &Company) -> Self {
        let settled = start + Nanoseconds(job.times.ramp_us.saturating_mul(1000)) + SETTLING;
        let floor = |direction: Direction| {
            let bytes_per_s = *job.rate.least_bytes_per_s.get(direction);
            let iops = job.rate.least_iops.get(direction).map(u64::from);
            let least = match (bytes_per_s, iops) {
                (Some(least), _) => Least::BytesPerSecond(least),
                (None, Some(least)) => Least::Iops(least),
                (None, None) => return None,
            };
            Some(Floor {
                least,
                cycle: Nanoseconds::from_millis(job.rate.cycle_ms.into()),
                settled,
                last: None,
            })
        };
        Self {
            name: job.name.clone(),
            most: (job.latency.most_us > 0)
                .then(|| Nanoseconds(job.latency.most_us.saturating_mul(1000))),
            floors: PerDirection {
                read: floor(Direction::Read),
                write: floor(Direction::Write),
                trim: floor(Direction::Trim),
            },
            steady: Steadiness::of(job, start),
            group: super::is_of_steady_group(job).then(|| SteadyGroup {
                company: company.clone(),
                number: job.group,
                looks: company.is_last_of_steady_group(),
            }),
            done: PerDirection::default(),
        }
    }

    /// Returns the time of the next check of a clone, whether or not an I/O completes.
    pub(super) fn due(&self) -> Option<Nanoseconds> {
        self.steady.as_ref().map(Steadiness::due)
    }

    /// Counts a completed I/O and checks its latency.
    ///
    /// # Errors
    ///
    /// Fails if the response time exceeds `max_latency`.
    pub(super) fn completed(
        &mut self,
        request: &Submission,
        response: Nanoseconds,
        path: impl FnOnce() -> String,
    ) -> Result<(), ProgramError> {
        let Some(direction) = direction(request.operation) else {
            return Ok(());
        };
        let done = self.done.get_mut(direction);
        done.ios += 1;
        done.bytes += u64::from(request.bytes);
        done.response_ns += response.0;
        match self.most {
            Some(most) if response > most => Err(ProgramError::Missed(format!(
                "[{}]: a {} at byte {} of {} took {}, longer than its max_latency of {}",
                self.name,
                word(direction),
                request.offset_bytes,
                path(),
                format_nanoseconds(response),
                format_nanoseconds(most)
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the error for an I/O that exceeds `latency_target` at a queue depth of one.
    pub(super) fn no_depth(
        &self,
        request: &Submission,
        response: Nanoseconds,
        path: String,
    ) -> ProgramError {
        let word = direction(request.operation).map_or("sync", word);
        ProgramError::Missed(format!(
            "[{}]: a {word} at byte {} of {path} took {} with nothing else in flight, longer than latency_target allows for all I/Os; raise it, or lower latency_percentile",
            self.name,
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
    pub(super) fn look(&mut self, now: Nanoseconds) -> Result<bool, ProgramError> {
        for direction in Direction::ALL {
            let done = *self.done.get(direction);
            if let Some(floor) = self.floors.get_mut(direction)
                && let Some(missed) = floor.look(now, done)
            {
                let (name, word) = (&self.name, word(direction));
                let text = format!("[{name}]: its {word}s {missed}");
                return Err(ProgramError::Missed(text));
            }
        }
        let Some(steady) = &mut self.steady else {
            return Ok(false);
        };
        let mut all = Done::default();
        for direction in Direction::ALL {
            all.add(*self.done.get(direction));
        }
        let Some(group) = &self.group else {
            return Ok(steady.look(now, all));
        };
        group.company.post(all);
        if !group.looks {
            steady.skip(now);
            return Ok(false);
        }
        let is_steady = steady.look(now, group.company.group_done());
        if is_steady {
            group.company.end_others(Ended::Group(group.number));
        }
        Ok(is_steady)
    }

    /// Describes whether the job became steady, if it had to.
    pub(super) fn outcome(&mut self) -> Option<String> {
        let looks = self.group.as_ref().is_none_or(|group| group.looks);
        let steady = self.steady.as_mut().filter(|_| looks);
        steady.map(Steadiness::outcome)
    }
}

fn direction(operation: Operation) -> Option<Direction> {
    match operation {
        Operation::Read => Some(Direction::Read),
        Operation::Write => Some(Direction::Write),
        Operation::Discard => Some(Direction::Trim),
        Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => None,
    }
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
        Direction::Trim => "trim",
    }
}

/// Minimum rate of a direction: `rate_min` or `rate_iops_min`.
#[derive(Clone, Copy, Debug)]
enum Least {
    BytesPerSecond(u64),
    Iops(u64),
}

/// Check of a direction's minimum rate over each cycle.
#[derive(Clone, Debug)]
struct Floor {
    least: Least,
    /// Length of a check interval (`rate_cycle`).
    cycle: Nanoseconds,
    /// Time before which the rate is not checked.
    settled: Nanoseconds,
    /// Start of the current cycle, and the I/Os completed by then.
    last: Option<(Nanoseconds, Done)>,
}

impl Floor {
    /// Describes by how much the cycle that ends now missed its minimum rate, or returns `None`.
    fn look(&mut self, now: Nanoseconds, done: Done) -> Option<String> {
        // As fio, a direction in which nothing was done yet is not looked at.
        if now < self.settled || done.ios == 0 {
            return None;
        }
        let Some((since, before)) = self.last else {
            self.last = Some((now, done));
            return None;
        };
        let spent = now.since(since);
        if spent < self.cycle || spent.is_zero() {
            return None;
        }
        self.last = Some((now, done));
        let (key, unit, least, amount) = match self.least {
            Least::BytesPerSecond(least) => ("rate_min", "B/s", least, done.bytes - before.bytes),
            Least::Iops(least) => ("rate_iops_min", "IOPS", least, done.ios - before.ios),
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
        let mut floor = Floor {
            least: Least::Iops(100),
            cycle: Nanoseconds::from_millis(1000),
            settled: Nanoseconds::from_millis(2000),
            last: None,
        };
        let mut look = |at_ms, ios| {
            let done = Done {
                ios,
                ..Done::default()
            };
            floor.look(Nanoseconds::from_millis(at_ms), done)
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
