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
pub use gate::{GateFailure, GateOutcome, GateResult};
pub use history::RunHistory;
pub use judgement::Judgement;
pub(crate) use judgement::{BlockPair, judge_blocks};
pub use pair::{BlockCounts, PairSide, ResultPair};

use crate::caps::{self, RowCap};
use crate::replay;
use crate::statistics::interleaved::DecisionLimits;
use crate::statistics::median;
use crate::statistics::shape::SeriesShape;
use crate::summary::ResultSummary;
use diskperf_timeline::{CacheMode, MeasuredWorld, ProgramResult, Repetition, Run, RunState};
use judgement::{judge_exact_figures, judge_repetitions};
use pairing::ResultPairing;
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
    /// The other run is at a cap on the rate, and no faster than the base. Its figure is that of the
    /// cap, so that it shows no regression of the storage.
    Capped,
    /// The comparison is inconclusive: noise hides both a difference and its absence.
    #[serde(rename = "unsure")]
    Inconclusive,
}

impl Verdict {
    /// Returns the name of the verdict for a table.
    pub fn label(self) -> &'static str {
        match self {
            Self::NoDifferenceSeen => "no difference",
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::SuggestsFaster => "suggests faster",
            Self::SuggestsSlower => "suggests slower",
            Self::TooFewRepetitions => "too few repetitions",
            Self::Capped => "capped",
            Self::Inconclusive => "not sure",
        }
    }

    /// Tests whether the verdict says that the two results differ.
    pub fn shows_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    /// Tests whether more repetitions may change the verdict.
    fn is_undecided(self) -> bool {
        match self {
            Self::NoDifferenceSeen | Self::Faster | Self::Slower | Self::Capped => false,
            Self::SuggestsFaster
            | Self::SuggestsSlower
            | Self::TooFewRepetitions
            | Self::Inconclusive => true,
        }
    }
}

/// Reason why a verdict is not firm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndecidedReason {
    /// The difference is no larger than separate runs of one thing differ by, or the blocks are too
    /// few.
    Noise,
    /// One of the runs has too few repetitions for a firm verdict.
    #[serde(rename = "too_few")]
    TooFewRepetitions,
    /// Most repetitions of the base run are far slower than its fastest.
    BaseDisturbed,
    /// Most repetitions of the other run are far slower than its fastest.
    OtherDisturbed,
    /// The host did not keep up with the base run, which is a replay.
    #[serde(rename = "base_late")]
    BaseArrivalsLate,
    /// The host did not keep up with the other run, which is a replay.
    #[serde(rename = "other_late")]
    OtherArrivalsLate,
    /// The fastest repetitions of the two runs differ in another direction than the medians.
    #[serde(rename = "fastest_disagree")]
    FastestQuartersDisagree,
    /// The repetitions are bimodal, and the choice of the mode would decide the verdict.
    #[serde(rename = "two_modes")]
    Bimodal,
}

impl UndecidedReason {
    /// Returns the description of the doubt for a table.
    pub fn label(self) -> &'static str {
        match self {
            Self::Noise => "",
            Self::TooFewRepetitions => "too few repetitions",
            Self::BaseDisturbed => "the base was disturbed",
            Self::OtherDisturbed => "the other was disturbed",
            Self::BaseArrivalsLate => "the host did not keep up with the base",
            Self::OtherArrivalsLate => "the host did not keep up with the other",
            Self::FastestQuartersDisagree => "medians and fastest disagree",
            Self::Bimodal => "two modes",
        }
    }
}

/// Kind of the two figures whose ratio a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonBasis {
    /// The medians of the kept repetitions of two separate runs.
    Medians,
    /// The figures of the median block of an A/B measurement.
    MedianBlock,
    /// The figures of two modelled runs, each by its protocol.
    #[serde(rename = "exact")]
    ExactFigures,
    /// The figures of one run that is compared with itself.
    #[serde(rename = "same_run")]
    SameModelledRun,
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
    #[serde(rename = "measured")]
    pub measured_target: String,
    /// Settings, file systems, caches and commands of the run that differ from those of the other
    /// runs.
    #[serde(rename = "differs")]
    pub differences: Vec<String>,
    /// World of the run: real storage of the host, or a model.
    pub world: MeasuredWorld,
    /// State of the run, finished or not.
    #[serde(flatten)]
    pub state: RunState,
}

/// Result that only one run of a comparison contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnpairedResult {
    /// Run that contains the result, as an index of [`Comparison::runs`].
    #[serde(rename = "run")]
    pub run_index: usize,
    /// Run that lacks the result, as an index of [`Comparison::runs`].
    #[serde(rename = "missing_in")]
    pub run_index_without: usize,
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
    #[serde(rename = "run")]
    pub run_index: usize,
    /// Text of the warning: the run's defect, or its difference from the base.
    #[serde(rename = "text")]
    pub message: String,
}

/// Comparison of several runs with the first of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Compared runs, the base first.
    pub runs: Vec<RunName>,
    /// Pairs of results, by run and then in the order of the base's table.
    pub result_pairs: Vec<ResultPair>,
    /// Results that only one of the compared runs contains.
    pub unpaired_results: Vec<UnpairedResult>,
    /// Warnings about whole runs, such as unfinished ones.
    pub warnings: Vec<RunWarning>,
    /// Result of the slow-down limit that the comparison was held to, if any.
    pub gate_result: Option<GateResult>,
}

impl Comparison {
    /// Returns the pair that lost the largest share of its speed among those with the verdict
    /// "slower". A slow-down within the noise never counts here; [`Comparison::failures`] includes
    /// those as well.
    pub fn worst_slowdown(&self) -> Option<&ResultPair> {
        self.result_pairs
            .iter()
            .filter(|pair| pair.judgement.verdict == Verdict::Slower)
            .max_by(|a, b| {
                let of = |pair: &ResultPair| pair.slowdown().unwrap_or(0.0);
                of(a).total_cmp(&of(b))
            })
    }

    /// Counts the pairs without a firm verdict.
    pub fn undecided_count(&self) -> usize {
        self.result_pairs
            .iter()
            .filter(|pair| pair.judgement.verdict.is_undecided())
            .count()
    }

    /// Returns a unique name of a run (an index of [`Comparison::runs`]): its label or what was
    /// measured. Where that is not unique, the name adds the facts that distinguish the run, or its
    /// id.
    pub fn run_name(&self, run: usize) -> String {
        let short = |run: &RunName| {
            run.label
                .clone()
                .unwrap_or_else(|| run.measured_target.clone())
        };
        let long = |run: &RunName| match run.differences.is_empty() {
            true => short(run),
            false => format!("{} ({})", short(run), run.differences.join(", ")),
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
pub fn list_run_differences(a: &Run, b: &Run) -> Vec<String> {
    let mut found: Vec<String> = warnings::warn_of_run_pair(a, b, 1)
        .into_iter()
        .map(|warning| warning.message)
        .collect();
    for (one, other) in ResultPairing::match_results(a, b).pairs {
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
pub struct ComparisonTerms {
    /// Smallest change that matters. `None` takes that of the A/B measurement whose arms the runs
    /// are, or else the default.
    pub limits: Option<DecisionLimits>,
    /// Earlier runs of the same things, from which the noise between runs is estimated.
    pub history: RunHistory,
}

/// Compares every run with the first one. Fewer than two runs yield no pair.
pub fn compare(runs: &[Run]) -> Comparison {
    compare_with_terms(runs, &ComparisonTerms::default())
}

/// Compares every run with the first one on the given terms.
pub fn compare_with_terms(runs: &[Run], terms: &ComparisonTerms) -> Comparison {
    let mut comparison = Comparison {
        runs: name_runs(runs),
        warnings: warnings::warn_of_states(runs),
        ..Comparison::default()
    };
    let Some((base, others)) = runs.split_first() else {
        return comparison;
    };
    let pairings: Vec<ResultPairing> = others
        .iter()
        .map(|other| ResultPairing::match_results(base, other))
        .collect();
    let candidates: Vec<Candidate> = pairings
        .iter()
        .enumerate()
        .flat_map(|(index, pairing)| pairing.pairs.iter().map(move |pair| (index + 1, *pair)))
        .flat_map(|(run, pair)| Candidate::list_candidates((run, (base, &runs[run])), pair))
        .collect();
    let judged =
        |one: &Candidate| one.judge_candidate(count_comparable_rows(one, &candidates), terms);
    comparison.result_pairs = candidates.iter().map(judged).collect();
    for (index, (pairing, other)) in pairings.iter().zip(others).enumerate() {
        let run = index + 1;
        comparison
            .warnings
            .extend(warnings::warn_of_run_pair(base, other, run));
        let mut lone = |result: &ProgramResult, run: usize, missing_in: usize| {
            comparison.unpaired_results.push(UnpairedResult {
                run_index: run,
                run_index_without: missing_in,
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
        measured_target: run.measured_description(),
        differences: differs,
        world: run.world,
        state: run.state.clone(),
    }
}

/// Counts the rows of a comparison that share its error probability with one row: those of its own
/// A/B measurement, or all rows of separate runs.
fn count_comparable_rows(candidate: &Candidate<'_>, all: &[Candidate<'_>]) -> usize {
    let beside = all.iter().filter(|other| match candidate.basis {
        ComparisonBasis::MedianBlock => {
            other.run_index == candidate.run_index && other.basis == candidate.basis
        }
        ComparisonBasis::Medians
        | ComparisonBasis::ExactFigures
        | ComparisonBasis::SameModelledRun => other.basis == candidate.basis,
    });
    beside.count()
}

/// Two results of one program before their judgement, with the speeds to be compared.
struct Candidate<'a> {
    run_index: usize,
    runs: (&'a Run, &'a Run),
    basis: ComparisonBasis,
    base: &'a ProgramResult,
    other: &'a ProgramResult,
    quantity: Quantity,
    base_side: PairSide,
    other_side: PairSide,
}

/// Joins the titles of both sides of a row: words that differ are shown as `base | other`.
fn join_titles(base: &str, other: &str) -> String {
    let [base_words, other_words] = [base, other].map(|title| title.split(' '));
    if base_words.clone().count() != other_words.clone().count() {
        return format!("{base} | {other}");
    }
    let join = |(base, other): (&str, &str)| match base == other {
        true => base.to_owned(),
        false => format!("{} | {other}", base.trim_end_matches(',')),
    };
    let words: Vec<String> = base_words.zip(other_words).map(join).collect();
    words.join(" ")
}

impl<'a> Candidate<'a> {
    fn list_candidates(
        (run, runs): (usize, (&'a Run, &'a Run)),
        (base, other): (&'a ProgramResult, &'a ProgramResult),
    ) -> Vec<Self> {
        let basis = choose_basis(runs);
        let summaries = (
            ResultSummary::from_result(base),
            ResultSummary::from_result(other),
        );
        let past_cache = [base, other]
            .iter()
            .all(|one| one.cache_mode == CacheMode::Direct);
        let of = |quantity| Self {
            run_index: run,
            runs,
            basis,
            base,
            other,
            quantity,
            base_side: build_side(base, &summaries.0, (quantity, basis)),
            other_side: build_side(other, &summaries.1, (quantity, basis)),
        };
        let quantities = Quantity::common_quantities(
            base.kept_repetitions(),
            other.kept_repetitions(),
            past_cache,
        );
        quantities.into_iter().map(of).collect()
    }

    /// Finds the caps at which base and other were measured.
    fn find_caps(&self) -> [Option<RowCap>; 2] {
        [
            caps::find_row_cap(self.runs.0, self.base),
            caps::find_row_cap(self.runs.1, self.other),
        ]
    }

    /// Tests whether a ratio of figures is that of a faster run by more than a cap varies.
    fn shows_faster(&self, ratio: f64) -> bool {
        self.quantity.invert_time(ratio) > 1.0 + caps::KNOWN_LIMIT_TOLERANCE
    }

    fn judge_candidate(&self, rows: usize, terms: &ComparisonTerms) -> ResultPair {
        let (mut base, mut other) = (self.base_side.clone(), self.other_side.clone());
        let mut blocks = None;
        let judgement = match self.basis {
            ComparisonBasis::ExactFigures | ComparisonBasis::SameModelledRun => {
                let [base, other] =
                    [&base, &other].map(|side| self.quantity.invert_time(side.figure));
                judge_exact_figures(base, other)
            }
            ComparisonBasis::Medians => {
                let floor = terms
                    .history
                    .find_error_floor(self.runs, self.base, self.quantity);
                let modes = [&base, &other].map(|side| side.shape);
                let [base, other] =
                    [self.base, self.other].map(|one| list_speeds(one, self.quantity));
                let limits = terms.limits.unwrap_or_default();
                judge_repetitions((&base, &other), (rows, floor), limits)
                    .without_verdict_if_bimodal(modes)
            }
            ComparisonBasis::MedianBlock => {
                let common = BlockPair::pair_blocks(self.base, self.other, self.quantity);
                let asked = self.runs.0.interleaved.as_ref();
                let asked = asked.and_then(|arm| arm.effect_min);
                let asked = asked.map(|min_effect| DecisionLimits {
                    effect_share_min: min_effect,
                });
                let limits = terms.limits.or(asked).unwrap_or_default();
                let (judgement, figures) = judge_blocks(&common, rows, limits);
                blocks = Some(BlockCounts::count_blocks(&common));
                if let Some((of_base, of_other)) = figures {
                    base.set_figure(self.quantity, self.quantity.invert_time(of_base));
                    other.set_figure(self.quantity, self.quantity.invert_time(of_other));
                }
                judgement
            }
        };
        let judgement = match self.quantity.is_duration() {
            true => judgement.invert_to_times(),
            false => judgement,
        };
        let judgement = match [self.base, self.other].map(replay::has_kept_up) {
            _ if self.basis == ComparisonBasis::SameModelledRun => judgement,
            [true, true] => judgement,
            [false, _] => judgement.without_verdict(UndecidedReason::BaseArrivalsLate),
            [true, false] => judgement.without_verdict(UndecidedReason::OtherArrivalsLate),
        };
        let caps = self.find_caps();
        let judgement = match (&caps[1], judgement.ratio) {
            (Some(_), Some(ratio)) if !self.shows_faster(ratio) => judgement.at_cap(),
            _ => judgement,
        };
        let mut warnings = warnings::warn_of_result_pair(self.base, self.other);
        warnings.extend(warnings::warn_of_caps(&caps));
        ResultPair {
            run_index: self.run_index,
            program_key: self.other.result_key(),
            title: join_titles(&self.base.display_title(), &self.other.display_title()),
            quantity: self.quantity,
            basis: self.basis,
            base,
            other,
            judgement,
            block_counts: blocks,
            warnings,
            work_differences: warnings::list_work_differences(self.base, self.other),
        }
    }
}

fn choose_basis((base, other): (&Run, &Run)) -> ComparisonBasis {
    if is_same_run(base, other) {
        ComparisonBasis::SameModelledRun
    } else if [base, other]
        .iter()
        .all(|run| run.world == MeasuredWorld::Model)
    {
        ComparisonBasis::ExactFigures
    } else if are_ab_partners(base, other) {
        ComparisonBasis::MedianBlock
    } else {
        ComparisonBasis::Medians
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
    kept.filter_map(|one| quantity.speed_of_repetition(one))
        .collect()
}

fn build_side(
    result: &ProgramResult,
    summary: &ResultSummary,
    (quantity, basis): (Quantity, ComparisonBasis),
) -> PairSide {
    let speeds = list_speeds(result, quantity);
    let times: Vec<f64> = speeds.iter().map(|speed| 1.0 / speed).collect();
    let repetitions: Vec<f64> = speeds
        .iter()
        .map(|one| quantity.invert_time(*one))
        .collect();
    let mut side = PairSide {
        figure: 0.0,
        kb_per_s: summary.kb_per_s,
        p99_us: p99_us(summary),
        cpu_percent: summary.cpu_percent,
        kept_count: summary.kept_count,
        filesystem: result.filesystem_type.clone(),
        drive_count: result.drive_count,
        size_bytes: result.size_bytes,
        cache: summary.cache,
        unwritten_share: summary.unwritten_share,
        shape: match basis {
            ComparisonBasis::ExactFigures | ComparisonBasis::SameModelledRun => SeriesShape::Steady,
            ComparisonBasis::Medians | ComparisonBasis::MedianBlock => {
                SeriesShape::from_durations(&times)
            }
        },
        repetitions_kb_per_s: match quantity {
            Quantity::KbPerS | Quantity::DurableKbPerS => repetitions.clone(),
            Quantity::Iops | Quantity::ResponseP50Us | Quantity::ResponseP99Us => result
                .kept_repetitions()
                .map(Repetition::kb_per_s)
                .collect(),
        },
        repetition_figures: repetitions,
    };
    // Minima are statistics of models alone: in virtual time nothing disturbs.
    let figure = match basis {
        ComparisonBasis::ExactFigures => select_exact_figure(summary, quantity),
        ComparisonBasis::Medians
        | ComparisonBasis::MedianBlock
        | ComparisonBasis::SameModelledRun => {
            median(&speeds).map(|median| quantity.invert_time(median))
        }
    };
    side.set_figure(quantity, figure.unwrap_or(0.0));
    side
}

fn select_exact_figure(summary: &ResultSummary, quantity: Quantity) -> Option<f64> {
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

fn p99_us(summary: &ResultSummary) -> Option<f64> {
    summary.load.as_ref()?.response.as_ref()?.p99_us
}

#[cfg(test)]
mod tests;
