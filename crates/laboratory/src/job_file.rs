//! fio job files, read together with everything that their meaning depends on.

use crate::target::NULL_TARGET;
use diskperf_fio::job::IoEngine;
use diskperf_fio::{Errors, FileSource, JobDefinition, JobEnvironment};
use diskperf_models::LaboratoryError;
use diskperf_models::job_file::{self, contains_job_text, log_paths, parse_text};
use diskperf_models::plan::FILES_MAX;
use diskperf_system::host::environment;
use diskperf_timeline::{Experiment, JobFileText, SizeChoice, Workload};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use diskperf_models::job_file::names_job_file;

const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the job file that the workload names. Returns the experiment with it and, if the
/// experiment names no target, with the place that the file names; `None` for another workload.
pub(crate) fn read_experiment_file(
    experiment: &Experiment,
) -> Result<Option<Experiment>, LaboratoryError> {
    let words = &experiment.fio_arguments;
    let text = match &experiment.workload {
        Workload::JobFile(text) => text.clone(),
        Workload::NamedSuite(name) if contains_job_text(name) => {
            parse_named_text("job", name, words)?
        }
        Workload::NamedSuite(name) if names_job_file(name) => {
            parse_named_text(name, &read_file(name)?, words)?
        }
        Workload::DefaultSuite
        | Workload::NamedSuite(_)
        | Workload::Steps { .. }
        | Workload::Replay(_) => {
            return match words.first() {
                None => Ok(None),
                Some(word) => Err(LaboratoryError::Request(format!(
                    "--fio-arg {word}: it is for fio job files; name one, as in `diskperf run job.fio`"
                ))),
            };
        }
    };
    let (text, size) = apply_size(text, experiment.size_choice)?;
    Ok(Some(Experiment {
        targets: match experiment.targets.is_empty() {
            true => vec![target_of_text(&text)?],
            false => experiment.targets.clone(),
        },
        workload: Workload::JobFile(text),
        fio_arguments: Vec::new(),
        size_choice: size,
        ..experiment.clone()
    }))
}

/// Applies a given size to the jobs that set none. The size is returned unused if every job sets
/// its own.
fn apply_size(
    text: JobFileText,
    size: SizeChoice,
) -> Result<(JobFileText, SizeChoice), LaboratoryError> {
    let SizeChoice::SizeBytes(bytes) = size else {
        return Ok((text, size));
    };
    match parse_text(&text)?
        .jobs
        .iter()
        .all(|job| job.has_option("size"))
    {
        true => Ok((text, size)),
        false => {
            let mut sized = text;
            sized.arguments.push(format!("--size={bytes}"));
            Ok((sized, SizeChoice::AutomaticSize))
        }
    }
}

/// Reads a job file that a name denotes, with words of fio's command line.
///
/// # Errors
///
/// Returns an error if the file cannot be read, and all faults of the job file.
pub(crate) fn parse_named_file(
    name: &str,
    words: &[String],
) -> Result<JobFileText, LaboratoryError> {
    parse_named_text(name, &read_file(name)?, words)
}

fn read_file(name: &str) -> Result<String, LaboratoryError> {
    let said = |error: std::io::Error| {
        LaboratoryError::Request(match error.kind() {
            ErrorKind::InvalidInput => format!("job file {name}: {error}"),
            _ => format!("job file {name}: {error}; name one that exists"),
        })
    };
    let file = diskperf_diagnostics::input::open(Path::new(name)).map_err(said)?;
    let bytes = diskperf_diagnostics::input::read_short(file, FILE_BYTES_MAX).map_err(said)?;
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| {
        LaboratoryError::Request(format!(
            "`{name}` is no fio job file, which is text of a few kilobytes; to measure on it, write `diskperf run --on {name}`"
        ))
    })
}

/// Reads a job file from its name and text, with words of fio's command line and its environment.
///
/// # Errors
///
/// Returns all faults of the job file, with line and column.
pub fn parse_named_text(
    name: &str,
    text: &str,
    words: &[String],
) -> Result<JobFileText, LaboratoryError> {
    let machine = environment::describe_environment(&[], "");
    let surroundings = JobEnvironment {
        file_source: FileSource::FileSystem {
            working_directory: std::env::current_dir().unwrap_or_default(),
        },
        variables: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        memory_mib: machine.memory_bytes >> 20,
        processors: u64::from(machine.cpu_count),
        ..JobEnvironment::default()
    };
    job_file::from_text(name, text, words, &surroundings)
}

/// Returns the paths that a job file names, with words of fio's command line beside it: files that
/// it includes, files of its jobs, and the logs that they replay and write. The list is empty if
/// the file is no job file or has mistakes.
pub fn find_log_paths(name: &str, words: &[String]) -> Vec<PathBuf> {
    let is_file = names_job_file(name) && !contains_job_text(name) && Path::new(name).is_file();
    let text = is_file.then(|| read_file(name).ok()).flatten();
    let text = text.and_then(|text| parse_named_text(name, &text, words).ok());
    let Some((text, file)) = text.and_then(|text| parse_text(&text).ok().map(|file| (text, file)))
    else {
        return Vec::new();
    };
    let includes = text.included_files.into_keys();
    let mut paths: Vec<PathBuf> = includes.map(PathBuf::from).collect();
    for job in &file.jobs {
        // More files than a plan takes have no run that could replace them.
        if diskperf_fio::plan::file_count(job) <= FILES_MAX {
            let clones = 0..job.order.clone_count;
            paths.extend(clones.flat_map(|clone| list_used_paths(job, clone)));
        }
        paths.extend(job.iolog.replayed_path.iter().map(PathBuf::from));
        paths.extend(log_paths(job));
    }
    paths
}

fn list_used_paths(job: &JobDefinition, clone: u32) -> impl Iterator<Item = PathBuf> {
    let paths = diskperf_fio::plan::file_paths(job, clone).into_iter();
    paths.map(PathBuf::from)
}

/// Returns the directory of the jobs' files: the target of a run that names none.
///
/// # Errors
///
/// Returns an error if the files are in several places, or the place does not exist.
pub(crate) fn target_of_text(text: &JobFileText) -> Result<PathBuf, LaboratoryError> {
    let file = parse_text(text)?;
    let mut places: Vec<PathBuf> = Vec::new();
    for job in &file.jobs {
        let of_job = match job.engine.engine {
            IoEngine::Null => vec![PathBuf::from(NULL_TARGET)],
            _ => list_targets(job)?,
        };
        for place in of_job {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    match &places[..] {
        [place] => Ok(place.clone()),
        several => {
            let names: Vec<_> = several
                .iter()
                .map(|one| one.display().to_string())
                .collect();
            Err(LaboratoryError::Request(format!(
                "{}: the jobs' files are in several places: {}; name one target for all with --on, or give a job file for each",
                text.name,
                names.join(", ")
            )))
        }
    }
}

/// Lists existing paths that a job names, or the directories in which its files would be created.
fn list_targets(job: &JobDefinition) -> Result<Vec<PathBuf>, LaboratoryError> {
    let (key, named) = match job.files.names.is_empty() {
        true => ("directory", false),
        false => ("filename", true),
    };
    let mut places = Vec::new();
    for path in
        (0..job.order.clone_count).flat_map(|clone| diskperf_fio::plan::file_paths(job, clone))
    {
        let path = PathBuf::from(path);
        let place = match path.parent() {
            _ if named && path.exists() => path.clone(),
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        if !place.exists() {
            let title = format!("there is no directory {}", place.display());
            let label = match named && job.files.directories.is_empty() {
                true => "fio would make it",
                false => "fio drops the job",
            };
            let help = "make it, or name a target with --on";
            let problem = job.option_error(key, &title, label, help);
            return Err(LaboratoryError::request(Errors::from(problem)));
        }
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fingerprint of a run has all that is kept.
    #[test]
    fn only_what_a_job_file_asks_of_the_machine_is_kept() {
        let machine = environment::describe_environment(&[], "");
        let (memory_mib, processors) = (machine.memory_bytes >> 20, u64::from(machine.cpu_count));
        let page_bytes = JobEnvironment::default().page_bytes;
        for (option, kept) in [
            ("rw=read", [0, 0, 0]),
            ("numjobs=$ncpus", [0, 0, processors]),
            ("bs=$pagesize", [page_bytes, 0, 0]),
            ("size=$mb_memory", [0, memory_mib, 0]),
            (
                "description=$ncpus of $mb_memory",
                [0, memory_mib, processors],
            ),
            ("# numjobs=$ncpus", [0, 0, 0]),
        ] {
            let text = format!("[global]\nsize=1m\n[j]\nbs=512\n{option}\n");
            let text = parse_named_text("job.fio", &text, &[])
                .unwrap_or_else(|error| panic!("{option}: {error}"));
            let found = [text.page_bytes, text.memory_mib, text.processor_count];
            assert_eq!(found, kept, "{option}");
            // What is kept is enough to read it again.
            let again = parse_text(&text).unwrap_or_else(|error| panic!("{option}: {error}"));
            assert_eq!(again.jobs.len(), 1, "{option}");
        }
    }
}
