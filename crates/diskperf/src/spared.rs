//! Inputs of a command line, which none of its outputs may replace.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use diskperf_laboratory::{LaboratoryError, job_file, runs, traces};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments that name a file which is written.
const OUTPUTS: [&str; 6] = [
    "output",
    "perfetto",
    "record",
    "report",
    "data_file",
    "socket",
];

/// Arguments whose text is never the name of a file.
const TEXTS: [&str; 1] = ["label"];

/// Inputs that lose nothing when the output takes their place: an export holds the runs that
/// it was made of.
const KEPT: [(&str, &str); 1] = [("export", "runs")];

/// Arguments that may name a directory with files that are read.
const FOLDERS: [&str; 2] = ["catalogue", "data"];

/// Argument with words of fio's command line.
const FIO_ARGUMENTS: &str = "fio_arguments";

/// Directories below one another that are searched for such files.
const DEPTH_MAX: usize = 4;

/// Files that a command line writes, and paths that it may read.
#[derive(Debug, Default)]
pub(crate) struct Named {
    outputs: Vec<PathBuf>,
    inputs: Vec<Input>,
    /// Paths that job files name: files that they include, measure, repeat or log in.
    of_jobs: Vec<PathBuf>,
}

/// A path that a word of the command line may name.
#[derive(Debug)]
struct Input {
    argument: String,
    path: PathBuf,
}

impl Named {
    /// Collects the paths in the words of a command, by the command's own definition.
    pub(crate) fn of(command: &Command, matches: &ArgMatches) -> Self {
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
            let is_kept = KEPT.contains(&(command.get_name(), id));
            if is_kept || matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            for value in matches.get_raw(id).into_iter().flatten() {
                named.add(id, value);
            }
        }
        named.read_job_files(matches);
        named
    }

    fn add(&mut self, id: &str, value: &OsStr) {
        let path = PathBuf::from(value);
        if OUTPUTS.contains(&id) {
            self.outputs.push(path);
        } else if !TEXTS.contains(&id) {
            let argument = id.to_owned();
            self.inputs.push(Input { argument, path });
        }
    }

    /// Adds the paths that the job files among the inputs name.
    fn read_job_files(&mut self, matches: &ArgMatches) {
        if self.outputs.is_empty() {
            return;
        }
        let words = matches.try_get_many::<String>(FIO_ARGUMENTS);
        let words: Vec<String> = words
            .ok()
            .flatten()
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let names = self.inputs.iter().filter_map(|input| input.path.to_str());
        self.of_jobs = names
            .flat_map(|name| job_file::paths_of(name, &words))
            .collect();
    }

    /// Makes sure that no output takes the place of the store, of another output or
    /// of anything that the command reads.
    ///
    /// # Errors
    ///
    /// One would.
    pub(crate) fn require_spared(&self, store: Option<&Path>) -> Result<(), LaboratoryError> {
        for (index, output) in self.outputs.iter().enumerate() {
            let path = output.as_path();
            if path == Path::new("-") {
                continue;
            }
            let is_other = |other: &PathBuf| other == path || is_same(path, other);
            if self.outputs[..index].iter().any(is_other) {
                return Err(refused(path, "another output of this command"));
            }
            if self.of_jobs.iter().any(is_other) {
                return Err(refused(path, "a file of the jobs"));
            }
            // What is not there has nothing to lose.
            if !path.is_file() {
                continue;
            }
            if runs::store_files(store)
                .iter()
                .any(|file| is_same(path, file))
            {
                return Err(refused(path, "the result store"));
            }
            if self.inputs.iter().any(|input| input.reads(path)) {
                return Err(refused(path, "what the output is made of"));
            }
        }
        Ok(())
    }
}

impl Input {
    /// Whether a file is read for this input.
    fn reads(&self, file: &Path) -> bool {
        if is_same(&self.path, file) {
            return true;
        }
        if FOLDERS.contains(&self.argument.as_str()) && self.path.is_dir() {
            return holds(&self.path, file, DEPTH_MAX);
        }
        let of_trace = traces::files(std::slice::from_ref(&self.path));
        of_trace.iter().flatten().any(|part| is_same(part, file))
    }
}

/// Whether a directory has a file, or one below it has.
fn holds(folder: &Path, file: &Path, depth: usize) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        is_same(&path, file) || (depth > 1 && path.is_dir() && holds(&path, file, depth - 1))
    })
}

/// Whether two paths lead to one file, which need not be there.
fn is_same(one: &Path, other: &Path) -> bool {
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

fn refused(path: &Path, what: &str) -> LaboratoryError {
    LaboratoryError::Request(format!(
        "{} is {what}, and the output would take its place: name another file",
        path.display()
    ))
}
