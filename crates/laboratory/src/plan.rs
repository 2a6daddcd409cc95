//! From an experiment to plans: everything that can be found wrong without
//! changing anything is found here.

mod area;
mod describe;
mod direct;
mod ground;
pub mod host;

use crate::files::HostFiles;
use crate::target::NULL;
use diskperf_battery::{Program, Suite};
use diskperf_catalogue::Catalogue;
use diskperf_models::files::Files;
use diskperf_models::model::load_catalogue;
use diskperf_models::plan::workload::USUAL;
use diskperf_models::{LaboratoryError, label};
use diskperf_timeline::{Experiment, Workload};
use std::path::{Path, PathBuf};

pub use diskperf_models::plan::ModelPlan;
pub(crate) use diskperf_models::plan::{key, model, spread_over, step_title, times, title, titles};
pub use host::HostPlan;

/// One run to be made.
#[derive(Clone, Debug)]
pub enum Plan {
    /// On real storage.
    Host(Box<HostPlan>),
    /// On a modelled computer.
    Model(Box<ModelPlan>),
}

/// The plans of an experiment: one for each target, or one for all together.
///
/// # Errors
///
/// Whatever is wrong with it.
pub fn plan(experiment: &Experiment) -> Result<Vec<Plan>, LaboratoryError> {
    if let Some(label) = &experiment.label {
        label::check(label)?;
    }
    let read = HostFiles.named_by(experiment)?;
    let experiment = read.as_ref().unwrap_or(experiment);
    let (models, paths): (Vec<PathBuf>, Vec<PathBuf>) = experiment
        .targets
        .iter()
        .cloned()
        .partition(|target| is_model(target, experiment.catalogue.as_deref()));
    if models.is_empty() {
        let plans = host::plan(experiment, &paths)?;
        return Ok(plans.into_iter().map(boxed_host).collect());
    }
    model::check_options(experiment, paths.is_empty())?;
    // Beside real storage a model runs what that runs.
    let beside = Experiment {
        workload: Workload::Named(USUAL.to_owned()),
        ..experiment.clone()
    };
    let experiment = match experiment.workload {
        Workload::Usual if !paths.is_empty() => &beside,
        _ => experiment,
    };
    let mut plans = Vec::new();
    for target in &experiment.targets {
        if is_model(target, experiment.catalogue.as_deref()) {
            let plan = model::plan(experiment, target, &HostFiles)?;
            plans.push(Plan::Model(Box::new(plan)));
        } else {
            let own = host::plan(experiment, std::slice::from_ref(target))?;
            plans.extend(own.into_iter().map(boxed_host));
        }
    }
    Ok(plans)
}

/// The plan of an experiment that is for one target of real storage alone.
///
/// # Errors
///
/// As [`plan`], and a modelled system.
pub fn on_storage(experiment: &Experiment) -> Result<Box<HostPlan>, LaboratoryError> {
    match plan(experiment)?.pop() {
        Some(Plan::Host(plan)) => Ok(plan),
        _ => Err(LaboratoryError::request("it is not real storage")),
    }
}

fn boxed_host(plan: HostPlan) -> Plan {
    Plan::Host(Box::new(plan))
}

/// Whether a target is a modelled system: a name of the catalogue, with the user's
/// folder laid over it, or a file that describes one. What contains a `/` is a path;
/// another name is one where the catalogue has no such system and the path exists.
pub fn is_model(target: &Path, catalogue: Option<&Path>) -> bool {
    let text = target.to_string_lossy();
    if text == NULL {
        return false;
    }
    if text.ends_with(".toml") {
        return target.is_file() || !text.contains('/');
    }
    if text.contains('/') || text == "." || text == ".." {
        return false;
    }
    // What is wrong with the folder is said when a plan is made.
    let known = load_catalogue(catalogue).unwrap_or_else(|_| Catalogue::embedded());
    let system = text.split(':').next().unwrap_or(&text);
    !target.exists() || known.system_names().iter().any(|name| name == system)
}

impl Plan {
    /// Whether it makes file systems, which are mounted for this process alone.
    pub(crate) fn mounts(&self) -> bool {
        match self {
            Plan::Host(plan) => !plan.fresh.is_empty(),
            Plan::Model(_) => false,
        }
    }

    /// The same, with what storage is asked for told, to be recorded.
    pub fn recorded(mut self) -> Self {
        match &mut self {
            Plan::Host(plan) => plan.record = true,
            Plan::Model(plan) => plan.record = true,
        }
        self
    }

    /// Its programs.
    pub(crate) fn suite(&self) -> &Suite {
        match self {
            Plan::Host(plan) => &plan.suite,
            Plan::Model(plan) => &plan.suite,
        }
    }

    /// What it runs, and where: `ffs83 on /srv`.
    pub fn title(&self) -> String {
        match self {
            Plan::Host(plan) => format!("{} on {}", plan.suite.name, plan.target_name()),
            Plan::Model(plan) => format!("{} on {}", plan.suite.name, plan.target),
        }
    }

    /// Whether a program of it keeps requests under way.
    pub fn keeps_requests(&self) -> bool {
        self.suite().programs().any(Program::keeps_requests)
    }

    /// What a reader must know: steps that were left out, and why.
    pub(crate) fn notes(&self) -> &[String] {
        match self {
            Plan::Host(plan) => &plan.notes,
            Plan::Model(plan) => &plan.notes,
        }
    }

    /// Space that it needs and its targets do not have, with the remedy.
    pub(crate) fn shortage(&self) -> Option<&str> {
        match self {
            Plan::Host(plan) => plan.shortage.as_deref(),
            Plan::Model(_) => None,
        }
    }

    /// What would be written where, how much, and for how long.
    pub fn describe(&self) -> String {
        match self {
            Plan::Host(plan) => plan.describe(),
            Plan::Model(plan) => plan.describe(),
        }
    }

    /// The same of an arm of an A/B measurement, which takes as long as its blocks do.
    pub(crate) fn describe_arm(&self) -> String {
        match self {
            Plan::Host(plan) => plan.describe_timeless(),
            Plan::Model(plan) => plan.describe(),
        }
    }
}
