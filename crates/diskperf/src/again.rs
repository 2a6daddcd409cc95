//! Stored runs of modelled systems, made again.

use crate::arguments::{Arguments, Command};
use crate::commands::request;
use clap::Parser;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::explain;
use diskperf_laboratory::plan::{self, ModelPlan, Plan};
use diskperf_laboratory::timeline::{Run, World};
use std::path::PathBuf;

/// The plan of the one modelled system of this name.
///
/// # Errors
///
/// A name of real storage.
pub fn only_model(plans: Vec<Plan>, name: &str) -> Result<ModelPlan, LaboratoryError> {
    let models = plans.into_iter().filter_map(|plan| match plan {
        Plan::Model(plan) if plan.target == name => Some(*plan),
        Plan::Model(_) | Plan::Host(_) => None,
    });
    models
        .last()
        .ok_or_else(|| LaboratoryError::Request(format!("`{name}` is no modelled system")))
}

/// The plan that a stored run was made by, from its command line; what it makes
/// now is that run.
///
/// # Errors
///
/// What has changed since, and a run that was not made on a model.
pub fn plan_of(run: &Run) -> Result<ModelPlan, LaboratoryError> {
    let not_so = |why: String| {
        LaboratoryError::Request(format!(
            "run {} cannot be made again: {why}; run it again with this diskperf",
            run.id
        ))
    };
    if run.world == World::Host {
        return Err(LaboratoryError::Request(format!(
            "run {} is of real storage, which keeps no account of its time; `diskperf show {}` has what was measured, by layers where it was seqread",
            run.id, run.id
        )));
    }
    let parsed = Arguments::try_parse_from(&run.command_line);
    let Ok(Arguments {
        command: Command::Run(arguments),
        ..
    }) = parsed
    else {
        return Err(not_so(format!(
            "its command line is not one of `diskperf run`: `{}`",
            run.command_line.join(" ")
        )));
    };
    let mut wanted = request(&arguments);
    wanted.targets = vec![PathBuf::from(&run.target)];
    wanted.command_line.clone_from(&run.command_line);
    let plan = only_model(plan::plan(&wanted)?, &run.target)?;
    explain::check_same(&plan, run)?;
    Ok(plan)
}
