//! Causes of the slowest requests of a flash drive, and the response times of these requests
//! without each cause.

#[cfg(test)]
mod tests;

use super::ExplanationOptions;
use super::changes;
use super::moments;
use super::rerun::{self, ModelVariant, ReplacedRepetition, RerunOutcome};
use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use crate::plan::ModelPlan;
use diskperf_analysis::explanation::tail::{
    self, LatencyTail, RequestDirection, TailCheck, TailRerun,
};
use diskperf_battery::SuiteJob;
use diskperf_timeline::Stage;
use std::collections::BTreeSet;

pub(super) fn find_tails(base: &[RerunOutcome]) -> Vec<Vec<LatencyTail>> {
    let traces = base.iter().map(|outcome| outcome.trace.as_ref());
    let tails = traces.map(|trace| trace.map_or_else(Vec::new, tail::find_tails));
    tails.collect()
}

/// Reruns the requests of each tail without each of its causes, and stores the changed response
/// times. The first cause is checked on the same load with other random numbers. Returns the reason
/// if some rerun was not possible.
pub(super) fn rerun_tails(
    plan: &ModelPlan,
    computer: &ModelComputer,
    (base, tails): (&[RerunOutcome], &mut [Vec<LatencyTail>]),
    means: &ExplanationOptions<'_>,
) -> Result<Option<String>, LaboratoryError> {
    if tails.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let of_all = |tails: &Vec<LatencyTail>| {
        let causes = tails.iter().flat_map(|tail| &tail.causes);
        causes.map(|cause| cause.stage).collect()
    };
    let wanted: Vec<BTreeSet<Stage>> = tails.iter().map(of_all).collect();
    let removals = StageRemovals {
        base,
        stages_by_program: &wanted,
        tails,
    };
    let (reruns, failed) = rerun_without_stage(plan, computer, &removals, means)?;
    for (tails, reruns) in tails.iter_mut().zip(&reruns) {
        for tail in tails {
            let of_it = reruns.iter().filter(|(way, _)| *way == tail.direction);
            tail.attach_reruns(&of_it.map(|(_, rerun)| *rerun).collect::<Vec<_>>());
        }
    }
    match check_tails(plan, computer, tails, means) {
        Err(LaboratoryError::Interrupted) => Err(LaboratoryError::Interrupted),
        Err(what) => Ok(failed.or(Some(what.to_string()))),
        Ok(failed_too) => Ok(failed.or(failed_too)),
    }
}

/// Runs the load with the next seed, with and without the first cause of each tail.
fn check_tails(
    plan: &ModelPlan,
    computer: &ModelComputer,
    tails: &mut [Vec<LatencyTail>],
    means: &ExplanationOptions<'_>,
) -> Result<Option<String>, LaboratoryError> {
    let mut plan = plan.clone();
    plan.experiment.seed = plan.experiment.seed.wrapping_add(1);
    let variant = ModelVariant {
        records_trace: true,
        ..ModelVariant::from_plan(&plan, computer)
    };
    let base = rerun::rerun_programs(&plan, &variant, means.stop)?;
    // What was first is what is checked, whatever is first here.
    let first = |tail: &LatencyTail| tail.causes.first().map(|cause| cause.stage);
    let firsts = |tails: &Vec<LatencyTail>| tails.iter().filter_map(first).collect();
    let wanted: Vec<BTreeSet<Stage>> = tails.iter().map(firsts).collect();
    let found = find_tails(&base);
    let removals = StageRemovals {
        base: &base,
        stages_by_program: &wanted,
        tails: &found,
    };
    let (reruns, failed) = rerun_without_stage(&plan, computer, &removals, means)?;
    for (tails, (others, reruns)) in tails.iter_mut().zip(found.iter().zip(&reruns)) {
        for tail in tails {
            // What draws nothing is the same load again, and shows nothing.
            let is_other = |other: &&LatencyTail| {
                let told = |of: &LatencyTail| (of.request_count, of.p99, of.time_above_p99);
                other.direction == tail.direction && told(other) != told(tail)
            };
            let other = others.iter().find(is_other);
            let same = |(way, rerun): &&(RequestDirection, TailRerun)| {
                *way == tail.direction && Some(rerun.stage) == first(tail)
            };
            let rerun = reruns.iter().find(same);
            tail.rerun_check = other.zip(rerun).map(|(other, (_, rerun))| TailCheck {
                seed: plan.experiment.seed,
                time_above_p99: other.time_above_p99,
                removed_ns: other.removed_ns(rerun),
            });
        }
    }
    Ok(failed)
}

/// Stages to remove from each program of a plan, one after the other, and the tails to measure.
struct StageRemovals<'r> {
    /// Outcomes of the programs with all stages.
    base: &'r [RerunOutcome],
    stages_by_program: &'r [BTreeSet<Stage>],
    tails: &'r [Vec<LatencyTail>],
}

type TailReruns = Vec<Vec<(RequestDirection, TailRerun)>>;

/// Replays the requests of each program at the same times on an equal drive, without each of the
/// given stages in turn. Returns the response times of its tails, and the reason if a replay
/// failed.
fn rerun_without_stage(
    plan: &ModelPlan,
    computer: &ModelComputer,
    removals: &StageRemovals<'_>,
    means: &ExplanationOptions<'_>,
) -> Result<(TailReruns, Option<String>), LaboratoryError> {
    let of_program = |(program, stages): (usize, &BTreeSet<Stage>)| {
        let changes = stages
            .iter()
            .filter_map(|stage| Some((*stage, changes::remove_stage(*stage)?)));
        changes
            .map(|(stage, change)| (program, stage, change))
            .collect::<Vec<_>>()
    };
    let StageRemovals {
        base,
        stages_by_program,
        tails,
    } = *removals;
    let stages = stages_by_program.iter().enumerate();
    let all: Vec<_> = stages.flat_map(of_program).collect();
    let jobs: Vec<(SuiteJob, bool)> = (plan.suite.iter_jobs().zip(base))
        .map(|(own, outcome)| {
            let same = moments::replay_job(plan, computer, own, outcome);
            let same_moments = same.is_some();
            (same.unwrap_or_else(|| own.clone()), same_moments)
        })
        .collect();
    let own = plan.settings_of_computer(computer);
    let as_it_is = ModelVariant {
        records_trace: true,
        ..ModelVariant::from_plan(plan, computer)
    };
    // A trace is let go of as soon as its tails are known.
    let outcomes = means.watched_crew().run_each(all.len(), |number| {
        let (program, stage, change) = &all[number];
        let settings: Vec<_> = own.iter().chain(&change.settings).cloned().collect();
        let Some(changed) = plan.rebuild_computer(&settings) else {
            return Ok(Ok(Vec::new()));
        };
        let supposed = (&changed, change.what_if);
        let (job, same_moments) = &jobs[*program];
        let one = ReplacedRepetition {
            outcomes: base,
            program_index: *program,
            job,
        };
        match rerun::rerun_in_place((plan, &as_it_is), one, supposed, means.stop) {
            Err(LaboratoryError::Interrupted) => Err(LaboratoryError::Interrupted),
            Err(what) => Ok(Err(what.to_string())),
            Ok(outcome) => Ok(Ok(build_reruns(
                &tails[*program],
                (*stage, *same_moments),
                &outcome,
            ))),
        }
    })?;
    let mut found = vec![Vec::new(); base.len()];
    let mut failed = None;
    for ((program, ..), reruns) in all.iter().zip(outcomes) {
        match reruns {
            Ok(reruns) => found[*program].extend(reruns),
            Err(what) => failed = Some(what),
        }
    }
    Ok((found, failed))
}

/// Returns the response times of a program's tails in a run without a stage.
fn build_reruns(
    tails: &[LatencyTail],
    what: (Stage, bool),
    outcome: &RerunOutcome,
) -> Vec<(RequestDirection, TailRerun)> {
    let rerun = |of: &LatencyTail| {
        Some((
            of.direction,
            tail::build_rerun(of, what, outcome.trace.as_ref()?)?,
        ))
    };
    tails.iter().filter_map(rerun).collect()
}
