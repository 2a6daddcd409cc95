//! Conversion of an experiment to plans of modelled runs. All faults that can be found without
//! changing anything are found here.

pub mod area;
pub mod bare_names;
pub mod direct;
pub mod job_file;
pub mod model;
pub mod replay;
pub mod workload;

use crate::error::LaboratoryError;
use crate::files::Files;
use crate::label;
use diskperf_battery::{Medium, SuiteJob, SuiteStep};
use diskperf_timeline::units::format_size;
use diskperf_timeline::{Experiment, ResultTitle};
use std::collections::BTreeMap;

pub use job_file::FILES_MAX;
pub use model::ModelPlan;

/// Makes the plans of an experiment, one for each target. All targets have to be modelled systems.
///
/// # Errors
///
/// Returns the faults of the experiment, and an error for a target that is no modelled system.
pub fn plan(experiment: &Experiment, files: &dyn Files) -> Result<Vec<ModelPlan>, LaboratoryError> {
    if let Some(label) = &experiment.label {
        label::check_label(label)?;
    }
    let read = files.read_named(experiment)?;
    let experiment = read.as_ref().unwrap_or(experiment);
    model::check_options(experiment, true)?;
    let targets = experiment.targets.iter();
    targets
        .map(|target| model::plan_model(experiment, target, files))
        .collect()
}

/// Reason why a system cannot read `/dev/bnull`, a block device of length 0.
pub const NO_EMPTY_DEVICE_MESSAGE: &str = "it reads a block device of length 0, and the only system that has one is Minix: --on atarist-supra";

/// Selects the steps that can run on a target, and returns notes on the others. A suite continues
/// without them, but a program that the user named must run. Simultaneous jobs run together or not
/// at all.
pub fn remove_steps(
    suite: &str,
    target: &str,
    steps: Vec<SuiteStep>,
    obstacle: impl Fn(&SuiteJob) -> Option<String>,
) -> Result<(Vec<SuiteStep>, Vec<String>), LaboratoryError> {
    let mut kept = Vec::new();
    let mut obstacles: Vec<(String, Vec<String>)> = Vec::new();
    for step in steps {
        match step.parallel_jobs.iter().find_map(&obstacle) {
            None => kept.push(step),
            Some(obstacle) => match obstacles.iter_mut().find(|(known, _)| *known == obstacle) {
                Some((_, titles)) => titles.push(format_step_title(&step)),
                None => obstacles.push((obstacle, vec![format_step_title(&step)])),
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

/// Returns the bytes of all files that jobs keep on a target together. `own` returns the name and
/// size of a program's own file. Jobs that name the same file share it.
pub fn total_file_bytes<'a>(
    jobs: impl Iterator<Item = &'a SuiteJob>,
    medium: Medium,
    own: impl Fn(&'a SuiteJob) -> (&'static str, u64),
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
                vec![((name, job.file_set_of_medium(medium).1), bytes)]
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

/// Returns the title of a step: the titles of its first jobs.
pub fn format_step_title(step: &SuiteStep) -> String {
    let titles = list_titles(step);
    let shown = titles[..titles.len().min(TITLES_SHOWN_MAX)].join(" + ");
    match titles.len().saturating_sub(TITLES_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} + {more} more"),
    }
}

const TITLES_SHOWN_MAX: usize = 4;

/// Returns the title of each job of a step.
pub fn list_titles(step: &SuiteStep) -> Vec<String> {
    step.parallel_jobs.iter().map(format_title).collect()
}

/// Describes the maximum number of runs of a program.
pub fn format_repetitions(repetitions_max: u32) -> String {
    match repetitions_max {
        1 => "once".to_owned(),
        count => format!("up to {count} times"),
    }
}

/// Returns a text such as `, spread over 256 MiB` for a job whose size does not tell the range of
/// its requests.
pub fn describe_drives(job: &SuiteJob) -> String {
    job.area_bytes().map_or(String::new(), |bytes| {
        format!(", spread over {}", format_size(bytes))
    })
}

/// Returns the title of a job for users.
pub fn format_title(job: &SuiteJob) -> String {
    to_titled(job, &job.parameter_values()).display_title()
}

/// Returns the name of a job's program, with the parameters that distinguish it from its siblings.
pub fn job_key(job: &SuiteJob) -> String {
    to_titled(job, &job.parameter_values()).result_key()
}

fn to_titled<'a>(job: &'a SuiteJob, parameters: &'a BTreeMap<String, String>) -> ResultTitle<'a> {
    ResultTitle {
        program: job.display_name(),
        parameters,
        distinguishing: &job.distinguishing_parameters,
    }
}
