//! Stored runs by name, and runs in files: what `RUN` means on the command
//! line.

use crate::error::LaboratoryError;
use crate::recorder::LOCK_WAIT;
use diskperf_store::Store;
use diskperf_timeline::Run;
use serde::{Deserialize, Serialize};
use std::io::Write;
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

/// Loads what the user calls a run: a label (its newest run), an id, a unique
/// prefix of one, `last`, or a file that [`export`] wrote, which may hold several.
pub fn load(store: Option<&Path>, name: &str) -> Result<Vec<Run>, LaboratoryError> {
    let path = Path::new(name);
    if name.contains('/') || name.ends_with(".json") || path.is_file() {
        return read_file(path);
    }
    let store = open_store(store)?;
    let labelled = store
        .list()?
        .into_iter()
        .find(|run| run.label.as_deref() == Some(name));
    let id = match labelled {
        Some(run) => run.id,
        None => store.resolve(name)?,
    };
    Ok(vec![store.load(&id)?])
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
    serde_json::to_string_pretty(&ExportFile {
        kind,
        format: FORMAT,
        runs,
    })
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
    let text = std::fs::read(path).map_err(|why| error(why.to_string()))?;
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
    Ok(file.runs)
}
