//! Protection of a command's input files against being overwritten by its outputs.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use diskperf_laboratory::{LaboratoryError, job_file, runs, traces};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const OUTPUT_ARGUMENTS: [&str; 13] = [
    "export_log",
    "junit",
    "metrics",
    "output",
    "perfetto",
    "record",
    "report",
    "resume",
    "data_file",
    "socket",
    "fuse",
    "control",
    "fault_log",
];

/// Arguments whose text is never a file name.
const TEXT_ARGUMENTS: [&str; 3] = ["label", "workload", "check"];

/// Inputs that an output may safely replace: an export contains the runs it was made from.
const REPLACEABLE_INPUTS: [(&str, &str); 1] = [("export", "runs")];

/// Arguments that may name a directory with input files.
const FOLDER_ARGUMENTS: [&str; 2] = ["catalogue", "data"];

const FIO_ARGUMENTS_ID: &str = "fio_arguments";

/// Maximum depth of directories that are searched for input files.
const DEPTH_MAX: usize = 4;

/// Output files of a command line, and paths that it may read.
#[derive(Debug, Default)]
pub(crate) struct NamedFiles {
    outputs: Vec<PathBuf>,
    inputs: Vec<NamedInput>,
    /// Paths in job files: included files, measured files, replayed logs and written logs.
    job_file_paths: Vec<PathBuf>,
}

#[derive(Debug)]
struct NamedInput {
    argument: String,
    path: PathBuf,
}

impl NamedFiles {
    /// Collects the paths among the arguments of a command, by the command's definition.
    pub(crate) fn from_matches(command: &Command, matches: &ArgMatches) -> Self {
        let (mut command, mut matches) = (command, matches);
        while let Some((name, below)) = matches.subcommand() {
            let Some(next) = command.find_subcommand(name) else {
                break;
            };
            (command, matches) = (next, below);
        }
        let mut named = Self::default();
        for id in command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
        {
            let is_kept = REPLACEABLE_INPUTS.contains(&(command.get_name(), id));
            if is_kept || matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            for value in matches.get_raw(id).into_iter().flatten() {
                named.add_path(id, value);
            }
        }
        named.read_job_files(matches);
        named
    }

    fn add_path(&mut self, id: &str, value: &OsStr) {
        let path = PathBuf::from(value);
        if OUTPUT_ARGUMENTS.contains(&id) {
            self.outputs.push(path);
        } else if !TEXT_ARGUMENTS.contains(&id) {
            let argument = id.to_owned();
            self.inputs.push(NamedInput { argument, path });
        }
    }

    /// Adds the paths that the job files among the inputs refer to.
    fn read_job_files(&mut self, matches: &ArgMatches) {
        if self.outputs.is_empty() {
            return;
        }
        let words = matches.try_get_many::<String>(FIO_ARGUMENTS_ID);
        let words: Vec<String> = words
            .ok()
            .flatten()
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let names = self.inputs.iter().filter_map(|input| input.path.to_str());
        self.job_file_paths = names
            .flat_map(|name| job_file::find_log_paths(name, &words))
            .collect();
    }

    /// Checks that no output would replace the store, another output or an input of the command.
    ///
    /// # Errors
    ///
    /// An output that would do so.
    pub(crate) fn reject_overwritten_inputs(
        &self,
        store: Option<&Path>,
    ) -> Result<(), LaboratoryError> {
        for (index, output) in self.outputs.iter().enumerate() {
            let path = output.as_path();
            if path == Path::new("-") {
                continue;
            }
            let is_other = |other: &PathBuf| other == path || is_same_file(path, other);
            if self.outputs[..index].iter().any(is_other) {
                return Err(overwrite_error(path, "another output of this command"));
            }
            if self.job_file_paths.iter().any(is_other) {
                return Err(overwrite_error(path, "a file of the jobs"));
            }
            // What is not there has nothing to lose.
            if !path.is_file() {
                continue;
            }
            if runs::list_store_files(store)
                .iter()
                .any(|file| is_same_file(path, file))
            {
                return Err(overwrite_error(path, "the result store"));
            }
            if self.inputs.iter().any(|input| input.is_input(path)) {
                return Err(overwrite_error(path, "what the output is made of"));
            }
        }
        Ok(())
    }
}

impl NamedInput {
    fn is_input(&self, file: &Path) -> bool {
        if is_same_file(&self.path, file) {
            return true;
        }
        if FOLDER_ARGUMENTS.contains(&self.argument.as_str()) && self.path.is_dir() {
            return is_file_in_folder(&self.path, file, DEPTH_MAX);
        }
        let of_trace = traces::list_files(std::slice::from_ref(&self.path));
        of_trace
            .iter()
            .flatten()
            .any(|part| is_same_file(part, file))
    }
}

/// Tests whether a directory contains a file, directly or in a subdirectory.
fn is_file_in_folder(folder: &Path, file: &Path, depth: usize) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        is_same_file(&path, file)
            || (depth > 1 && path.is_dir() && is_file_in_folder(&path, file, depth - 1))
    })
}

/// Tests whether two paths denote the same file, which need not exist.
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let folder = |path: &Path| match path.parent() {
        Some(folder) if folder != Path::new("") => number(folder),
        _ => number(Path::new(".")),
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            one.file_name() == other.file_name()
                && folder(one).is_some_and(|number_of_one| Some(number_of_one) == folder(other))
        }
        _ => false,
    }
}

fn overwrite_error(path: &Path, what: &str) -> LaboratoryError {
    LaboratoryError::Request(format!(
        "{} is {what}, and the output would take its place: name another file",
        path.display()
    ))
}
