//! How faithfully a trace was replayed, and what its requests took where it was recorded.

use diskperf_timeline::{
    Histogram, Nanoseconds, ProgramResult, Run, TraceFacts, TraceReplay, Workload,
};
use serde::Serialize;

/// How well the moments of issue were kept, over all kept repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fidelity {
    /// Requests that were to be issued at a moment.
    pub issued: u64,
    /// Half were issued no later than this, in microseconds after that.
    pub p50_us: f64,
    /// 99 in 100 were.
    pub p99_us: f64,
    /// The latest.
    pub max_us: f64,
    /// The share (0 to 1) that was issued within 100 microseconds.
    pub within_100_us: f64,
    /// Requests later than this are late: the mean time from one to the next, from 100
    /// microseconds, which no host without a clock of its own does better than, to 10
    /// milliseconds.
    pub late_after_us: f64,
    /// The share that was late though a slot was free: what the host did not keep up with.
    pub late: f64,
    /// Requests that were late because all slots were under way: what the storage did not
    /// keep up with.
    pub held_up: u64,
    /// The most requests that were under way at once.
    pub deepest: u64,
    /// Whether the host kept up: no more than one request in a hundred was late.
    pub kept_up: bool,
}

/// The bounds of what is late.
const LATE_AT_LEAST: Nanoseconds = Nanoseconds(100_000);
const LATE_AT_MOST: Nanoseconds = Nanoseconds(10_000_000);

/// The most that may be late.
const LATE_SHARE: f64 = 0.01;

impl Fidelity {
    /// `None` of what is no replay, or of one in closed loop, which has no moments to keep.
    pub fn of(result: &ProgramResult) -> Option<Self> {
        result.parameters.get("pace")?;
        let loads = || result.kept().flat_map(|one| one.loads());
        let mut lags = Histogram::new();
        for lag in loads().filter_map(|load| load.lag.as_ref()) {
            lags.merge(lag);
        }
        let issued = lags.count();
        if issued == 0 {
            return None;
        }
        let elapsed: u64 = sum(result.kept().map(|one| one.elapsed().0));
        let late_after = Nanoseconds(elapsed / issued).clamp(LATE_AT_LEAST, LATE_AT_MOST);
        let held_up: u64 = sum(loads().map(|load| load.held_up));
        let late = later_than(&lags, late_after).saturating_sub(held_up);
        let share = |count: u64| count as f64 / issued as f64;
        let us = |lag: Nanoseconds| lag.0 as f64 / 1e3;
        Some(Self {
            issued,
            p50_us: us(lags.percentile(50.0)),
            p99_us: us(lags.percentile(99.0)),
            max_us: us(lags.max()),
            within_100_us: 1.0 - share(later_than(&lags, Nanoseconds(100_000))),
            late_after_us: us(late_after),
            late: share(late),
            held_up,
            deepest: loads().map(|load| load.deepest).max().unwrap_or(0),
            kept_up: share(late) <= LATE_SHARE,
        })
    }

    /// What a reader must know before he believes the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut said = Vec::new();
        if !self.kept_up {
            said.push(format!(
                "the host did not keep up: {:.1} % of the requests were issued more than {:.0} µs late, so that this run gives no verdict; give a smaller --speed, or a quieter host",
                100.0 * self.late,
                self.late_after_us
            ));
        }
        if self.held_up > 0 {
            said.push(format!(
                "the storage did not keep up: {} of {} requests waited because all slots were under way ({} at the most); their responses count from when they were to be issued",
                self.held_up, self.issued, self.deepest
            ));
        }
        said
    }
}

fn later_than(lags: &Histogram, moment: Nanoseconds) -> u64 {
    let later = lags.buckets().iter().filter(|(lag, _)| *lag > moment.0);
    sum(later.map(|(_, count)| *count))
}

/// A document may hold any numbers.
fn sum(of: impl Iterator<Item = u64>) -> u64 {
    of.fold(0, u64::saturating_add)
}

/// Whether the host kept up with a result, if it is one of a replay.
pub fn kept_up(result: &ProgramResult) -> bool {
    Fidelity::of(result).is_none_or(|found| found.kept_up)
}

/// The replay that a run is, with what its trace held.
pub fn of_run(run: &Run) -> Option<(&TraceReplay, &TraceFacts)> {
    let Workload::Replay(replay) = &run.experiment.as_ref()?.workload else {
        return None;
    };
    Some((replay, replay.held.as_ref()?))
}

/// Responses of one kind of request in the trace, by the name that the kind has in results.
pub fn responses(held: &TraceFacts) -> Vec<(&'static str, &Histogram)> {
    let kinds = [
        ("read", &held.read),
        ("write", &held.write),
        ("sync", &held.flush),
        ("discard", &held.discard),
    ];
    let with = kinds
        .into_iter()
        .filter(|(_, kind)| kind.response.count() > 0);
    with.map(|(name, kind)| (name, &kind.response)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use diskperf_timeline::{LoadMeasure, Repetition, WorkerMeasure};

    /// A replay of a thousand requests in a second, of which some were so late.
    fn replay(late: (u64, u64), held_up: u64) -> ProgramResult {
        let mut result = fixtures::result("replay", 0, Vec::new());
        result
            .parameters
            .insert("pace".to_owned(), "open".to_owned());
        let mut load = LoadMeasure {
            held_up,
            deepest: 16,
            lag: Some(vec![(1_000, 1000 - late.1), late].into()),
            ..LoadMeasure::default()
        };
        load.read.response = vec![(80_000, 1000)].into();
        let mut repetition = Repetition::default();
        repetition.workers.push(WorkerMeasure {
            elapsed: Nanoseconds(1_000_000_000),
            load: Some(load),
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
            let found = Fidelity::of(&replay(late, held_up)).unwrap();
            assert_eq!(found.kept_up, kept_up, "{late:?}, {held_up}");
            assert_eq!(found.late_after_us, 1000.0);
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
        assert_eq!(Fidelity::of(&other), None);
    }
}
