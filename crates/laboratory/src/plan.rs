//! Conversion of an experiment to plans. All faults that can be found without changing anything are
//! found here.

mod area;
mod describe;
mod direct;
mod ground;
mod group_limits;
pub mod host;

use crate::files::HostFiles;
use crate::known_limits;
use crate::target::NULL_TARGET;
use diskperf_battery::{Program, Suite};
use diskperf_catalogue::Catalogue;
use diskperf_models::files::Files;
use diskperf_models::model::load_catalogue;
use diskperf_models::plan::workload::DEFAULT_SUITE;
use diskperf_models::{LaboratoryError, label};
use diskperf_timeline::{Experiment, Workload};
use std::path::{Path, PathBuf};

pub use diskperf_models::plan::ModelPlan;
pub(crate) use diskperf_models::plan::{
    describe_drives, format_repetitions, format_step_title, format_title, job_key, list_titles,
    model,
};
pub use host::HostPlan;

/// Plan of one run, on real storage or on a modelled computer.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Plan of a run on real storage.
    Host(Box<HostPlan>),
    /// Plan of a run on a modelled computer.
    Model(Box<ModelPlan>),
}

/// Makes the plans of an experiment: one for each target, or one for all targets together.
///
/// # Errors
///
/// Returns the faults of the experiment.
pub fn plan(experiment: &Experiment) -> Result<Vec<Plan>, LaboratoryError> {
    if let Some(label) = &experiment.label {
        label::check_label(label)?;
    }
    known_limits::list_limits_of_volume(experiment)?;
    let read = HostFiles.read_named(experiment)?;
    let experiment = read.as_ref().unwrap_or(experiment);
    let (models, paths): (Vec<PathBuf>, Vec<PathBuf>) = experiment
        .targets
        .iter()
        .cloned()
        .partition(|target| is_model(target, experiment.catalogue_path.as_deref()));
    if models.is_empty() {
        let plans = host::plan(experiment, &paths)?;
        return Ok(plans.into_iter().map(box_host_plan).collect());
    }
    model::check_options(experiment, paths.is_empty())?;
    // Beside real storage a model runs what that runs.
    let beside = Experiment {
        workload: Workload::NamedSuite(DEFAULT_SUITE.to_owned()),
        ..experiment.clone()
    };
    let experiment = match experiment.workload {
        Workload::DefaultSuite if !paths.is_empty() => &beside,
        _ => experiment,
    };
    let mut plans = Vec::new();
    for target in &experiment.targets {
        if is_model(target, experiment.catalogue_path.as_deref()) {
            let plan = model::plan_model(experiment, target, &HostFiles)?;
            plans.push(Plan::Model(Box::new(plan)));
        } else {
            let own = host::plan(experiment, std::slice::from_ref(target))?;
            plans.extend(own.into_iter().map(box_host_plan));
        }
    }
    Ok(plans)
}

/// Makes the plan of an experiment with a single target on real storage.
///
/// # Errors
///
/// Returns the errors of [`plan`], and an error for a modelled system.
pub fn plan_on_storage(experiment: &Experiment) -> Result<Box<HostPlan>, LaboratoryError> {
    match plan(experiment)?.pop() {
        Some(Plan::Host(plan)) => Ok(plan),
        _ => Err(LaboratoryError::request("it is not real storage")),
    }
}

fn box_host_plan(plan: HostPlan) -> Plan {
    Plan::Host(Box::new(plan))
}

/// Reports whether a target is a modelled system: a name of the catalogue, with the user's folder
/// as an overlay, or a file that describes a system. A name with a `/` is a path. Another name is a
/// path if the catalogue has no such system and the path exists.
pub fn is_model(target: &Path, catalogue: Option<&Path>) -> bool {
    let text = target.to_string_lossy();
    if text == NULL_TARGET {
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
    /// Reports whether the plan makes file systems, which are mounted for this process alone.
    pub(crate) fn mounts_filesystem(&self) -> bool {
        match self {
            Plan::Host(plan) => !plan.fresh_filesystems.is_empty(),
            Plan::Model(_) => false,
        }
    }

    /// Returns the plan with recording of requests switched on.
    pub fn with_recording(mut self) -> Self {
        match &mut self {
            Plan::Host(plan) => plan.records_requests = true,
            Plan::Model(plan) => plan.records_requests = true,
        }
        self
    }

    pub(crate) fn suite(&self) -> &Suite {
        match self {
            Plan::Host(plan) => &plan.suite,
            Plan::Model(plan) => &plan.suite,
        }
    }

    /// Title of the run: programs and place, such as `ffs83 on /srv`.
    pub fn format_title(&self) -> String {
        match self {
            Plan::Host(plan) => format!("{} on {}", plan.suite.name, plan.target_name()),
            Plan::Model(plan) => format!("{} on {}", plan.suite.name, plan.target),
        }
    }

    /// Reports whether a program of the plan keeps several requests in flight.
    pub fn records_requests(&self) -> bool {
        self.suite()
            .iter_programs()
            .any(Program::keeps_requests_in_flight)
    }

    /// Remarks for readers: omitted steps and the reasons.
    pub(crate) fn notes(&self) -> &[String] {
        match self {
            Plan::Host(plan) => &plan.notes,
            Plan::Model(plan) => &plan.notes,
        }
    }

    /// Space that the plan needs beyond what its targets have, with the remedy; `None` if there is
    /// enough.
    pub(crate) fn space_shortage(&self) -> Option<&str> {
        match self {
            Plan::Host(plan) => plan.space_shortage.as_deref(),
            Plan::Model(_) => None,
        }
    }

    /// Describes the planned writes: places, amounts and duration.
    pub fn describe(&self) -> String {
        match self {
            Plan::Host(plan) => plan.describe(),
            Plan::Model(plan) => plan.describe(),
        }
    }

    /// Describes an arm of an A/B measurement: places and amounts of writes, without duration. The
    /// blocks determine the duration.
    pub(crate) fn describe_variant(&self) -> String {
        match self {
            Plan::Host(plan) => plan.describe_without_time(),
            Plan::Model(plan) => plan.describe(),
        }
    }
}
