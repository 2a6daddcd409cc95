//! A served drive as a disk of this machine: a loop device on a file that FUSE shows.

use crate::LaboratoryError;
use diskperf_serve::{FuseFile, ServeError, Served};
use diskperf_system::host::device::LoopDevice;
use diskperf_system::host::io_flusher::become_io_flusher;
use diskperf_system::host::is_root;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

/// A served drive as a block device. Dropping it ends serving.
#[derive(Debug)]
pub struct ServedDisk {
    // In the order of their ends: the last writes of the loop device are served.
    device: Option<LoopDevice>,
    file: FuseFile,
}

/// Prepares this process for serving a disk to the kernel that it runs on. Called before the
/// threads that serve it are started.
///
/// # Errors
///
/// The process is not root's.
pub fn prepare_served_disk() -> Result<(), LaboratoryError> {
    if !is_root() {
        return Err(LaboratoryError::Request(
            "--device needs root, for a loop device: run it with sudo, or show the drive as a file with --fuse FILE".to_owned(),
        ));
    }
    // Without it memory must not run short while the disk is written; serving goes on then.
    let _ = become_io_flusher();
    Ok(())
}

impl ServedDisk {
    /// Shows the drive as a new file, and attaches a loop device to it.
    ///
    /// # Errors
    ///
    /// FUSE or losetup is missing, or no loop device is free.
    pub fn attach(served: &Arc<Served>, path: &Path) -> Result<Self, LaboratoryError> {
        let file = FuseFile::mount(Arc::clone(served), path).map_err(serve_failure)?;
        let opened = File::open(file.path()).map_err(LaboratoryError::work)?;
        let sector_bytes = u64::from(served.sector_bytes);
        let device = LoopDevice::attach_file(file.path(), opened.as_fd(), sector_bytes)
            .map_err(LaboratoryError::request)?;
        device
            .set_rotational(served.is_rotational)
            .map_err(LaboratoryError::work)?;
        Ok(Self {
            device: Some(device),
            file,
        })
    }

    /// Path of the block device.
    ///
    /// # Panics
    ///
    /// After [`Self::end`].
    pub fn path(&self) -> &Path {
        let device = self.device.as_ref().expect("the disk has not ended");
        device.device().path()
    }

    /// Detaches the block device, which writes what the kernel kept of it, and ends serving.
    ///
    /// # Errors
    ///
    /// A device that something still uses. Its requests fail from then on, and it goes with its
    /// last user.
    pub fn end(&mut self) -> Result<(), LaboratoryError> {
        let detached = self.device.take().map(LoopDevice::detach_device);
        let ended = self.file.end().map_err(serve_failure);
        match detached {
            Some(Err(error)) => Err(LaboratoryError::work(error)),
            _ => ended,
        }
    }
}

impl Drop for ServedDisk {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = self.end();
    }
}

fn serve_failure(error: ServeError) -> LaboratoryError {
    match error {
        ServeError::Request(text) => LaboratoryError::Request(text),
        ServeError::Catalogue(errors) => LaboratoryError::Catalogue(errors),
        ServeError::Work(text) => LaboratoryError::Failure(text),
    }
}
