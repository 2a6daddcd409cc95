//! From an experiment to plans: everything that can be found wrong without
//! changing anything is found here.

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
use diskperf_battery::{Job, Medium, Step};
use diskperf_timeline::units::format_size;
use diskperf_timeline::{Experiment, Titled};
use std::collections::BTreeMap;

pub use job_file::FILES_MAX;
pub use model::ModelPlan;

/// The plans of an experiment, one for each of its targets, which are all modelled systems.
///
/// # Errors
///
/// Whatever is wrong with it, and a target that is none.
pub fn plan(experiment: &Experiment, files: &dyn Files) -> Result<Vec<ModelPlan>, LaboratoryError> {
    if let Some(label) = &experiment.label {
        label::check(label)?;
    }
    let read = files.named_by(experiment)?;
    let experiment = read.as_ref().unwrap_or(experiment);
    model::check_options(experiment, true)?;
    let targets = experiment.targets.iter();
    targets
        .map(|target| model::plan(experiment, target, files))
        .collect()
}

/// Why `/dev/bnull` cannot be read.
pub const NO_BLOCK_NULL: &str = "it reads a block device of length 0, and the only system that has one is Minix: --on atarist-supra";

/// The steps that can run on a target, and what is said of the others. A suite
/// goes on without those; a program that was asked for by name must run. What runs at
/// the same time runs together or not at all.
pub fn leave_out(
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
pub fn files_bytes<'a>(
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

/// What runs at the same time, by the titles of its first jobs.
pub fn step_title(step: &Step) -> String {
    let titles = titles(step);
    let shown = titles[..titles.len().min(TITLES_SHOWN)].join(" + ");
    match titles.len().saturating_sub(TITLES_SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more"),
    }
}

/// Jobs that a step's title names: it stands in one line of progress.
const TITLES_SHOWN: usize = 4;

/// The title of each job of a step.
pub fn titles(step: &Step) -> Vec<String> {
    step.jobs.iter().map(title).collect()
}

/// Describes how often a program runs at the most.
pub fn times(repetitions_max: u32) -> String {
    match repetitions_max {
        1 => "once".to_owned(),
        count => format!("up to {count} times"),
    }
}

/// `, spread over 256 MiB`, of a job whose size says nothing of where its requests go.
pub fn spread_over(job: &Job) -> String {
    job.area_bytes().map_or(String::new(), |bytes| {
        format!(", spread over {}", format_size(bytes))
    })
}

/// The name of a job for people.
pub fn title(job: &Job) -> String {
    titled(job, &job.values()).title()
}

/// The program with the parameters that tell it from its siblings.
pub fn key(job: &Job) -> String {
    titled(job, &job.values()).key()
}

fn titled<'a>(job: &'a Job, parameters: &'a BTreeMap<String, String>) -> Titled<'a> {
    Titled {
        program: job.name(),
        parameters,
        distinguishing: &job.distinguishing,
    }
}
