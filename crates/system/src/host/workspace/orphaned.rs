//! Loop devices of killed runs whose workspace was removed by hand, so that their image cannot be
//! found in it.
//!
//! A run's loop device detaches itself on its last close, except during the short time in which it
//! is attached. A device left from that time is recognised by its backing file: a deleted file with
//! the path of an image in a workspace, of a process that no longer runs. It is detached only if
//! nothing uses it.

use super::folder;
use crate::host::device::BlockDevice;
use crate::host::device::tool::ExternalTool;
use crate::host::fresh::{IMAGE_FOLDER_PREFIX, IMAGE_NAME};
use crate::host::processes::is_process_alive;
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Suffix that the kernel appends to the path of a deleted file.
const DELETED_SUFFIX: &[u8] = b" (deleted)";

/// Maximum number of checks whether a device has been detached.
const DETACH_ATTEMPTS_MAX: u32 = 100;
const DETACH_PAUSE: Duration = Duration::from_millis(20);

/// Loop device whose backing file is the deleted image of a killed run.
#[derive(Debug)]
pub struct OrphanedLoopDevice {
    device: BlockDevice,
    image_path: PathBuf,
}

impl OrphanedLoopDevice {
    /// Returns the path of the loop device's node.
    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// Returns the former path of the deleted image.
    pub fn image_path(&self) -> &Path {
        &self.image_path
    }

    /// Detaches the loop device. It is no error if another `clean` does the same.
    ///
    /// # Errors
    ///
    /// The device came into use after it was found.
    pub fn detach_device(self) -> io::Result<()> {
        let mut failure = None;
        for _ in 0..DETACH_ATTEMPTS_MAX {
            if !self.is_orphaned() {
                return Ok(());
            }
            failure = self.try_to_detach().err();
            std::thread::sleep(DETACH_PAUSE);
        }
        Err(failure.unwrap_or_else(|| io::Error::other("something else has it open")))
    }

    fn try_to_detach(&self) -> io::Result<()> {
        // Held, so that nobody begins to use it, and looked at again, since
        // another file may have been attached meanwhile.
        let _held = self.device.open_device(OFlags::RDONLY | OFlags::EXCL)?;
        if self.is_orphaned() {
            let detach = [OsStr::new("--detach"), self.device.path().as_os_str()];
            ExternalTool::Losetup
                .run_checked(&detach)
                .map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn is_orphaned(&self) -> bool {
        orphaned_image(&self.device).as_ref() == Some(&self.image_path)
    }
}

/// Returns the orphaned loop devices that nothing uses; none for users other than root.
pub fn find_orphaned_loops() -> Vec<OrphanedLoopDevice> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(device) = BlockDevice::from_sysfs(&entry.path()) else {
            continue;
        };
        let Some(image) = orphaned_image(&device) else {
            continue;
        };
        if device.open_device(OFlags::RDONLY | OFlags::EXCL).is_ok() {
            found.push(OrphanedLoopDevice {
                device,
                image_path: image,
            });
        }
    }
    found.sort_by(|a, b| a.device().cmp(b.device()));
    found
}

/// Returns the former path of a device's image, if the image belongs to a killed run and was
/// deleted, and the device does not detach itself.
fn orphaned_image(device: &BlockDevice) -> Option<PathBuf> {
    let attribute = |name: &str| std::fs::read(device.sysfs_path().join("loop").join(name)).ok();
    if attribute("autoclear")?.trim_ascii() != b"0" {
        return None;
    }
    let file = attribute("backing_file")?;
    let image = parse_orphaned_image(file.trim_ascii_end())?;
    Some(image)
}

/// Returns the path before ` (deleted)`, if it is that of an image in a workspace whose owner no
/// longer runs.
fn parse_orphaned_image(backing_file: &[u8]) -> Option<PathBuf> {
    let path = backing_file.strip_suffix(DELETED_SUFFIX)?;
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    let folder = path.parent()?;
    let number = folder
        .file_name()?
        .to_str()?
        .strip_prefix(IMAGE_FOLDER_PREFIX)?;
    let owner = folder::parse_owner(folder.parent()?.file_name()?)?;
    let is_image = path.file_name()? == IMAGE_NAME && number.parse::<u32>().is_ok();
    (path.is_absolute() && is_image && !is_process_alive(owner)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deleted_images_of_dead_owners_are_orphaned() {
        // No process has this number: the kernel's largest is smaller.
        let dead = "/x y/diskperf-2000000000-00ff3a";
        let alive = format!("/x/diskperf-{}-00ff3a", std::process::id());
        for (file, is_orphaned) in [
            (format!("{dead}/fresh-1/image (deleted)"), true),
            (format!("{dead}/fresh-12/image (deleted)"), true),
            (format!("{dead}/fresh-1/image"), false),
            (format!("{dead}/fresh-/image (deleted)"), false),
            (format!("{dead}/fresh-1/disk (deleted)"), false),
            (format!("{dead}/image (deleted)"), false),
            (format!("{alive}/fresh-1/image (deleted)"), false),
            ("/x/other/fresh-1/image (deleted)".to_owned(), false),
            (" (deleted)".to_owned(), false),
        ] {
            let found = parse_orphaned_image(file.as_bytes());
            assert_eq!(found.is_some(), is_orphaned, "{file}");
        }
    }
}
