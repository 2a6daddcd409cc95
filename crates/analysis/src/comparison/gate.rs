//! Limit on slow-downs that a comparison must keep.
//!
//! The comparison must show that the limit is kept. A slow-down that the repetitions cannot exclude
//! is not excluded, and a row without a measurement is missing.

use super::warnings::unfinished_reason;
use super::{Comparison, ComparisonBasis, Quantity, ResultPair, Verdict};
use serde::Serialize;
use std::fmt;

/// Result of a limit on slow-downs for a comparison. It is that of the most severe row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// The limit is kept: every row excludes a larger slow-down.
    #[serde(rename = "kept")]
    WithinLimit,
    /// The limit is undecided: the repetitions of a row neither exclude a larger slow-down nor
    /// prove it.
    #[serde(rename = "cannot_tell")]
    Undecided,
    /// A result is missing from one of the runs, or a run has not finished.
    #[serde(rename = "missing")]
    ResultMissing,
    /// At least one row shows a slow-down above the limit.
    #[serde(rename = "exceeded")]
    LimitExceeded,
}

impl GateOutcome {
    /// Returns the process exit code for the result of a slow-down limit.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::WithinLimit => 0,
            Self::LimitExceeded => 1,
            Self::Undecided => 3,
            Self::ResultMissing => 4,
        }
    }
}

/// Limit on slow-downs that a comparison was held to, with the result.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// Share (0 to 1) of the base's speed that any program may lose.
    pub limit: f64,
    /// Most severe result of the limit over all rows of the comparison.
    pub outcome: GateOutcome,
    /// Reasons why the limit is not kept, or not known to be kept.
    pub failures: Vec<GateFailure>,
}

impl GateResult {
    /// Describes the limit and its result in one line.
    pub fn describe(&self) -> String {
        let of = |limit: f64| format!("{} %", (limit * 1e4).round() / 100.0);
        let limit = of(self.limit);
        match self.outcome {
            GateOutcome::WithinLimit => format!("passed: nothing is slower by more than {limit}"),
            GateOutcome::LimitExceeded => {
                format!("failed: something is slower by more than {limit}")
            }
            GateOutcome::Undecided => {
                format!(
                    "open: the runs cannot tell whether something is slower by more than {limit}"
                )
            }
            GateOutcome::ResultMissing => "open: something was not measured".to_owned(),
        }
    }
}

/// Reason why a limit on slow-downs is not kept, or not known to be kept. Its text is for the user:
/// it names the pair and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum GateFailure {
    /// One of the compared runs did not finish.
    RunNotFinished {
        /// Name of the run that did not finish.
        run: String,
        /// Reason why the run did not finish.
        why: String,
    },
    /// The runs have no program in common.
    NothingCompared,
    /// A program of one run has no measured speed in the other.
    ResultNotMeasured {
        /// Name of the program, with its file system.
        program: String,
        /// Name of the run that lacks the program.
        run: String,
    },
    /// A program did different work in the two runs, so that their speeds are not comparable.
    DifferentWork {
        /// Names of the program and the two runs.
        pair: String,
        /// Differences in the work, each with both values.
        how: String,
    },
    /// The other run of a pair is slower by more than the limit.
    Slower {
        /// Names of the program and the two runs.
        pair: String,
        /// Share (0 to 1) of the base's speed that the other run lost.
        slowdown: f64,
        /// Share (0 to 1) of the base's speed that the limit allows to lose.
        limit: f64,
    },
    /// The slow-down of a pair is undecided: its interval includes the limit.
    Undecided {
        /// Names of the program and the two runs.
        pair: String,
        /// Largest share (0 to 1) of the base's speed that the other run may have lost; `None`
        /// where no interval is known.
        at_most: Option<f64>,
        /// Share (0 to 1) of the base's speed that the limit allows to lose.
        limit: f64,
        /// Kind of the compared figures, from which the remedy for the user follows.
        basis: ComparisonBasis,
    },
}

impl GateFailure {
    fn outcome(&self) -> GateOutcome {
        match self {
            Self::RunNotFinished { .. }
            | Self::NothingCompared
            | Self::ResultNotMeasured { .. } => GateOutcome::ResultMissing,
            Self::Slower { .. } => GateOutcome::LimitExceeded,
            Self::DifferentWork { .. } | Self::Undecided { .. } => GateOutcome::Undecided,
        }
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::RunNotFinished { run, why } => {
                write!(f, "{run}: not finished: {why}; run it again, to its end")
            }
            Self::NothingCompared => write!(
                f,
                "the runs have no program in common; compare runs of the same suite"
            ),
            Self::ResultNotMeasured { program, run } => write!(
                f,
                "{program}: not measured in {run}; run the same suite there, to its end"
            ),
            Self::DifferentWork { pair, how } => write!(
                f,
                "{pair}: not the same work: {how}; measure the other by `diskperf run --like` the base"
            ),
            Self::Slower {
                pair,
                slowdown,
                limit,
            } => write!(
                f,
                "{pair}: slower by {:.1} %, above the limit of {:.1} %",
                100.0 * slowdown,
                100.0 * limit
            ),
            Self::Undecided {
                pair,
                at_most,
                limit,
                basis,
            } => {
                let remedy = match basis {
                    ComparisonBasis::MedianBlock => {
                        "give `diskperf ab` a larger --budget or a --min-time"
                    }
                    ComparisonBasis::Medians
                    | ComparisonBasis::ExactFigures
                    | ComparisonBasis::SameModelledRun => {
                        "separate runs can seldom resolve it; measure both with `diskperf ab`"
                    }
                };
                match at_most {
                    Some(at_most) => write!(
                        f,
                        "{pair}: cannot tell whether it is slower by more than {:.1} %: it may be slower by up to {:.0} %; {remedy}",
                        100.0 * limit,
                        100.0 * at_most
                    ),
                    None => write!(
                        f,
                        "{pair}: cannot tell whether it is slower by more than {:.1} %: too few repetitions; {remedy}",
                        100.0 * limit
                    ),
                }
            }
        }
    }
}

impl Comparison {
    /// Holds the comparison to a limit on the share (0 to 1) of the base's speed that any program
    /// may lose.
    ///
    /// The limit is kept if every run is finished, every program of each run has a counterpart that
    /// did the same work, and every pair excludes a larger loss.
    pub fn apply_gate(&mut self, limit: f64) -> GateResult {
        let failures = self.find_failures(limit);
        let gated = GateResult {
            limit,
            outcome: failures
                .iter()
                .map(GateFailure::outcome)
                .max()
                .unwrap_or(GateOutcome::WithinLimit),
            failures,
        };
        self.gate_result = Some(gated.clone());
        gated
    }

    fn find_failures(&self, limit: f64) -> Vec<GateFailure> {
        let mut failures: Vec<GateFailure> = self.list_unfinished_runs().collect();
        if self.result_pairs.is_empty() {
            failures.push(GateFailure::NothingCompared);
            return failures;
        }
        failures.extend(
            self.unpaired_results
                .iter()
                .map(|one| GateFailure::ResultNotMeasured {
                    program: format!("{} ({})", one.title, one.filesystem),
                    run: self.run_name(one.run_index_without),
                }),
        );
        let judged = self.result_pairs.iter();
        failures.extend(judged.filter_map(|pair| self.find_failure(pair, limit)));
        failures
    }

    fn list_unfinished_runs(&self) -> impl Iterator<Item = GateFailure> {
        self.runs.iter().enumerate().filter_map(|(index, run)| {
            Some(GateFailure::RunNotFinished {
                run: self.run_name(index),
                why: unfinished_reason(&run.state)?.to_owned(),
            })
        })
    }

    fn find_failure(&self, pair: &ResultPair, limit: f64) -> Option<GateFailure> {
        let Some(slowdown) = pair.slowdown() else {
            let lacking = if pair.other.figure > 0.0 {
                0
            } else {
                pair.run_index
            };
            return Some(GateFailure::ResultNotMeasured {
                program: describe_program(pair),
                run: self.run_name(lacking),
            });
        };
        if !pair.work_differences.is_empty() {
            return Some(GateFailure::DifferentWork {
                pair: self.pair_name(pair),
                how: pair.work_differences.join(", "),
            });
        }
        if pair.judgement.verdict == Verdict::Slower && slowdown > limit {
            return Some(GateFailure::Slower {
                pair: self.pair_name(pair),
                slowdown,
                limit,
            });
        }
        if pair.judgement.verdict == Verdict::Capped {
            return None;
        }
        let at_most = pair.slowdown_max();
        if at_most.is_some_and(|at_most| at_most <= limit) {
            return None;
        }
        Some(GateFailure::Undecided {
            pair: self.pair_name(pair),
            at_most,
            limit,
            basis: pair.basis,
        })
    }

    fn pair_name(&self, pair: &ResultPair) -> String {
        format!(
            "{}, {} against {}",
            describe_program(pair),
            self.run_name(pair.run_index),
            self.run_name(0)
        )
    }
}

/// Returns the program of a pair with all facts that distinguish it from other pairs of that
/// program.
fn describe_program(pair: &ResultPair) -> String {
    let mut facts = vec![pair.other.filesystem.clone()];
    if pair.other.drive_count > 1 {
        facts.push(format!("{} drives", pair.other.drive_count));
    }
    match pair.quantity {
        Quantity::KbPerS | Quantity::Iops => {}
        Quantity::DurableKbPerS => facts.push("durable".to_owned()),
        Quantity::ResponseP50Us => facts.push("p50 of the response".to_owned()),
        Quantity::ResponseP99Us => facts.push("p99 of the response".to_owned()),
    }
    format!("{} ({})", pair.title, facts.join(", "))
}
