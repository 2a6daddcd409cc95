//! Finds and removes what killed runs left.

use crate::error::LaboratoryError;
use diskperf_store::Store;
use diskperf_system::host::block_events;
use diskperf_system::host::queue_settings::{is_running, put_back};
use diskperf_system::host::workspace::Workspace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What was found, folder by folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Folders that were removed, and buffers of tracefs.
    pub removed: Vec<PathBuf>,
    /// Settings of devices that were put back, with what they are now.
    pub restored: Vec<(PathBuf, String)>,
    /// Folders that could not be removed, each with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

/// Looks into these directories, and into those in which the store knows of
/// runs that have not ended.
pub fn clean(
    directories: &[PathBuf],
    store: Option<&mut Store>,
) -> Result<Cleaned, LaboratoryError> {
    let mut cleaned = Cleaned::default();
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    for directory in directories {
        places.insert(directory.canonicalize().map_err(|error| {
            LaboratoryError::Request(format!("{}: {error}", directory.display()))
        })?);
    }
    let known = match &store {
        Some(store) => store.workspaces()?,
        None => Vec::new(),
    };
    places.extend(
        known
            .iter()
            .filter_map(|path| path.parent().map(Path::to_owned)),
    );
    for place in places.iter().filter(|place| place.is_dir()) {
        for abandoned in Workspace::abandoned(place).map_err(LaboratoryError::work)? {
            let path = abandoned.path().to_owned();
            match abandoned.remove() {
                Ok(()) => cleaned.removed.push(path),
                Err(error) => cleaned.failed.push((path, error.to_string())),
            }
        }
    }
    for (path, left) in block_events::remove_abandoned() {
        match left {
            None => cleaned.removed.push(path),
            Some(error) => cleaned.failed.push((path, error.to_string())),
        }
    }
    if let Some(store) = store {
        put_settings_back(store, &mut cleaned)?;
        for path in known.iter().filter(|path| !path.exists()) {
            store.forget_workspace(path)?;
        }
    }
    Ok(cleaned)
}

/// Puts back what killed searches have changed of devices' queues.
fn put_settings_back(store: &mut Store, cleaned: &mut Cleaned) -> Result<(), LaboratoryError> {
    for setting in store.device_settings()? {
        if is_running(&setting.owner) {
            continue;
        }
        // A disk that is gone has nothing to put back.
        let outcome = match setting.path.exists() {
            true => put_back(&setting.path, &setting.value),
            false => Ok(()),
        };
        match outcome {
            Ok(()) => {
                store.forget_device_setting(&setting.path)?;
                cleaned.restored.push((setting.path, setting.value));
            }
            Err(error) => cleaned.failed.push((setting.path, error.to_string())),
        }
    }
    Ok(())
}
