//! From an experiment to plans: everything that can be found wrong without
//! changing anything is found here.

mod area;
pub(crate) mod bare_names;
mod describe;
mod direct;
pub mod host;
mod job_file;
pub mod model;
pub(crate) mod replay;
mod workload;

use crate::error::LaboratoryError;
use crate::job_file::read_named;
use crate::label;
use crate::model::load_catalogue;
use crate::target::NULL;
use diskperf_battery::{Job, Medium, Program, Step, Suite};
use diskperf_catalogue::Catalogue;
use diskperf_timeline::{Experiment, Titled, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use host::HostPlan;
pub(crate) use job_file::FILES_MAX;
pub use model::ModelPlan;

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
    let read = match replay::planned(experiment)? {
        Some(planned) => Some(planned),
        None => read_named(experiment)?,
    };
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
        workload: Workload::Named(workload::USUAL.to_owned()),
        ..experiment.clone()
    };
    let experiment = match experiment.workload {
        Workload::Usual if !paths.is_empty() => &beside,
        _ => experiment,
    };
    let mut plans = Vec::new();
    for target in &experiment.targets {
        if is_model(target, experiment.catalogue.as_deref()) {
            let plan = model::plan(experiment, target)?;
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

/// Why `/dev/bnull` cannot be read.
const NO_BLOCK_NULL: &str = "it reads a block device of length 0, and the only system that has one is Minix: --on atarist-supra";

/// The steps that can run on a target, and what is said of the others. A suite
/// goes on without those; a program that was asked for by name must run. What runs at
/// the same time runs together or not at all.
fn leave_out(
    (suite, target): (&str, &str),
    steps: Vec<Step>,
    obstacle: impl Fn(&Job) -> Option<String>,
) -> Result<(Vec<Step>, Vec<String>), LaboratoryError> {
    let mut kept = Vec::new();
    let mut obstacles: Vec<(String, Vec<String>)> = Vec::new();
    for step in steps {
        match step.jobs.iter().find_map(&obstacle) {
            None => kept.push(step),
            Some(obstacle) => match obstacles.iter_mut().find(|(known, _)| *known == obstacle) {
                Some((_, titles)) => titles.push(step_title(&step)),
                None => obstacles.push((obstacle, vec![step_title(&step)])),
            },
        }
    }
    if kept.is_empty() {
        let obstacles: Vec<_> = obstacles
            .into_iter()
            .map(|(obstacle, _)| obstacle)
            .collect();
        return Err(LaboratoryError::Request(format!(
            "{suite} cannot run on {target}: {}",
            obstacles.join("; ")
        )));
    }
    let left_out = obstacles
        .into_iter()
        .map(|(obstacle, titles)| format!("left out: {}: {obstacle}", titles.join("; ")));
    Ok((kept, left_out.collect()))
}

/// Bytes of all files that jobs keep on a target at once, where `own` gives the name and the
/// bytes of a program's own: those that name the same file share it.
fn files_bytes<'a>(
    jobs: impl Iterator<Item = &'a Job>,
    medium: Medium,
    own: impl Fn(&'a Job) -> (&'static str, u64),
) -> u64 {
    let mut files: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for job in jobs {
        let of_job = match job.program.shared_files() {
            Some(shared) if medium == Medium::Directory => {
                let shared = shared.into_iter();
                let named = shared.map(|(name, bytes)| ((job.program.name(), name), bytes));
                named.collect()
            }
            // All names are of the one device or file.
            Some(shared) => {
                let longest_bytes = shared.into_values().max().unwrap_or(0);
                vec![((job.program.name(), ""), longest_bytes)]
            }
            None => {
                let (name, bytes) = own(job);
                vec![((name, job.files(medium).1), bytes)]
            }
        };
        for (name, wanted_bytes) in of_job {
            let bytes = files.entry(name).or_default();
            *bytes = wanted_bytes.max(*bytes);
        }
    }
    let files = files.into_values();
    files.fold(0, u64::saturating_add)
}

/// What runs at the same time, by the titles of its jobs.
pub(crate) fn step_title(step: &Step) -> String {
    titles(step).join(" + ")
}

/// The title of each job of a step.
pub(crate) fn titles(step: &Step) -> Vec<String> {
    step.jobs.iter().map(title).collect()
}

/// The name of a job for people.
pub(crate) fn title(job: &Job) -> String {
    titled(job, &job.values()).title()
}

/// The program with the parameters that tell it from its siblings.
pub(crate) fn key(job: &Job) -> String {
    titled(job, &job.values()).key()
}

fn titled<'a>(job: &'a Job, parameters: &'a BTreeMap<String, String>) -> Titled<'a> {
    Titled {
        program: job.name(),
        parameters,
        distinguishing: &job.distinguishing,
    }
}
