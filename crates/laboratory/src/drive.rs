//! A drive during a run: a folder, a fresh file system in one, or a device.
//! What it has made it removes, when it is closed and when it is dropped.

use crate::plan::HostPlan;
use crate::recorder::Recorder;
use crate::target::Target;
use diskperf_battery::Medium;
use diskperf_models::LaboratoryError;
use diskperf_system::host::device::{BlockDevice, TrafficMeter};
use diskperf_system::host::fresh::{FreshError, FreshFilesystem, FreshSpec};
use diskperf_system::host::safety::{ClaimedDevice, claim_for_writing};
use diskperf_system::host::workspace::{Workspace, WorkspaceError};
use diskperf_system::host::{DrivePort, Ports, environment};
use diskperf_timeline::{FRESH_NOTE, SizeChoice};
use std::io;
use std::path::PathBuf;

/// The drives of a plan while they are open: those that run each program at once, then
/// the one to copy to.
#[derive(Default)]
pub(crate) struct Drives(Vec<Drive>);

impl Drives {
    /// Opens the targets of a plan as they are, or fresh file systems there, and at last
    /// the one to copy to. Those that were opened before one failed have to be closed.
    pub(crate) fn open(
        &mut self,
        plan: &HostPlan,
        fresh: Option<&FreshSpec>,
        recorder: &mut Recorder,
        left: &mut Vec<String>,
    ) -> Result<(), LaboratoryError> {
        let needed_bytes = match plan.experiment.size {
            SizeChoice::Bytes(size_bytes) => Some(plan.files_bytes(size_bytes)),
            SizeChoice::Auto => None,
        };
        let targets = plan.targets.iter().map(|target| (target, fresh));
        let other = plan.other.iter().map(|target| (target, None));
        for (target, fresh) in targets.chain(other) {
            let drive = Drive::open(target, fresh, needed_bytes, recorder, left)?;
            self.0.push(drive);
        }
        Ok(())
    }

    /// In the order of the plan.
    pub(crate) fn all(&self) -> &[Drive] {
        &self.0
    }

    /// Removes what was made, and checks fresh file systems.
    pub(crate) fn close(
        self,
        recorder: &mut Recorder,
        left: &mut Vec<String>,
    ) -> Result<(), LaboratoryError> {
        let mut closed = Ok(());
        for drive in self.0 {
            closed = closed.and(drive.close(recorder, left));
        }
        closed
    }
}

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
    queues: Vec<BlockDevice>,
    ground: Ground,
}

/// What the programs work on.
enum Ground {
    Folder(Workspace),
    /// The file system goes before the folder that its image lies in.
    Fresh(Box<FreshFilesystem>, Workspace),
    /// A file of the user's, which is only read.
    File(PathBuf),
    /// What is not there, as long as this.
    Null(u64),
    Device {
        device: BlockDevice,
        /// Held as long as the run lasts, where programs may write.
        claim: Option<ClaimedDevice>,
    },
}

impl Drive {
    /// Makes a drive of a target. `needed_bytes` is what the programs' files
    /// take, where that is known. What could not be removed after a failure is
    /// put into `left`.
    fn open(
        target: &Target,
        fresh: Option<&FreshSpec>,
        needed_bytes: Option<u64>,
        recorder: &mut Recorder,
        left: &mut Vec<String>,
    ) -> Result<Self, LaboratoryError> {
        match (&target.device, target.medium, fresh) {
            _ if target.is_null => Ok(Self::null(target)),
            (Some(device), ..) => Self::device(target, device),
            (None, Medium::File, _) => Ok(Self::file(target)),
            (None, _, None) => {
                let workspace = workspace(target, needed_bytes.unwrap_or(0), recorder)?;
                Ok(Self::folder(target, workspace))
            }
            (None, _, Some(spec)) => {
                let workspace = workspace(target, 0, recorder)?;
                // Where a pilot finds the sizes, the image is a tenth of the
                // free space at most, as files would be.
                let payload_bytes = needed_bytes.unwrap_or(FRESH_BYTES.min(target.pilot_bytes()));
                match FreshFilesystem::make(&workspace, spec, payload_bytes) {
                    Ok(fresh) => Ok(Self::fresh(fresh, workspace, spec)),
                    Err(error) => {
                        remove(workspace, recorder, left);
                        Err(fresh_error(error))
                    }
                }
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
            pilot_bytes: target.pilot_bytes(),
            notes: cached_below(device)
                .into_iter()
                .chain(claim.as_ref().and_then(ClaimedDevice::note))
                .collect(),
            meters: meters(&device.whole_disk().into_iter().collect::<Vec<_>>()),
            queues: device.own_queues().unwrap_or_default(),
            ground: Ground::Device {
                device: device.clone(),
                claim,
            },
        })
    }

    fn null(target: &Target) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: Vec::new(),
            meters: Vec::new(),
            queues: Vec::new(),
            ground: Ground::Null(target.room_bytes()),
        }
    }

    fn file(target: &Target) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: Vec::new(),
            meters: meters(&BlockDevice::of_directory(&target.path).unwrap_or_default()),
            queues: BlockDevice::queues_under(&target.path).unwrap_or_default(),
            ground: Ground::File(target.path.clone()),
        }
    }

    fn folder(target: &Target, workspace: Workspace) -> Self {
        Self {
            filesystem: target.filesystem_name(),
            pilot_bytes: target.pilot_bytes(),
            notes: Vec::new(),
            meters: meters(&BlockDevice::of_directory(workspace.path()).unwrap_or_default()),
            queues: BlockDevice::queues_under(workspace.path()).unwrap_or_default(),
            ground: Ground::Folder(workspace),
        }
    }

    fn fresh(fresh: FreshFilesystem, workspace: Workspace, spec: &FreshSpec) -> Self {
        let directory = fresh.directory().to_owned();
        let mounted = environment::place(&directory)
            .filesystem
            .unwrap_or_default();
        let mut notes = fresh.notes().to_vec();
        notes.push(format!(
            "{FRESH_NOTE}{} with blocks of {} bytes{}, mounted {}",
            fresh.kind(),
            fresh.block_bytes(),
            match spec.mkfs_arguments.as_slice() {
                [] => String::new(),
                arguments => format!(", made with {}", arguments.join(" ")),
            },
            mounted.mount_options,
        ));
        Self {
            filesystem: format!("{}/{}", fresh.kind(), fresh.block_bytes()),
            // Nobody else writes there.
            pilot_bytes: mounted.available_bytes / 2,
            notes,
            meters: meters(&BlockDevice::of_directory(&directory).unwrap_or_default()),
            queues: BlockDevice::queues_under(&directory).unwrap_or_default(),
            ground: Ground::Fresh(Box::new(fresh), workspace),
        }
    }

    /// What its programs work on.
    pub(crate) fn medium(&self) -> Medium {
        match self.ground {
            Ground::Folder(_) | Ground::Fresh(..) => Medium::Directory,
            Ground::Device { .. } | Ground::Null(_) => Medium::Device,
            Ground::File(_) => Medium::File,
        }
    }

    /// Gives a worker this drive as its next one.
    pub(crate) fn plug_into(&self, ports: &mut Ports) -> io::Result<()> {
        match &self.ground {
            Ground::Folder(workspace) => {
                ports
                    .directories
                    .push(workspace.directory().try_clone_to_owned()?);
            }
            Ground::Fresh(filesystem, _) => ports.directories.push(filesystem.open_directory()?),
            Ground::Device { device, claim } => ports.drives.push(DrivePort::Device {
                device: device.clone(),
                writable: claim.is_some(),
            }),
            Ground::File(path) => ports.drives.push(DrivePort::File(path.clone())),
            Ground::Null(length_bytes) => ports.drives.push(DrivePort::Null {
                length_bytes: *length_bytes,
            }),
        }
        Ok(())
    }

    /// The counters of the disks underneath.
    pub(crate) fn meters(&self) -> &[TrafficMeter] {
        &self.meters
    }

    /// The disks that get its requests: none of a file system that is in memory
    /// or on a network.
    pub(crate) fn queues(&self) -> &[BlockDevice] {
        &self.queues
    }

    /// Removes what was made; of a fresh file system, checks it first. What
    /// the check found wrong is an error: nothing measured on a broken file
    /// system is worth anything. What could not be removed is put into `left`.
    fn close(self, recorder: &mut Recorder, left: &mut Vec<String>) -> Result<(), LaboratoryError> {
        match self.ground {
            Ground::Device { .. } | Ground::File(_) | Ground::Null(_) => Ok(()),
            Ground::Folder(workspace) => {
                remove(workspace, recorder, left);
                Ok(())
            }
            Ground::Fresh(filesystem, workspace) => {
                let finished = filesystem.finish();
                remove(workspace, recorder, left);
                match finished.map_err(LaboratoryError::work)? {
                    report if report.clean() => Ok(()),
                    report => Err(LaboratoryError::work(report)),
                }
            }
        }
    }
}

/// Removes a run's folder, or says why it stays.
fn remove(workspace: Workspace, recorder: &mut Recorder, left: &mut Vec<String>) {
    let path = workspace.path().to_owned();
    match workspace.remove() {
        Ok(()) => recorder.forget_workspace(&path),
        // These have their own remedy.
        Err(error @ (WorkspaceError::MountedInside { .. } | WorkspaceError::Replaced { .. })) => {
            left.push(error.to_string());
        }
        Err(error) => left.push(format!(
            "{error}; {} is left: when that is mended, `diskperf clean` removes it",
            path.display()
        )),
    }
}

/// A file system that cannot be made as it was asked for is the request's
/// fault; one that fails in the making is not.
fn fresh_error(error: FreshError) -> LaboratoryError {
    match error {
        FreshError::NotRoot | FreshError::Spec(_) | FreshError::Workspace(_) => {
            LaboratoryError::request(error)
        }
        _ => LaboratoryError::work(error),
    }
}

/// The size of a fresh file system on which sizes are found by a pilot.
const FRESH_BYTES: u64 = 1 << 30;

/// The new folder of a run. The store knows of it before it is made.
fn workspace(
    target: &Target,
    needed_bytes: u64,
    recorder: &mut Recorder,
) -> Result<Workspace, LaboratoryError> {
    Workspace::create(&target.path, needed_bytes, |path| {
        recorder.note_workspace(path)
    })
    .map_err(LaboratoryError::request)
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
        "{} is a loop device: its file {} is cached too, so a cold read here may come from memory there; `losetup --direct-io=on` prevents that",
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
