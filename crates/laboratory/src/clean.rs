//! Removal of files, folders and settings that killed runs have left.
//!
//! Each leftover is recognised without the store: a folder by its marker, its owner and a lock that
//! nobody holds (`system/host/workspace`), an unfinished output file by its name, its owner and a
//! lock (`system/host/output_file`), an instance of tracefs by the process id in its name, the
//! settings of a disk by a note that root has written (`system/host/queue_settings`), a loop device
//! by its backing file. The store only names places to search, because others may be able to write
//! to it. Its rows cannot cause the removal of anything that would not be found without them.

mod served_files;

pub use served_files::clean_before_serving;

use diskperf_models::LaboratoryError;
use diskperf_store::{NotedWorkspace, RunHeading, Store};
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::output_file::AbandonedOutput;
use diskperf_system::host::workspace::{Workspace, find_orphaned_loops};
pub use diskperf_system::host::write_answer;
use diskperf_system::host::{block_events, is_root, mounts, queue_settings};
use diskperf_timeline::{RunState, TargetDescription};
use served_files::clean_dead_files;
use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Reports whether a run of this process has a folder now. A signal handler may call it.
pub fn has_any_workspace() -> bool {
    Workspace::has_workspace()
}

/// Options of a cleaning: directories to search, and what to do with leftovers.
#[derive(Clone, Debug, Default)]
pub struct CleanRequest {
    /// Directories to search, in addition to those that the store knows.
    pub directories: Vec<PathBuf>,
    /// Whether to report leftovers without changing anything.
    pub is_dry_run: bool,
    /// Whether the store forgets folders on file systems that are not mounted now.
    pub forgets_unmounted: bool,
}

/// Something that a killed run left behind: a folder, a file, a buffer, a setting or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// A run's folder with all its contents.
    WorkspaceFolder(PathBuf),
    /// An output file that the run had not finished.
    PartialOutput(PathBuf),
    /// An instance of tracefs, a buffer for trace events of the kernel.
    TraceInstance(PathBuf),
    /// Directory of a killed server of a drive, with its socket, or a file that it showed.
    Server(PathBuf),
    /// A changed queue setting of a disk.
    DeviceSetting(queue_settings::RestoredSetting),
    /// A loop device whose image file was removed.
    LoopDevice {
        /// Path of the loop device.
        device: PathBuf,
        /// Path that the loop device's removed image file had.
        image: PathBuf,
    },
}

impl Leftover {
    /// Describes the action on this leftover, done or, in a dry run, only planned.
    pub fn describe(&self, dry_run: bool) -> String {
        let (would, done) = match self {
            Self::WorkspaceFolder(_)
            | Self::PartialOutput(_)
            | Self::TraceInstance(_)
            | Self::Server(_) => ("would remove", "removed"),
            Self::DeviceSetting(_) => ("would put back", "put back"),
            Self::LoopDevice { .. } => ("would detach", "detached"),
        };
        format!("{} {self}", if dry_run { would } else { done })
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkspaceFolder(path)
            | Self::PartialOutput(path)
            | Self::TraceInstance(path)
            | Self::Server(path) => path.display().fmt(formatter),
            Self::DeviceSetting(setting) => setting.fmt(formatter),
            Self::LoopDevice { device, image } => write!(
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
pub struct CleanOutcome {
    /// Leftovers that were removed or put back or, in a dry run, would be.
    pub removed: Vec<Leftover>,
    /// Leftovers or places that could not be examined, removed or put back, each with the reason.
    pub failures: Vec<String>,
    /// Remarks on the cleaning for the user.
    pub notes: Vec<String>,
}

impl CleanOutcome {
    /// Removes something that the caller has found, unless leftovers are only to be reported.
    pub fn finish<E: fmt::Display>(
        &mut self,
        cleaning: &CleanRequest,
        leftover: Leftover,
        act: impl FnOnce() -> Result<(), E>,
    ) {
        match if cleaning.is_dry_run { Ok(()) } else { act() } {
            Ok(()) => self.removed.push(leftover),
            Err(error) => {
                let (text, what) = (error.to_string(), leftover.to_string());
                self.failures.push(match text.contains(&what) {
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
pub fn clean(
    cleaning: &CleanRequest,
    store: Option<&mut Store>,
) -> Result<CleanOutcome, LaboratoryError> {
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    let mut cleaned = CleanOutcome::default();
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
                .failures
                .push(format!("{}: {error}", directory.display())),
        }
    }
    let known = match &store {
        Some(store) => store
            .list_workspaces()
            .map_err(crate::store_path::store_error)?,
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
    clean_dead_files(cleaning, &mut cleaned);
    for orphan in find_orphaned_loops() {
        let leftover = Leftover::LoopDevice {
            device: orphan.device().to_owned(),
            image: orphan.image_path().to_owned(),
        };
        cleaned.finish(cleaning, leftover, || orphan.detach_device());
    }
    for instance in block_events::find_abandoned_instances() {
        let leftover = Leftover::TraceInstance(instance.path());
        cleaned.finish(cleaning, leftover, || instance.remove());
    }
    put_settings_back(cleaning, &mut cleaned);
    if let Some(store) = store {
        forget_workspaces(&known, cleaning, store, &mut cleaned)?;
        note_unfinished_runs(store, &mut cleaned)?;
    }
    Ok(cleaned)
}

fn clean_directory(place: &Path, cleaning: &CleanRequest, cleaned: &mut CleanOutcome) {
    // What is not there now is dealt with where it is forgotten.
    if is_missing(place) {
        return;
    }
    let found = match Workspace::find_abandoned(place) {
        Ok(found) => found,
        Err(error) => {
            cleaned.failures.push(error.to_string());
            return;
        }
    };
    for abandoned in found {
        let leftover = Leftover::WorkspaceFolder(abandoned.path().to_owned());
        match abandoned.removal_obstacle() {
            Some(error) => cleaned.failures.push(error.to_string()),
            None => cleaned.finish(cleaning, leftover, || abandoned.remove()),
        }
    }
    match AbandonedOutput::find_in_directory(place) {
        Ok(found) => {
            for output in found {
                let leftover = Leftover::PartialOutput(output.path().to_owned());
                cleaned.finish(cleaning, leftover, || output.remove());
            }
        }
        Err(error) => cleaned
            .failures
            .push(format!("{}: {error}", place.display())),
    }
}

/// Note about changed disk settings for users other than root, who cannot see their values.
const SETTINGS_NOTED_MESSAGE: &str = "a `diskperf tune` of root has noted disk settings that it changes; if it was killed, `sudo diskperf clean` restores them";

/// Returns a note for each setting of these places' disks that a killed `diskperf tune` has left
/// changed. A run measures the changed settings.
pub(crate) fn list_settings_left<'a>(
    places: impl Iterator<Item = &'a TargetDescription>,
) -> Vec<String> {
    if !is_root() {
        let noted = queue_settings::has_any_note();
        return noted
            .then(|| SETTINGS_NOTED_MESSAGE.to_owned())
            .into_iter()
            .collect();
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

fn put_settings_back(cleaning: &CleanRequest, cleaned: &mut CleanOutcome) {
    if !is_root() {
        if queue_settings::has_any_note() {
            cleaned.notes.push(SETTINGS_NOTED_MESSAGE.to_owned());
        }
        return;
    }
    let left = match queue_settings::find_abandoned_queues() {
        Ok(left) => left,
        Err(error) => {
            cleaned.failures.push(error.to_string());
            return;
        }
    };
    for left in left {
        let left = match left {
            Ok(left) => left,
            Err(error) => {
                cleaned.failures.push(error.to_string());
                continue;
            }
        };
        let (path, settings) = (left.path().to_owned(), left.noted_settings().to_vec());
        let outcome = match cleaning.is_dry_run {
            true => Ok(()),
            false => left.restore_and_remove_note(),
        };
        match outcome {
            Ok(()) => cleaned
                .removed
                .extend(settings.into_iter().map(Leftover::DeviceSetting)),
            Err(error) => cleaned.failures.push(format!(
                "{error}; its former value is in {}",
                path.display()
            )),
        }
    }
}

/// Removes the rows of deleted folders from the store. Folders whose file system cannot be examined
/// stay listed.
fn forget_workspaces(
    known: &[NotedWorkspace],
    cleaning: &CleanRequest,
    store: &mut Store,
    cleaned: &mut CleanOutcome,
) -> Result<(), LaboratoryError> {
    for noted in known {
        let forgotten = match workspace_fate(noted) {
            WorkspaceFate::Exists => false,
            WorkspaceFate::Gone => true,
            WorkspaceFate::Unreachable if cleaning.forgets_unmounted => true,
            WorkspaceFate::Unreachable => {
                cleaned.notes.push(format!(
                    "{}: its file system is not mounted now: mount it for `diskperf clean` to look there, or forget the folder with `diskperf clean --forget-unmounted`",
                    noted.path.display()
                ));
                false
            }
        };
        if forgotten && !cleaning.is_dry_run {
            store
                .forget_workspace(&noted.path)
                .map_err(crate::store_path::store_error)?;
        }
    }
    Ok(())
}

/// Maximum number of unfinished runs whose ids a note lists.
const UNFINISHED_LISTED_MAX: usize = 5;

/// Adds a note about the runs in the store that have no end, with the command that deletes them.
fn note_unfinished_runs(store: &Store, cleaned: &mut CleanOutcome) -> Result<(), LaboratoryError> {
    let runs = store.list_runs().map_err(crate::store_path::store_error)?;
    let is_unfinished = |run: &RunHeading| run.state == RunState::Running;
    let unfinished: Vec<String> = runs
        .into_iter()
        .filter(is_unfinished)
        .map(|run| run.id)
        .collect();
    let names = match unfinished.len() {
        0 => return Ok(()),
        1..=UNFINISHED_LISTED_MAX => unfinished.join(" "),
        _ => "RUN...".to_owned(),
    };
    let state = match unfinished.len() {
        1 => "1 run of the store was killed, or still runs".to_owned(),
        count => format!("{count} runs of the store were killed, or still run"),
    };
    cleaned.notes.push(format!(
        "{state}: `diskperf list runs` shows more, and `diskperf delete --killed {names}` deletes them"
    ));
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkspaceFate {
    Exists,
    Gone,
    /// The folder's file system is not mounted or cannot be read.
    Unreachable,
}

fn workspace_fate(noted: &NotedWorkspace) -> WorkspaceFate {
    if !Workspace::may_be_workspace(&noted.path) {
        // No run has noted it.
        return WorkspaceFate::Gone;
    }
    match noted.path.symlink_metadata() {
        Ok(_) => return WorkspaceFate::Exists,
        Err(error) if !means_absence(error.kind()) => return WorkspaceFate::Unreachable,
        Err(_) => {}
    }
    // On the file system of the run it is gone; the one that is there now may be
    // what the other was mounted on.
    let nearest = noted.path.ancestors().find(|above| !is_missing(above));
    let (Some(nearest), Some(filesystem)) = (nearest, &noted.filesystem) else {
        return match noted.path.parent().is_some_and(is_missing) {
            true => WorkspaceFate::Unreachable,
            false => WorkspaceFate::Gone,
        };
    };
    match mounts::filesystem_type_of(nearest) {
        Ok(now) if now == *filesystem => WorkspaceFate::Gone,
        _ => WorkspaceFate::Unreachable,
    }
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata()
        .is_err_and(|error| means_absence(error.kind()))
}

fn means_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
