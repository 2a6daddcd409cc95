//! Files of a trace: their names, and their bytes while they are read.

use super::ReadProgress;
use diskperf_diagnostics::input;
use diskperf_models::LaboratoryError;
use diskperf_system::host::input::is_input_readable;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) const STANDARD_INPUT_NAME: &str = "standard input";

/// Middle of the file names that blktrace gives to each processor: `sda.blktrace.0`.
const BLKTRACE_SUFFIX: &str = ".blktrace.";

/// Finds the files of a trace by the names that the user gave. For a folder, and for a name in the
/// form of `blkparse -i`, these are the files that blktrace wrote, one for each processor.
///
/// # Errors
///
/// Returns an error for a folder without such files, or with those of several traces.
pub fn list_files(named: &[PathBuf]) -> Result<Vec<PathBuf>, LaboratoryError> {
    let mut all = Vec::new();
    for path in named {
        let is_there = path.as_os_str() == "-" || path.exists();
        match path {
            path if path.is_dir() => all.extend(files_of_folder(path)?),
            path if is_there => all.push(path.clone()),
            path => match files_of_name(path) {
                found if found.is_empty() => all.push(path.clone()),
                found => all.extend(found),
            },
        }
    }
    Ok(all)
}

fn group_by_trace(folder: &Path) -> std::io::Result<BTreeMap<String, BTreeMap<u32, PathBuf>>> {
    let mut traces: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let parts = name.and_then(|name| name.rsplit_once(BLKTRACE_SUFFIX));
        let Some((name, Ok(processor))) = parts.map(|(name, of)| (name, of.parse())) else {
            continue;
        };
        let files = traces.entry(name.to_owned()).or_default();
        files.insert(processor, path);
    }
    Ok(traces)
}

fn files_of_folder(folder: &Path) -> Result<Vec<PathBuf>, LaboratoryError> {
    let refused = |reason: String| LaboratoryError::File {
        reason,
        path: folder.to_owned(),
    };
    let traces = group_by_trace(folder).map_err(|error| refused(error.to_string()))?;
    let names: Vec<&str> = traces.keys().map(String::as_str).collect();
    match names.as_slice() {
        [] => Err(refused(
            "is a directory, and holds no files of blktrace (NAME.blktrace.0); name a file"
                .to_owned(),
        )),
        [_] => Ok(traces
            .into_values()
            .flat_map(BTreeMap::into_values)
            .collect()),
        [first, ..] => Err(refused(format!(
            "holds several traces of blktrace: {}; name one, as {}",
            names.join(", "),
            folder.join(first).display()
        ))),
    }
}

/// Finds the files that `blkparse -i NAME` reads: NAME.blktrace.0 and so on.
fn files_of_name(path: &Path) -> Vec<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let traces = group_by_trace(folder).ok();
    let found = traces
        .zip(name)
        .and_then(|(mut traces, name)| traces.remove(name));
    found.map_or(Vec::new(), |files| files.into_values().collect())
}

/// Name of a file for messages, and a reader of its bytes.
pub(super) type NamedReader = (String, Box<dyn Read + Send>);

/// Opens a file or standard input. Its bytes are counted, and reading can be interrupted.
pub(super) fn open(
    path: &Path,
    far: &ReadProgress,
    stop: &Arc<AtomicBool>,
) -> Result<NamedReader, LaboratoryError> {
    let refused = |error: std::io::Error| LaboratoryError::File {
        reason: error.to_string(),
        path: path.to_owned(),
    };
    let is_standard_input = path.as_os_str() == "-";
    let (name, file) = match is_standard_input {
        true => {
            let input = std::io::stdin().as_fd().try_clone_to_owned();
            (
                STANDARD_INPUT_NAME.to_owned(),
                File::from(input.map_err(refused)?),
            )
        }
        false => (
            path.display().to_string(),
            input::open(path).map_err(refused)?,
        ),
    };
    let counted = CountedFile {
        may_block: !file.metadata().map_err(refused)?.is_file(),
        file,
        progress: far.clone(),
        stop: Arc::clone(stop),
    };
    Ok((name, Box::new(counted)))
}

struct CountedFile {
    file: File,
    /// Whether reading may block until a sender provides bytes, as for a pipe.
    may_block: bool,
    progress: ReadProgress,
    stop: Arc<AtomicBool>,
}

/// Maximum delay until a signal is noticed while no bytes arrive.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl CountedFile {
    fn check_stop(&self) -> std::io::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("ended by the user")),
            false => Ok(()),
        }
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.check_stop()?;
        while self.may_block && !is_input_readable(&self.file, STOP_POLL_INTERVAL)? {
            self.check_stop()?;
        }
        let bytes = self.file.read(buffer)?;
        self.progress
            .read_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
