//! Whether the system uses a device, or anything that is made of it.

use super::Refusal;
use crate::host::device::{
    BackingFiles, BlockDevice, DeviceError, attached_backing_files, losetup_backing_files,
    node_number,
};
use crate::host::mounts::{Mounts, unescaped_path};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Refuses a device that is mounted, swap, held or shown by a loop device, or
/// whose partitions, disk or holders are; and a loop device whose file is.
pub(super) fn require_idle(device: &BlockDevice) -> Result<(), Refusal> {
    let not_proven = |why: String| Refusal::NotProven {
        device: device.path().to_owned(),
        why,
    };
    let parts = entangled(device).map_err(|error| not_proven(error.to_string()))?;
    let mounts = Mounts::read().map_err(|error| not_proven(error.to_string()))?;
    let swaps = std::fs::read("/proc/swaps")
        .map_err(|error| not_proven(format!("/proc/swaps: {error}")))?;
    let mut others =
        attached_backing_files().map_err(|error| not_proven(format!("/sys/block: {error}")))?;
    others.retain(|(loop_device, _)| part_at(&parts, loop_device).is_none());
    let device = device.path().to_owned();

    if let Some((part, mount_point)) = mounted(&parts, &mounts) {
        return Err(Refusal::Mounted {
            device,
            part,
            mount_point,
        });
    }
    for swap in swap_paths(&swaps) {
        if let Some(part) = part_at(&parts, &swap) {
            return Err(Refusal::Swap { device, part });
        }
    }
    for part in &parts {
        let holders = part
            .holders()
            .map_err(|error| not_proven(error.to_string()))?;
        if let Some(holder) = holders.first() {
            return Err(Refusal::Held {
                device,
                part: part.path().to_owned(),
                holder: holder.path().to_owned(),
            });
        }
    }
    for (loop_device, file) in &others {
        if let Some(part) = part_at(&parts, file) {
            return Err(Refusal::BacksLoop {
                device,
                part,
                loop_device: loop_device.clone(),
            });
        }
    }
    require_shown_once(device, &parts, &others)
}

/// Refuses a loop device whose file another loop device shows as well: the
/// kernel sees two devices there, and what uses the one does not hold the
/// other. `others` are the loop devices that are no part, with their files.
fn require_shown_once(
    device: PathBuf,
    parts: &[BlockDevice],
    others: &[(PathBuf, PathBuf)],
) -> Result<(), Refusal> {
    let shown: Vec<(&BlockDevice, PathBuf)> = parts
        .iter()
        .filter_map(|part| Some((part, part.backing_file()?)))
        .collect();
    if shown.is_empty() || others.is_empty() {
        return Ok(());
    }
    let numbers = match losetup_backing_files() {
        Ok(numbers) => numbers,
        Err(error) => {
            let why = error.to_string();
            return Err(Refusal::NotProven { device, why });
        }
    };
    for (part, file) in shown {
        // The user may have named it by a node of another name.
        let node = Path::new("/dev").join(part.name());
        for (loop_device, other_file) in others {
            if is_one_file(&numbers, (&node, &file), (loop_device, other_file)) {
                return Err(Refusal::ShownTwice {
                    device,
                    part: part.path().to_owned(),
                    file,
                    loop_device: loop_device.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Whether two loop devices, each with the path of its file, show one file.
fn is_one_file(numbers: &BackingFiles, one: (&Path, &Path), other: (&Path, &Path)) -> bool {
    match (numbers.get(one.0), numbers.get(other.0)) {
        (Some(one), Some(other)) => one == other,
        // losetup could not look at one of them.
        _ => one.1 == other.1,
    }
}

/// The device, and all whose use is a use of its bytes: its partitions, the
/// disk that it is a partition of, whatever device mapper and md have made of
/// any of these, and where it is a loop device, the device that it shows with
/// all of that one's. Not the other partitions of its disk.
fn entangled(device: &BlockDevice) -> Result<Vec<BlockDevice>, DeviceError> {
    let mut parts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut below = vec![device.clone()];
    while let Some(device) = below.pop() {
        let disk = device.whole_disk()?;
        let mut waiting = vec![device];
        if seen.insert(disk.number()) {
            below.extend(shown_device(&disk));
            if disk == waiting[0] {
                // Of a disk whose one partition is in question, the others
                // are not.
                waiting.extend(disk.partitions()?);
            }
            waiting.extend(disk.holders()?);
            parts.push(disk);
        }
        while let Some(part) = waiting.pop() {
            if seen.insert(part.number()) {
                waiting.extend(part.partitions()?);
                waiting.extend(part.holders()?);
                parts.push(part);
            }
        }
    }
    Ok(parts)
}

/// The block device that a loop device shows; `None` of one that shows a
/// file, and of any other device.
fn shown_device(device: &BlockDevice) -> Option<BlockDevice> {
    let number = node_number(&device.backing_file()?).ok().flatten()?;
    BlockDevice::from_number(number).ok()
}

/// The part that is mounted, and where. A file system over several devices
/// (btrfs) shows only in its source; its other devices fail the exclusive
/// open.
fn mounted(parts: &[BlockDevice], mounts: &Mounts) -> Option<(PathBuf, PathBuf)> {
    mounts.iter().find_map(|mount| {
        let part = parts
            .iter()
            .find(|part| part.number() == mount.device)
            .map(|part| part.path().to_owned())
            .or_else(|| {
                mount
                    .source
                    .is_absolute()
                    .then(|| part_at(parts, &mount.source))?
            })?;
        Some((part, mount.mount_point.clone()))
    })
}

/// The part that a path names. A path that leads nowhere, as of a node that
/// was removed or lies in another mount namespace, counts by its last name.
fn part_at(parts: &[BlockDevice], path: &Path) -> Option<PathBuf> {
    let is_part = |part: &&BlockDevice| match node_number(path) {
        Ok(number) => number == Some(part.number()),
        Err(_) => path.file_name() == part.path().file_name(),
    };
    parts
        .iter()
        .find(is_part)
        .map(|part| part.path().to_owned())
}

/// The paths in /proc/swaps.
fn swap_paths(swaps: &[u8]) -> impl Iterator<Item = PathBuf> {
    swaps
        .split(|&byte| byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(|byte| byte.is_ascii_whitespace()).next())
        .filter(|path| !path.is_empty())
        .map(unescaped_path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::device::FileNumber;

    #[test]
    fn swaps_are_read() {
        let text = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/zram0                              partition\t409596\t\t0\t\t-2
/var/a\\040file                          file\t\t409596\t\t0\t\t-3
";
        let paths: Vec<_> = swap_paths(text).collect();
        assert_eq!(paths, [Path::new("/dev/zram0"), Path::new("/var/a file")]);
    }

    /// Writes the part of a device's directory in sysfs that matters here.
    fn sysfs_device(directory: &Path, number: &str, is_partition: bool) {
        std::fs::create_dir_all(directory.join("holders")).unwrap();
        std::fs::write(directory.join("dev"), format!("{number}\n")).unwrap();
        if is_partition {
            std::fs::write(directory.join("partition"), "1\n").unwrap();
        }
    }

    #[test]
    fn what_is_made_of_a_device_holds_it_and_its_relatives() {
        let sysfs = tempfile::tempdir().unwrap();
        let at = |name: &str| sysfs.path().join(name);
        // A volume on the first of two partitions, and a volume on that.
        for (name, number, is_partition) in [
            ("disk", "4000:0", false),
            ("disk/disk1", "4000:1", true),
            ("disk/disk2", "4000:2", true),
            ("volume", "4001:0", false),
            ("upper", "4001:1", false),
        ] {
            sysfs_device(&at(name), number, is_partition);
        }
        let link = |to: &str, from: &str| std::os::unix::fs::symlink(at(to), at(from)).unwrap();
        link("volume", "disk/disk1/holders/volume");
        link("upper", "volume/holders/upper");

        let device = |name: &str| BlockDevice::from_sysfs(&at(name)).unwrap();
        let names = |name: &str| {
            let mut names: Vec<String> = entangled(&device(name))
                .unwrap()
                .iter()
                .map(|part| part.name().to_owned())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names("disk"), ["disk", "disk1", "disk2", "upper", "volume"]);
        assert_eq!(names("disk/disk1"), ["disk", "disk1", "upper", "volume"]);
        assert_eq!(names("disk/disk2"), ["disk", "disk2"]);
        assert_eq!(names("upper"), ["upper"]);

        for (name, part, holder) in [
            ("disk", "/dev/disk1", "/dev/volume"),
            ("disk/disk1", "/dev/disk1", "/dev/volume"),
            ("volume", "/dev/volume", "/dev/upper"),
        ] {
            let message = require_idle(&device(name)).unwrap_err().to_string();
            let expected = format!("{part} is in use by {holder}");
            assert!(message.contains(&expected), "{name}: {message}");
        }
        for name in ["disk/disk2", "upper"] {
            assert!(require_idle(&device(name)).is_ok(), "{name}");
        }
    }

    #[test]
    fn files_are_compared_by_number_and_else_by_path() {
        let file = |inode| FileNumber {
            device: "254:0".parse().unwrap(),
            inode,
        };
        let numbers: BackingFiles = [("/dev/loop0", 1), ("/dev/loop1", 1), ("/dev/loop2", 2)]
            .map(|(device, inode)| (PathBuf::from(device), file(inode)))
            .into();
        for (one, other, is_one) in [
            (("/dev/loop0", "/a"), ("/dev/loop1", "/b"), true),
            (("/dev/loop0", "/a"), ("/dev/loop2", "/a"), false),
            (("/dev/loop0", "/a"), ("/dev/loop3", "/a"), true),
            (("/dev/loop3", "/a"), ("/dev/loop4", "/b"), false),
        ] {
            let found = is_one_file(
                &numbers,
                (Path::new(one.0), Path::new(one.1)),
                (Path::new(other.0), Path::new(other.1)),
            );
            assert_eq!(found, is_one, "{one:?} {other:?}");
        }
    }
}
