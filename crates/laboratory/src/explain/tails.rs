//! What the slowest requests of a flash drive waited for, and what becomes of them without it.

#[cfg(test)]
mod tests;

use super::Means;
use super::changes;
use super::moments;
use super::rerun::{self, Outcome, Variant};
use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use crate::plan::ModelPlan;
use diskperf_analysis::explanation::tail::{self, Tail, TailCheck, TailRerun, Way};
use diskperf_battery::Job;
use diskperf_timeline::Stage;
use std::collections::BTreeSet;

/// The tails of each program, as it is.
pub(super) fn of(base: &[Outcome]) -> Vec<Vec<Tail>> {
    let traces = base.iter().map(|outcome| outcome.trace.as_ref());
    let tails = traces.map(|trace| trace.map_or_else(Vec::new, tail::tails));
    tails.collect()
}

/// Says of each cause of each tail what becomes of the requests without it, and checks what is
/// said of the first on the same load with other random numbers.
pub(super) fn rerun(
    plan: &ModelPlan,
    computer: &Computer,
    (base, tails): (&[Outcome], &mut [Vec<Tail>]),
    means: &Means<'_>,
) -> Result<(), LaboratoryError> {
    if tails.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let of_all = |tails: &Vec<Tail>| {
        let causes = tails.iter().flat_map(|tail| &tail.causes);
        causes.map(|cause| cause.stage).collect()
    };
    let wanted: Vec<BTreeSet<Stage>> = tails.iter().map(of_all).collect();
    let traces = without(plan, computer, (base, &wanted, tails), means)?;
    for (tails, reruns) in tails.iter_mut().zip(&traces) {
        for tail in tails {
            let of_it = reruns.iter().filter(|(way, _)| *way == tail.way);
            tail.keep(&of_it.map(|(_, rerun)| *rerun).collect::<Vec<_>>());
        }
    }
    check(plan, computer, tails, means)
}

/// Makes the load of the next seed with and without the first cause of each tail.
fn check(
    plan: &ModelPlan,
    computer: &Computer,
    tails: &mut [Vec<Tail>],
    means: &Means<'_>,
) -> Result<(), LaboratoryError> {
    let mut plan = plan.clone();
    plan.experiment.seed = plan.experiment.seed.wrapping_add(1);
    let variant = Variant {
        trace: true,
        ..Variant::of(&plan, computer)
    };
    let base = rerun::rerun(&plan, &variant, means.stop)?;
    // What was first is what is checked, whatever is first here.
    let first = |tail: &Tail| tail.causes.first().map(|cause| cause.stage);
    let firsts = |tails: &Vec<Tail>| tails.iter().filter_map(first).collect();
    let wanted: Vec<BTreeSet<Stage>> = tails.iter().map(firsts).collect();
    let found = of(&base);
    let reruns = without(&plan, computer, (&base, &wanted, &found), means)?;
    for (tails, (others, reruns)) in tails.iter_mut().zip(found.iter().zip(&reruns)) {
        for tail in tails {
            let other = others.iter().find(|other| other.way == tail.way);
            let same = |(way, rerun): &&(Way, TailRerun)| {
                *way == tail.way && Some(rerun.stage) == first(tail)
            };
            let rerun = reruns.iter().find(same);
            tail.check = other.zip(rerun).map(|(other, (_, rerun))| TailCheck {
                seed: plan.experiment.seed,
                above: other.above,
                removed: other.removed(rerun),
            });
        }
    }
    Ok(())
}

/// The requests of each program again, at the same moments and on the drive as it was, without
/// each of the stages that are wanted of it: what became of its tails.
fn without(
    plan: &ModelPlan,
    computer: &Computer,
    (base, wanted, tails): (&[Outcome], &[BTreeSet<Stage>], &[Vec<Tail>]),
    means: &Means<'_>,
) -> Result<Vec<Vec<(Way, TailRerun)>>, LaboratoryError> {
    let of_program = |(program, stages): (usize, &BTreeSet<Stage>)| {
        let changes = stages
            .iter()
            .filter_map(|stage| Some((*stage, changes::without(*stage)?)));
        changes
            .map(|(stage, change)| (program, stage, change))
            .collect::<Vec<_>>()
    };
    let all: Vec<_> = wanted.iter().enumerate().flat_map(of_program).collect();
    let jobs: Vec<Job> = (plan.suite.jobs().zip(base))
        .map(|(job, outcome)| moments::job(plan, computer, job, outcome))
        .collect();
    let own = plan.settings_of(computer);
    let as_it_is = Variant {
        trace: true,
        ..Variant::of(plan, computer)
    };
    // A trace is let go of as soon as its tails are known.
    let outcomes = means.machines().each(all.len(), |number| {
        let (program, stage, change) = &all[number];
        let settings: Vec<_> = own.iter().chain(&change.settings).cloned().collect();
        let Some(changed) = plan.computer_with(&settings) else {
            return Ok(Vec::new());
        };
        let supposed = (&changed, change.what_if);
        let one = (base, *program, &jobs[*program]);
        match rerun::rerun_in_place((plan, &as_it_is), one, supposed, means.stop) {
            Err(LaboratoryError::Interrupted) => Err(LaboratoryError::Interrupted),
            Err(_) => Ok(Vec::new()),
            Ok(outcome) => Ok(reruns(&tails[*program], *stage, &outcome)),
        }
    })?;
    let mut found = vec![Vec::new(); base.len()];
    for ((program, ..), reruns) in all.iter().zip(outcomes) {
        found[*program].extend(reruns);
    }
    Ok(found)
}

/// What became of the tails of a program that ran without a stage.
fn reruns(tails: &[Tail], stage: Stage, outcome: &Outcome) -> Vec<(Way, TailRerun)> {
    let rerun = |of: &Tail| Some((of.way, tail::rerun(of, stage, outcome.trace.as_ref()?)?));
    tails.iter().filter_map(rerun).collect()
}
