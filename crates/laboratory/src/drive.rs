//! A drive during a run: a folder, a fresh file system in one, or a device.
//! What it has made it removes, when it is closed and when it is dropped.

use crate::error::LaboratoryError;
use crate::recorder::Recorder;
use crate::target::Target;
use diskperf_battery::Medium;
use diskperf_system::Errno;
use diskperf_system::host::device::{BlockDevice, TrafficMeter};
use diskperf_system::host::fresh::{FreshError, FreshFilesystem, FreshSpec};
use diskperf_system::host::safety::{ClaimedDevice, claim_for_writing};
use diskperf_system::host::workspace::Workspace;
use diskperf_system::host::{DevicePort, Ports, open_directory};
use std::path::{Path, PathBuf};

/// A drive that programs can run on.
pub(crate) struct Drive {
    /// What the tables call its file system: `ext4/4096`, or a device's name.
    pub(crate) filesystem: String,
    /// The most that files may take whose size a pilot finds: of a file system
    /// in use, a tenth of what is free.
    pub(crate) pilot_bytes: u64,
    /// What a reader of the results must know.
    pub(crate) notes: Vec<String>,
    meters: Vec<TrafficMeter>,
    ground: Ground,
}

/// What the programs work on.
enum Ground {
    Folder(Workspace),
    /// The file system goes before the folder that its image lies in.
    Fresh(FreshFilesystem, Workspace),
    Device {
        path: PathBuf,
        /// Held as long as the run lasts, where programs may write.
        claim: Option<ClaimedDevice>,
    },
}

impl Drive {
    /// Makes a drive of a target. `needed_bytes` is what the programs' files
    /// take at the most, where that is known.
    pub(crate) fn open(
        target: &Target,
        fresh: Option<&FreshSpec>,
        needed_bytes: Option<u64>,
        recorder: &mut Recorder,
    ) -> Result<Self, LaboratoryError> {
        match (&target.device, fresh) {
            (Some(device), _) => Self::device(target, device),
            (None, None) => {
                let workspace = workspace(target, needed_bytes.unwrap_or(0), recorder)?;
                Ok(Self::folder(target, workspace))
            }
            (None, Some(spec)) => {
                let workspace = workspace(target, 0, recorder)?;
                Self::fresh(target, workspace, spec, needed_bytes)
            }
        }
    }

    fn device(target: &Target, device: &BlockDevice) -> Result<Self, LaboratoryError> {
        let claim = target
            .given_up
            .as_deref()
            .map(|named| claim_for_writing(device, named, target.ignore_signature))
            .transpose()
            .map_err(LaboratoryError::request)?;
        Ok(Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.room_bytes(),
            notes: cached_below(device).into_iter().collect(),
            meters: meters(&device.whole_disk().into_iter().collect::<Vec<_>>()),
            ground: Ground::Device {
                path: device.path().to_owned(),
                claim,
            },
        })
    }

    fn folder(target: &Target, workspace: Workspace) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.room_bytes() / 10,
            notes: Vec::new(),
            meters: meters(&BlockDevice::of_directory(workspace.path()).unwrap_or_default()),
            ground: Ground::Folder(workspace),
        }
    }

    fn fresh(
        target: &Target,
        workspace: Workspace,
        spec: &FreshSpec,
        needed_bytes: Option<u64>,
    ) -> Result<Self, LaboratoryError> {
        // Where a pilot finds the sizes, the image is a tenth of the free
        // space at most, as files would be.
        let payload_bytes = needed_bytes.unwrap_or(FRESH_BYTES.min(target.room_bytes() / 10));
        let filesystem = FreshFilesystem::make(&workspace, spec, payload_bytes).map_err(
            |error| match error {
                FreshError::NotRoot | FreshError::Spec(_) | FreshError::Workspace(_) => {
                    LaboratoryError::request(error)
                }
                _ => LaboratoryError::work(error),
            },
        )?;
        let directory = filesystem.directory().to_owned();
        let place = diskperf_system::host::environment::place(&directory);
        Ok(Self {
            filesystem: format!("{}/{}", filesystem.kind(), filesystem.block_bytes()),
            // Nobody else writes there.
            pilot_bytes: place
                .filesystem
                .map_or(0, |filesystem| filesystem.available_bytes / 2),
            notes: filesystem.notes().to_vec(),
            meters: meters(&BlockDevice::of_directory(&directory).unwrap_or_default()),
            ground: Ground::Fresh(filesystem, workspace),
        })
    }

    /// Files or the drive itself.
    pub(crate) fn medium(&self) -> Medium {
        match self.ground {
            Ground::Folder(_) | Ground::Fresh(..) => Medium::Directory,
            Ground::Device { .. } => Medium::Device,
        }
    }

    /// The directory that programs' files are in; of a device, the device.
    pub(crate) fn path(&self) -> &Path {
        match &self.ground {
            Ground::Folder(workspace) => workspace.path(),
            Ground::Fresh(filesystem, _) => filesystem.directory(),
            Ground::Device { path, .. } => path,
        }
    }

    /// Gives a worker this drive as its next one.
    pub(crate) fn plug_into(&self, ports: &mut Ports) -> Result<(), Errno> {
        match &self.ground {
            Ground::Folder(_) | Ground::Fresh(..) => {
                ports.directories.push(open_directory(self.path())?);
            }
            Ground::Device { path, claim } => {
                ports.devices.push(DevicePort {
                    path: path.clone(),
                    writable: claim.is_some(),
                });
            }
        }
        Ok(())
    }

    /// The counters of the disks underneath.
    pub(crate) fn meters(&self) -> &[TrafficMeter] {
        &self.meters
    }

    /// Removes what was made; of a fresh file system, checks it first. What
    /// the check found wrong is an error: nothing measured on a broken file
    /// system is worth anything.
    pub(crate) fn close(self, recorder: &mut Recorder) -> Result<(), LaboratoryError> {
        let workspace = match self.ground {
            Ground::Device { .. } => return Ok(()),
            Ground::Folder(workspace) => workspace,
            Ground::Fresh(filesystem, workspace) => {
                let report = filesystem.finish().map_err(LaboratoryError::work)?;
                if !report.clean() {
                    return Err(LaboratoryError::work(report));
                }
                workspace
            }
        };
        let path = workspace.path().to_owned();
        workspace.remove().map_err(LaboratoryError::work)?;
        recorder.forget_workspace(&path);
        Ok(())
    }
}

/// The size of a fresh file system on which sizes are found by a pilot.
const FRESH_BYTES: u64 = 1 << 30;

/// The new folder of a run. The store knows of it before anything is in it.
fn workspace(
    target: &Target,
    needed_bytes: u64,
    recorder: &mut Recorder,
) -> Result<Workspace, LaboratoryError> {
    let workspace =
        Workspace::create(&target.path, needed_bytes).map_err(LaboratoryError::request)?;
    recorder.note_workspace(workspace.path());
    Ok(workspace)
}

/// A loop device has a second page cache underneath, which dropping its own
/// pages does not reach.
fn cached_below(device: &BlockDevice) -> Option<String> {
    let file = device.backing_file()?;
    let direct = std::fs::read_to_string(device.sysfs().join("loop/dio"));
    if direct.is_ok_and(|direct| direct.trim() == "1") {
        return None;
    }
    Some(format!(
        "{} is a loop device: its file {} is cached too, so what is cold here may come from memory there; `losetup --direct-io=on` ends that",
        device.name(),
        file.display()
    ))
}

/// Meters of those disks that have counters.
fn meters(disks: &[BlockDevice]) -> Vec<TrafficMeter> {
    disks
        .iter()
        .filter_map(|disk| TrafficMeter::open(disk).ok())
        .collect()
}
