//! Files of a trace: their names, and their bytes while they are read.

use super::Far;
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

/// Name of standard input in messages.
pub(super) const STANDARD_INPUT: &str = "standard input";

/// Middle of the file names that blktrace gives to each processor: `sda.blktrace.0`.
const BLKTRACE: &str = ".blktrace.";

/// Finds the files of a trace by the names that the user gave. For a folder, and for a name in the
/// form of `blkparse -i`, these are the files that blktrace wrote, one for each processor.
///
/// # Errors
///
/// Returns an error for a folder without such files, or with those of several traces.
pub fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, LaboratoryError> {
    let mut all = Vec::new();
    for path in named {
        let is_there = path.as_os_str() == "-" || path.exists();
        match path {
            path if path.is_dir() => all.extend(of_folder(path)?),
            path if is_there => all.push(path.clone()),
            path => match of_name(path) {
                found if found.is_empty() => all.push(path.clone()),
                found => all.extend(found),
            },
        }
    }
    Ok(all)
}

fn by_trace(folder: &Path) -> std::io::Result<BTreeMap<String, BTreeMap<u32, PathBuf>>> {
    let mut traces: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let parts = name.and_then(|name| name.rsplit_once(BLKTRACE));
        let Some((name, Ok(processor))) = parts.map(|(name, of)| (name, of.parse())) else {
            continue;
        };
        let files = traces.entry(name.to_owned()).or_default();
        files.insert(processor, path);
    }
    Ok(traces)
}

fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, LaboratoryError> {
    let refused = |reason: String| LaboratoryError::File {
        reason,
        path: folder.to_owned(),
    };
    let traces = by_trace(folder).map_err(|error| refused(error.to_string()))?;
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
fn of_name(path: &Path) -> Vec<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let traces = by_trace(folder).ok();
    let found = traces
        .zip(name)
        .and_then(|(mut traces, name)| traces.remove(name));
    found.map_or(Vec::new(), |files| files.into_values().collect())
}

/// Name of a file for messages, and a reader of its bytes.
pub(super) type Named = (String, Box<dyn Read + Send>);

/// Opens a file or standard input. Its bytes are counted, and reading can be interrupted.
pub(super) fn open(
    path: &Path,
    far: &Far,
    stop: &Arc<AtomicBool>,
) -> Result<Named, LaboratoryError> {
    let refused = |error: std::io::Error| LaboratoryError::File {
        reason: error.to_string(),
        path: path.to_owned(),
    };
    let is_standard_input = path.as_os_str() == "-";
    let (name, file) = match is_standard_input {
        true => {
            let input = std::io::stdin().as_fd().try_clone_to_owned();
            (
                STANDARD_INPUT.to_owned(),
                File::from(input.map_err(refused)?),
            )
        }
        false => (
            path.display().to_string(),
            input::open(path).map_err(refused)?,
        ),
    };
    let counted = Counted {
        may_wait: !file.metadata().map_err(refused)?.is_file(),
        file,
        far: far.clone(),
        stop: Arc::clone(stop),
    };
    Ok((name, Box::new(counted)))
}

struct Counted {
    file: File,
    /// Whether reading may block until a sender provides bytes, as for a pipe.
    may_wait: bool,
    far: Far,
    stop: Arc<AtomicBool>,
}

/// Maximum delay until a signal is noticed while no bytes arrive.
const HEARD_WITHIN: Duration = Duration::from_millis(100);

impl Counted {
    fn check_stop(&self) -> std::io::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("ended by the user")),
            false => Ok(()),
        }
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.check_stop()?;
        while self.may_wait && !is_input_readable(&self.file, HEARD_WITHIN)? {
            self.check_stop()?;
        }
        let bytes = self.file.read(buffer)?;
        self.far
            .read_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
