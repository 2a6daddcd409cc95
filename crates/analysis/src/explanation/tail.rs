//! Causes of the slowest requests of a flash drive.
//!
//! The slowest requests are the one in a hundred beyond p99. Their causes are the stages in which
//! they spent more time than requests do on average. The weight of a cause is the time that a rerun
//! without it saves: a request that no longer waits for one thing may wait for the next, so the
//! time spent in a stage is only a first estimate.

#[cfg(test)]
mod tests;

use super::timed_window;
use diskperf_timeline::trace::{Position, RequestPurpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;

const CAUSE_COUNT_MAX: usize = 6;
/// Minimum number of requests slower than p99 for which a tail is reported. Requests of equal
/// duration have none.
const SLOWEST_COUNT_MIN: usize = 10;
/// Minimum number of requests for which the slowest hundredth is examined.
const REQUEST_COUNT_MIN: usize = 1000;

/// Direction of the requests in a tail: read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestDirection {
    /// Read requests to the drive.
    Read,
    /// Writes, and other requests that change the stored data.
    Write,
}

/// Slowest requests of a program in one direction, with their causes.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyTail {
    /// Direction of the requests in the tail: read or write.
    pub direction: RequestDirection,
    /// Number of all requests in that direction.
    pub request_count: usize,
    /// Median response time of the requests.
    pub p50: Nanoseconds,
    /// 99th percentile of the requests' response time.
    pub p99: Nanoseconds,
    /// 99.9th percentile of the requests' response time.
    pub p999: Nanoseconds,
    /// Number of requests slower than the 99th percentile.
    pub slowest_count: usize,
    /// Time beyond the 99th percentile, summed over the slowest requests.
    pub time_above_p99: Nanoseconds,
    /// Stages in which the slowest requests spent more than others, the largest saving first. The
    /// saving comes from the rerun, or from the first estimate where there is no rerun.
    pub causes: Vec<TailCause>,
    /// Example of a slow request: the one at the 99.9th percentile.
    pub slow_example: SlowRequestExample,
    /// Check of the first cause in a run with other random numbers.
    pub rerun_check: Option<TailCheck>,
}

impl LatencyTail {
    /// Stores the reruns without single causes, and sorts the causes by their savings.
    pub fn attach_reruns(&mut self, reruns: &[TailRerun]) {
        let mut causes = std::mem::take(&mut self.causes);
        for cause in &mut causes {
            let of_it = reruns.iter().find(|rerun| rerun.stage == cause.stage);
            cause.rerun = of_it.copied();
        }
        let worth = |cause: &TailCause| match &cause.rerun {
            Some(rerun) => self.removed_ns(rerun) as f64,
            // What all spend in it is not why these are slower.
            None => {
                (cause.excess_ns() * self.slowest_count as f64).min(cause.time_above_usual.0 as f64)
            }
        };
        causes.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
        self.causes = causes;
    }

    /// Returns the time above p99 that a rerun saves, in nanoseconds; negative where it adds time.
    /// A rerun with another number of requests is scaled.
    pub fn removed_ns(&self, rerun: &TailRerun) -> i64 {
        let for_as_many = self.request_count as f64 / rerun.request_count.max(1) as f64;
        self.time_above_p99.0 as i64 - (rerun.time_above_p99.0 as f64 * for_as_many) as i64
    }

    /// Returns the time above p99 that a rerun saves, as a share of all time above p99.
    pub fn removed_share(&self, rerun: &TailRerun) -> f64 {
        self.removed_ns(rerun) as f64 / self.time_above_p99.0.max(1) as f64
    }
}

/// Cause of slow requests: a stage in which the slowest spent more time than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCause {
    /// Stage in which the slowest requests spent more time than others.
    pub stage: Stage,
    /// Mean time of all requests in the stage, in nanoseconds.
    pub mean_ns: f64,
    /// Mean time of the slowest requests in the stage, in nanoseconds.
    pub mean_of_slowest_ns: f64,
    /// Time above p99 that would vanish if the slowest requests skipped the stage and nothing else
    /// changed.
    pub time_above_usual: Nanoseconds,
    /// Result of a rerun without the cause, if there was one.
    pub rerun: Option<TailRerun>,
}

impl TailCause {
    /// Returns the additional mean time of the slowest requests in the stage, in nanoseconds.
    pub fn excess_ns(&self) -> f64 {
        self.mean_of_slowest_ns - self.mean_ns
    }
}

/// Example request with the durations of its stages.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowRequestExample {
    /// Response time of the example request.
    pub response_time: Nanoseconds,
    /// Position of the request's data on the drive; `None` where it is unknown.
    pub disk_position: Option<Position>,
    /// Durations of the request's stages, in order.
    pub stage_times: Vec<(Stage, Nanoseconds)>,
}

/// Response times of the same requests in a rerun without one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailRerun {
    /// Stage that the rerun removed.
    pub stage: Stage,
    /// Whether the rerun issued the same requests at the same times; else the program ran again.
    pub has_same_arrivals: bool,
    /// Number of requests that the rerun completed.
    pub request_count: usize,
    /// 99th percentile of the response time in the rerun.
    pub p99: Nanoseconds,
    /// 99.9th percentile of the response time in the rerun.
    pub p999: Nanoseconds,
    /// Time beyond the original run's p99, summed over all requests of the rerun.
    pub time_above_p99: Nanoseconds,
    /// Main cause that remains beyond the original run's p99, if any request is beyond it.
    pub main_stage_left: Option<Stage>,
}

/// Check of the first cause: the same load with other random numbers, unchanged and without the
/// cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCheck {
    /// Seed of the check's random numbers.
    pub seed: u64,
    /// Time beyond p99 of the check's unchanged run, summed over its slowest requests.
    pub time_above_p99: Nanoseconds,
    /// Time above p99 that the rerun without the cause saves, in nanoseconds.
    pub removed_ns: i64,
}

impl TailCheck {
    /// Returns the time that the check's rerun saved, as a share of all its time above p99.
    pub fn removed_share(&self) -> f64 {
        self.removed_ns as f64 / self.time_above_p99.0.max(1) as f64
    }
}

/// Finds the slowest reads and the slowest writes of a trace with their causes; empty where no
/// flash drive received requests.
pub fn find_tails(trace: &Trace) -> Vec<LatencyTail> {
    let in_flash = |one: &TracedRequest| matches!(one.media_position, Some(Position::Flash { .. }));
    if !trace.requests.iter().any(in_flash) {
        return Vec::new();
    }
    let both = [RequestDirection::Read, RequestDirection::Write].into_iter();
    both.filter_map(|way| build_tail(trace, way)).collect()
}

/// Summarizes the requests of a tail in a rerun without this stage.
pub fn build_rerun(
    tail: &LatencyTail,
    (stage, same_moments): (Stage, bool),
    trace: &Trace,
) -> Option<TailRerun> {
    let sorted = sort_requests_by_time(trace, tail.direction);
    let slowest: Vec<&TracedRequest> = (sorted.iter().copied())
        .filter(|one| response_time(one) > tail.p99)
        .collect();
    let left = find_tail_causes((&sorted, &slowest), tail.p99);
    Some(TailRerun {
        stage,
        has_same_arrivals: same_moments,
        request_count: sorted.len(),
        main_stage_left: left.first().map(|cause| cause.stage),
        p99: response_time(sorted.get(quantile_index(sorted.len(), 99, 100)?)?),
        p999: response_time(sorted.get(quantile_index(sorted.len(), 999, 1000)?)?),
        time_above_p99: total_above(&sorted, tail.p99),
    })
}

fn build_tail(trace: &Trace, way: RequestDirection) -> Option<LatencyTail> {
    let sorted = sort_requests_by_time(trace, way);
    if sorted.len() < REQUEST_COUNT_MIN {
        return None;
    }
    let at = |of: usize, all: usize| Some(sorted[quantile_index(sorted.len(), of, all)?]);
    let p99 = response_time(at(99, 100)?);
    let slowest: Vec<&TracedRequest> = (sorted.iter().copied())
        .filter(|one| response_time(one) > p99)
        .collect();
    if slowest.len() < SLOWEST_COUNT_MIN {
        return None;
    }
    let example = at(999, 1000)?;
    Some(LatencyTail {
        direction: way,
        request_count: sorted.len(),
        p50: response_time(at(50, 100)?),
        p99,
        p999: response_time(example),
        slowest_count: slowest.len(),
        time_above_p99: total_above(&sorted, p99),
        causes: find_tail_causes((&sorted, &slowest), p99),
        slow_example: SlowRequestExample {
            response_time: response_time(example),
            disk_position: example.media_position,
            stage_times: (example.stage_intervals())
                .map(|interval| (interval.stage, interval.duration()))
                .collect(),
        },
        rerun_check: None,
    })
}

/// Returns the requests of one direction in the timed part, the fastest first.
fn sort_requests_by_time(trace: &Trace, way: RequestDirection) -> Vec<&TracedRequest> {
    let Some((from, until)) = timed_window(trace) else {
        return Vec::new();
    };
    let mut all: Vec<&TracedRequest> = (trace.requests.iter())
        .filter(|one| one.issued_at >= from && one.completed_at() <= until)
        .filter(|one| match one.purpose {
            RequestPurpose::Read | RequestPurpose::ReadAhead => way == RequestDirection::Read,
            RequestPurpose::Write | RequestPurpose::WriteBehind => way == RequestDirection::Write,
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

fn sum_time_by_stage(request: &TracedRequest) -> [u64; Stage::COUNT] {
    let mut table = [0; Stage::COUNT];
    for part in request.stage_intervals() {
        table[part.stage.index()] += part.duration().0;
    }
    table
}

fn find_tail_causes(
    (all, slowest): (&[&TracedRequest], &[&TracedRequest]),
    p99: Nanoseconds,
) -> Vec<TailCause> {
    let mean = |requests: &[&TracedRequest]| {
        let mut sums = [0.0; Stage::COUNT];
        for request in requests {
            for (sum, ns) in sums.iter_mut().zip(sum_time_by_stage(request)) {
                *sum += ns as f64;
            }
        }
        sums.map(|sum| sum / requests.len().max(1) as f64)
    };
    let (usual, of_slowest) = (mean(all), mean(slowest));
    let mut above = [0; Stage::COUNT];
    for request in slowest {
        let beyond = response_time(request).0 - p99.0;
        for (sum, ns) in above.iter_mut().zip(sum_time_by_stage(request)) {
            *sum += ns.min(beyond);
        }
    }
    let cause = |stage: Stage| TailCause {
        stage,
        mean_ns: usual[stage.index()],
        mean_of_slowest_ns: of_slowest[stage.index()],
        time_above_usual: Nanoseconds(above[stage.index()]),
        rerun: None,
    };
    let mut found: Vec<TailCause> = (Stage::ALL.into_iter().map(cause))
        .filter(|cause| cause.excess_ns() > 0.0)
        .collect();
    found.sort_by(|one, other| other.excess_ns().total_cmp(&one.excess_ns()));
    found.truncate(CAUSE_COUNT_MAX);
    found
}
