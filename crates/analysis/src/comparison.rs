//! Runs side by side: the ratio of speeds with its interval, and a verdict
//! that neither ranks noise nor takes it for sameness: "no difference seen" is
//! said only where one that matters would have been seen.
//!
//! The first run is the base. A ratio is that of the fastest repetitions where
//! there are six, else the Hodges-Lehmann estimate or the mean over all of
//! them, whatever the protocol's statistic, so it need not be the quotient of
//! the two figures beside it. Its interval holds with 95 % for
//! that row alone; a verdict allows for the number of rows (Bonferroni), so
//! that two runs of the same thing are called different nowhere in 95 of 100
//! comparisons, however many programs they have.
//!
//! What no verdict covers: everything that is common to all repetitions of one
//! run and different in the other, as the place of its files on the medium.
//! Two runs of one thing an hour apart can differ for that reason.

mod limit;
mod pairing;
mod warnings;

pub use limit::Failure;

use crate::cache::CacheVerdict;
use crate::statistics::fastest::ratio_of_fastest;
use crate::statistics::shift::{self, MANN_WHITNEY_FROM, Ratio};
use crate::statistics::{CONFIDENCE, Interval, all_equal, median};
use crate::summary::Summary;
use diskperf_timeline::{ProgramResult, Repetition, Run, RunState, World};
use pairing::Pairing;
use serde::Serialize;

/// A ratio nearer to 1 than this share is no difference in practice, however
/// surely it was measured.
const PRACTICAL_FLOOR: f64 = 0.01;

/// An estimate that differs from 1 by more than this share suggests a
/// difference, and "no difference seen" beside it wants a narrow interval.
const SUGGESTIVE: f64 = 0.05;

/// An interval that excludes no difference of this share is not narrow.
const MATTERS: f64 = 0.10;

/// An interval whose ends are further apart than this factor says nothing: it
/// comes of two or three repetitions that differ, and its ends are those of
/// Student's t, not of any speed.
const WIDEST_FACTOR: f64 = 100.0;

/// What a comparison says of two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// None was seen, or one under the practical floor of 1 %, and the
    /// repetitions are enough and alike enough for that to mean something.
    NoDifferenceSeen,
    /// The other run is faster than the base.
    Faster,
    /// The other run is slower than the base.
    Slower,
    /// No difference is told apart from noise, and either has fewer than four
    /// repetitions that can be used, which seldom show one.
    TooFewRepetitions,
    /// No difference is told apart from noise, but the estimate differs by
    /// more than 5 % and its interval does not exclude 10 %.
    Unsure,
}

impl Verdict {
    /// The words of a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoDifferenceSeen => "no difference seen",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::TooFewRepetitions => "too few repetitions to tell",
            Self::Unsure => "not sure",
        }
    }

    /// Whether it says that the two differ.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    /// Whether more repetitions may turn it into another one.
    fn is_undecided(self) -> bool {
        matches!(self, Self::TooFewRepetitions | Self::Unsure)
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
    /// Its target, as the user named it.
    pub target: String,
    /// The absolute paths of real storage, or the modelled system.
    pub measured: String,
    /// Host or model.
    pub world: World,
    /// How far it came.
    #[serde(flatten)]
    pub state: RunState,
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
    /// Other over base; `None` where either has no repetition with a speed.
    pub ratio: Option<f64>,
    /// Its 95 % interval; `None` of single repetitions, and where the ends are
    /// so far apart that they say nothing.
    pub interval: Option<Interval>,
    /// What may be said.
    pub verdict: Verdict,
    /// What makes the two less alike than they should be.
    pub warnings: Vec<String>,
}

impl Pair {
    /// The share (0 to 1) of the base's speed that the other lacks; negative
    /// where it is faster. `None` where no ratio is known.
    pub fn slowdown(&self) -> Option<f64> {
        self.ratio.map(|ratio| 1.0 - ratio)
    }

    /// Whether its own 95 % interval excludes 1 and the verdict for all rows
    /// together still calls it neither faster nor slower.
    pub fn excluded_by_chance(&self) -> bool {
        let excludes = self.interval.is_some_and(|one| !one.contains(1.0));
        let matters = self.ratio.is_some_and(|ratio| !below_floor(ratio));
        excludes && matters && !self.verdict.is_difference()
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
    /// called slower. A slow-down that is not told apart from noise never
    /// counts; [`Comparison::failures`] heeds those as well.
    pub fn worst_slowdown(&self) -> Option<&Pair> {
        self.pairs
            .iter()
            .filter(|pair| pair.verdict == Verdict::Slower)
            .max_by(|a, b| {
                let of = |pair: &Pair| pair.slowdown().unwrap_or(0.0);
                of(a).total_cmp(&of(b))
            })
    }

    /// Pairs of which nothing can be said: too few repetitions, or repetitions
    /// too unlike each other.
    pub fn undecided(&self) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.verdict.is_undecided())
            .count()
    }

    /// What a run (an index of [`Comparison::runs`]) is called among the
    /// others: its label or what was measured, with its id where that is not unique.
    pub fn run_name(&self, run: usize) -> String {
        let of = |run: &RunName| run.label.clone().unwrap_or_else(|| run.measured.clone());
        let wanted = &self.runs[run];
        let name = of(wanted);
        if self.runs.iter().filter(|one| of(one) == name).count() == 1 {
            name
        } else {
            format!("{name} [{}]", wanted.id)
        }
    }
}

/// How two runs, and results of the same program in them, were not measured
/// alike; each line names both values.
pub fn unlike(a: &Run, b: &Run) -> Vec<String> {
    let mut found: Vec<String> = warnings::between(a, b, 1)
        .into_iter()
        .map(|warning| warning.text)
        .collect();
    for (one, other) in Pairing::of(a, b).pairs {
        for text in warnings::of_pair(one, other) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
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
        .flat_map(|(run, (base, other))| {
            let exact = [0, run].iter().all(|one| runs[*one].world == World::Model);
            Candidate::both((run, exact), base, other)
        })
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
        measured: run.measured(),
        world: run.world,
        state: run.state.clone(),
    }
}

/// Two results of one program, with the speeds to be compared.
struct Candidate<'a> {
    run: usize,
    /// Both are modelled.
    exact: bool,
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
    fn both(
        (run, exact): (usize, bool),
        base: &'a ProgramResult,
        other: &'a ProgramResult,
    ) -> Vec<Self> {
        let summaries = (Summary::of(base), Summary::of(other));
        let of = |quantity| Self {
            run,
            exact,
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
        !self.exact && ratio(&self.base_speeds, &self.other_speeds, CONFIDENCE).is_some()
    }

    fn judge(&self, rows: usize) -> Pair {
        let judgement = if self.exact {
            judge_exact(self.base_side.kb_per_s, self.other_side.kb_per_s)
        } else {
            judge(&self.base_speeds, &self.other_speeds, rows)
        };
        Pair {
            run: self.run,
            title: self.other.title(),
            quantity: self.quantity,
            base: self.base_side.clone(),
            other: self.other_side.clone(),
            ratio: judgement.ratio,
            interval: judgement.interval,
            verdict: judgement.verdict,
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

/// What two samples of speeds say of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// As [`Pair::ratio`].
    pub ratio: Option<f64>,
    /// As [`Pair::interval`].
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The ratio of two samples of positive speeds in the order of running, with
/// its 95 % interval, and the verdict on it as one of `rows` that are judged
/// together.
pub fn judge(base: &[f64], other: &[f64], rows: usize) -> Judgement {
    let together = 1.0 - (1.0 - CONFIDENCE) / rows.max(1) as f64;
    let shown = ratio(base, other, CONFIDENCE);
    let strict = ratio(base, other, together).filter(|one| !one.interval.contains(1.0));
    let few = base.len().min(other.len()) < MANN_WHITNEY_FROM;
    let verdict = match (shown, strict) {
        (Some(shown), Some(strict)) if !below_floor(shown.point) => {
            if strict.point > 1.0 {
                Verdict::Faster
            } else {
                Verdict::Slower
            }
        }
        _ if few => Verdict::TooFewRepetitions,
        (Some(shown), _) if !is_open(&shown) && !medians_differ(base, other) => {
            Verdict::NoDifferenceSeen
        }
        _ => Verdict::Unsure,
    };
    let of_medians = || Some(median(other)? / median(base)?);
    Judgement {
        ratio: shown.map(|one| one.point).or_else(of_medians),
        interval: shown
            .map(|one| one.interval)
            .filter(|one| one.high <= WIDEST_FACTOR * one.low),
        verdict,
    }
}

/// Two modelled figures: each is what it is, and so is their ratio.
fn judge_exact(base: f64, other: f64) -> Judgement {
    let ratio = (base > 0.0 && other > 0.0).then(|| other / base);
    Judgement {
        ratio,
        interval: ratio.map(Interval::exact),
        verdict: match ratio {
            None => Verdict::TooFewRepetitions,
            Some(ratio) if below_floor(ratio) => Verdict::NoDifferenceSeen,
            Some(ratio) if ratio > 1.0 => Verdict::Faster,
            Some(_) => Verdict::Slower,
        },
    }
}

/// By the fastest repetitions where there are enough, else by all of them. Of
/// repetitions that are all alike, as in virtual time, nothing was disturbed.
fn ratio(base: &[f64], other: &[f64], confidence: f64) -> Option<Ratio> {
    if all_equal(base) && all_equal(other) {
        return shift::ratio(base, other, confidence);
    }
    ratio_of_fastest(base, other, confidence).or_else(|| shift::ratio(base, other, confidence))
}

/// Whether the medians differ by what matters. Where the fastest do not show
/// it, one of the runs was disturbed, or stalled: it is not told which.
fn medians_differ(base: &[f64], other: &[f64]) -> bool {
    let medians = median(base).zip(median(other));
    medians.is_some_and(|(base, other)| factor(other / base) > 1.0 + MATTERS)
}

/// How many times as fast the faster one is.
fn factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio)
}

/// Whether a difference that matters is suggested and not excluded.
fn is_open(ratio: &Ratio) -> bool {
    let outermost = factor(ratio.interval.low).max(factor(ratio.interval.high));
    factor(ratio.point) > 1.0 + SUGGESTIVE && outermost >= 1.0 + MATTERS
}

fn below_floor(ratio: f64) -> bool {
    factor(ratio) < 1.0 + PRACTICAL_FLOOR
}

#[cfg(test)]
mod tests;
