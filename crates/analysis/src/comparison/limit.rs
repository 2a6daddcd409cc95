//! What fails a comparison that is held against a limit.
//!
//! A limit that is kept must have been seen to be kept: what was not measured,
//! or is too noisy to exclude what it suggests, fails as well.

use super::warnings::why_unfinished;
use super::{Comparison, Pair, Quantity, Verdict};
use std::fmt;

/// Repetitions that are enough on most machines.
const GOOD_REPETITIONS: usize = 10;

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
    /// A pair is called slower, by more than the limit.
    Slower {
        /// The program and the two runs.
        pair: String,
        /// The share (0 to 1) of the base's speed that is lost.
        slowdown: f64,
        /// What was allowed of it.
        limit: f64,
    },
    /// A pair seems slower by more than the limit, and may not be.
    Undecided {
        /// The program and the two runs.
        pair: String,
        /// The share (0 to 1) of the base's speed that seems to be lost.
        slowdown: f64,
        /// What was allowed of it.
        limit: f64,
        /// How many repetitions may decide it.
        repetitions: usize,
    },
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
            Self::Undecided {
                pair,
                slowdown,
                limit,
                repetitions,
            } => write!(
                f,
                "{pair}: seems slower by {:.1} %, which is over {:.1} %, but the repetitions do not decide; run both again with `--runs {repetitions}`",
                100.0 * slowdown,
                100.0 * limit
            ),
        }
    }
}

impl Comparison {
    /// Why these runs do not keep to a limit on the share (0 to 1) of the
    /// base's speed that any program may lose. Empty where all of them do:
    /// every run is finished, every program of the base has a counterpart, and
    /// no pair is, or undecidedly seems, slower by more than that.
    pub fn failures(&self, limit: f64) -> Vec<Failure> {
        let mut failures: Vec<Failure> = self.unfinished().collect();
        if self.pairs.is_empty() {
            failures.push(Failure::NothingCompared);
            return failures;
        }
        let missing = self.unpaired.iter().filter(|one| one.run == 0);
        failures.extend(missing.map(|one| Failure::NotMeasured {
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
            let lacking = if pair.other.kb_per_s > 0.0 {
                0
            } else {
                pair.run
            };
            return Some(Failure::NotMeasured {
                program: program(pair),
                run: self.run_name(lacking),
            });
        };
        if slowdown <= limit {
            return None;
        }
        let fewest = pair.base.kept.min(pair.other.kept);
        let undecided = |repetitions| Failure::Undecided {
            pair: self.pair_name(pair),
            slowdown,
            limit,
            repetitions,
        };
        match pair.verdict {
            Verdict::Slower => Some(Failure::Slower {
                pair: self.pair_name(pair),
                slowdown,
                limit,
            }),
            Verdict::TooFewRepetitions => Some(undecided(GOOD_REPETITIONS)),
            // Four times as many halve an interval.
            Verdict::Unsure => Some(undecided(GOOD_REPETITIONS.max(4 * fewest))),
            Verdict::NoDifferenceSeen | Verdict::Faster => None,
        }
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
    if pair.quantity == Quantity::DurableKbPerS {
        facts.push("durable".to_owned());
    }
    format!("{} ({})", pair.title, facts.join(", "))
}
