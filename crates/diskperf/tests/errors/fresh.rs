//! A fresh file system lies on its own image and nowhere else: what `--fresh`
//! hands on to mkfs and to mount names no device and no file.

use crate::support::machine::{LoopDevice, Needs, can_run, checksum};
use crate::support::{User, entries};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Specifications that name a device, which stands for `DEVICE`, by itself or
/// by a way to it. Each is written as a user would.
const NAMING: &[&str] = &[
    "btrfs:mkfs=DEVICE",
    "btrfs:mkfs=-d single DEVICE",
    "btrfs:mkfs=-- DEVICE",
    "btrfs:mkfs=RELATIVE",
    "btrfs:mkfs=link",
    "btrfs:mkfs=-M link",
    "xfs:mkfs=-l logdev=DEVICE",
    "xfs:mkfs=-llogdev=DEVICE",
    "xfs:mkfs=-l logdev=link",
    "xfs:mkfs=-Kl logdev=DEVICE",
    "xfs:mkfs=-r rtdev=DEVICE",
    "xfs:mkfs=-d name=DEVICE",
    "xfs:mkfs=-l,mkfs=logdev=DEVICE",
    "ext4:mkfs=-J device=DEVICE",
    "ext4:mkfs=-Jdevice=DEVICE",
    "ext4:mkfs=-FJ device=DEVICE",
    "ext4:mkfs=-z link",
    "ext2:mkfs=RELATIVE 16",
];

/// Mount options that name a device or a file.
const MOUNTING: &[&str] = &[
    "ext4:mount=journal_path=DEVICE",
    "ext4:mount=journal_dev=0x700",
    "ext4:mount=loop=DEVICE",
    "ext4:mount=bind",
    "ext4:mount=usrjquota=link",
    "xfs:mount=logdev=DEVICE",
    "xfs:mount=rtdev=RELATIVE",
    "btrfs:mount=device=DEVICE",
];

/// Specifications that read files of the user's into the new file system.
const READING: &[&str] = &[
    "ext4:mkfs=-d /etc",
    "ext4:mkfs=-l list",
    "xfs:mkfs=-p proto",
    "xfs:mkfs=-c options=proto",
    "btrfs:mkfs=--rootdir /etc",
    "btrfs:mkfs=--rootdir=etc",
    "btrfs:mkfs=-r etc",
];

#[test]
fn a_fresh_file_system_touches_no_other_device() {
    let tools = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"].map(Needs::Tool);
    let needs = [&[Needs::LoopDevices][..], &tools].concat();
    if !can_run("a_fresh_file_system_touches_no_other_device", &needs) {
        return;
    }
    let user = User::new();
    // btrfs takes none that is much smaller.
    let device = LoopDevice::blank(user.scratch(), 128);
    symlink(&device.path, user.file("link")).unwrap();
    let up = "../".repeat(user.home().components().count());
    let relative = format!("{up}dev/{}", device.name());
    assert!(user.file(&relative).exists());
    let before = checksum(&device.path);
    for (specifications, says) in [(NAMING, "mkfs="), (MOUNTING, "mount="), (READING, "mkfs=")] {
        for specification in specifications {
            let fresh = specification
                .replace("DEVICE", &device.text())
                .replace("RELATIVE", &relative);
            let line = [
                "run",
                "write_8192",
                "--size",
                "1M",
                "--runs",
                "1",
                "--quiet",
                "--on",
                "./target",
                "--fresh",
                &fresh,
            ];
            let outcome = user.run(&line);
            assert_eq!(checksum(&device.path), before, "{outcome:?}");
            outcome.expect(2, &[says, "could name a device or a file", "allowed: "]);
            assert_eq!(entries(&user.target()), [""; 0], "{fresh}");
        }
    }
    assert!(user.stored().is_empty(), "nothing was begun");
}

/// What is passed on does arrive.
#[test]
fn options_of_mkfs_and_mount_are_passed_on() {
    for (specification, says) in [
        (
            "ext4:block_bytes=4096,mkfs=-m 0 -i 65536,mount=noatime",
            "noatime",
        ),
        (
            "xfs:block_bytes=4096,mkfs=-d agcount=2 -m reflink=0,mount=noatime",
            "noatime",
        ),
        (
            "btrfs:block_bytes=4096,mkfs=--metadata single,mount=nodatacow",
            "nodatacow",
        ),
    ] {
        let kind = specification.split(':').next().unwrap();
        let tool = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"]
            .into_iter()
            .find(|tool| tool.ends_with(kind))
            .unwrap();
        let needs = [Needs::LoopDevices, Needs::Tool(tool)];
        if !can_run("options_of_mkfs_and_mount_are_passed_on", &needs) {
            continue;
        }
        let user = User::new();
        let line = [
            "run",
            "write_8192",
            "--size",
            "1M",
            "--runs",
            "1",
            "--quiet",
            "--format",
            "json",
            "--on",
            "./target",
            "--fresh",
            specification,
        ];
        let outcome = user.run(&line).expect(0, &[]);
        assert!(outcome.stdout.contains(says), "{outcome:?}");
        user.assert_nothing_left(Path::new(specification));
    }
}
