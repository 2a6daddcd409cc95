//! Whether what is made again is what was stored.

use super::rerun::Outcome;
use crate::error::LaboratoryError;
use crate::model::run::modelled;
use crate::plan::ModelPlan;
use diskperf_timeline::{Modelled, Run, World};

/// Makes sure that a plan makes a stored run again, to the last byte.
///
/// # Errors
///
/// What has changed since.
pub fn check_same(plan: &ModelPlan, run: &Run) -> Result<(), LaboratoryError> {
    let stored = model_of(run)?;
    let now = modelled(plan);
    if now.fingerprint == stored.fingerprint {
        return Ok(());
    }
    let id = &run.id;
    let again = format!("run it again: `{}`", run.command_line.join(" "));
    if now.model_version != stored.model_version {
        return Err(LaboratoryError::Request(format!(
            "run {id} was made by model {}, and this is {}, which need not do the same; {again}",
            stored.model_version, now.model_version
        )));
    }
    let changed = changed(stored, &now);
    if !changed.is_empty() {
        return Err(LaboratoryError::Request(format!(
            "run {id} cannot be made again: the catalogue has changed since, in {}; {again}",
            changed.join(", ")
        )));
    }
    Err(LaboratoryError::Request(format!(
        "run {id} cannot be made again from its command line, which makes another run now; {again}"
    )))
}

/// What a stored run was made with.
///
/// # Errors
///
/// One that was not made on a model.
pub(super) fn model_of(run: &Run) -> Result<&Modelled, LaboratoryError> {
    match (&run.model, run.world) {
        (Some(model), World::Model) => Ok(model),
        _ => Err(LaboratoryError::Request(format!(
            "run {} is of real storage, which cannot be made again",
            run.id
        ))),
    }
}

/// Files of the catalogue that are not as they were.
fn changed(stored: &Modelled, now: &Modelled) -> Vec<String> {
    let names = stored.catalogue.keys().chain(now.catalogue.keys());
    let mut names: Vec<&String> = names.collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&&String| stored.catalogue.get(**name) != now.catalogue.get(**name);
    names
        .iter()
        .filter(differs)
        .map(|name| (*name).clone())
        .collect()
}

/// Makes sure that what was made again took the same time.
pub(super) fn check_outcomes<'o>(
    run: &Run,
    outcomes: impl Iterator<Item = &'o Outcome>,
) -> Result<(), LaboratoryError> {
    for (result, outcome) in run.results.iter().zip(outcomes) {
        let mut stored = result.kept().map(|repetition| repetition.elapsed());
        if !stored.any(|elapsed| elapsed == outcome.elapsed) {
            return Err(LaboratoryError::Work(format!(
                "run {} was made again, and {} takes {} ns, which it did not: one of the two is wrong; please report it",
                run.id, result.program, outcome.elapsed.0
            )));
        }
    }
    Ok(())
}
