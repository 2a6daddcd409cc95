//! Check whether the system uses a device, or anything built on it.

use super::WriteRefusal;
use super::backing::{BackingFile, FileComparison};
use super::modelled::is_on_modelled_drive;
use super::writers::WatchedStorage;
use crate::host::device::{
    BackingFiles, BlockDevice, DeviceError, FileNumber, attached_backing_files, device_number_at,
    losetup_backing_files,
};
use crate::host::mounts::{Mounts, unescape_path};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Refuses a device that is mounted, used as swap, or has a device mapper, md or loop device on it,
/// directly or through its partitions, disk or holders. Also refuses a loop device whose backing
/// file is used as swap or by another loop device.
pub(super) fn require_idle(device: &BlockDevice) -> Result<(), WriteRefusal> {
    let not_proven = |why: String| WriteRefusal::UseUnknown {
        device: device.path().to_owned(),
        why,
    };
    let parts = related_devices(device).map_err(|error| not_proven(error.to_string()))?;
    let storage = UnderlyingStorage::find_underlying(device).map_err(not_proven)?;
    let mounts = Mounts::read_mounts().map_err(|error| not_proven(error.to_string()))?;
    let swaps = std::fs::read("/proc/swaps")
        .map_err(|error| not_proven(format!("/proc/swaps: {error}")))?;
    let mut others =
        attached_backing_files().map_err(|error| not_proven(format!("/sys/block: {error}")))?;
    others.retain(|(loop_device, _)| find_part_by_path(&parts, loop_device).is_none());

    if let Some((part, mount_point)) = find_mounted(&parts, &mounts) {
        return Err(WriteRefusal::MountedFilesystem {
            device: device.path().to_owned(),
            part,
            mount_point,
        });
    }
    for swap in swap_paths(&swaps) {
        if let Some(part) = find_part_by_path(&parts, &swap) {
            let device = device.path().to_owned();
            return Err(WriteRefusal::UsedAsSwap { device, part });
        }
        storage.require_no_swap(device, swap)?;
    }
    for part in &parts {
        let holders = part
            .holder_devices()
            .map_err(|error| not_proven(error.to_string()))?;
        if let Some(holder) = holders.first() {
            return Err(WriteRefusal::HeldByOtherDevice {
                device: device.path().to_owned(),
                part: part.path().to_owned(),
                holder: holder.path().to_owned(),
            });
        }
    }
    for (loop_device, file) in &others {
        if let Some(part) = find_part_by_path(&parts, file) {
            return Err(WriteRefusal::AttachedToLoop {
                device: device.path().to_owned(),
                part,
                loop_device: loop_device.clone(),
            });
        }
    }
    storage.require_single_loop_device(device, &others)
}

/// Refuses a device that another process can write to through any device or file, since both the
/// measurement and that process's data would be spoilt. Returns descriptions of what could not be
/// determined about processes.
pub(super) fn require_no_writer(device: &BlockDevice) -> Result<BTreeSet<String>, WriteRefusal> {
    let not_proven = |why: String| WriteRefusal::UseUnknown {
        device: device.path().to_owned(),
        why,
    };
    let parts = related_devices(device).map_err(|error| not_proven(error.to_string()))?;
    let storage = UnderlyingStorage::find_underlying(device).map_err(not_proven)?;
    let name = |part: &BlockDevice| (part.device_number(), part.path().to_owned());
    let watched = WatchedStorage {
        watched_devices: parts
            .iter()
            .chain(&storage.block_devices)
            .map(name)
            .collect(),
        watched_files: storage
            .backing_files
            .into_iter()
            .map(|(_, file)| file)
            .collect(),
    };
    let search = watched
        .find_writer()
        .map_err(|error| not_proven(format!("/proc: {error}")))?;
    match search.writing_process {
        None => Ok(search.undetermined_facts),
        Some(writer) => Err(WriteRefusal::OpenForWriting {
            device: device.path().to_owned(),
            part: writer.opened_part,
            process: writer.process_id,
            command: writer.command_name,
        }),
    }
}

/// Devices and files that store a device's bytes.
struct UnderlyingStorage {
    /// Device to be written and all devices underneath.
    block_devices: Vec<BlockDevice>,
    /// Backing files of the loop devices among these.
    backing_files: Vec<(BlockDevice, BackingFile)>,
}

impl UnderlyingStorage {
    /// Finds everything underneath a device: the disk of a partition, the devices below device
    /// mapper and md, and the backing file of a loop device.
    fn find_underlying(device: &BlockDevice) -> Result<Self, String> {
        let mut storage = Self {
            block_devices: Vec::new(),
            backing_files: Vec::new(),
        };
        let mut numbers = None;
        let mut waiting = vec![device.clone()];
        while let Some(device) = waiting.pop() {
            let failed = |error: DeviceError| error.to_string();
            let disk = device.whole_disk().map_err(failed)?;
            waiting.extend(disk.slave_devices().map_err(failed)?);
            waiting.extend(backing_device(&disk));
            if let Some(path) = disk.backing_file() {
                let numbers = match &mut numbers {
                    Some(numbers) => numbers,
                    none => none.insert(losetup_backing_files().map_err(|e| e.to_string())?),
                };
                let file = loop_backing_file(numbers, &disk, path);
                storage.backing_files.push((disk.clone(), file));
            }
            storage.block_devices.push(disk);
        }
        Ok(storage)
    }

    fn require_no_swap(&self, device: &BlockDevice, swap: PathBuf) -> Result<(), WriteRefusal> {
        if self.backing_files.is_empty()
            || device_number_at(&swap).is_ok_and(|number| number.is_some())
        {
            return Ok(());
        }
        let number = rustix::fs::stat(&swap).ok();
        let swap = BackingFile {
            path: swap,
            file_number: number.as_ref().map(FileNumber::from_status),
            is_writable: true,
        };
        for (part, file) in &self.backing_files {
            match file.compare_with(&swap) {
                FileComparison::DifferentFiles => {}
                FileComparison::SameFile => {
                    return Err(WriteRefusal::BackingFileIsSwap {
                        device: device.path().to_owned(),
                        part: part.path().to_owned(),
                        file: swap.path,
                    });
                }
                FileComparison::UnknownIdentity => {
                    return Err(inconclusive_error(device, (part, file), &swap, "swap"));
                }
            }
        }
        Ok(())
    }

    /// Refuses a loop device whose backing file another loop device has, too. The kernel sees two
    /// devices there, and using one does not claim the other. `others` are the loop devices that
    /// are no part of the device, with their backing files.
    fn require_single_loop_device(
        &self,
        device: &BlockDevice,
        others: &[(PathBuf, PathBuf)],
    ) -> Result<(), WriteRefusal> {
        let is_below = |node: &Path| {
            let name = node.file_name();
            let mut below = self.block_devices.iter();
            below.any(|part| Some(OsStr::new(part.name())) == name)
        };
        let mut others = others.iter().filter(|(node, _)| !is_below(node)).peekable();
        if self.backing_files.is_empty() || others.peek().is_none() {
            return Ok(());
        }
        let numbers = losetup_backing_files().map_err(|error| WriteRefusal::UseUnknown {
            device: device.path().to_owned(),
            why: error.to_string(),
        })?;
        for (loop_device, path) in others {
            let Ok(other_device) = BlockDevice::from_path(loop_device) else {
                // It has gone.
                continue;
            };
            let other = loop_backing_file(&numbers, &other_device, path.clone());
            for (part, file) in &self.backing_files {
                match file.compare_with(&other) {
                    FileComparison::DifferentFiles => {}
                    FileComparison::UnknownIdentity if is_harmless(&other_device, &other) => {}
                    FileComparison::SameFile => {
                        return Err(WriteRefusal::SharedBackingFile {
                            device: device.path().to_owned(),
                            part: part.path().to_owned(),
                            file: file.path.clone(),
                            loop_device: loop_device.clone(),
                        });
                    }
                    FileComparison::UnknownIdentity => {
                        let by = loop_device.display().to_string();
                        return Err(inconclusive_error(device, (part, file), &other, &by));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reports whether a loop device shows another file by now, or none, or a modelled drive. A device
/// whose server has just been killed is given the time to go.
fn is_harmless(device: &BlockDevice, file: &BackingFile) -> bool {
    (0..DETACH_ATTEMPTS_MAX).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(DETACH_PAUSE);
        }
        device.backing_file().as_ref() != Some(&file.path)
            || file.file_number.is_some_and(is_on_modelled_drive)
    })
}

/// Maximum number of looks at a loop device that may be about to go.
const DETACH_ATTEMPTS_MAX: u32 = 10;

/// Pause between two looks at a loop device.
const DETACH_PAUSE: Duration = Duration::from_millis(100);

fn loop_backing_file(numbers: &BackingFiles, device: &BlockDevice, path: PathBuf) -> BackingFile {
    // The user may have named it by a node of another name.
    let node = Path::new("/dev").join(device.name());
    BackingFile {
        path,
        file_number: numbers.get(&node).copied(),
        is_writable: !device.is_read_only(),
    }
}

fn inconclusive_error(
    device: &BlockDevice,
    (part, file): (&BlockDevice, &BackingFile),
    other: &BackingFile,
    by: &str,
) -> WriteRefusal {
    WriteRefusal::UseUnknown {
        device: device.path().to_owned(),
        why: format!(
            "{}, which backs {}, may be the same file as {}, in use by {by}: end that use, or move the image to a file system directly on a disk (no overlay, FUSE or NFS)",
            file.path.display(),
            part.path().display(),
            other.path.display(),
        ),
    }
}

/// Returns the device and all devices that share its bytes: its partitions, its disk, and the
/// device mapper and md devices on any of these. For a loop device over a block device it includes
/// that device and all of its related devices. Other partitions of its disk are excluded.
fn related_devices(device: &BlockDevice) -> Result<Vec<BlockDevice>, DeviceError> {
    let mut parts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut below = vec![device.clone()];
    while let Some(device) = below.pop() {
        let disk = device.whole_disk()?;
        let mut waiting = vec![device];
        if seen.insert(disk.device_number()) {
            below.extend(backing_device(&disk));
            if disk == waiting[0] {
                // Of a disk whose one partition is in question, the others
                // are not.
                waiting.extend(disk.list_partitions()?);
            }
            waiting.extend(disk.holder_devices()?);
            parts.push(disk);
        }
        while let Some(part) = waiting.pop() {
            if seen.insert(part.device_number()) {
                waiting.extend(part.list_partitions()?);
                waiting.extend(part.holder_devices()?);
                parts.push(part);
            }
        }
    }
    Ok(parts)
}

/// Returns the block device that backs a loop device; `None` if it is backed by a file, and for
/// other devices.
fn backing_device(device: &BlockDevice) -> Option<BlockDevice> {
    let number = device_number_at(&device.backing_file()?).ok().flatten()?;
    BlockDevice::from_number(number).ok()
}

/// Returns the first of `parts` that is mounted, with its mount point; `None` if none is. A file
/// system over several devices (btrfs) shows only one of them, in its source; the others fail the
/// exclusive open.
fn find_mounted(parts: &[BlockDevice], mounts: &Mounts) -> Option<(PathBuf, PathBuf)> {
    mounts.iter().find_map(|mount| {
        let part = parts
            .iter()
            .find(|part| part.device_number() == mount.device)
            .map(|part| part.path().to_owned())
            .or_else(|| {
                mount
                    .mount_source
                    .is_absolute()
                    .then(|| find_part_by_path(parts, &mount.mount_source))?
            })?;
        Some((part, mount.mount_point.clone()))
    })
}

/// Returns the device that a path names. A path that leads nowhere, such as a removed node or one
/// in another mount namespace, is compared by its last component.
fn find_part_by_path(parts: &[BlockDevice], path: &Path) -> Option<PathBuf> {
    let is_part = |part: &&BlockDevice| match device_number_at(path) {
        Ok(number) => number == Some(part.device_number()),
        Err(_) => path.file_name() == part.path().file_name(),
    };
    parts
        .iter()
        .find(is_part)
        .map(|part| part.path().to_owned())
}

fn swap_paths(swaps: &[u8]) -> impl Iterator<Item = PathBuf> {
    swaps
        .split(|&byte| byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(|byte| byte.is_ascii_whitespace()).next())
        .filter(|path| !path.is_empty())
        .map(unescape_path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut names: Vec<String> = related_devices(&device(name))
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
    fn files_below_partitions_and_volumes_are_found() {
        let sysfs = tempfile::tempdir().unwrap();
        let at = |name: &str| sysfs.path().join(name);
        // A volume on the partition of one loop device, and on another.
        for (name, number, is_partition) in [
            ("loop1", "4000:0", false),
            ("loop1/part", "4000:1", true),
            ("loop2", "4000:2", false),
            ("volume", "4001:0", false),
        ] {
            sysfs_device(&at(name), number, is_partition);
        }
        for name in ["loop1", "loop2"] {
            std::fs::create_dir(at(name).join("loop")).unwrap();
            let file = format!("/no such/{name}\n");
            std::fs::write(at(name).join("loop/backing_file"), file).unwrap();
        }
        std::fs::create_dir(at("volume/slaves")).unwrap();
        for (to, from) in [
            ("loop1/part", "volume/slaves/part"),
            ("loop2", "volume/slaves/loop2"),
        ] {
            std::os::unix::fs::symlink(at(to), at(from)).unwrap();
        }
        for (name, expected) in [
            ("volume", &["/no such/loop1", "/no such/loop2"][..]),
            ("loop1/part", &["/no such/loop1"]),
            ("loop2", &["/no such/loop2"]),
        ] {
            let device = BlockDevice::from_sysfs(&at(name)).unwrap();
            let storage = UnderlyingStorage::find_underlying(&device).unwrap();
            let mut files: Vec<_> = storage
                .backing_files
                .iter()
                .map(|(_, file)| file.path.as_path())
                .collect();
            files.sort();
            let expected: Vec<_> = expected.iter().map(Path::new).collect();
            assert_eq!(files, expected, "{name}");
        }
    }
}
