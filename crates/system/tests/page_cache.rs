//! What is in the page cache, what gets it out, and where O_DIRECT is only
//! said to bypass it.

mod support;

use diskperf_system::host::device::{BlockDevice, TrafficMeter};
use diskperf_system::host::page_cache::{
    DirectSupport, direct_io_support, drop_pages, memory_file_system_name, resident_bytes,
};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use support::{LoopDevice, Needs, Scratch, Undo, can_run, checksum, fill, run};

const MIB: u64 = 1 << 20;

/// A file of one MiB and 7 bytes in `directory`, open for reading and writing.
fn file_in(directory: &Path) -> File {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(directory.join("file"))
        .unwrap();
    file.write_all(&vec![1; MIB as usize + 7]).unwrap();
    file
}

/// Whether a directory lies on a disk; printed if not.
fn lies_on_a_disk(test: &str, directory: &Path) -> bool {
    let disks = BlockDevice::devices_of_directory(directory).unwrap();
    if disks.is_empty() {
        eprintln!("SKIPPED {test}: {} is not on a disk", directory.display());
    }
    !disks.is_empty()
}

#[test]
fn a_written_file_is_resident_and_a_dropped_one_is_not() {
    const NAME: &str = "a_written_file_is_resident_and_a_dropped_one_is_not";
    let scratch = Scratch::new();
    if !lies_on_a_disk(NAME, &scratch.path()) {
        return;
    }
    let file = file_in(&scratch.path());
    assert_eq!(resident_bytes(file.as_fd(), u64::MAX), Some(MIB + 7));
    assert_eq!(resident_bytes(file.as_fd(), MIB / 2), Some(MIB / 2));
    drop_pages(file.as_fd()).unwrap();
    assert_eq!(resident_bytes(file.as_fd(), u64::MAX), Some(0));

    let mut reader = File::open(scratch.path().join("file")).unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert_eq!(resident_bytes(reader.as_fd(), u64::MAX), Some(MIB + 7));
    drop_pages(reader.as_fd()).unwrap();
    assert_eq!(resident_bytes(reader.as_fd(), u64::MAX), Some(0));
}

#[test]
fn a_cold_read_comes_from_the_device_underneath() {
    const NAME: &str = "a_cold_read_comes_from_the_device_underneath";
    let scratch = Scratch::new();
    if !lies_on_a_disk(NAME, &scratch.path()) {
        return;
    }
    let disks = BlockDevice::devices_of_directory(&scratch.path()).unwrap();
    let file = file_in(&scratch.path());
    drop_pages(file.as_fd()).unwrap();
    let meters: Vec<_> = disks
        .iter()
        .map(|disk| TrafficMeter::open_meter(disk).unwrap())
        .collect();
    let before: Vec<_> = meters
        .iter()
        .map(|meter| meter.read_counters().unwrap())
        .collect();
    checksum(&scratch.path().join("file"));
    let read_bytes: u64 = meters
        .iter()
        .zip(before)
        .map(|(meter, before)| {
            meter
                .traffic_between(before, meter.read_counters().unwrap())
                .read_bytes
        })
        .sum();
    assert!(read_bytes >= MIB, "{read_bytes} bytes from {disks:?}");
}

#[test]
fn a_memory_file_system_is_never_direct() {
    const NAME: &str = "a_memory_file_system_is_never_direct";
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("SKIPPED {NAME}: no /dev/shm to write to");
        return;
    };
    let file = file_in(directory.path());
    let opened = File::open(directory.path()).unwrap();
    if memory_file_system_name(opened.as_fd()).is_none() {
        eprintln!("SKIPPED {NAME}: /dev/shm is not in memory");
        return;
    }
    for open in [file.as_fd(), opened.as_fd()] {
        assert_eq!(memory_file_system_name(open), Some("tmpfs"));
        let support = direct_io_support(open).unwrap();
        assert!(
            matches!(&support, DirectSupport::DirectUnsupported { why } if why.contains("tmpfs")),
            "{support:?}"
        );
    }
    // Nothing gets such a file out of memory.
    drop_pages(file.as_fd()).unwrap();
    assert_eq!(resident_bytes(file.as_fd(), u64::MAX), Some(MIB + 7));
}

#[test]
fn a_file_whose_data_is_journalled_is_never_direct() {
    const NAME: &str = "a_file_whose_data_is_journalled_is_never_direct";
    let needs = [
        Needs::LoopDevices,
        Needs::Tool("mkfs.ext4"),
        Needs::Filesystem("ext4"),
    ];
    if !can_run(NAME, &needs) {
        return;
    }
    let scratch = Scratch::new();
    let device = LoopDevice::blank(&scratch, 32);
    run("mkfs.ext4", &["-q", &device.text()]);
    let mount_point = scratch.path().join("mount");
    std::fs::create_dir(&mount_point).unwrap();
    let text = mount_point.display().to_string();
    for (options, why) in [
        ("data=ordered", None),
        ("data=journal", Some("mount it without")),
    ] {
        run("mount", &["-o", options, &device.text(), &text]);
        let _unmount = Undo::by(&["umount", &text]);
        let file = file_in(&mount_point);
        let support = direct_io_support(file.as_fd()).unwrap();
        match (&support, why) {
            (DirectSupport::DirectUnknown, _) => {
                eprintln!("SKIPPED {NAME}: Linux before 6.1");
            }
            (DirectSupport::DirectSupported { .. }, None) => {}
            (DirectSupport::DirectUnsupported { why }, Some(part)) => {
                for part in ["ext4", options, "page cache", part] {
                    assert!(why.contains(part), "{why}");
                }
            }
            _ => panic!("{options}: {support:?}"),
        }
        drop(file);
        std::fs::remove_file(mount_point.join("file")).unwrap();
    }
}

#[test]
fn a_block_device_is_not_its_node() {
    if !can_run("a_block_device_is_not_its_node", &[Needs::LoopDevices]) {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.path().join("image");
    fill(&image, 2, 3);
    let looped = LoopDevice::over(&image, &[]);
    let device = BlockDevice::from_path(&looped.path).unwrap();
    assert_eq!(device.size_bytes(), 2 * MIB);
    assert_eq!(device.backing_file(), Some(image));
    assert_eq!(
        device.underlying_disks().unwrap(),
        BlockDevice::devices_of_directory(&scratch.path()).unwrap()
    );

    // The node lies in /dev, which is memory.
    let open = File::open(&looped.path).unwrap();
    assert_eq!(memory_file_system_name(open.as_fd()), None);
    match direct_io_support(open.as_fd()).unwrap() {
        DirectSupport::DirectSupported {
            offset_alignment, ..
        } => assert!(offset_alignment >= 512 && offset_alignment.is_power_of_two()),
        DirectSupport::DirectUnknown => eprintln!("SKIPPED alignment: Linux before 6.1"),
        unsupported @ DirectSupport::DirectUnsupported { .. } => panic!("{unsupported:?}"),
    }
    checksum(&looped.path);
    assert_eq!(resident_bytes(open.as_fd(), u64::MAX), Some(2 * MIB));
    drop_pages(open.as_fd()).unwrap();
    assert_eq!(resident_bytes(open.as_fd(), u64::MAX), Some(0));
}
