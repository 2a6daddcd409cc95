//! The programs of a plan on some computer, as the plan has them run.

use crate::error::LaboratoryError;
use crate::model::bench::{Bench, Usage};
use crate::model::computer::Computer;
use crate::model::run::{new_result, repetition, task, usage};
use crate::plan::ModelPlan;
use diskperf_machine::WhatIf;
use diskperf_timeline::{Nanoseconds, Trace};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a plan is run on.
pub(super) struct Variant<'c> {
    pub(super) computer: &'c Computer,
    pub(super) what_if: WhatIf,
    /// Drives that run each program at once.
    pub(super) drives: usize,
    pub(super) seed: u64,
    /// Whether what happens is recorded.
    pub(super) trace: bool,
}

impl<'c> Variant<'c> {
    /// A computer, used as a plan has it.
    pub(super) fn of(plan: &ModelPlan, computer: &'c Computer) -> Self {
        Self {
            computer,
            what_if: WhatIf::default(),
            drives: plan.drives,
            seed: plan.seed,
            trace: false,
        }
    }
}

/// The repetition of a program that stands for all: of those that count, the
/// one in the middle by its elapsed time.
pub(super) struct Outcome {
    pub(super) elapsed: Nanoseconds,
    pub(super) trace: Option<Trace>,
}

/// Runs all programs of a plan, in order.
pub(super) fn rerun(
    plan: &ModelPlan,
    variant: &Variant<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Outcome>, LaboratoryError> {
    let used = ModelPlan {
        drives: variant.drives,
        seed: variant.seed,
        other: plan.other && variant.drives < variant.computer.configured_drives(),
        ..plan.clone()
    };
    let usage = Usage {
        trace: variant.trace,
        what_if: variant.what_if,
        ..usage(&used, stop)
    };
    let bench = Bench::build(&variant.computer.specification, usage)?;
    let outcomes = used
        .suite
        .steps
        .iter()
        .map(|step| {
            let mut result = new_result(&used, step, variant.computer);
            let protocol = result.protocol;
            let assignments = bench.assignments(task(&used, step));
            let moved: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
            let mut kept = Vec::new();
            for number in 0..protocol.repetitions {
                if variant.trace {
                    // What came before it is nobody's.
                    bench.take_trace();
                }
                let mut repetition = repetition(&used, step, &bench, (&assignments, &moved))?;
                repetition.discarded = number < protocol.discarded;
                if !repetition.discarded {
                    kept.push(Outcome {
                        elapsed: repetition.elapsed(),
                        trace: bench.take_trace(),
                    });
                }
                result.repetitions.push(repetition);
                if crate::execute::is_sure(&result, &protocol) {
                    break;
                }
            }
            kept.sort_by_key(|outcome| outcome.elapsed);
            let middle = (kept.len() - 1) / 2;
            Ok(kept.swap_remove(middle))
        })
        .collect();
    bench.check()?;
    outcomes
}
