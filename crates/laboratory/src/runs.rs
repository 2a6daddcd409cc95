//! Stored runs by name, and runs in files: what `RUN` means on the command
//! line.

use crate::error::LaboratoryError;
use crate::steady::LOCK_WAIT;
use diskperf_store::{Store, StoreError, StoreErrorKind};
use diskperf_timeline::{Run, printable};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The version of the file format.
const FORMAT: u32 = 1;

/// A file of runs.
#[derive(Serialize, Deserialize)]
struct ExportFile<R> {
    /// Tells the file from other JSON: always `diskperf runs`.
    kind: String,
    format: u32,
    runs: R,
}

const KIND: &str = "diskperf runs";

/// Loads what the user calls a run: `last`, an id, a unique prefix of one, a label
/// (its newest run), or a file that [`export`] wrote, which may hold several.
///
/// What contains a `/` or ends in `.json` is a file. A full id and `last` are
/// nothing else, whatever has the same name.
///
/// # Errors
///
/// A name of nothing, or of more than one thing.
pub fn load(store: Option<&Path>, name: &str) -> Result<Vec<Run>, LaboratoryError> {
    let path = Path::new(name);
    if name.contains('/') || name.ends_with(".json") {
        // Runs of before may have such a label.
        let labelled = || {
            let store = existing_store(store)?;
            let id = labelled(&store, name).ok().flatten()?;
            store.load(&id).ok()
        };
        return match path.symlink_metadata() {
            Err(_) => labelled().map_or_else(|| read_file(path), |run| Ok(vec![run])),
            Ok(_) => read_file(path),
        };
    }
    let store = match open_store(store) {
        Err(_) if path.is_file() && name != "last" => return read_file(path),
        opened => opened?,
    };
    match meaning(&store, name)? {
        Meaning::Run(id) => Ok(vec![store.load(&id)?]),
        Meaning::File => read_file(path),
    }
}

/// What a name that is no path stands for.
enum Meaning {
    Run(String),
    File,
}

fn meaning(store: &Store, name: &str) -> Result<Meaning, LaboratoryError> {
    let resolved = store.resolve(name);
    match &resolved {
        Ok(id) if name == "last" || id == name => return Ok(Meaning::Run(id.clone())),
        Err(_) if name == "last" => return Err(resolved.expect_err("it is one").into()),
        _ => {}
    }
    let labelled = labelled(store, name)?;
    let mut meanings = Vec::new();
    if Path::new(name).is_file() {
        meanings.push((Meaning::File, format!("a file (write `./{name}` for it)")));
    }
    if let Some(id) = &labelled {
        let what = format!("the label of run {id}");
        meanings.push((Meaning::Run(id.clone()), what));
    }
    match resolved {
        Ok(id) if labelled.as_ref() != Some(&id) => {
            let what = format!("the beginning of run {id}");
            meanings.push((Meaning::Run(id), what));
        }
        Ok(_) => {}
        Err(StoreError {
            kind: StoreErrorKind::Ambiguous { candidates, .. },
            ..
        }) if !meanings.is_empty() => {
            let what = format!("the beginning of runs {}", candidates.join(", "));
            meanings.push((Meaning::File, what));
        }
        Err(error) if meanings.is_empty() => return Err(error.into()),
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

/// The newest run with this label.
fn labelled(store: &Store, name: &str) -> Result<Option<String>, LaboratoryError> {
    let mut runs = store.list()?.into_iter();
    let labelled = runs.find(|run| run.label.as_deref() == Some(name));
    Ok(labelled.map(|run| run.id))
}

/// The store, where there is one already.
fn existing_store(path: Option<&Path>) -> Option<Store> {
    let path = path.map_or_else(|| Store::default_path().ok(), |path| Some(path.to_owned()))?;
    path.exists().then(|| open_store(Some(&path)).ok())?
}

/// Opens the store at this path, or at its usual place.
pub fn open_store(path: Option<&Path>) -> Result<Store, LaboratoryError> {
    let path = path.map_or_else(Store::default_path, |path| Ok(path.to_owned()))?;
    Ok(Store::open_with_lock_wait(&path, LOCK_WAIT)?)
}

/// Writes runs to a file that stands wherever a run does.
pub fn export(path: &Path, runs: &[Run]) -> Result<(), LaboratoryError> {
    export_to(path, runs).map_err(|error| {
        LaboratoryError::Work(format!(
            "cannot write {}: {error}; name a file in a directory that you may write to",
            path.display()
        ))
    })
}

/// Runs as the text of such a file.
pub fn export_text(runs: &[Run]) -> Result<String, LaboratoryError> {
    document(runs).map_err(LaboratoryError::work)
}

fn document(runs: &[Run]) -> serde_json::Result<String> {
    let kind = KIND.to_owned();
    let text = serde_json::to_string_pretty(&ExportFile {
        kind,
        format: FORMAT,
        runs,
    })?;
    // Whoever looks at it with a pager or an editor sees text.
    Ok(printable(&text).into_owned())
}

/// The same, with the error of the system.
pub(crate) fn export_to(path: &Path, runs: &[Run]) -> std::io::Result<()> {
    write(path, document(runs)?.as_bytes())
}

/// Writes a file, for a user who named it.
///
/// # Errors
///
/// One that cannot be written, which is then as it was before.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), LaboratoryError> {
    write(path, bytes).map_err(|why| cannot_write(path, &why))
}

/// Whether [`write_file`] could write there: whoever works long for a file asks
/// before.
///
/// # Errors
///
/// As [`write_file`].
pub fn check_writable(path: &Path) -> Result<(), LaboratoryError> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let tried = match real.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
        // Whoever reads from a pipe would take this for its end.
        Ok(metadata) if !metadata.is_file() => Ok(()),
        _ => {
            let partial = beside(&real);
            std::fs::write(&partial, "").and_then(|()| std::fs::remove_file(&partial))
        }
    };
    tried.map_err(|why| cannot_write(path, &why))
}

fn cannot_write(path: &Path, why: &std::io::Error) -> LaboratoryError {
    LaboratoryError::File {
        path: path.to_owned(),
        reason: format!(
            "cannot be written: {why}; name a file in a directory that you may write to"
        ),
    }
}

/// Where a file is written before it takes its name.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

/// Writes beside the file and renames, so that no half-written file is seen.
/// What is there and is no regular file (a pipe, a device, `/dev/stdout`) is
/// written to as it is, and stays what it is.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let partial = beside(&path);
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::OpenOptions::new()
            .write(true)
            .open(&path)?
            .write_all(bytes);
    }
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, &path));
    if written.is_err() {
        // The error that matters is already at hand.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn read_file(path: &Path) -> Result<Vec<Run>, LaboratoryError> {
    let error = |reason: String| LaboratoryError::File {
        path: path.to_owned(),
        reason,
    };
    if path.is_dir() {
        return Err(error(
            "is a directory, and a run stands here: measure it with `diskperf run --on` first"
                .to_owned(),
        ));
    }
    let text = text_of(path).map_err(&error)?;
    let file: ExportFile<Vec<Run>> = serde_json::from_slice(&text).map_err(|why| {
        error(format!(
            "is not a file of runs as `diskperf export` writes it: {why}"
        ))
    })?;
    if file.kind != KIND || file.format > FORMAT {
        return Err(error(format!(
            "holds `{}` of format {}; this diskperf reads `{KIND}` up to format {FORMAT}",
            file.kind, file.format
        )));
    }
    for (number, run) in file.runs.iter().enumerate() {
        run.check().map_err(|impossible| {
            let impossible = impossible.within(&format!("runs[{number}]"));
            error(format!("{impossible}; no diskperf wrote this"))
        })?;
    }
    Ok(file.runs)
}

/// The largest file that is read: a run of a suite with thousands of repetitions
/// has less.
const LARGEST_FILE_BYTES: u64 = 512 << 20;

/// What a file says, if it begins as JSON does and ends some time: what is named
/// may be a device, or a pipe that never dries up.
fn text_of(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |why: std::io::Error| why.to_string();
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let start = reader.fill_buf().map_err(failed)?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(
            "is not a file of runs as `diskperf export` writes it: it is no JSON object".to_owned(),
        );
    }
    let mut text = Vec::new();
    let read = reader.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut text);
    match read.map_err(failed)? as u64 {
        ..=LARGEST_FILE_BYTES => Ok(text),
        _ => Err(format!(
            "has more than {LARGEST_FILE_BYTES} bytes, which are the most that are read: export fewer runs at a time"
        )),
    }
}
