//! Names of what recorded events speak of: tasks, devices and kernel functions.

use crate::host::device::{BlockDevice, DeviceNumber};
use diskperf_chains::event::{DeviceDescription, EventKind, FileIdentity, KernelRecording};
use diskperf_chains::identity::{FileInode, FunctionAddress, KernelDevice, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;

const SYMBOLS_FILE: &str = "/proc/kallsyms";

/// Returns the numbers of disks, their partitions, the volumes on them and all devices underneath. Empty, which
/// means all devices, where one of them cannot be followed.
pub(super) fn list_device_numbers(disks: &[BlockDevice]) -> Vec<u32> {
    let mut numbers = BTreeSet::new();
    let mut waiting = disks.to_vec();
    while let Some(device) = waiting.pop() {
        let Ok(disk) = device.whole_disk() else {
            return Vec::new();
        };
        let number = |device: &BlockDevice| {
            let own = device.device_number();
            KernelDevice::from_major_minor(own.major, own.minor).0
        };
        if !numbers.insert(number(&disk)) {
            continue;
        }
        let (Ok(partitions), Ok(below)) = (disk.list_partitions(), disk.slave_devices()) else {
            return Vec::new();
        };
        // A volume's bios arrive at the volume before they go on to its disks.
        for device in partitions.iter().chain([&disk]) {
            waiting.extend(device.holder_devices().unwrap_or_default());
        }
        numbers.extend(partitions.iter().map(number));
        waiting.extend(below);
        if let Some(file) = disk.backing_file() {
            let folder = file.parent().unwrap_or(&file);
            match BlockDevice::devices_of_directory(folder) {
                Ok(below) => waiting.extend(below),
                Err(_) => return Vec::new(),
            }
        }
    }
    numbers.into_iter().collect()
}

/// Adds the names of the tasks, devices and functions that occur in a recording.
/// Functions have none where the kernel hides its symbols.
pub(super) fn describe(recording: &mut KernelRecording) {
    let mut threads = BTreeSet::new();
    let mut functions = BTreeSet::new();
    let mut devices = BTreeSet::new();
    let mut ring_workers = BTreeSet::new();
    let mut callers = BTreeSet::new();
    for event in &recording.events {
        threads.insert(event.thread);
        match &event.kind {
            EventKind::RingWorkerRuns { .. } => {
                ring_workers.insert(event.thread);
            }
            EventKind::OperationStart { .. } | EventKind::RingSubmit { .. } => {
                callers.insert(event.thread);
            }
            EventKind::WorkQueue { function, .. } | EventKind::WorkStart { function, .. } => {
                functions.insert(*function);
            }
            EventKind::BioQueue { extent, .. } | EventKind::BioRemap { extent, .. } => {
                devices.insert(extent.device);
            }
            EventKind::RequestIssue(reported) => {
                devices.insert(reported.extent.device);
            }
            _ => {}
        }
    }
    recording.task_names = threads
        .into_iter()
        .filter_map(|thread| {
            // Threads of the program and workers of its rings have ended.
            let name = match thread {
                _ if ring_workers.contains(&thread) => "io_uring worker".to_owned(),
                _ if callers.contains(&thread) => "the program".to_owned(),
                _ => read_task_name(thread)?,
            };
            Some((thread, name))
        })
        .collect();
    recording.functions = read_function_names(&functions);
    recording.devices = devices
        .into_iter()
        .filter_map(|device| Some((device, describe_device(device)?)))
        .collect();
}

/// Returns the name of a task; `None` for one that has ended.
fn read_task_name(thread: ThreadId) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).ok()?;
    let name = name.trim_end();
    // A kernel worker's name ends with what it runs at present.
    let shown = match name.starts_with("kworker/") {
        true => name.split_once('-').map_or(name, |(worker, _)| worker),
        false => name,
    };
    Some(shown.to_owned())
}

/// Reports whether this process can read the addresses of the kernel's functions.
pub(super) fn can_read_symbols() -> bool {
    File::open(SYMBOLS_FILE).is_ok_and(|symbols| has_addresses(BufReader::new(symbols)))
}

/// Reports whether symbols have addresses. Those that are hidden are all zero.
fn has_addresses(symbols: impl BufRead) -> bool {
    let mut lines = symbols.lines().map_while(Result::ok);
    lines.any(|line| {
        let address = line.split_ascii_whitespace().next();
        address.is_some_and(|address| address.bytes().any(|digit| digit != b'0'))
    })
}

fn read_function_names(functions: &BTreeSet<FunctionAddress>) -> BTreeMap<FunctionAddress, String> {
    if functions.is_empty() {
        return BTreeMap::new();
    }
    // The recorder has told that symbols are hidden.
    let symbols = std::fs::read_to_string(SYMBOLS_FILE).unwrap_or_default();
    let named = symbols.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = FunctionAddress(u64::from_str_radix(words.next()?, 16).ok()?);
        let name = functions.contains(&address).then(|| words.nth(1))??;
        Some((address, name.to_owned()))
    });
    named.collect()
}

/// Describes a device from sysfs; `None` for one that is gone.
fn describe_device(device: KernelDevice) -> Option<DeviceDescription> {
    let number = DeviceNumber {
        major: device.major(),
        minor: device.minor(),
    };
    let found = BlockDevice::from_number(number).ok()?;
    let disk = found.whole_disk().ok()?.device_number();
    let backing = found
        .backing_file()
        .and_then(|file| std::fs::metadata(file).ok());
    Some(DeviceDescription {
        name: found.name().to_owned(),
        disk: KernelDevice::from_major_minor(disk.major, disk.minor),
        backing_file: backing.map(|file| FileIdentity {
            device: KernelDevice::from_major_minor(
                rustix::fs::major(file.dev()),
                rustix::fs::minor(file.dev()),
            ),
            inode: FileInode(file.ino()),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_symbols_have_no_addresses() {
        let hidden = "0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n";
        assert!(!has_addresses(hidden.as_bytes()));
        assert!(!has_addresses(&b""[..]));
        let shown = format!("{hidden}ffffffff81000040 T loop_workfn\n");
        assert!(has_addresses(shown.as_bytes()));
    }
}
