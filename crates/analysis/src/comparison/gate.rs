//! A comparison held against a limit on slow-downs.
//!
//! A limit that is kept must have been seen to be kept: what the repetitions cannot
//! exclude is not excluded, and what was not measured is missing.

use super::warnings::why_unfinished;
use super::{Basis, Comparison, Pair, Quantity, Verdict};
use serde::Serialize;
use std::fmt;

/// What a limit on slow-downs says of a comparison, the gravest of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Larger slow-downs are excluded in every row.
    Kept,
    /// The runs cannot tell.
    CannotTell,
    /// A row is missing in a run, or a run has not finished.
    Missing,
    /// A larger slow-down is found.
    Exceeded,
}

impl Gate {
    /// What a command exits with.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Kept => 0,
            Self::Exceeded => 1,
            Self::CannotTell => 3,
            Self::Missing => 4,
        }
    }
}

/// A limit that a comparison is held to, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Gated {
    /// The share (0 to 1) of the base's speed that any program may lose.
    pub limit: f64,
    /// The gravest of all rows.
    pub outcome: Gate,
    /// Why the limit is not kept, or not known to be.
    pub failures: Vec<Failure>,
}

impl Gated {
    /// In a line.
    pub fn words(&self) -> String {
        let of = |limit: f64| format!("{} %", (limit * 1e4).round() / 100.0);
        let limit = of(self.limit);
        match self.outcome {
            Gate::Kept => format!("passed: nothing is slower by more than {limit}"),
            Gate::Exceeded => format!("failed: something is slower by more than {limit}"),
            Gate::CannotTell => {
                format!(
                    "open: the runs cannot tell whether something is slower by more than {limit}"
                )
            }
            Gate::Missing => "open: something was not measured".to_owned(),
        }
    }
}

/// One reason why a limit on slow-downs is not kept, or not known to be. Its
/// text is for the user: it names the pair and the remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A run did not finish.
    NotFinished {
        /// The run.
        run: String,
        /// Why.
        why: String,
    },
    /// The runs have no program in common.
    NothingCompared,
    /// A program of one run has no speed in the other.
    NotMeasured {
        /// The program, with its file system.
        program: String,
        /// The run that lacks it.
        run: String,
    },
    /// A program did other work in one run than in the other.
    UnlikeWork {
        /// The program and the two runs.
        pair: String,
        /// Both values of all that differs.
        how: String,
    },
    /// A pair is slower, by more than the limit.
    Slower {
        /// The program and the two runs.
        pair: String,
        /// The share (0 to 1) of the base's speed that is lost.
        slowdown: f64,
        /// What was allowed of it.
        limit: f64,
    },
    /// A pair may be slower by more than the limit, and may not be.
    CannotTell {
        /// The program and the two runs.
        pair: String,
        /// The largest share (0 to 1) of the base's speed that may be lost, if
        /// anything is known of it.
        at_most: Option<f64>,
        /// What was allowed of it.
        limit: f64,
        /// How the two were compared, which says what would tell.
        basis: Basis,
    },
}

impl Failure {
    fn gate(&self) -> Gate {
        match self {
            Self::NotFinished { .. } | Self::NothingCompared | Self::NotMeasured { .. } => {
                Gate::Missing
            }
            Self::Slower { .. } => Gate::Exceeded,
            Self::UnlikeWork { .. } | Self::CannotTell { .. } => Gate::CannotTell,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::NotFinished { run, why } => {
                write!(f, "{run}: not finished: {why}; run it again, to its end")
            }
            Self::NothingCompared => write!(
                f,
                "the runs have no program in common; compare runs of the same suite"
            ),
            Self::NotMeasured { program, run } => write!(
                f,
                "{program}: not measured in {run}; run the same suite there, to its end"
            ),
            Self::UnlikeWork { pair, how } => write!(
                f,
                "{pair}: not the same work: {how}; measure the other by `diskperf run --like` the base"
            ),
            Self::Slower {
                pair,
                slowdown,
                limit,
            } => write!(
                f,
                "{pair}: slower by {:.1} %, which is over {:.1} %",
                100.0 * slowdown,
                100.0 * limit
            ),
            Self::CannotTell {
                pair,
                at_most,
                limit,
                basis,
            } => {
                let remedy = match basis {
                    Basis::MedianBlock => "give `diskperf ab` a larger --budget or a --min-time",
                    Basis::Medians | Basis::Exact | Basis::SameRun => {
                        "separate runs seldom can; measure the two with `diskperf ab`"
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
    /// Holds it to a limit on the share (0 to 1) of the base's speed that any program
    /// may lose. It is kept if every run is finished, every program of each has a
    /// counterpart in the other that did the same work, and a larger loss is excluded of
    /// every pair.
    pub fn hold_to(&mut self, limit: f64) -> Gated {
        let failures = self.failures(limit);
        let gated = Gated {
            limit,
            outcome: failures
                .iter()
                .map(Failure::gate)
                .max()
                .unwrap_or(Gate::Kept),
            failures,
        };
        self.gated = Some(gated.clone());
        gated
    }

    fn failures(&self, limit: f64) -> Vec<Failure> {
        let mut failures: Vec<Failure> = self.unfinished().collect();
        if self.pairs.is_empty() {
            failures.push(Failure::NothingCompared);
            return failures;
        }
        failures.extend(self.unpaired.iter().map(|one| Failure::NotMeasured {
            program: format!("{} ({})", one.title, one.filesystem),
            run: self.run_name(one.missing_in),
        }));
        let judged = self.pairs.iter();
        failures.extend(judged.filter_map(|pair| self.failure(pair, limit)));
        failures
    }

    fn unfinished(&self) -> impl Iterator<Item = Failure> {
        self.runs.iter().enumerate().filter_map(|(index, run)| {
            Some(Failure::NotFinished {
                run: self.run_name(index),
                why: why_unfinished(&run.state)?.to_owned(),
            })
        })
    }

    fn failure(&self, pair: &Pair, limit: f64) -> Option<Failure> {
        let Some(slowdown) = pair.slowdown() else {
            let lacking = if pair.other.figure > 0.0 { 0 } else { pair.run };
            return Some(Failure::NotMeasured {
                program: program(pair),
                run: self.run_name(lacking),
            });
        };
        if !pair.unlike_work.is_empty() {
            return Some(Failure::UnlikeWork {
                pair: self.pair_name(pair),
                how: pair.unlike_work.join(", "),
            });
        }
        if pair.judgement.verdict == Verdict::Slower && slowdown > limit {
            return Some(Failure::Slower {
                pair: self.pair_name(pair),
                slowdown,
                limit,
            });
        }
        let at_most = pair.slowdown_at_most();
        if at_most.is_some_and(|at_most| at_most <= limit) {
            return None;
        }
        Some(Failure::CannotTell {
            pair: self.pair_name(pair),
            at_most,
            limit,
            basis: pair.basis,
        })
    }

    fn pair_name(&self, pair: &Pair) -> String {
        format!(
            "{}, {} against {}",
            program(pair),
            self.run_name(pair.run),
            self.run_name(0)
        )
    }
}

/// The program, with all that tells its pair from another one of it.
fn program(pair: &Pair) -> String {
    let mut facts = vec![pair.other.filesystem.clone()];
    if pair.other.drives > 1 {
        facts.push(format!("{} drives", pair.other.drives));
    }
    match pair.quantity {
        Quantity::KbPerS | Quantity::Iops => {}
        Quantity::DurableKbPerS => facts.push("durable".to_owned()),
        Quantity::ResponseP50Us => facts.push("p50 of the response".to_owned()),
        Quantity::ResponseP99Us => facts.push("p99 of the response".to_owned()),
    }
    format!("{} ({})", pair.title, facts.join(", "))
}
