//! Files of modelled drives. Their data is in the memory of a process of diskperf, so no other file
//! can be the same file.

use crate::host::device::{DeviceNumber, FileNumber};
use crate::host::mounts::{Mount, Mounts};
use std::path::Path;

/// Source of the FUSE mounts that hold modelled drives, as mountinfo shows it.
pub const MODELLED_DRIVE_SOURCE: &str = "diskperf-crash";

/// Reports whether a file is on a mount of modelled drives, in the mount namespace of any process.
/// Only root can make a mount that counts, since any user may name the source of their own mounts.
pub(super) fn is_on_modelled_drive(file: FileNumber) -> bool {
    if file.device.major != 0 {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    processes.flatten().any(|process| {
        // A process that has ended has no mounts.
        let text = std::fs::read(process.path().join("mountinfo")).unwrap_or_default();
        Mounts::parse_mounts(&text).is_ok_and(|mounts| {
            mounts
                .iter()
                .any(|mount| holds_modelled_drives(mount, file.device))
        })
    })
}

fn holds_modelled_drives(mount: &Mount, device: DeviceNumber) -> bool {
    mount.device == device
        && (mount.filesystem_type == "fuse" || mount.filesystem_type.starts_with("fuse."))
        && mount.mount_source == Path::new(MODELLED_DRIVE_SOURCE)
        && mount
            .superblock_options
            .split(',')
            .any(|option| option == "user_id=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_counts_if_root_made_it_and_its_source_is_diskperf() {
        for (line, expected) in [
            (
                "36 35 0:61 / /m rw - fuse diskperf-crash rw,user_id=0,group_id=0",
                true,
            ),
            (
                "36 35 0:61 / /m rw - fuse.x diskperf-crash rw,user_id=0,group_id=0",
                true,
            ),
            (
                "36 35 0:61 / /m rw - fuse diskperf-crash rw,user_id=1000,group_id=0",
                false,
            ),
            (
                "36 35 0:61 / /m rw - fuse sshfs rw,user_id=0,group_id=0",
                false,
            ),
            (
                "36 35 0:62 / /m rw - fuse diskperf-crash rw,user_id=0,group_id=0",
                false,
            ),
            ("36 35 0:61 / /m rw - tmpfs diskperf-crash rw", false),
        ] {
            let mounts = Mounts::parse_mounts(line.as_bytes()).unwrap();
            let device = "0:61".parse().unwrap();
            let found = mounts
                .iter()
                .any(|mount| holds_modelled_drives(mount, device));
            assert_eq!(found, expected, "{line}");
        }
    }
}
