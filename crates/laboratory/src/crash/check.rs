//! Check of the medium that a cut leaves: mount with recovery, the user's check, the checker of
//! the file system.

use super::CrashOptions;
use super::disks::Disks;
use super::filesystem::slot_name;
use super::mounted::Mounted;
use super::program::{run_captured, shell};
use super::report::ChangedFile;
use super::workload::{MountedDisk, attach};
use crate::LaboratoryError;
use diskperf_crash::{Cut, Log, Mark, RequestKind};
use diskperf_system::host::child_group::GroupEnd;
use diskperf_system::host::device::LoopDevice;
use diskperf_system::host::fresh::{FreshSpec, check_filesystem};
use diskperf_system::host::mounter::Mounter;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Verdict {
    Good,
    /// The user's check failed, with its output.
    Lost(String),
    /// The file system does not mount or has damage, with the tool's output.
    Damaged(String),
}

/// Place where the states that cuts leave are checked, one after the other.
pub(super) trait Checker: Sync {
    /// Checks what a cut leaves. `durable` are the marks that the user's check has to find.
    fn check(
        &self,
        log: &Arc<Log>,
        cut: &Cut,
        durable: &[Mark],
        stop: &AtomicBool,
    ) -> Result<Verdict, LaboratoryError>;

    /// Describes the file or name that a request changes; `None` for requests of a drive.
    fn changed_file(&self, request: usize) -> Option<ChangedFile>;

    /// Name of the requests that make changes durable.
    fn flush_name(&self) -> &'static str;

    /// Reports whether a flush or sync is one for a change that completed before.
    fn covers(&self, flush: usize, change: usize) -> bool;
}

/// Disk on which one medium after the other is checked.
pub(super) struct Slot<'m> {
    number: usize,
    mounter: &'m Mounter,
    device: LoopDevice,
    disks: Arc<Disks>,
    /// Folder with the mount point and the files that a check reads and writes.
    folder: PathBuf,
    filesystem: FreshSpec,
    user_check: UserCheck,
}

impl<'m> Slot<'m> {
    pub(super) fn attach(
        mounted: &Mounted,
        number: usize,
        mounter: &'m Mounter,
        workspace: &Path,
        options: &CrashOptions,
    ) -> Result<Self, LaboratoryError> {
        let folder = workspace.join(format!("check-{number}"));
        std::fs::create_dir_all(folder.join("files")).map_err(LaboratoryError::work)?;
        Ok(Self {
            number,
            mounter,
            device: attach(mounted, &slot_name(number))?,
            disks: Arc::clone(mounted.disks()),
            user_check: UserCheck::new(folder.clone(), options),
            folder,
            filesystem: options.filesystem.clone(),
        })
    }

    pub(super) fn detach(self) -> Result<(), LaboratoryError> {
        self.device.detach_device().map_err(LaboratoryError::work)
    }
}

impl Checker for Slot<'_> {
    fn check(
        &self,
        log: &Arc<Log>,
        cut: &Cut,
        durable: &[Mark],
        stop: &AtomicBool,
    ) -> Result<Verdict, LaboratoryError> {
        self.disks.put_medium(self.number, log, cut.clone());
        // The kernel still has pages of the medium before, which all are clean.
        self.device.drop_pages().map_err(LaboratoryError::work)?;
        let device = self.device.device().path();
        let directory = self.folder.join("files");
        let disk = match MountedDisk::mount(self.mounter, &self.filesystem, device, &directory) {
            Ok(disk) => disk,
            Err(error) => return Ok(Verdict::Damaged(error.to_string())),
        };
        let verdict = self.user_check.run(&directory, durable, stop);
        disk.unmount()?;
        let verdict = verdict?;
        let report = check_filesystem(self.filesystem.filesystem_kind, device);
        let report = report.map_err(LaboratoryError::request)?;
        Ok(match (verdict, report.is_clean()) {
            (Verdict::Good, false) => Verdict::Damaged(report.output().to_owned()),
            (verdict, _) => verdict,
        })
    }

    fn changed_file(&self, _: usize) -> Option<ChangedFile> {
        None
    }

    fn flush_name(&self) -> &'static str {
        RequestKind::Flush.name()
    }

    fn covers(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// Check of the user, with the files that it reads and writes.
pub(super) struct UserCheck {
    folder: PathBuf,
    command: Option<String>,
    time_max: Duration,
}

impl UserCheck {
    /// Creates a check whose files are in a folder of its own.
    pub(super) fn new(folder: PathBuf, options: &CrashOptions) -> Self {
        Self {
            folder,
            command: options.check.clone(),
            time_max: options.check_time_max,
        }
    }

    /// Runs the check in the directory with the files that a cut left.
    pub(super) fn run(
        &self,
        directory: &Path,
        durable: &[Mark],
        stop: &AtomicBool,
    ) -> Result<Verdict, LaboratoryError> {
        let Some(command) = &self.command else {
            return Ok(Verdict::Good);
        };
        let list = self.folder.join("durable");
        let names: String = durable
            .iter()
            .map(|mark| mark.name.clone() + "\n")
            .collect();
        std::fs::write(&list, names).map_err(LaboratoryError::work)?;
        let mut shell = shell(command, directory)?;
        shell.env("DISKPERF_DURABLE", &list);
        let output = self.folder.join("output");
        let (end, output) = run_captured(shell, &output, Some(self.time_max), stop)?;
        match end {
            GroupEnd::Exited(status) if status.success() => Ok(Verdict::Good),
            GroupEnd::Exited(status) => Ok(Verdict::Lost(match output.is_empty() {
                true => format!("the check ended with {status}"),
                false => output,
            })),
            GroupEnd::TimedOut => Ok(Verdict::Lost(format!(
                "the check did not end within {} s",
                self.time_max.as_secs()
            ))),
            GroupEnd::Stopped => Err(LaboratoryError::Interrupted),
        }
    }
}
