//! Mount of the modelled drive and the media under check.

use super::disks::Disks;
use super::filesystem::DiskFiles;
use crate::LaboratoryError;
use diskperf_system::host::device::tool::ExternalTool;
use diskperf_system::host::safety::MODELLED_DRIVE_SOURCE;
use fuser::{BackgroundSession, Config, MountOption};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Threads that read requests from the kernel. Requests to the drive wait elsewhere.
const THREADS: usize = 4;

/// Mount of the disks. A drop unmounts it.
pub(super) struct Mounted {
    disks: Arc<Disks>,
    directory: PathBuf,
    session: Option<BackgroundSession>,
}

impl Mounted {
    pub(super) fn mount(disks: Arc<Disks>, directory: &Path) -> Result<Self, LaboratoryError> {
        let failed = |error: std::io::Error| {
            LaboratoryError::Failure(format!(
                "cannot mount {} by FUSE: {error}: see that /dev/fuse is there (`modprobe fuse`)",
                directory.display()
            ))
        };
        std::fs::create_dir(directory).map_err(failed)?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(MODELLED_DRIVE_SOURCE.to_owned())];
        config.n_threads = Some(THREADS);
        let files = DiskFiles::new(Arc::clone(&disks));
        let session = fuser::spawn_mount(files, directory, &config).map_err(failed)?;
        Ok(Self {
            disks,
            directory: directory.to_owned(),
            session: Some(session),
        })
    }

    pub(super) fn disks(&self) -> &Arc<Disks> {
        &self.disks
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn unmount(mut self) -> Result<(), LaboratoryError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), LaboratoryError> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let unmounted = ExternalTool::Umount.run_checked(&[self.directory.as_os_str()]);
        if unmounted.is_err() {
            // Gone from its place at once, and from the kernel with its last user.
            let _ =
                ExternalTool::Umount.run_checked(&["--lazy".as_ref(), self.directory.as_os_str()]);
        }
        let joined = session.join();
        unmounted.map_err(LaboratoryError::work)?;
        joined.map_err(LaboratoryError::work)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = self.end();
    }
}
