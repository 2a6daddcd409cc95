//! Causes of the slowest requests of a flash drive.
//!
//! The slowest requests are the one in a hundred beyond p99. Their causes are the stages in which
//! they spent more time than requests do on average. The weight of a cause is the time that a rerun
//! without it saves: a request that no longer waits for one thing may wait for the next, so the
//! time spent in a stage is only a first estimate.

#[cfg(test)]
mod tests;

use super::window;
use diskperf_timeline::trace::{Position, RequestPurpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;

const CAUSES_MAX: usize = 6;
/// Minimum number of requests slower than p99 for which a tail is reported. Requests of equal
/// duration have none.
const SLOWEST_REQUESTS_MIN: usize = 10;
/// Minimum number of requests for which the slowest hundredth is examined.
const LEAST: usize = 1000;

/// Direction of the requests in a tail: read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Read requests to the drive.
    Read,
    /// Writes, and other requests that change the stored data.
    Write,
}

/// Slowest requests of a program in one direction, with their causes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Direction of the requests in the tail: read or write.
    pub way: Way,
    /// Number of all requests in that direction.
    pub requests: usize,
    /// Median response time of the requests.
    pub p50: Nanoseconds,
    /// 99th percentile of the requests' response time.
    pub p99: Nanoseconds,
    /// 99.9th percentile of the requests' response time.
    pub p999: Nanoseconds,
    /// Number of requests slower than the 99th percentile.
    pub slowest: usize,
    /// Time beyond the 99th percentile, summed over the slowest requests.
    pub above: Nanoseconds,
    /// Stages in which the slowest requests spent more than others, the largest saving first. The
    /// saving comes from the rerun, or from the first estimate where there is no rerun.
    pub causes: Vec<TailCause>,
    /// Example of a slow request: the one at the 99.9th percentile.
    pub example: Example,
    /// Check of the first cause in a run with other random numbers.
    pub check: Option<TailCheck>,
}

impl Tail {
    /// Stores the reruns without single causes, and sorts the causes by their savings.
    pub fn keep(&mut self, reruns: &[TailRerun]) {
        let mut causes = std::mem::take(&mut self.causes);
        for cause in &mut causes {
            let of_it = reruns.iter().find(|rerun| rerun.stage == cause.stage);
            cause.rerun = of_it.copied();
        }
        let worth = |cause: &TailCause| match &cause.rerun {
            Some(rerun) => self.removed(rerun) as f64,
            // What all spend in it is not why these are slower.
            None => (cause.excess_ns() * self.slowest as f64).min(cause.spent_above.0 as f64),
        };
        causes.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
        self.causes = causes;
    }

    /// Returns the time above p99 that a rerun saves, in nanoseconds; negative where it adds time.
    /// A rerun with another number of requests is scaled.
    pub fn removed(&self, rerun: &TailRerun) -> i64 {
        let for_as_many = self.requests as f64 / rerun.requests.max(1) as f64;
        self.above.0 as i64 - (rerun.above.0 as f64 * for_as_many) as i64
    }

    /// Returns the time above p99 that a rerun saves, as a share of all time above p99.
    pub fn removed_share(&self, rerun: &TailRerun) -> f64 {
        self.removed(rerun) as f64 / self.above.0.max(1) as f64
    }
}

/// Cause of slow requests: a stage in which the slowest spent more time than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCause {
    /// Stage in which the slowest requests spent more time than others.
    pub stage: Stage,
    /// Mean time of all requests in the stage, in nanoseconds.
    pub usual_ns: f64,
    /// Mean time of the slowest requests in the stage, in nanoseconds.
    pub slowest_ns: f64,
    /// Time above p99 that would vanish if the slowest requests skipped the stage and nothing else
    /// changed.
    pub spent_above: Nanoseconds,
    /// Result of a rerun without the cause, if there was one.
    pub rerun: Option<TailRerun>,
}

impl TailCause {
    /// Returns the additional mean time of the slowest requests in the stage, in nanoseconds.
    pub fn excess_ns(&self) -> f64 {
        self.slowest_ns - self.usual_ns
    }
}

/// Example request with the durations of its stages.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Response time of the example request.
    pub took: Nanoseconds,
    /// Position of the request's data on the drive; `None` where it is unknown.
    pub position: Option<Position>,
    /// Durations of the request's stages, in order.
    pub parts: Vec<(Stage, Nanoseconds)>,
}

/// Response times of the same requests in a rerun without one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailRerun {
    /// Stage that the rerun removed.
    pub stage: Stage,
    /// Whether the rerun issued the same requests at the same times; else the program ran again.
    pub same_moments: bool,
    /// Number of requests that the rerun completed.
    pub requests: usize,
    /// 99th percentile of the response time in the rerun.
    pub p99: Nanoseconds,
    /// 99.9th percentile of the response time in the rerun.
    pub p999: Nanoseconds,
    /// Time beyond the original run's p99, summed over all requests of the rerun.
    pub above: Nanoseconds,
    /// Main cause that remains beyond the original run's p99, if any request is beyond it.
    pub left: Option<Stage>,
}

/// Check of the first cause: the same load with other random numbers, unchanged and without the
/// cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCheck {
    /// Seed of the check's random numbers.
    pub seed: u64,
    /// Time beyond p99 of the check's unchanged run, summed over its slowest requests.
    pub above: Nanoseconds,
    /// Time above p99 that the rerun without the cause saves, in nanoseconds.
    pub removed: i64,
}

impl TailCheck {
    /// Returns the time that the check's rerun saved, as a share of all its time above p99.
    pub fn removed_share(&self) -> f64 {
        self.removed as f64 / self.above.0.max(1) as f64
    }
}

/// Finds the slowest reads and the slowest writes of a trace with their causes; empty where no
/// flash drive received requests.
pub fn tails(trace: &Trace) -> Vec<Tail> {
    let in_flash = |one: &TracedRequest| matches!(one.media_position, Some(Position::Flash { .. }));
    if !trace.requests.iter().any(in_flash) {
        return Vec::new();
    }
    let both = [Way::Read, Way::Write].into_iter();
    both.filter_map(|way| build_tail(trace, way)).collect()
}

/// Summarizes the requests of a tail in a rerun without this stage.
pub fn rerun(
    tail: &Tail,
    (stage, same_moments): (Stage, bool),
    trace: &Trace,
) -> Option<TailRerun> {
    let sorted = requests_by_time(trace, tail.way);
    let slowest: Vec<&TracedRequest> = (sorted.iter().copied())
        .filter(|one| response_time(one) > tail.p99)
        .collect();
    let left = find_causes((&sorted, &slowest), tail.p99);
    Some(TailRerun {
        stage,
        same_moments,
        requests: sorted.len(),
        left: left.first().map(|cause| cause.stage),
        p99: response_time(sorted.get(quantile_index(sorted.len(), 99, 100)?)?),
        p999: response_time(sorted.get(quantile_index(sorted.len(), 999, 1000)?)?),
        above: total_above(&sorted, tail.p99),
    })
}

fn build_tail(trace: &Trace, way: Way) -> Option<Tail> {
    let sorted = requests_by_time(trace, way);
    if sorted.len() < LEAST {
        return None;
    }
    let at = |of: usize, all: usize| Some(sorted[quantile_index(sorted.len(), of, all)?]);
    let p99 = response_time(at(99, 100)?);
    let slowest: Vec<&TracedRequest> = (sorted.iter().copied())
        .filter(|one| response_time(one) > p99)
        .collect();
    if slowest.len() < SLOWEST_REQUESTS_MIN {
        return None;
    }
    let example = at(999, 1000)?;
    Some(Tail {
        way,
        requests: sorted.len(),
        p50: response_time(at(50, 100)?),
        p99,
        p999: response_time(example),
        slowest: slowest.len(),
        above: total_above(&sorted, p99),
        causes: find_causes((&sorted, &slowest), p99),
        example: Example {
            took: response_time(example),
            position: example.media_position,
            parts: (example.stage_intervals())
                .map(|(stage, from, until)| (stage, until.since(from)))
                .collect(),
        },
        check: None,
    })
}

/// Returns the requests of one direction in the timed part, the fastest first.
fn requests_by_time(trace: &Trace, way: Way) -> Vec<&TracedRequest> {
    let Some((from, until)) = window(trace) else {
        return Vec::new();
    };
    let mut all: Vec<&TracedRequest> = (trace.requests.iter())
        .filter(|one| one.issued_at >= from && one.completed_at() <= until)
        .filter(|one| match one.purpose {
            RequestPurpose::Read | RequestPurpose::ReadAhead => way == Way::Read,
            RequestPurpose::Write | RequestPurpose::WriteBehind => way == Way::Write,
        })
        .collect();
    all.sort_by_key(|one| (response_time(one), one.issued_at));
    all
}

/// Returns the index of the `of`/`all` quantile among `count` sorted values; `None` if there are no
/// values.
fn quantile_index(count: usize, of: usize, all: usize) -> Option<usize> {
    (count * of).div_ceil(all).checked_sub(1)
}

fn response_time(request: &TracedRequest) -> Nanoseconds {
    request.completed_at().since(request.issued_at)
}

fn total_above(requests: &[&TracedRequest], p99: Nanoseconds) -> Nanoseconds {
    let beyond = |one: &&TracedRequest| Nanoseconds(response_time(one).0.saturating_sub(p99.0));
    requests.iter().map(beyond).sum()
}

fn time_by_stage(request: &TracedRequest) -> [u64; Stage::COUNT] {
    let mut table = [0; Stage::COUNT];
    for (stage, from, until) in request.stage_intervals() {
        table[stage.index()] += until.0 - from.0;
    }
    table
}

fn find_causes(
    (all, slowest): (&[&TracedRequest], &[&TracedRequest]),
    p99: Nanoseconds,
) -> Vec<TailCause> {
    let mean = |requests: &[&TracedRequest]| {
        let mut sums = [0.0; Stage::COUNT];
        for request in requests {
            for (sum, ns) in sums.iter_mut().zip(time_by_stage(request)) {
                *sum += ns as f64;
            }
        }
        sums.map(|sum| sum / requests.len().max(1) as f64)
    };
    let (usual, of_slowest) = (mean(all), mean(slowest));
    let mut above = [0; Stage::COUNT];
    for request in slowest {
        let beyond = response_time(request).0 - p99.0;
        for (sum, ns) in above.iter_mut().zip(time_by_stage(request)) {
            *sum += ns.min(beyond);
        }
    }
    let cause = |stage: Stage| TailCause {
        stage,
        usual_ns: usual[stage.index()],
        slowest_ns: of_slowest[stage.index()],
        spent_above: Nanoseconds(above[stage.index()]),
        rerun: None,
    };
    let mut found: Vec<TailCause> = (Stage::ALL.into_iter().map(cause))
        .filter(|cause| cause.excess_ns() > 0.0)
        .collect();
    found.sort_by(|one, other| other.excess_ns().total_cmp(&one.excess_ns()));
    found.truncate(CAUSES_MAX);
    found
}
