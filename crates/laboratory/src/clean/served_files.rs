//! Files that killed servers of a drive showed by FUSE.

use super::{CleanOutcome, CleanRequest, Leftover};
use diskperf_serve::{FUSE_MOUNT_SOURCE, unmount_served_file};
use diskperf_system::host::dead_mounts::{find_dead_mounts, remove_mount_point_file};
use diskperf_system::host::device::loop_devices_on;

/// Removes the files of killed servers: they are mounted, and every use of them fails.
pub(super) fn clean_dead_files(request: &CleanRequest, cleaned: &mut CleanOutcome) {
    let found = match find_dead_mounts(FUSE_MOUNT_SOURCE) {
        Ok(found) => found,
        Err(error) => return cleaned.failures.push(error.to_string()),
    };
    for path in found {
        for device in loop_devices_on(&path).unwrap_or_default() {
            let (device, path) = (device.display(), path.display());
            cleaned.notes.push(format!(
                "{device} is on {path}, whose server was killed: unmount it (`findmnt {device}`), and the kernel detaches it"
            ));
        }
        cleaned.finish(request, Leftover::Server(path.clone()), || {
            unmount_served_file(&path, true)?;
            remove_mount_point_file(&path)
        });
    }
}

/// Removes the files of killed servers before another one starts.
pub fn clean_before_serving() -> CleanOutcome {
    let mut cleaned = CleanOutcome::default();
    clean_dead_files(&CleanRequest::default(), &mut cleaned);
    cleaned
}
