//! Drives of a run: a folder, a fresh file system in a folder, or a device. A drive removes
//! whatever it has created when it is closed or dropped.

use crate::plan::HostPlan;
use crate::recorder::RunRecorder;
use crate::target::StorageTarget;
use diskperf_battery::Medium;
use diskperf_models::LaboratoryError;
use diskperf_system::host::device::{BlockDevice, TrafficMeter};
use diskperf_system::host::fresh::{FreshError, FreshFilesystem, FreshSpec};
use diskperf_system::host::safety::{ClaimedDevice, claim_for_writing};
use diskperf_system::host::workspace::{Workspace, WorkspaceError};
use diskperf_system::host::{DrivePort, HostPorts, environment};
use diskperf_timeline::{FRESH_NOTE_PREFIX, SizeChoice};
use std::io;
use std::path::PathBuf;

/// Open drives of a plan. The drives that run each program together come first, the copy
/// destination last.
#[derive(Default)]
pub(crate) struct OpenDrives(Vec<OpenDrive>);

impl OpenDrives {
    /// Opens the targets of a plan, as they are or with fresh file systems, and then the copy
    /// destination. After an error the caller has to close the drives that are open.
    pub(crate) fn open(
        &mut self,
        plan: &HostPlan,
        fresh: Option<&FreshSpec>,
        recorder: &mut RunRecorder,
        left: &mut Vec<String>,
    ) -> Result<(), LaboratoryError> {
        let needed_bytes = match plan.experiment.size_choice {
            SizeChoice::SizeBytes(size_bytes) => Some(plan.total_file_bytes(size_bytes)),
            SizeChoice::AutomaticSize => None,
        };
        let targets = plan.targets.iter().map(|target| (target, fresh));
        let other = plan.other_target.iter().map(|target| (target, None));
        for (target, fresh) in targets.chain(other) {
            let drive = OpenDrive::open(target, fresh, needed_bytes, recorder, left)?;
            self.0.push(drive);
        }
        Ok(())
    }

    pub(crate) fn as_slice(&self) -> &[OpenDrive] {
        &self.0
    }

    /// Closes all drives: checks fresh file systems and removes whatever the drives created.
    pub(crate) fn close(
        self,
        recorder: &mut RunRecorder,
        left: &mut Vec<String>,
    ) -> Result<(), LaboratoryError> {
        let mut closed = Ok(());
        for drive in self.0 {
            closed = closed.and(drive.close(recorder, left));
        }
        closed
    }
}

pub(crate) struct OpenDrive {
    /// Name of the drive's file system in tables, such as `ext4/4096`, or the name of a device.
    pub(crate) filesystem: String,
    /// Space for files whose size a pilot finds, in bytes. It is a tenth of the free space on a
    /// file system in use.
    pub(crate) pilot_bytes: u64,
    /// Remarks on the drive for readers of the results.
    pub(crate) notes: Vec<String>,
    traffic_meters: Vec<TrafficMeter>,
    block_devices: Vec<BlockDevice>,
    backing: DriveBacking,
}

enum DriveBacking {
    Folder(Workspace),
    /// A fresh file system and the folder with its image. The file system is dropped first.
    FreshFilesystem(Box<FreshFilesystem>, Workspace),
    ExistingFile(PathBuf),
    /// The null device, which stores nothing, with its size in bytes.
    NullDevice(u64),
    BlockDevice {
        device: BlockDevice,
        /// Exclusive claim on the device for the whole run, if programs may write to it.
        claim: Option<ClaimedDevice>,
    },
}

impl OpenDrive {
    /// Opens a target as a drive. `needed_bytes` is the space for the programs' files, if known.
    /// After a failure, `left` receives whatever could not be removed.
    fn open(
        target: &StorageTarget,
        fresh: Option<&FreshSpec>,
        needed_bytes: Option<u64>,
        recorder: &mut RunRecorder,
        left: &mut Vec<String>,
    ) -> Result<Self, LaboratoryError> {
        match (&target.device, target.medium, fresh) {
            _ if target.is_null => Ok(Self::new_null(target)),
            (Some(device), ..) => Self::from_device(target, device),
            (None, Medium::File, _) => Ok(Self::from_file(target)),
            (None, _, None) => {
                let workspace = open_workspace(target, needed_bytes.unwrap_or(0), recorder)?;
                Ok(Self::from_folder(target, workspace))
            }
            (None, _, Some(spec)) => {
                let workspace = open_workspace(target, 0, recorder)?;
                // Where a pilot finds the sizes, the image is a tenth of the
                // free space at most, as files would be.
                let payload_bytes =
                    needed_bytes.unwrap_or(FRESH_FILESYSTEM_BYTES.min(target.pilot_bytes()));
                match FreshFilesystem::make_filesystem_image(&workspace, spec, payload_bytes) {
                    Ok(fresh) => Ok(Self::from_fresh_filesystem(fresh, workspace, spec)),
                    Err(error) => {
                        remove_workspace(workspace, recorder, left);
                        Err(fresh_error(error))
                    }
                }
            }
        }
    }

    fn from_device(target: &StorageTarget, device: &BlockDevice) -> Result<Self, LaboratoryError> {
        let claim = target
            .destroyed_device
            .as_deref()
            .map(|named| claim_for_writing(device, named, target.ignore_signature))
            .transpose()
            .map_err(LaboratoryError::request)?;
        Ok(Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: describe_cache_below(device)
                .into_iter()
                .chain(
                    claim
                        .as_ref()
                        .and_then(ClaimedDevice::undetermined_facts_note),
                )
                .collect(),
            traffic_meters: open_meters(&device.whole_disk().into_iter().collect::<Vec<_>>()),
            block_devices: device.request_queues_of_device().unwrap_or_default(),
            backing: DriveBacking::BlockDevice {
                device: device.clone(),
                claim,
            },
        })
    }

    fn new_null(target: &StorageTarget) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: Vec::new(),
            traffic_meters: Vec::new(),
            block_devices: Vec::new(),
            backing: DriveBacking::NullDevice(target.free_bytes()),
        }
    }

    fn from_file(target: &StorageTarget) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: Vec::new(),
            traffic_meters: open_meters(
                &BlockDevice::devices_of_directory(&target.resolved_path).unwrap_or_default(),
            ),
            block_devices: BlockDevice::request_queues_under(&target.resolved_path)
                .unwrap_or_default(),
            backing: DriveBacking::ExistingFile(target.resolved_path.clone()),
        }
    }

    fn from_folder(target: &StorageTarget, workspace: Workspace) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: Vec::new(),
            traffic_meters: open_meters(
                &BlockDevice::devices_of_directory(workspace.path()).unwrap_or_default(),
            ),
            block_devices: BlockDevice::request_queues_under(workspace.path()).unwrap_or_default(),
            backing: DriveBacking::Folder(workspace),
        }
    }

    fn from_fresh_filesystem(
        fresh: FreshFilesystem,
        workspace: Workspace,
        spec: &FreshSpec,
    ) -> Self {
        let directory = fresh.mounted_directory().to_owned();
        let mounted = environment::describe_target(&directory)
            .filesystem
            .unwrap_or_default();
        let mut notes = fresh.notes().to_vec();
        notes.push(format!(
            "{FRESH_NOTE_PREFIX}{} with blocks of {} bytes{}, mounted {}",
            fresh.filesystem_kind(),
            fresh.block_bytes(),
            match spec.mkfs_arguments.as_slice() {
                [] => String::new(),
                arguments => format!(", made with {}", arguments.join(" ")),
            },
            mounted.mount_options,
        ));
        Self {
            filesystem: format!("{}/{}", fresh.filesystem_kind(), fresh.block_bytes()),
            // Nobody else writes there.
            pilot_bytes: mounted.available_bytes / 2,
            notes,
            traffic_meters: open_meters(
                &BlockDevice::devices_of_directory(&directory).unwrap_or_default(),
            ),
            block_devices: BlockDevice::request_queues_under(&directory).unwrap_or_default(),
            backing: DriveBacking::FreshFilesystem(Box::new(fresh), workspace),
        }
    }

    /// Kind of storage that the programs of this drive use.
    pub(crate) fn to_medium(&self) -> Medium {
        match self.backing {
            DriveBacking::Folder(_) | DriveBacking::FreshFilesystem(..) => Medium::Directory,
            DriveBacking::BlockDevice { .. } | DriveBacking::NullDevice(_) => Medium::Device,
            DriveBacking::ExistingFile(_) => Medium::File,
        }
    }

    /// Adds this drive as the next one of a worker.
    pub(crate) fn add_to_ports(&self, ports: &mut HostPorts) -> io::Result<()> {
        match &self.backing {
            DriveBacking::Folder(workspace) => {
                ports
                    .directories
                    .push(workspace.directory().try_clone_to_owned()?);
            }
            DriveBacking::FreshFilesystem(filesystem, _) => {
                ports.directories.push(filesystem.open_directory()?)
            }
            DriveBacking::BlockDevice { device, claim } => {
                ports.drive_ports.push(DrivePort::Device {
                    device: device.clone(),
                    writable: claim.is_some(),
                })
            }
            DriveBacking::ExistingFile(path) => {
                ports.drive_ports.push(DrivePort::RegularFile(path.clone()))
            }
            DriveBacking::NullDevice(length_bytes) => {
                ports.drive_ports.push(DrivePort::NullDrive {
                    length_bytes: *length_bytes,
                })
            }
        }
        Ok(())
    }

    /// Traffic counters of the disks below this drive.
    pub(crate) fn traffic_meters(&self) -> &[TrafficMeter] {
        &self.traffic_meters
    }

    /// Disks that receive this drive's requests; empty for a file system in memory or on a network.
    pub(crate) fn block_devices(&self) -> &[BlockDevice] {
        &self.block_devices
    }

    /// Closes the drive: checks a fresh file system and removes whatever was created. A fault that
    /// the check finds is an error, because measurements on a broken file system are worthless.
    /// `left` receives whatever could not be removed.
    fn close(
        self,
        recorder: &mut RunRecorder,
        left: &mut Vec<String>,
    ) -> Result<(), LaboratoryError> {
        match self.backing {
            DriveBacking::BlockDevice { .. }
            | DriveBacking::ExistingFile(_)
            | DriveBacking::NullDevice(_) => Ok(()),
            DriveBacking::Folder(workspace) => {
                remove_workspace(workspace, recorder, left);
                Ok(())
            }
            DriveBacking::FreshFilesystem(filesystem, workspace) => {
                let finished = filesystem.unmount_and_check();
                remove_workspace(workspace, recorder, left);
                match finished.map_err(LaboratoryError::work)? {
                    report if report.is_clean() => Ok(()),
                    report => Err(LaboratoryError::work(report)),
                }
            }
        }
    }
}

fn remove_workspace(workspace: Workspace, recorder: &mut RunRecorder, left: &mut Vec<String>) {
    let path = workspace.path().to_owned();
    match workspace.remove() {
        Ok(()) => recorder.forget_workspace(&path),
        // These have their own remedy.
        Err(
            error @ (WorkspaceError::MountedInside { .. } | WorkspaceError::FolderReplaced { .. }),
        ) => {
            left.push(error.to_string());
        }
        Err(error) => left.push(format!(
            "{error}; {} is left: once that is repaired, `diskperf clean` removes it",
            path.display()
        )),
    }
}

/// Converts an error of a fresh file system: an impossible specification is the fault of the
/// request, a failure while it is made is not.
fn fresh_error(error: FreshError) -> LaboratoryError {
    match error {
        FreshError::NotRoot | FreshError::InvalidSpec(_) | FreshError::WorkspaceFailed(_) => {
            LaboratoryError::request(error)
        }
        _ => LaboratoryError::work(error),
    }
}

const FRESH_FILESYSTEM_BYTES: u64 = 1 << 30;

fn open_workspace(
    target: &StorageTarget,
    needed_bytes: u64,
    recorder: &mut RunRecorder,
) -> Result<Workspace, LaboratoryError> {
    Workspace::create(&target.resolved_path, needed_bytes, |path| {
        recorder.note_workspace(path)
    })
    .map_err(LaboratoryError::request)
}

/// Returns a warning for a loop device: it has a second page cache below it, which dropping the
/// device's own pages does not reach.
fn describe_cache_below(device: &BlockDevice) -> Option<String> {
    let file = device.backing_file()?;
    let direct = std::fs::read_to_string(device.sysfs_path().join("loop/dio"));
    if direct.is_ok_and(|direct| direct.trim() == "1") {
        return None;
    }
    Some(format!(
        "{} is a loop device: its file {} is cached too, so a cold read here may come from memory there; `losetup --direct-io=on` prevents that",
        device.name(),
        file.display()
    ))
}

fn open_meters(disks: &[BlockDevice]) -> Vec<TrafficMeter> {
    disks
        .iter()
        .filter_map(|disk| TrafficMeter::open_meter(disk).ok())
        .collect()
}
