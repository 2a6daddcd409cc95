//! Runs side by side: the ratio of speeds with its interval, and a verdict
//! that says "no difference seen" rather than ranking noise.
//!
//! The first run is the base. A ratio is the Hodges-Lehmann estimate over all
//! kept repetitions, whatever the protocol's statistic, so it need not be the
//! quotient of the two figures beside it. Its interval holds with 95 % for
//! that row alone; a verdict allows for the number of rows (Bonferroni), so
//! that two runs of the same thing are called different nowhere in 95 of 100
//! comparisons, however many programs they have.
//!
//! What no verdict covers: everything that is common to all repetitions of one
//! run and different in the other, as the place of its files on the medium.
//! Two runs of one thing an hour apart can differ for that reason.

mod pairing;
mod warnings;

use crate::cache::CacheVerdict;
use crate::statistics::CONFIDENCE;
use crate::statistics::shift::{Ratio, ratio};
use crate::summary::Summary;
use diskperf_timeline::{ProgramResult, Repetition, Run, World};
use pairing::Pairing;
use serde::Serialize;

/// A ratio nearer to 1 than this share is no difference in practice, however
/// surely it was measured.
const PRACTICAL_FLOOR: f64 = 0.01;

/// What a comparison says of two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// None was seen, or one under the practical floor of 1 %.
    NoDifferenceSeen,
    /// The other run is faster than the base.
    Faster,
    /// The other run is slower than the base.
    Slower,
    /// Either has fewer than two repetitions that can be used.
    TooFewRepetitions,
}

impl Verdict {
    /// The words of a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoDifferenceSeen => "no difference seen",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::TooFewRepetitions => "too few repetitions",
        }
    }
}

/// Which speed is compared. The two are never compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// KB/s until the last call returned.
    KbPerS,
    /// KB/s until everything was synced.
    DurableKbPerS,
}

/// A run, as far as a comparison names it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunName {
    /// Its id.
    pub id: String,
    /// The user's own name for it.
    pub label: Option<String>,
    /// Its suite.
    pub suite: String,
    /// Its target.
    pub target: String,
    /// Host or model.
    pub world: World,
}

/// One side of a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The compared speed by the protocol's statistic.
    pub kb_per_s: f64,
    /// CPU share in percent.
    pub cpu_percent: f64,
    /// Repetitions that count.
    pub kept: usize,
    /// File system or device.
    pub filesystem: String,
    /// Drives at once.
    pub drives: u32,
    /// Bytes that each worker moves.
    pub size_bytes: u64,
    /// Whether its reads came from where they were meant to.
    pub cache: CacheVerdict,
}

/// Two results of the same program, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Which run the base is compared with, as an index of
    /// [`Comparison::runs`].
    pub run: usize,
    /// The program with its distinguishing parameters.
    pub title: String,
    /// The speed.
    pub quantity: Quantity,
    /// The base.
    pub base: Side,
    /// The other.
    pub other: Side,
    /// Other over base, with its 95 % interval.
    pub ratio: Option<Ratio>,
    /// What may be said.
    pub verdict: Verdict,
    /// What makes the two less alike than they should be.
    pub warnings: Vec<String>,
}

impl Pair {
    /// The share (0 to 1) of the base's speed that the other lacks; negative
    /// where it is faster. `None` where no ratio is known.
    pub fn slowdown(&self) -> Option<f64> {
        self.ratio.map(|ratio| 1.0 - ratio.point)
    }

    /// Whether its own 95 % interval excludes 1 and the verdict for all rows
    /// together still sees no difference.
    pub fn excluded_by_chance(&self) -> bool {
        self.verdict == Verdict::NoDifferenceSeen
            && self
                .ratio
                .is_some_and(|ratio| !ratio.interval.contains(1.0) && !below_floor(ratio.point))
    }
}

/// A result that only one run has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unpaired {
    /// The run that has it, as an index of [`Comparison::runs`].
    pub run: usize,
    /// The run that has not.
    pub missing_in: usize,
    /// The program with its distinguishing parameters.
    pub title: String,
    /// Its file system.
    pub filesystem: String,
}

/// A warning about a whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunWarning {
    /// The run that it is about, as an index of [`Comparison::runs`].
    pub run: usize,
    /// What is wrong with it, or how it differs from the base.
    pub text: String,
}

/// Runs compared with the first of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The runs, the base first.
    pub runs: Vec<RunName>,
    /// Their results in pairs: by run, then in the order of the base's table.
    pub pairs: Vec<Pair>,
    /// Results found in one run only.
    pub unpaired: Vec<Unpaired>,
    /// What concerns whole runs.
    pub warnings: Vec<RunWarning>,
}

impl Comparison {
    /// The pair that lost the largest share of its speed, of those that are
    /// called slower; its [`Pair::slowdown`] is what a limit is held against.
    ///
    /// A slow-down that is not told apart from noise never counts, so that a
    /// noisy machine does not fail a build; neither does a pair with too few
    /// repetitions, which [`Comparison::undecided`] counts.
    pub fn worst_slowdown(&self) -> Option<&Pair> {
        self.pairs
            .iter()
            .filter(|pair| pair.verdict == Verdict::Slower)
            .max_by(|a, b| {
                let of = |pair: &Pair| pair.slowdown().unwrap_or(0.0);
                of(a).total_cmp(&of(b))
            })
    }

    /// Pairs of which nothing can be said for want of repetitions.
    pub fn undecided(&self) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.verdict == Verdict::TooFewRepetitions)
            .count()
    }
}

/// Compares every run with the first one. Of fewer than two there is nothing
/// to compare, and no pair.
pub fn compare(runs: &[Run]) -> Comparison {
    let mut comparison = Comparison {
        runs: runs.iter().map(name).collect(),
        warnings: warnings::of_states(runs),
        ..Comparison::default()
    };
    let Some((base, others)) = runs.split_first() else {
        return comparison;
    };
    let pairings: Vec<Pairing> = others
        .iter()
        .map(|other| Pairing::of(base, other))
        .collect();
    let candidates: Vec<Candidate> = pairings
        .iter()
        .enumerate()
        .flat_map(|(index, pairing)| pairing.pairs.iter().map(move |pair| (index + 1, *pair)))
        .flat_map(|(run, (base, other))| Candidate::both(run, base, other))
        .collect();
    let rows = candidates.iter().filter(|one| one.decidable()).count();
    comparison.pairs = candidates.iter().map(|one| one.judge(rows)).collect();
    for (index, (pairing, other)) in pairings.iter().zip(others).enumerate() {
        let run = index + 1;
        comparison
            .warnings
            .extend(warnings::between(base, other, run));
        let mut lone = |result: &ProgramResult, run: usize, missing_in: usize| {
            comparison.unpaired.push(Unpaired {
                run,
                missing_in,
                title: result.title(),
                filesystem: result.filesystem.clone(),
            });
        };
        pairing.base_only.iter().for_each(|one| lone(one, 0, run));
        pairing.other_only.iter().for_each(|one| lone(one, run, 0));
    }
    comparison
}

fn name(run: &Run) -> RunName {
    RunName {
        id: run.id.clone(),
        label: run.label.clone(),
        suite: run.suite.clone(),
        target: run.target.clone(),
        world: run.world,
    }
}

/// Two results of one program, with the speeds to be compared.
struct Candidate<'a> {
    run: usize,
    base: &'a ProgramResult,
    other: &'a ProgramResult,
    quantity: Quantity,
    base_side: Side,
    other_side: Side,
    base_speeds: Vec<f64>,
    other_speeds: Vec<f64>,
}

impl<'a> Candidate<'a> {
    /// By KB/s, and by durable KB/s where both have it.
    fn both(run: usize, base: &'a ProgramResult, other: &'a ProgramResult) -> Vec<Self> {
        let summaries = (Summary::of(base), Summary::of(other));
        let of = |quantity| Self {
            run,
            base,
            other,
            quantity,
            base_side: side(base, &summaries.0, quantity),
            other_side: side(other, &summaries.1, quantity),
            base_speeds: speeds(base, quantity),
            other_speeds: speeds(other, quantity),
        };
        let durable = of(Quantity::DurableKbPerS);
        let mut found = vec![of(Quantity::KbPerS)];
        if !durable.base_speeds.is_empty() && !durable.other_speeds.is_empty() {
            found.push(durable);
        }
        found
    }

    fn decidable(&self) -> bool {
        ratio(&self.base_speeds, &self.other_speeds, CONFIDENCE).is_some()
    }

    fn judge(&self, rows: usize) -> Pair {
        let (ratio, verdict) = judge(&self.base_speeds, &self.other_speeds, rows);
        Pair {
            run: self.run,
            title: self.other.title(),
            quantity: self.quantity,
            base: self.base_side.clone(),
            other: self.other_side.clone(),
            ratio,
            verdict,
            warnings: warnings::of_pair(self.base, self.other),
        }
    }
}

/// The speeds of the kept repetitions, in the order of running. One that moved
/// nothing, or took no time, has no speed.
fn speeds(result: &ProgramResult, quantity: Quantity) -> Vec<f64> {
    let speed = |repetition: &Repetition| match quantity {
        Quantity::KbPerS => Some(repetition.kb_per_s()),
        Quantity::DurableKbPerS => repetition.durable_kb_per_s(),
    };
    result
        .kept()
        .filter_map(speed)
        .filter(|speed| *speed > 0.0)
        .collect()
}

fn side(result: &ProgramResult, summary: &Summary, quantity: Quantity) -> Side {
    Side {
        kb_per_s: match quantity {
            Quantity::KbPerS => summary.kb_per_s,
            Quantity::DurableKbPerS => summary.durable_kb_per_s.unwrap_or(0.0),
        },
        cpu_percent: summary.cpu_percent,
        kept: summary.kept,
        filesystem: result.filesystem.clone(),
        drives: result.drives,
        size_bytes: result.size_bytes,
        cache: summary.cache,
    }
}

/// The ratio of two samples of speeds in the order of running, with its 95 %
/// interval, and the verdict on it as one of `rows` that are judged together.
pub fn judge(base: &[f64], other: &[f64], rows: usize) -> (Option<Ratio>, Verdict) {
    let together = 1.0 - (1.0 - CONFIDENCE) / rows.max(1) as f64;
    let (Some(shown), Some(strict)) =
        (ratio(base, other, CONFIDENCE), ratio(base, other, together))
    else {
        return (None, Verdict::TooFewRepetitions);
    };
    let verdict = if below_floor(shown.point) || strict.interval.contains(1.0) {
        Verdict::NoDifferenceSeen
    } else if strict.point > 1.0 {
        Verdict::Faster
    } else {
        Verdict::Slower
    };
    (Some(shown), verdict)
}

fn below_floor(ratio: f64) -> bool {
    ratio.max(1.0 / ratio) < 1.0 + PRACTICAL_FLOOR
}

#[cfg(test)]
mod tests;
