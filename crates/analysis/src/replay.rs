//! Fidelity of a trace's replay, and the response times that the trace recorded.

use diskperf_timeline::{
    Histogram, Nanoseconds, ProgramResult, Run, TraceFacts, TraceReplay, Workload,
};
use serde::Serialize;

/// Fidelity of the issue times in a replay, over all kept repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReplayFidelity {
    /// Number of requests with a scheduled issue time.
    #[serde(rename = "issued")]
    pub issued_count: u64,
    /// Median delay of a request's issue after its scheduled time, in microseconds.
    #[serde(rename = "p50_us")]
    pub lag_p50_us: f64,
    /// 99th percentile of the delay of a request's issue after its scheduled time, in microseconds.
    #[serde(rename = "p99_us")]
    pub lag_p99_us: f64,
    /// Maximum delay of a request's issue after its scheduled time, in microseconds.
    #[serde(rename = "max_us")]
    pub lag_max_us: f64,
    /// Share (0 to 1) of requests that were issued within 100 microseconds.
    #[serde(rename = "within_100_us")]
    pub within_100_us_share: f64,
    /// Delay in microseconds above which a request is late: the mean time between requests, from
    /// 100 microseconds to 10 milliseconds. No host without a clock of its own does better than the
    /// lower limit.
    #[serde(rename = "late_after_us")]
    pub late_threshold_us: f64,
    /// Share of requests that were late although a slot was free, because the host did not keep up.
    #[serde(rename = "late")]
    pub late_share: f64,
    /// Number of requests that were late because all slots were in flight: the storage did not keep
    /// up.
    #[serde(rename = "held_up")]
    pub held_up_count: u64,
    /// Maximum number of requests in flight during the replay.
    #[serde(rename = "deepest")]
    pub queue_depth_max: u64,
    /// Whether the host kept up: at most one request in a hundred was late.
    #[serde(rename = "kept_up")]
    pub has_kept_up: bool,
}

/// Lower limit of the delay above which a replayed request counts as late.
const LATE_THRESHOLD_MIN: Nanoseconds = Nanoseconds(100_000);
/// Upper limit of the delay above which a replayed request counts as late.
const LATE_THRESHOLD_MAX: Nanoseconds = Nanoseconds(10_000_000);

/// Maximum share of late requests at which the host has kept up.
const LATE_THRESHOLD_SHARE: f64 = 0.01;

impl ReplayFidelity {
    /// Computes the fidelity of a result; `None` if it is no replay, or one in closed loop, which
    /// has no scheduled times.
    pub fn from_result(result: &ProgramResult) -> Option<Self> {
        result.parameters.get("pace")?;
        let loads = || {
            result
                .kept_repetitions()
                .flat_map(|one| one.load_measures())
        };
        let mut lags = Histogram::new();
        for lag in loads().filter_map(|load| load.arrival_lag.as_ref()) {
            lags.merge(lag);
        }
        let issued = lags.latency_count();
        if issued == 0 {
            return None;
        }
        let elapsed: u64 =
            saturating_sum(result.kept_repetitions().map(|one| one.elapsed_time().0));
        let late_after =
            Nanoseconds(elapsed / issued).clamp(LATE_THRESHOLD_MIN, LATE_THRESHOLD_MAX);
        let held_up: u64 = saturating_sum(loads().map(|load| load.slot_wait_count));
        let late = count_later_than(&lags, late_after).saturating_sub(held_up);
        let share = |count: u64| count as f64 / issued as f64;
        let us = |lag: Nanoseconds| lag.0 as f64 / 1e3;
        Some(Self {
            issued_count: issued,
            lag_p50_us: us(lags.percentile(50.0)),
            lag_p99_us: us(lags.percentile(99.0)),
            lag_max_us: us(lags.latency_max()),
            within_100_us_share: 1.0 - share(count_later_than(&lags, Nanoseconds(100_000))),
            late_threshold_us: us(late_after),
            late_share: share(late),
            held_up_count: held_up,
            queue_depth_max: loads().map(|load| load.in_flight_max).max().unwrap_or(0),
            has_kept_up: share(late) <= LATE_THRESHOLD_SHARE,
        })
    }

    /// Lists warnings about issue times that the host or the storage did not keep.
    pub fn warnings(&self) -> Vec<String> {
        let mut said = Vec::new();
        if !self.has_kept_up {
            said.push(format!(
                "the host did not keep up: {:.1} % of the requests were issued more than {:.0} µs late, so this run gives no verdict; use a smaller --speed or a quieter host",
                100.0 * self.late_share,
                self.late_threshold_us
            ));
        }
        if self.held_up_count > 0 {
            said.push(format!(
                "the storage did not keep up: {} of {} requests waited because all slots were in flight ({} at most); their response times count from the intended issue",
                self.held_up_count, self.issued_count, self.queue_depth_max
            ));
        }
        said
    }
}

fn count_later_than(lags: &Histogram, moment: Nanoseconds) -> u64 {
    let later = lags.buckets().iter().filter(|(lag, _)| *lag > moment.0);
    saturating_sum(later.map(|(_, count)| *count))
}

/// Adds numbers without overflow, since a stored document may hold any numbers.
fn saturating_sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Tests whether the host kept up with a result; `true` if it is no replay.
pub fn has_kept_up(result: &ProgramResult) -> bool {
    ReplayFidelity::from_result(result).is_none_or(|found| found.has_kept_up)
}

/// Returns the replay settings of a run and the facts about its trace; `None` if the run is no
/// replay.
pub fn replay_of_run(run: &Run) -> Option<(&TraceReplay, &TraceFacts)> {
    let Workload::Replay(replay) = &run.experiment.as_ref()?.workload else {
        return None;
    };
    Some((replay, replay.trace_facts.as_ref()?))
}

/// Returns the response times in the trace by kind of request, under the name that the kind has in
/// results.
pub fn list_responses(held: &TraceFacts) -> Vec<(&'static str, &Histogram)> {
    let kinds = [
        ("read", &held.read),
        ("write", &held.write),
        ("sync", &held.flush),
        ("discard", &held.discard),
    ];
    let with = kinds
        .into_iter()
        .filter(|(_, kind)| kind.response_times.latency_count() > 0);
    with.map(|(name, kind)| (name, &kind.response_times))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use diskperf_timeline::{LoadMeasure, Repetition, WorkerMeasure};

    /// A replay of a thousand requests in a second, of which some were so late.
    fn replay(late: (u64, u64), held_up: u64) -> ProgramResult {
        let mut result = fixtures::build_result("replay", 0, Vec::new());
        result
            .parameters
            .insert("pace".to_owned(), "open".to_owned());
        let mut load = LoadMeasure {
            slot_wait_count: held_up,
            in_flight_max: 16,
            arrival_lag: Some(vec![(1_000, 1000 - late.1), late].into()),
            ..LoadMeasure::default()
        };
        load.read.response_times = vec![(80_000, 1000)].into();
        let mut repetition = Repetition::default();
        repetition.workers.push(WorkerMeasure {
            elapsed_time: Nanoseconds(1_000_000_000),
            load_measure: Some(load),
            ..WorkerMeasure::default()
        });
        result.repetitions = vec![repetition];
        result
    }

    #[test]
    fn a_host_keeps_up_if_one_in_a_hundred_is_late_by_a_gap() {
        // (late by, how many), held up; kept up.
        for (late, held_up, kept_up) in [
            ((900_000, 500), 0, true),
            ((1_100_000, 10), 0, true),
            ((1_100_000, 11), 0, false),
            // The storage, and not the host.
            ((1_100_000, 500), 495, true),
            ((1_100_000, 500), 100, false),
        ] {
            let found = ReplayFidelity::from_result(&replay(late, held_up)).unwrap();
            assert_eq!(found.has_kept_up, kept_up, "{late:?}, {held_up}");
            assert_eq!(found.late_threshold_us, 1000.0);
            let said = found.warnings().join(" ");
            assert_eq!(
                said.contains("the host did not keep up"),
                !kept_up,
                "{said}"
            );
            assert_eq!(said.contains("the storage"), held_up > 0, "{said}");
        }
        let mut other = replay((1_000, 1), 0);
        other.parameters.clear();
        assert_eq!(ReplayFidelity::from_result(&other), None);
    }
}
