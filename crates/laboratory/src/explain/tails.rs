//! What the slowest requests of a flash drive waited for, and what becomes of them without it.

use super::Means;
use super::changes::{Change, without};
use super::moments;
use super::rerun::{self, Outcome, Variant};
use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use crate::plan::ModelPlan;
use diskperf_analysis::explanation::tail::{self, Tail};
use diskperf_timeline::Stage;

/// The tails of each program, as it is.
pub(super) fn of(base: &[Outcome]) -> Vec<Vec<Tail>> {
    let traces = base.iter().map(|outcome| outcome.trace.as_ref());
    let tails = traces.map(|trace| trace.map_or_else(Vec::new, tail::tails));
    tails.collect()
}

/// Makes the requests of each program again, at the same moments, without the first cause of
/// each of its tails, and says what became of them.
pub(super) fn rerun(
    plan: &ModelPlan,
    computer: &Computer,
    (base, tails): (&[Outcome], &mut [Vec<Tail>]),
    means: &Means<'_>,
) -> Result<(), LaboratoryError> {
    let mut stages: Vec<Stage> = (tails.iter().flatten())
        .filter_map(|tail| Some(tail.causes.first()?.stage))
        .collect();
    stages.sort();
    stages.dedup();
    let changes: Vec<(Stage, Change)> = (stages.into_iter())
        .filter_map(|stage| Some((stage, without(stage)?)))
        .collect();
    let own = plan.settings_of(computer);
    let same = moments::plan(plan, computer, base);
    let outcomes = means.machines().each(changes.len(), |number| {
        let change = &changes[number].1;
        let settings: Vec<_> = own.iter().chain(&change.settings).cloned().collect();
        let Some(changed) = plan.computer_with(&settings) else {
            return Ok(None);
        };
        let variant = Variant {
            what_if: change.what_if,
            trace: true,
            ..Variant::of(plan, &changed)
        };
        match rerun::rerun_like(&same, &variant, base, means.stop) {
            Err(LaboratoryError::Interrupted) => Err(LaboratoryError::Interrupted),
            outcome => Ok(outcome.ok()),
        }
    })?;
    for ((stage, _), outcome) in changes.iter().zip(&outcomes) {
        let Some(programs) = outcome else { continue };
        for (tails, outcome) in tails.iter_mut().zip(programs) {
            let Some(trace) = &outcome.trace else {
                continue;
            };
            let caused =
                |tail: &&mut Tail| tail.causes.first().is_some_and(|of| of.stage == *stage);
            for tail in tails.iter_mut().filter(caused) {
                tail.rerun = tail::rerun(tail, *stage, trace);
            }
        }
    }
    Ok(())
}
