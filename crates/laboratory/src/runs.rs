//! Lookup of stored runs by name and of runs in files: the meaning of `RUN` on the command line.

mod deletion;
mod selection;

pub use deletion::RunDeletion;
pub use selection::RunSelection;

use crate::output::Output;
use crate::steady::LOCK_WAIT;
use crate::store_path;
pub use crate::store_path::store_error as store_failed;
use crate::store_path::store_error;
use diskperf_analysis::comparison::RunHistory;
use diskperf_catalogue::{find_similar_names, format_choices};
use diskperf_models::LaboratoryError;
use diskperf_store::{RunHeading, Store, StoreError, StoreErrorKind};
use diskperf_system::host::output_file::OutputFile;
use diskperf_timeline::{MeasuredWorld, Run, escape_unprintable};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const FORMAT_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct ExportFile<R> {
    /// Marker that distinguishes the file from other JSON: always `diskperf runs`.
    kind: String,
    format: u32,
    runs: R,
}

const EXPORT_KIND: &str = "diskperf runs";

/// Loads the runs that a name stands for: `last`, an id, a unique prefix of an id, a label (its
/// newest run), or a file of [`render_export`], which may hold several runs.
///
/// A name that contains a `/` or ends in `.json` is a file. A full id and `last` take precedence
/// over anything else with the same name.
///
/// # Errors
///
/// Returns an error if the name matches nothing or several things.
pub fn load_runs(store: Option<&Path>, name: &str) -> Result<Vec<Run>, LaboratoryError> {
    let path = Path::new(name);
    if name.contains('/') || name.ends_with(".json") {
        // Runs of before may have such a label.
        let labelled = || {
            let store = existing_store(store)?;
            let id = find_labelled(&store, name).ok().flatten()?;
            store.load_run(&id).ok()
        };
        return match path.symlink_metadata() {
            Err(_) => labelled().map_or_else(|| read_export_file(path), |run| Ok(vec![run])),
            Ok(_) => read_export_file(path),
        };
    }
    let store = match open_store(store) {
        Err(_) if path.is_file() && name != "last" => return read_export_file(path),
        opened => opened?,
    };
    match resolve_meaning(&store, name)? {
        RunNameMeaning::Run(id) => Ok(vec![store.load_run(&id).map_err(store_error)?]),
        RunNameMeaning::File => read_export_file(path),
    }
}

enum RunNameMeaning {
    Run(String),
    File,
}

fn resolve_meaning(store: &Store, name: &str) -> Result<RunNameMeaning, LaboratoryError> {
    let resolved = store.resolve_run_id(name);
    match &resolved {
        Ok(id) if id == name => return Ok(RunNameMeaning::Run(id.clone())),
        Ok(id) if name == "last" => {
            let runs = store.list_runs().map_err(store_error)?;
            let runs = runs.iter().skip_while(|run| run.id != *id);
            return Ok(RunNameMeaning::Run(
                filter_by_target(store, runs)?.unwrap_or(id.clone()),
            ));
        }
        Err(_) if name == "last" => return Err(store_error(resolved.expect_err("it is one"))),
        _ => {}
    }
    let labelled = find_labelled(store, name)?;
    let mut meanings = Vec::new();
    if Path::new(name).is_file() {
        meanings.push((
            RunNameMeaning::File,
            format!("a file (write `./{name}` for it)"),
        ));
    }
    if let Some(id) = &labelled {
        let what = format!("the label of run {id}");
        meanings.push((RunNameMeaning::Run(id.clone()), what));
    }
    let yields = !meanings.is_empty() && name.chars().count() < ID_PREFIX_LENGTH_MIN;
    match resolved {
        _ if yields => {}
        Ok(id) if labelled.as_ref() != Some(&id) => {
            let what = format!("the beginning of run {id}");
            meanings.push((RunNameMeaning::Run(id), what));
        }
        Ok(_) => {}
        Err(StoreError {
            kind: StoreErrorKind::Ambiguous { candidates, .. },
            ..
        }) if !meanings.is_empty() => {
            let what = format!("the beginning of runs {}", candidates.join(", "));
            meanings.push((RunNameMeaning::File, what));
        }
        Err(error) if meanings.is_empty() => return Err(unknown_run(store, name, error)),
        Err(_) => {}
    }
    if meanings.len() > 1 {
        let all: Vec<String> = meanings.into_iter().map(|(_, what)| what).collect();
        return Err(LaboratoryError::Request(format!(
            "`{name}` is {}: write the run's id, which `diskperf list runs` prints",
            all.join(", and ")
        )));
    }
    let (meaning, _) = meanings.remove(0);
    Ok(meaning)
}

/// Returns the error for a name that no run has, with similar labels, or `last`.
fn unknown_run(store: &Store, name: &str, error: StoreError) -> LaboratoryError {
    let runs = store.list_runs().unwrap_or_default();
    let labels = runs.iter().filter_map(|run| run.label.as_deref());
    let is_last_known = runs.iter().any(|run| run.repetition_count > 0);
    let known = labels.chain(is_last_known.then_some("last"));
    match find_similar_names(name, known) {
        near if near.is_empty() => store_error(error),
        near => LaboratoryError::Store(format!("{error}; {}", format_choices(near.into_iter()))),
    }
}

/// Minimum length of an id prefix that competes with a label, a file or a target of the same name.
const ID_PREFIX_LENGTH_MIN: usize = 4;

/// Reports whether a word can name a run only as an id prefix that is too short to compete with a
/// path or a modelled system of the same name.
pub fn is_short_id_prefix(store: Option<&Path>, word: &str) -> bool {
    let is_label = |store: Store| !matches!(find_labelled(&store, word), Ok(None));
    word.chars().count() < ID_PREFIX_LENGTH_MIN && !existing_store(store).is_some_and(is_label)
}

fn find_labelled(store: &Store, name: &str) -> Result<Option<String>, LaboratoryError> {
    let runs = store.list_runs().map_err(store_error)?;
    let labelled = runs.iter().filter(|run| run.label.as_deref() == Some(name));
    filter_by_target(store, labelled)
}

/// Returns the newest of several runs, which are sorted newest first. If the newest is modelled and
/// one command made it together with runs on real storage, the newest of those is returned. A model
/// beside them serves for comparison, and the user means the measured run.
fn filter_by_target<'r>(
    store: &Store,
    runs: impl Iterator<Item = &'r RunHeading>,
) -> Result<Option<String>, LaboratoryError> {
    let mut newest: Option<Run> = None;
    for heading in runs {
        let run = store.load_run(&heading.id).map_err(store_error)?;
        let of_one_command =
            |newest: &Run| !run.command_line.is_empty() && newest.command_line == run.command_line;
        if !newest.as_ref().is_none_or(of_one_command) {
            break;
        }
        let is_measured = run.results.iter().any(|one| !one.repetitions.is_empty());
        if heading.world == MeasuredWorld::Host && (is_measured || newest.is_none()) {
            return Ok(Some(run.run_id));
        }
        newest.get_or_insert(run);
    }
    Ok(newest.map(|run| run.run_id))
}

fn find_all_labelled(store: &Store, name: &str) -> Result<Vec<String>, LaboratoryError> {
    let runs = store.list_runs().map_err(store_error)?.into_iter();
    let labelled = runs.filter(|run| run.label.as_deref() == Some(name));
    Ok(labelled.map(|run| run.id).collect())
}

fn existing_store(path: Option<&Path>) -> Option<Store> {
    let path = store_path::resolve_path(path).ok()?;
    path.exists().then(|| open_store(Some(&path)).ok())?
}

const EARLIER_RUN_COUNT_MAX: usize = 50;

/// Loads earlier runs of the same suites on the same targets, newest first. A comparison takes the
/// usual variation from them. The history is empty if there is no store.
///
/// # Errors
///
/// Returns an error if an existing store cannot be read.
pub fn load_history(path: Option<&Path>, runs: &[Run]) -> Result<RunHistory, LaboratoryError> {
    let Some(store) = existing_store(path) else {
        return Ok(RunHistory::default());
    };
    let same = |heading: &RunHeading| {
        let of = |run: &Run| run.suite_name == heading.suite && is_same_run(heading, run);
        heading.world == MeasuredWorld::Host && runs.iter().any(of)
    };
    let headings = store
        .list_runs()
        .map_err(store_error)?
        .into_iter()
        .filter(same);
    let earlier: Result<Vec<Run>, _> = headings
        .take(EARLIER_RUN_COUNT_MAX)
        .map(|heading| store.load_run(&heading.id))
        .collect();
    Ok(RunHistory::from_runs(earlier.map_err(store_error)?))
}

/// Reports whether a stored run had the same target as another run. Absolute paths are compared as
/// far as they are known.
fn is_same_run(heading: &RunHeading, run: &Run) -> bool {
    let places = run.environment.places.iter();
    let places: Vec<&str> = places.map(|place| place.path.as_str()).collect();
    match heading.target_paths.is_empty() || places.is_empty() {
        true => heading.target == run.target_label,
        false => heading.target_paths == places,
    }
}

/// Opens the store at this path, or at its default place.
pub fn open_store(path: Option<&Path>) -> Result<Store, LaboratoryError> {
    let path = store_path::resolve_path(path).map_err(store_error)?;
    store_path::open_store(&path, LOCK_WAIT).map_err(store_error)
}

/// Returns the paths of the files of a store, whether or not they exist.
pub fn list_store_files(path: Option<&Path>) -> Vec<PathBuf> {
    let path = store_path::resolve_path(path).ok();
    path.map_or_else(Vec::new, |path| Store::files_of(&path).to_vec())
}

/// Checks a store that the command line names, before the command does anything. Nothing is opened
/// for writing.
///
/// # Errors
///
/// Returns an error if the path is no regular file or holds something else, if its directory does
/// not exist, or if it leads to a place where output is not allowed.
pub fn check_store(path: &Path) -> Result<(), LaboratoryError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        return Err(LaboratoryError::Request(format!(
            "--store {}: there is no directory {}; make it, or name another file",
            path.display(),
            folder.display()
        )));
    }
    Store::check(path).map_err(store_error)?;
    OutputFile::check_output(path).map_err(crate::output::output_error)
}

/// Formats runs as the text of a file that is accepted wherever a run is.
pub fn render_export(runs: &[Run]) -> Result<String, LaboratoryError> {
    let file = ExportFile {
        kind: EXPORT_KIND.to_owned(),
        format: FORMAT_VERSION,
        runs,
    };
    let text = serde_json::to_string_pretty(&file).map_err(LaboratoryError::work)?;
    // Whoever looks at it with a pager or an editor sees text.
    Ok(escape_unprintable(&text).into_owned())
}

/// Writes runs to an export file, which is accepted wherever a run is.
pub(crate) fn export_to(path: &Path, runs: &[Run]) -> Result<(), LaboratoryError> {
    Output::open(path)?.write(render_export(runs)?.as_bytes())
}

fn read_export_file(path: &Path) -> Result<Vec<Run>, LaboratoryError> {
    let error = |reason: String| LaboratoryError::File {
        path: path.to_owned(),
        reason,
    };
    if path.is_dir() {
        return Err(error(
            "is a directory, and a run is expected here: measure it with `diskperf run --on` first"
                .to_owned(),
        ));
    }
    // A FIFO without a writer is waited for without end. What the shell opens
    // (`<(...)`) has one.
    let is_special = path.metadata().is_ok_and(|status| !status.is_file());
    if is_special && !path.starts_with("/dev/fd") {
        return Err(error(
            "is not a regular file, and a run is expected here: name a file of `diskperf export`"
                .to_owned(),
        ));
    }
    let text = read_text(path).map_err(&error)?;
    let file: ExportFile<Vec<Run>> = serde_json::from_slice(&text).map_err(|why| {
        error(format!(
            "is not a file of runs as `diskperf export` writes it: {why}"
        ))
    })?;
    if file.kind != EXPORT_KIND || file.format > FORMAT_VERSION {
        return Err(error(format!(
            "holds `{}` of format {}; this diskperf reads `{EXPORT_KIND}` up to format {FORMAT_VERSION}",
            file.kind, file.format
        )));
    }
    for (number, run) in file.runs.iter().enumerate() {
        run.check_run().map_err(|impossible| {
            let impossible = impossible.within_field(&format!("runs[{number}]"));
            error(format!("{impossible}; no diskperf wrote this"))
        })?;
    }
    Ok(file.runs)
}

/// Maximum size of a file of runs, in bytes. A run of a suite with thousands of repetitions is
/// smaller.
const EXPORT_FILE_BYTES_MAX: u64 = 512 << 20;

/// Reads a file of runs if it starts like JSON and is of limited size. The path may be a device, or
/// a pipe that never ends.
fn read_text(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |why: std::io::Error| why.to_string();
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let start = reader.fill_buf().map_err(failed)?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(
            "is not a file of runs as `diskperf export` writes it: it is not a JSON object"
                .to_owned(),
        );
    }
    let mut text = Vec::new();
    let read = reader
        .take(EXPORT_FILE_BYTES_MAX + 1)
        .read_to_end(&mut text);
    match read.map_err(failed)? as u64 {
        ..=EXPORT_FILE_BYTES_MAX => Ok(text),
        _ => Err(format!(
            "has more than {EXPORT_FILE_BYTES_MAX} bytes, the maximum size: export fewer runs at a time"
        )),
    }
}
