//! Removal of files, folders and settings that killed runs have left.
//!
//! Each leftover is recognised without the store: a folder by its marker, its owner and a lock that
//! nobody holds (`system/host/workspace`), an unfinished output file by its name, its owner and a
//! lock (`system/host/output_file`), an instance of tracefs by the process id in its name, the
//! settings of a disk by a note that root has written (`system/host/queue_settings`), a loop device
//! by its backing file. The store only names places to search, because others may be able to write
//! to it. Its rows cannot cause the removal of anything that would not be found without them.

use diskperf_models::LaboratoryError;
use diskperf_store::{NotedWorkspace, Store};
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::output_file::AbandonedOutput;
use diskperf_system::host::workspace::{Workspace, find_orphaned_loops};
pub use diskperf_system::host::write_answer;
use diskperf_system::host::{block_events, is_root, mounts, queue_settings};
use diskperf_timeline::TargetDescription;
use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Reports whether a run of this process has a folder now. A signal handler may call it.
pub fn has_workspace() -> bool {
    Workspace::has_workspace()
}

/// Options of a cleaning: directories to search, and what to do with leftovers.
#[derive(Clone, Debug, Default)]
pub struct Cleaning {
    /// Directories to search, in addition to those that the store knows.
    pub directories: Vec<PathBuf>,
    /// Whether to report leftovers without changing anything.
    pub dry_run: bool,
    /// Whether the store forgets folders on file systems that are not mounted now.
    pub forget_unmounted: bool,
}

/// Something that a killed run left behind: a folder, a file, a buffer, a setting or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A run's folder with all its contents.
    Folder(PathBuf),
    /// An output file that the run had not finished.
    Output(PathBuf),
    /// An instance of tracefs, a buffer for trace events of the kernel.
    Instance(PathBuf),
    /// A changed queue setting of a disk.
    Setting(queue_settings::RestoredSetting),
    /// A loop device whose image file was removed.
    Loop {
        /// Device node of the leftover loop device.
        device: PathBuf,
        /// Path that the loop device's removed image file had.
        image: PathBuf,
    },
}

impl Leftover {
    /// Describes the action on this leftover, done or, in a dry run, only planned.
    pub fn told(&self, dry_run: bool) -> String {
        let (would, done) = match self {
            Self::Folder(_) | Self::Output(_) | Self::Instance(_) => ("would remove", "removed"),
            Self::Setting(_) => ("would put back", "put back"),
            Self::Loop { .. } => ("would detach", "detached"),
        };
        format!("{} {self}", if dry_run { would } else { done })
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) | Self::Output(path) | Self::Instance(path) => {
                path.display().fmt(formatter)
            }
            Self::Setting(setting) => setting.fmt(formatter),
            Self::Loop { device, image } => write!(
                formatter,
                "{}, whose image {} was removed",
                device.display(),
                image.display()
            ),
        }
    }
}

/// Result of a search for leftovers of killed runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Leftovers that were removed or put back or, in a dry run, would be.
    pub done: Vec<Leftover>,
    /// Leftovers or places that could not be examined, removed or put back, each with the reason.
    pub failed: Vec<String>,
    /// Remarks on the cleaning for the user.
    pub notes: Vec<String>,
}

impl Cleaned {
    fn finish<E: fmt::Display>(
        &mut self,
        cleaning: &Cleaning,
        leftover: Leftover,
        act: impl FnOnce() -> Result<(), E>,
    ) {
        match if cleaning.dry_run { Ok(()) } else { act() } {
            Ok(()) => self.done.push(leftover),
            Err(error) => {
                let (text, what) = (error.to_string(), leftover.to_string());
                self.failed.push(match text.contains(&what) {
                    true => text,
                    false => format!("{what}: {text}"),
                });
            }
        }
    }
}

/// Searches directories for leftovers and removes them. Directories in which the store knows of
/// unfinished runs are searched, too.
///
/// # Errors
///
/// Returns an error if a named directory does not exist, and the errors of the store.
pub fn clean(cleaning: &Cleaning, store: Option<&mut Store>) -> Result<Cleaned, LaboratoryError> {
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    let mut cleaned = Cleaned::default();
    for directory in &cleaning.directories {
        match directory.canonicalize() {
            Ok(place) if place.is_dir() => drop(places.insert(place)),
            Ok(place) => {
                return Err(LaboratoryError::Request(format!(
                    "--on {}: {} is not a directory; name a directory to look into",
                    directory.display(),
                    place.display()
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(LaboratoryError::Request(format!(
                    "--on {0}: {0} does not exist; name a directory to look into",
                    directory.display()
                )));
            }
            Err(error) => cleaned
                .failed
                .push(format!("{}: {error}", directory.display())),
        }
    }
    let known = match &store {
        Some(store) => store.workspaces().map_err(crate::store_path::failed)?,
        None => Vec::new(),
    };
    for noted in &known {
        let place = noted.path.parent();
        places.extend(
            place
                .filter(|_| Workspace::may_be_workspace(&noted.path))
                .map(Path::to_owned),
        );
    }
    for place in &places {
        clean_directory(place, cleaning, &mut cleaned);
    }
    for orphan in find_orphaned_loops() {
        let leftover = Leftover::Loop {
            device: orphan.device().to_owned(),
            image: orphan.image_path().to_owned(),
        };
        cleaned.finish(cleaning, leftover, || orphan.detach_device());
    }
    for instance in block_events::find_abandoned_instances() {
        let leftover = Leftover::Instance(instance.path());
        cleaned.finish(cleaning, leftover, || instance.remove());
    }
    put_settings_back(cleaning, &mut cleaned);
    if let Some(store) = store {
        forget(&known, cleaning, store, &mut cleaned)?;
    }
    Ok(cleaned)
}

fn clean_directory(place: &Path, cleaning: &Cleaning, cleaned: &mut Cleaned) {
    // What is not there now is dealt with where it is forgotten.
    if is_missing(place) {
        return;
    }
    let found = match Workspace::find_abandoned(place) {
        Ok(found) => found,
        Err(error) => {
            cleaned.failed.push(error.to_string());
            return;
        }
    };
    for abandoned in found {
        let leftover = Leftover::Folder(abandoned.path().to_owned());
        match abandoned.removal_obstacle() {
            Some(error) => cleaned.failed.push(error.to_string()),
            None => cleaned.finish(cleaning, leftover, || abandoned.remove()),
        }
    }
    match AbandonedOutput::find_in_directory(place) {
        Ok(found) => {
            for output in found {
                let leftover = Leftover::Output(output.path().to_owned());
                cleaned.finish(cleaning, leftover, || output.remove());
            }
        }
        Err(error) => cleaned.failed.push(format!("{}: {error}", place.display())),
    }
}

/// Note about changed disk settings for users other than root, who cannot see their values.
const NOTED: &str = "a `diskperf tune` of root has noted disk settings that it changes; if it was killed, `sudo diskperf clean` restores them";

/// Returns a note for each setting of these places' disks that a killed `diskperf tune` has left
/// changed. A run measures the changed settings.
pub(crate) fn settings_left<'a>(
    places: impl Iterator<Item = &'a TargetDescription>,
) -> Vec<String> {
    if !is_root() {
        let noted = queue_settings::has_any_note();
        return noted.then(|| NOTED.to_owned()).into_iter().collect();
    }
    let mut disks = Vec::new();
    for place in places {
        disks.extend(place.devices.iter().map(|disk| disk.name.clone()));
        let path = Path::new(&place.path);
        for found in [
            BlockDevice::read_ahead_devices(path),
            BlockDevice::scheduler_devices(path),
        ] {
            let found = found.unwrap_or_default();
            disks.extend(found.iter().map(|disk| disk.name().to_owned()));
        }
    }
    let mut found = Vec::new();
    for left in queue_settings::find_abandoned_queues()
        .into_iter()
        .flatten()
        .flatten()
    {
        for (was, now) in left.settings_to_restore() {
            if disks.contains(&was.disk_name) {
                found.push(format!(
                    "{} of {} is {now}, and was {} before a `diskperf tune` that was killed changed it: the figures are those of {now}; `diskperf clean` puts it back",
                    was.setting_key.key_name(),
                    was.disk_name,
                    was.original_value
                ));
            }
        }
    }
    found
}

fn put_settings_back(cleaning: &Cleaning, cleaned: &mut Cleaned) {
    if !is_root() {
        if queue_settings::has_any_note() {
            cleaned.notes.push(NOTED.to_owned());
        }
        return;
    }
    let left = match queue_settings::find_abandoned_queues() {
        Ok(left) => left,
        Err(error) => {
            cleaned.failed.push(error.to_string());
            return;
        }
    };
    for left in left {
        let left = match left {
            Ok(left) => left,
            Err(error) => {
                cleaned.failed.push(error.to_string());
                continue;
            }
        };
        let (path, settings) = (left.path().to_owned(), left.noted_settings().to_vec());
        let outcome = match cleaning.dry_run {
            true => Ok(()),
            false => left.restore_and_remove_note(),
        };
        match outcome {
            Ok(()) => cleaned
                .done
                .extend(settings.into_iter().map(Leftover::Setting)),
            Err(error) => cleaned.failed.push(format!(
                "{error}; its former value is in {}",
                path.display()
            )),
        }
    }
}

/// Removes the rows of deleted folders from the store. Folders whose file system cannot be examined
/// stay listed.
fn forget(
    known: &[NotedWorkspace],
    cleaning: &Cleaning,
    store: &mut Store,
    cleaned: &mut Cleaned,
) -> Result<(), LaboratoryError> {
    for noted in known {
        let forgotten = match fate(noted) {
            Fate::There => false,
            Fate::Gone => true,
            Fate::OutOfReach if cleaning.forget_unmounted => true,
            Fate::OutOfReach => {
                cleaned.notes.push(format!(
                    "{}: its file system is not mounted now: mount it for `diskperf clean` to look there, or forget the folder with `diskperf clean --forget-unmounted`",
                    noted.path.display()
                ));
                false
            }
        };
        if forgotten && !cleaning.dry_run {
            store
                .forget_workspace(&noted.path)
                .map_err(crate::store_path::failed)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    There,
    Gone,
    /// The folder's file system is not mounted or cannot be read.
    OutOfReach,
}

fn fate(noted: &NotedWorkspace) -> Fate {
    if !Workspace::may_be_workspace(&noted.path) {
        // No run has noted it.
        return Fate::Gone;
    }
    match noted.path.symlink_metadata() {
        Ok(_) => return Fate::There,
        Err(error) if !is_absence(error.kind()) => return Fate::OutOfReach,
        Err(_) => {}
    }
    // On the file system of the run it is gone; the one that is there now may be
    // what the other was mounted on.
    let nearest = noted.path.ancestors().find(|above| !is_missing(above));
    let (Some(nearest), Some(filesystem)) = (nearest, &noted.filesystem) else {
        return match noted.path.parent().is_some_and(is_missing) {
            true => Fate::OutOfReach,
            false => Fate::Gone,
        };
    };
    match mounts::filesystem_type_of(nearest) {
        Ok(now) if now == *filesystem => Fate::Gone,
        _ => Fate::OutOfReach,
    }
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| is_absence(error.kind()))
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
