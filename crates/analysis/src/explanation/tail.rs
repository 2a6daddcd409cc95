//! What the slowest requests of a flash drive waited for.
//!
//! The slowest are the one in a hundred beyond p99. Their causes are the stages in which
//! they spent more than requests do in the mean. What a cause is worth is what a rerun without
//! it takes less: a request that no longer waits for one thing may wait for the next, so that
//! the sum of what was spent in a stage is only the first guess.

#[cfg(test)]
mod tests;

use super::window;
use diskperf_timeline::trace::{Position, Purpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;

/// Causes that are kept of a tail.
const MOST_CAUSES: usize = 6;
/// So many are slower than 99 in 100 at least, or there is nothing to say of them: of requests
/// that all take as long, none is.
const LEAST_SLOWEST: usize = 10;
/// With fewer requests there is no slowest one in a hundred to speak of.
const LEAST: usize = 1000;

/// Whether requests brought or took data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Reads.
    Read,
    /// Writes, and what else changes what is stored.
    Write,
}

/// The slowest requests of a program, of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Which requests.
    pub way: Way,
    /// How many there were.
    pub requests: usize,
    /// Half of them were no slower, 99 in 100, and 999 in 1000.
    pub p50: Nanoseconds,
    /// 99 in 100.
    pub p99: Nanoseconds,
    /// 999 in 1000.
    pub p999: Nanoseconds,
    /// How many were slower than 99 in 100.
    pub slowest: usize,
    /// What these took beyond p99, all together.
    pub above: Nanoseconds,
    /// Where they spent more than others: the one first whose rerun takes most away, or would,
    /// by the first guess, where there is none.
    pub causes: Vec<TailCause>,
    /// The one that 999 in 1000 are no slower than.
    pub example: Example,
    /// What the first cause is behind in a load that it was not found in.
    pub check: Option<TailCheck>,
}

impl Tail {
    /// Keeps what became of it in a run without some of its causes, and orders them by that.
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

    /// What a rerun has less above p99 than the run as it is, in nanoseconds: negative where it
    /// has more. Of as many requests, where a program that ran again asked for others.
    pub fn removed(&self, rerun: &TailRerun) -> i64 {
        let for_as_many = self.requests as f64 / rerun.requests.max(1) as f64;
        self.above.0 as i64 - (rerun.above.0 as f64 * for_as_many) as i64
    }

    /// The same as a share of all that was above p99.
    pub fn removed_share(&self, rerun: &TailRerun) -> f64 {
        self.removed(rerun) as f64 / self.above.0.max(1) as f64
    }
}

/// A stage in which the slowest spent more than others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCause {
    /// The stage.
    pub stage: Stage,
    /// What a request spent in it, in the mean.
    pub usual_ns: f64,
    /// What one of the slowest did.
    pub slowest_ns: f64,
    /// What would be gone of the time above p99 if each of them had not spent it, and
    /// nothing else were another.
    pub spent_above: Nanoseconds,
    /// What became of the requests in a run without it, if there was one.
    pub rerun: Option<TailRerun>,
}

impl TailCause {
    /// By how much the slowest are slower for it.
    pub fn excess_ns(&self) -> f64 {
        self.slowest_ns - self.usual_ns
    }
}

/// One request, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// What it took.
    pub took: Nanoseconds,
    /// Where its data are.
    pub position: Option<Position>,
    /// Where its time went, in order.
    pub parts: Vec<(Stage, Nanoseconds)>,
}

/// The same requests in a run without a cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailRerun {
    /// What was taken away.
    pub stage: Stage,
    /// Whether the same requests were issued at the same moments; else the program ran again.
    pub same_moments: bool,
    /// How many there were.
    pub requests: usize,
    /// Their p99 there.
    pub p99: Nanoseconds,
    /// Their p99.9.
    pub p999: Nanoseconds,
    /// What they took beyond the p99 of the run as it is, all together.
    pub above: Nanoseconds,
    /// In what they spent more than others there, if any is beyond that p99.
    pub left: Option<Stage>,
}

/// The same load with other random numbers, as it is and without the first cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCheck {
    /// The seed of the random numbers.
    pub seed: u64,
    /// What its slowest took beyond its own p99, all together.
    pub above: Nanoseconds,
    /// What a rerun of it has less, in nanoseconds.
    pub removed: i64,
}

impl TailCheck {
    /// What was removed, as a share of all above p99.
    pub fn removed_share(&self) -> f64 {
        self.removed as f64 / self.above.0.max(1) as f64
    }
}

/// Those of each kind of which there are enough, where a flash drive was asked.
pub fn tails(trace: &Trace) -> Vec<Tail> {
    let in_flash = |one: &TracedRequest| matches!(one.position, Some(Position::Flash { .. }));
    if !trace.requests.iter().any(in_flash) {
        return Vec::new();
    }
    let both = [Way::Read, Way::Write].into_iter();
    both.filter_map(|way| tail(trace, way)).collect()
}

/// What the requests of this tail came to in another run: without this stage.
pub fn rerun(of: &Tail, (stage, same_moments): (Stage, bool), trace: &Trace) -> Option<TailRerun> {
    let sorted = by_time(trace, of.way);
    let slowest: Vec<&TracedRequest> = (sorted.iter().copied())
        .filter(|one| took(one) > of.p99)
        .collect();
    let left = causes((&sorted, &slowest), of.p99);
    Some(TailRerun {
        stage,
        same_moments,
        requests: sorted.len(),
        left: left.first().map(|cause| cause.stage),
        p99: took(sorted.get(rank(sorted.len(), 99, 100)?)?),
        p999: took(sorted.get(rank(sorted.len(), 999, 1000)?)?),
        above: above(&sorted, of.p99),
    })
}

fn tail(trace: &Trace, way: Way) -> Option<Tail> {
    let sorted = by_time(trace, way);
    if sorted.len() < LEAST {
        return None;
    }
    let at = |of: usize, all: usize| Some(sorted[rank(sorted.len(), of, all)?]);
    let p99 = took(at(99, 100)?);
    let slowest: Vec<&TracedRequest> = (sorted.iter().copied())
        .filter(|one| took(one) > p99)
        .collect();
    if slowest.len() < LEAST_SLOWEST {
        return None;
    }
    let example = at(999, 1000)?;
    Some(Tail {
        way,
        requests: sorted.len(),
        p50: took(at(50, 100)?),
        p99,
        p999: took(example),
        slowest: slowest.len(),
        above: above(&sorted, p99),
        causes: causes((&sorted, &slowest), p99),
        example: Example {
            took: took(example),
            position: example.position,
            parts: (example.parts())
                .map(|(stage, from, until)| (stage, until.since(from)))
                .collect(),
        },
        check: None,
    })
}

/// The requests of a kind that were issued in the timed part, the fastest first.
fn by_time(trace: &Trace, way: Way) -> Vec<&TracedRequest> {
    let Some((from, until)) = window(trace) else {
        return Vec::new();
    };
    let mut all: Vec<&TracedRequest> = (trace.requests.iter())
        .filter(|one| one.issued >= from && one.completed() <= until)
        .filter(|one| match one.purpose {
            Purpose::Read | Purpose::ReadAhead => way == Way::Read,
            Purpose::Write | Purpose::WriteBehind => way == Way::Write,
        })
        .collect();
    all.sort_by_key(|one| (took(one), one.issued));
    all
}

/// The place of the one that `of` in `all` are no slower than.
fn rank(count: usize, of: usize, all: usize) -> Option<usize> {
    (count * of).div_ceil(all).checked_sub(1)
}

fn took(request: &TracedRequest) -> Nanoseconds {
    request.completed().since(request.issued)
}

fn above(requests: &[&TracedRequest], p99: Nanoseconds) -> Nanoseconds {
    let beyond = |one: &&TracedRequest| Nanoseconds(took(one).0.saturating_sub(p99.0));
    requests.iter().map(beyond).sum()
}

fn by_stage(request: &TracedRequest) -> [u64; Stage::COUNT] {
    let mut table = [0; Stage::COUNT];
    for (stage, from, until) in request.parts() {
        table[stage.index()] += until.0 - from.0;
    }
    table
}

fn causes(
    (all, slowest): (&[&TracedRequest], &[&TracedRequest]),
    p99: Nanoseconds,
) -> Vec<TailCause> {
    let mean = |requests: &[&TracedRequest]| {
        let mut sums = [0.0; Stage::COUNT];
        for request in requests {
            for (sum, ns) in sums.iter_mut().zip(by_stage(request)) {
                *sum += ns as f64;
            }
        }
        sums.map(|sum| sum / requests.len().max(1) as f64)
    };
    let (usual, of_slowest) = (mean(all), mean(slowest));
    let mut above = [0; Stage::COUNT];
    for request in slowest {
        let beyond = took(request).0 - p99.0;
        for (sum, ns) in above.iter_mut().zip(by_stage(request)) {
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
    found.truncate(MOST_CAUSES);
    found
}
