//! Comparison of runs: the ratio of their rates with its interval, and a verdict. The first run is
//! the base.
//!
//! A ratio always belongs to the two figures beside it. For separate runs they are the medians. For
//! the arms of an A/B measurement they are the figures of the median block, whose quotient is the
//! median of the blocks' quotients. For modelled runs they are the results by protocol.
//!
//! An interval holds for all rows together with 99 %, and a verdict rests on that interval: in 99
//! of 100 comparisons of identical runs no row is called different, however many programs there
//! are.

mod differences;
mod gate;
mod history;
mod judgement;
mod pair;
mod pairing;
mod warnings;

pub use crate::quantity::Quantity;
pub use gate::{Failure, Gate, GateResult};
pub use history::History;
pub use judgement::Judgement;
pub(crate) use judgement::{Block, judge_blocks};
pub use pair::{BlockCounts, Pair, Side};

use crate::replay;
use crate::statistics::interleaved::Limits;
use crate::statistics::median;
use crate::statistics::shape::Shape;
use crate::summary::Summary;
use diskperf_timeline::{CacheMode, MeasuredWorld, ProgramResult, Repetition, Run, RunState};
use judgement::{judge, judge_exact};
use pairing::Pairing;
use serde::Serialize;

/// Verdict of a comparison on two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The comparison excludes a difference that matters.
    NoDifferenceSeen,
    /// The other run is faster than the base.
    Faster,
    /// The other run is slower than the base.
    Slower,
    /// The other run seems faster, but the repetitions are too few for a firm verdict.
    SuggestsFaster,
    /// The other run seems slower, but the repetitions are too few for a firm verdict.
    SuggestsSlower,
    /// The repetitions are too few for a verdict.
    TooFewRepetitions,
    /// The comparison is inconclusive: noise hides both a difference and its absence.
    Unsure,
}

impl Verdict {
    /// Returns the name of the verdict for a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoDifferenceSeen => "no difference",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::SuggestsFaster => "suggests faster",
            Self::SuggestsSlower => "suggests slower",
            Self::TooFewRepetitions => "too few repetitions",
            Self::Unsure => "not sure",
        }
    }

    /// Tests whether the verdict says that the two results differ.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    /// Tests whether more repetitions may change the verdict.
    fn is_undecided(self) -> bool {
        match self {
            Self::NoDifferenceSeen | Self::Faster | Self::Slower => false,
            Self::SuggestsFaster
            | Self::SuggestsSlower
            | Self::TooFewRepetitions
            | Self::Unsure => true,
        }
    }
}

/// Reason why a verdict is not firm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The difference is no larger than separate runs of one thing differ by, or the blocks are too
    /// few.
    Noise,
    /// One of the runs has too few repetitions for a firm verdict.
    TooFew,
    /// Most repetitions of the base run are far slower than its fastest.
    BaseDisturbed,
    /// Most repetitions of the other run are far slower than its fastest.
    OtherDisturbed,
    /// The host did not keep up with the base run, which is a replay.
    BaseLate,
    /// The host did not keep up with the other run, which is a replay.
    OtherLate,
    /// The fastest repetitions of the two runs differ in another direction than the medians.
    FastestDisagree,
    /// The repetitions are bimodal, and the choice of the mode would decide the verdict.
    TwoModes,
}

impl Doubt {
    /// Returns the description of the doubt for a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Noise => "",
            Self::TooFew => "too few repetitions",
            Self::BaseDisturbed => "the base was disturbed",
            Self::OtherDisturbed => "the other was disturbed",
            Self::BaseLate => "the host did not keep up with the base",
            Self::OtherLate => "the host did not keep up with the other",
            Self::FastestDisagree => "medians and fastest disagree",
            Self::TwoModes => "two modes",
        }
    }
}

/// Kind of the two figures whose ratio a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The medians of the kept repetitions of two separate runs.
    Medians,
    /// The figures of the median block of an A/B measurement.
    MedianBlock,
    /// The figures of two modelled runs, each by its protocol.
    Exact,
    /// The figures of one run that is compared with itself.
    SameRun,
}

/// Identification of one run in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunName {
    /// Id of the compared run.
    pub id: String,
    /// User's own label for the compared run.
    pub label: Option<String>,
    /// Suite of programs that the run executed.
    pub suite: String,
    /// Target of the run, as the user named it.
    pub target: String,
    /// Absolute paths of the real storage, or the modelled system.
    pub measured: String,
    /// Settings, file systems, caches and commands of the run that differ from those of the other
    /// runs.
    pub differs: Vec<String>,
    /// World of the run: real storage of the host, or a model.
    pub world: MeasuredWorld,
    /// State of the run, finished or not.
    #[serde(flatten)]
    pub state: RunState,
}

/// Result that only one run of a comparison contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unpaired {
    /// Run that contains the result, as an index of [`Comparison::runs`].
    pub run: usize,
    /// Run that lacks the result, as an index of [`Comparison::runs`].
    pub missing_in: usize,
    /// Key of the result: the program with its distinguishing parameters.
    pub key: String,
    /// Title of the result for people: the program with its distinguishing parameters.
    pub title: String,
    /// File system of the result that has no counterpart.
    pub filesystem: String,
}

/// Warning about a whole run in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunWarning {
    /// Run that the warning is about, as an index of [`Comparison::runs`].
    pub run: usize,
    /// Text of the warning: the run's defect, or its difference from the base.
    pub text: String,
}

/// Comparison of several runs with the first of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Compared runs, the base first.
    pub runs: Vec<RunName>,
    /// Pairs of results, by run and then in the order of the base's table.
    pub pairs: Vec<Pair>,
    /// Results that only one of the compared runs contains.
    pub unpaired: Vec<Unpaired>,
    /// Warnings about whole runs, such as unfinished ones.
    pub warnings: Vec<RunWarning>,
    /// Result of the slow-down limit that the comparison was held to, if any.
    pub gated: Option<GateResult>,
}

impl Comparison {
    /// Returns the pair that lost the largest share of its speed among those with the verdict
    /// "slower". A slow-down within the noise never counts here; [`Comparison::failures`] includes
    /// those as well.
    pub fn worst_slowdown(&self) -> Option<&Pair> {
        self.pairs
            .iter()
            .filter(|pair| pair.judgement.verdict == Verdict::Slower)
            .max_by(|a, b| {
                let of = |pair: &Pair| pair.slowdown().unwrap_or(0.0);
                of(a).total_cmp(&of(b))
            })
    }

    /// Counts the pairs without a firm verdict.
    pub fn undecided(&self) -> usize {
        self.pairs
            .iter()
            .filter(|pair| pair.judgement.verdict.is_undecided())
            .count()
    }

    /// Returns a unique name of a run (an index of [`Comparison::runs`]): its label or what was
    /// measured. Where that is not unique, the name adds the facts that distinguish the run, or its
    /// id.
    pub fn run_name(&self, run: usize) -> String {
        let short = |run: &RunName| run.label.clone().unwrap_or_else(|| run.measured.clone());
        let long = |run: &RunName| match run.differs.is_empty() {
            true => short(run),
            false => format!("{} ({})", short(run), run.differs.join(", ")),
        };
        let wanted = &self.runs[run];
        let is_unique = |of: &dyn Fn(&RunName) -> String| {
            let name = of(wanted);
            self.runs.iter().filter(|one| of(one) == name).count() == 1
        };
        match (is_unique(&short), is_unique(&long)) {
            (true, _) => short(wanted),
            (false, true) => long(wanted),
            (false, false) => format!("{} [{}]", short(wanted), wanted.id),
        }
    }
}

/// Lists the differences in how two runs, and their results of the same program, were measured.
/// Each line names both values.
pub fn unlike(a: &Run, b: &Run) -> Vec<String> {
    let mut found: Vec<String> = warnings::warn_of_run_pair(a, b, 1)
        .into_iter()
        .map(|warning| warning.text)
        .collect();
    for (one, other) in Pairing::match_results(a, b).pairs {
        for text in warnings::warn_of_result_pair(one, other) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

/// Terms of a comparison: the smallest change that matters, and earlier runs.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Smallest change that matters. `None` takes that of the A/B measurement whose arms the runs
    /// are, or else the default.
    pub limits: Option<Limits>,
    /// Earlier runs of the same things, from which the noise between runs is estimated.
    pub history: History,
}

/// Compares every run with the first one. Fewer than two runs yield no pair.
pub fn compare(runs: &[Run]) -> Comparison {
    compare_on(runs, &Terms::default())
}

/// Compares every run with the first one on the given terms.
pub fn compare_on(runs: &[Run], terms: &Terms) -> Comparison {
    let mut comparison = Comparison {
        runs: name_runs(runs),
        warnings: warnings::warn_of_states(runs),
        ..Comparison::default()
    };
    let Some((base, others)) = runs.split_first() else {
        return comparison;
    };
    let pairings: Vec<Pairing> = others
        .iter()
        .map(|other| Pairing::match_results(base, other))
        .collect();
    let candidates: Vec<Candidate> = pairings
        .iter()
        .enumerate()
        .flat_map(|(index, pairing)| pairing.pairs.iter().map(move |pair| (index + 1, *pair)))
        .flat_map(|(run, pair)| Candidate::list((run, (base, &runs[run])), pair))
        .collect();
    let judged = |one: &Candidate| one.judge(count_comparable_rows(one, &candidates), terms);
    comparison.pairs = candidates.iter().map(judged).collect();
    for (index, (pairing, other)) in pairings.iter().zip(others).enumerate() {
        let run = index + 1;
        comparison
            .warnings
            .extend(warnings::warn_of_run_pair(base, other, run));
        let mut lone = |result: &ProgramResult, run: usize, missing_in: usize| {
            comparison.unpaired.push(Unpaired {
                run,
                missing_in,
                key: result.result_key(),
                title: result.display_title(),
                filesystem: result.filesystem_type.clone(),
            });
        };
        pairing.base_only.iter().for_each(|one| lone(one, 0, run));
        pairing.other_only.iter().for_each(|one| lone(one, run, 0));
    }
    comparison
}

fn name_runs(runs: &[Run]) -> Vec<RunName> {
    let differences = differences::list_differences(runs);
    let named = runs.iter().zip(differences);
    named.map(|(run, differs)| name_run(run, differs)).collect()
}

fn name_run(run: &Run, differs: Vec<String>) -> RunName {
    RunName {
        id: run.run_id.clone(),
        label: run.user_label.clone(),
        suite: run.suite_name.clone(),
        target: run.target_label.clone(),
        measured: run.measured_description(),
        differs,
        world: run.world,
        state: run.state.clone(),
    }
}

/// Counts the rows of a comparison that share its error probability with one row: those of its own
/// A/B measurement, or all rows of separate runs.
fn count_comparable_rows(candidate: &Candidate<'_>, all: &[Candidate<'_>]) -> usize {
    let beside = all.iter().filter(|other| match candidate.basis {
        Basis::MedianBlock => other.run == candidate.run && other.basis == candidate.basis,
        Basis::Medians | Basis::Exact | Basis::SameRun => other.basis == candidate.basis,
    });
    beside.count()
}

/// Two results of one program before their judgement, with the speeds to be compared.
struct Candidate<'a> {
    run: usize,
    runs: (&'a Run, &'a Run),
    basis: Basis,
    base: &'a ProgramResult,
    other: &'a ProgramResult,
    quantity: Quantity,
    base_side: Side,
    other_side: Side,
}

impl<'a> Candidate<'a> {
    /// Creates one candidate for each quantity by which both results are compared.
    fn list(
        (run, runs): (usize, (&'a Run, &'a Run)),
        (base, other): (&'a ProgramResult, &'a ProgramResult),
    ) -> Vec<Self> {
        let basis = choose_basis(runs);
        let summaries = (Summary::from_result(base), Summary::from_result(other));
        let past_cache = [base, other]
            .iter()
            .all(|one| one.cache_mode == CacheMode::Direct);
        let of = |quantity| Self {
            run,
            runs,
            basis,
            base,
            other,
            quantity,
            base_side: build_side(base, &summaries.0, (quantity, basis)),
            other_side: build_side(other, &summaries.1, (quantity, basis)),
        };
        let quantities = Quantity::of_both(
            base.kept_repetitions(),
            other.kept_repetitions(),
            past_cache,
        );
        quantities.into_iter().map(of).collect()
    }

    fn judge(&self, rows: usize, terms: &Terms) -> Pair {
        let (mut base, mut other) = (self.base_side.clone(), self.other_side.clone());
        let mut blocks = None;
        let judgement = match self.basis {
            Basis::Exact | Basis::SameRun => {
                let [base, other] =
                    [&base, &other].map(|side| self.quantity.invert_time(side.figure));
                judge_exact(base, other)
            }
            Basis::Medians => {
                let floor = terms
                    .history
                    .error_floor(self.runs, self.base, self.quantity);
                let modes = [&base, &other].map(|side| side.shape);
                let [base, other] =
                    [self.base, self.other].map(|one| list_speeds(one, self.quantity));
                let limits = terms.limits.unwrap_or_default();
                judge((&base, &other), (rows, floor), limits).doubt_two_modes(modes)
            }
            Basis::MedianBlock => {
                let common = Block::pair_up(self.base, self.other, self.quantity);
                let asked = self.runs.0.interleaved.as_ref();
                let asked = asked.and_then(|arm| arm.effect_min);
                let asked = asked.map(|min_effect| Limits { min_effect });
                let limits = terms.limits.or(asked).unwrap_or_default();
                let (judgement, figures) = judge_blocks(&common, rows, limits);
                blocks = Some(BlockCounts::count(&common));
                if let Some((of_base, of_other)) = figures {
                    base.set_figure(self.quantity, self.quantity.invert_time(of_base));
                    other.set_figure(self.quantity, self.quantity.invert_time(of_other));
                }
                judgement
            }
        };
        let judgement = match self.quantity.is_time() {
            true => judgement.as_times(),
            false => judgement,
        };
        let judgement = match [self.base, self.other].map(replay::kept_up) {
            _ if self.basis == Basis::SameRun => judgement,
            [true, true] => judgement,
            [false, _] => judgement.without_verdict(Doubt::BaseLate),
            [true, false] => judgement.without_verdict(Doubt::OtherLate),
        };
        Pair {
            run: self.run,
            key: self.other.result_key(),
            title: self.other.display_title(),
            quantity: self.quantity,
            basis: self.basis,
            base,
            other,
            judgement,
            blocks,
            warnings: warnings::warn_of_result_pair(self.base, self.other),
            unlike_work: warnings::unlike_work(self.base, self.other),
        }
    }
}

fn choose_basis((base, other): (&Run, &Run)) -> Basis {
    if is_same_run(base, other) {
        Basis::SameRun
    } else if [base, other]
        .iter()
        .all(|run| run.world == MeasuredWorld::Model)
    {
        Basis::Exact
    } else if are_ab_partners(base, other) {
        Basis::MedianBlock
    } else {
        Basis::Medians
    }
}

fn is_same_run(base: &Run, other: &Run) -> bool {
    base.run_id == other.run_id && base.results == other.results
}

fn are_ab_partners(base: &Run, other: &Run) -> bool {
    let names_partner = |run: &Run, partner: &Run| {
        let interleaved = run.interleaved.as_ref();
        interleaved.is_some_and(|one| one.partner_run_id == partner.run_id)
    };
    names_partner(base, other) && names_partner(other, base)
}

/// Returns the speeds of the kept repetitions in the order of running. A repetition that moved
/// nothing or took no time has no speed.
fn list_speeds(result: &ProgramResult, quantity: Quantity) -> Vec<f64> {
    let kept = result.kept_repetitions();
    kept.filter_map(|one| quantity.speed(one)).collect()
}

fn build_side(
    result: &ProgramResult,
    summary: &Summary,
    (quantity, basis): (Quantity, Basis),
) -> Side {
    let speeds = list_speeds(result, quantity);
    let times: Vec<f64> = speeds.iter().map(|speed| 1.0 / speed).collect();
    let repetitions: Vec<f64> = speeds
        .iter()
        .map(|one| quantity.invert_time(*one))
        .collect();
    let mut side = Side {
        figure: 0.0,
        kb_per_s: summary.kb_per_s,
        p99_us: p99_us(summary),
        cpu_percent: summary.cpu_percent,
        kept: summary.kept,
        filesystem: result.filesystem_type.clone(),
        drives: result.drive_count,
        size_bytes: result.size_bytes,
        cache: summary.cache,
        unwritten_share: summary.unwritten_share,
        shape: match basis {
            Basis::Exact | Basis::SameRun => Shape::Steady,
            Basis::Medians | Basis::MedianBlock => Shape::from_durations(&times),
        },
        repetitions_kb_per_s: match quantity {
            Quantity::KbPerS | Quantity::DurableKbPerS => repetitions.clone(),
            Quantity::Iops | Quantity::ResponseP50Us | Quantity::ResponseP99Us => result
                .kept_repetitions()
                .map(Repetition::kb_per_s)
                .collect(),
        },
        repetitions,
    };
    // Minima are statistics of models alone: in virtual time nothing disturbs.
    let figure = match basis {
        Basis::Exact => exact_figure(summary, quantity),
        Basis::Medians | Basis::MedianBlock | Basis::SameRun => {
            median(&speeds).map(|median| quantity.invert_time(median))
        }
    };
    side.set_figure(quantity, figure.unwrap_or(0.0));
    side
}

/// Returns a modelled result's figure in one quantity, by the protocol's statistic.
fn exact_figure(summary: &Summary, quantity: Quantity) -> Option<f64> {
    let load = summary.load.as_ref();
    let response = || load?.response.as_ref();
    match quantity {
        Quantity::KbPerS => Some(summary.kb_per_s),
        Quantity::DurableKbPerS => summary.durable_kb_per_s,
        Quantity::Iops => load.map(|load| load.iops),
        Quantity::ResponseP50Us => response()?.p50_us,
        Quantity::ResponseP99Us => response()?.p99_us,
    }
}

fn p99_us(summary: &Summary) -> Option<f64> {
    summary.load.as_ref()?.response.as_ref()?.p99_us
}

#[cfg(test)]
mod tests;
