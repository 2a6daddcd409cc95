//! Fresh file systems: made, written, checked, and gone without a trace.

mod support;

use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::fresh::{FreshError, FreshFilesystem, FreshSpec};
use diskperf_system::host::mounts::Mounts;
use diskperf_system::host::workspace::Workspace;
use std::fs::File;
use std::path::Path;
use support::{
    LoopDevice, Needs, Scratch, Undo, can_run, checksum, expect_no_loops_in, fill, mounts_in, run,
};

const MIB: u64 = 1 << 20;
const PAYLOAD_BYTES: u64 = 8 * MIB;

fn needs(kind: &'static str) -> Vec<Needs> {
    let tools = match kind {
        "ext2" => ["mkfs.ext2", "e2fsck"],
        "ext4" => ["mkfs.ext4", "e2fsck"],
        "xfs" => ["mkfs.xfs", "xfs_repair"],
        _ => ["mkfs.btrfs", "btrfs"],
    };
    let mut needs = vec![Needs::LoopDevices, Needs::Filesystem(kind)];
    needs.extend(tools.map(Needs::Tool));
    needs
}

fn make(workspace: &Workspace, spec: &str) -> Result<FreshFilesystem, FreshError> {
    FreshFilesystem::make_filesystem_image(
        workspace,
        &spec.parse::<FreshSpec>().unwrap(),
        PAYLOAD_BYTES,
    )
}

#[track_caller]
fn expect_nothing_left(scratch: &Scratch) {
    let path = scratch.path();
    assert_eq!(mounts_in(&path), [""; 0]);
    expect_no_loops_in(&path);
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
}

#[test]
fn each_kind_is_made_written_checked_and_removed() {
    for (kind, spec, block_bytes, option) in [
        ("ext2", "ext2:block_bytes=1024", 1024, "rw"),
        ("ext2", "ext2", 4096, "rw"),
        (
            "ext4",
            "ext4:block_bytes=1K,mount=noatime,mount=data=journal",
            1024,
            "data=journal",
        ),
        ("ext4", "ext4:size=64M,mkfs=-m 0 -i 65536", 4096, "relatime"),
        ("xfs", "xfs:block_bytes=1024,mount=noatime", 1024, "noatime"),
        ("btrfs", "btrfs:size=256M", 4096, "rw"),
    ] {
        if !can_run(spec, &needs(kind)) {
            continue;
        }
        let scratch = Scratch::new();
        let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
        let fresh = make(&workspace, spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(fresh.filesystem_kind().kind_name(), kind);
        assert_eq!(fresh.block_bytes(), block_bytes);
        assert!(fresh.mounted_directory().starts_with(workspace.path()));

        let mounts = Mounts::read_mounts().unwrap();
        let mount = mounts
            .mount_of_path(fresh.mounted_directory())
            .unwrap()
            .unwrap();
        assert_eq!(
            (mount.filesystem_type.as_str(), mount.mount_point.as_path()),
            (kind, fresh.mounted_directory())
        );
        let options = mount.combined_options();
        assert!(
            options.split(',').any(|word| word == option),
            "{spec}: {options}"
        );
        let space = rustix::fs::statvfs(fresh.mounted_directory()).unwrap();
        assert_eq!(space.f_frsize, block_bytes, "{spec}");
        assert!(space.f_bavail * space.f_frsize >= PAYLOAD_BYTES, "{spec}");
        expect_disk_underneath(fresh.mounted_directory(), &scratch.path());
        let opened = rustix::fs::fstat(fresh.open_directory().unwrap()).unwrap();
        let named = rustix::fs::stat(fresh.mounted_directory()).unwrap();
        assert_eq!(
            (opened.st_dev, opened.st_ino),
            (named.st_dev, named.st_ino),
            "{spec}"
        );

        fill(&fresh.mounted_directory().join("file"), 8, 0x5a);
        let report = fresh
            .unmount_and_check()
            .unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert!(report.is_clean(), "{spec}: {report}");
        workspace.remove().unwrap();
        expect_nothing_left(&scratch);
    }
}

/// The disk under a fresh file system is the one under its image.
#[track_caller]
fn expect_disk_underneath(fresh: &Path, scratch: &Path) {
    assert_eq!(
        BlockDevice::devices_of_directory(fresh).unwrap(),
        BlockDevice::devices_of_directory(scratch).unwrap()
    );
}

#[test]
fn only_its_own_root_is_opened() {
    const NAME: &str = "only_its_own_root_is_opened";
    for kind in ["ext2", "btrfs"] {
        if !can_run(NAME, &needs(kind)) {
            continue;
        }
        let scratch = Scratch::new();
        let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
        let fresh = make(&workspace, kind).unwrap();
        let open_error = || {
            fresh
                .open_directory()
                .expect_err("it is not there")
                .to_string()
        };

        // What is mounted over it is another file system, and so is what is
        // below once it is unmounted.
        let text = fresh.mounted_directory().display().to_string();
        run("mount", &["-t", "tmpfs", "none", &text]);
        let unmount = Undo::by(&["umount", &text]);
        assert!(open_error().contains("is not mounted on"), "{kind}");
        drop(unmount);
        fresh.open_directory().unwrap();
        drop(Undo::by(&["umount", &text]));
        assert!(open_error().contains("is not mounted on"), "{kind}");

        drop(fresh);
        drop(workspace);
        expect_nothing_left(&scratch);
    }
}

/// Whoever owns a directory above can put a link in its place.
#[test]
fn a_target_that_is_swapped_for_a_link_gets_nothing() {
    const NAME: &str = "a_target_that_is_swapped_for_a_link_gets_nothing";
    if !can_run(NAME, &needs("ext2")) {
        return;
    }
    let scratch = Scratch::new();
    let (target, moved) = (scratch.path().join("target"), scratch.path().join("moved"));
    let precious = scratch.path().join("precious");
    std::fs::create_dir(&target).unwrap();
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    let name = workspace.path().file_name().unwrap().to_owned();
    // The same names lead to another image.
    let trap = precious.join(&name).join("fresh-1");
    std::fs::create_dir_all(trap.join("files")).unwrap();
    fill(&trap.join("image"), 16, 7);
    let before = checksum(&trap.join("image"));

    std::fs::rename(&target, &moved).unwrap();
    std::os::unix::fs::symlink(&precious, &target).unwrap();
    let message = make(&workspace, "ext2:size=16M").unwrap_err().to_string();
    assert!(message.contains("is backed by another file"), "{message}");
    workspace.remove().unwrap();

    assert_eq!(checksum(&trap.join("image")), before);
    assert_eq!(std::fs::read_dir(trap.join("files")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&moved).unwrap().count(), 0);
    expect_no_loops_in(&scratch.path());
    assert_eq!(mounts_in(&scratch.path()), [""; 0]);
}

#[test]
fn a_mounted_one_outlives_the_swap_of_its_target() {
    const NAME: &str = "a_mounted_one_outlives_the_swap_of_its_target";
    if !can_run(NAME, &needs("ext2")) {
        return;
    }
    let scratch = Scratch::new();
    let (target, moved) = (scratch.path().join("target"), scratch.path().join("moved"));
    std::fs::create_dir(&target).unwrap();
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    let fresh = make(&workspace, "ext2:size=16M").unwrap();
    std::fs::rename(&target, &moved).unwrap();
    let elsewhere = scratch.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &target).unwrap();
    fresh.open_directory().unwrap();
    assert!(fresh.unmount_and_check().unwrap().is_clean());
    workspace.remove().unwrap();
    assert_eq!(std::fs::read_dir(&moved).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn the_image_has_all_its_blocks() {
    if !can_run("the_image_has_all_its_blocks", &needs("ext4")) {
        return;
    }
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
    let fresh = make(&workspace, "ext4:size=64M").unwrap();
    let image = fresh.mounted_directory().parent().unwrap().join("image");
    let status = image.metadata().unwrap();
    assert_eq!(status.len(), 64 * MIB);
    assert!(
        status.blocks() * 512 >= 64 * MIB,
        "{} blocks",
        status.blocks()
    );
}

#[test]
fn a_dropped_one_leaves_nothing() {
    if !can_run("a_dropped_one_leaves_nothing", &needs("ext2")) {
        return;
    }
    let scratch = Scratch::new();
    let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
    let fresh = make(&workspace, "ext2:size=16M").unwrap();
    // Open files do not keep a drop from unmounting.
    let open = File::create(fresh.mounted_directory().join("file")).unwrap();
    drop(fresh);
    assert_eq!(mounts_in(&scratch.path()), [""; 0]);
    drop(open);
    drop(workspace);
    expect_nothing_left(&scratch);
}

#[test]
fn a_busy_one_says_so_and_is_still_cleaned_up() {
    if !can_run("a_busy_one_says_so_and_is_still_cleaned_up", &needs("ext2")) {
        return;
    }
    let scratch = Scratch::new();
    let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
    let fresh = make(&workspace, "ext2:size=16M").unwrap();
    let open = File::create(fresh.mounted_directory().join("file")).unwrap();
    let message = fresh.unmount_and_check().unwrap_err().to_string();
    assert!(message.contains("cannot unmount"), "{message}");
    drop(open);
    workspace.remove().unwrap();
    expect_nothing_left(&scratch);
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    if !can_run(
        "what_cannot_be_is_refused_and_leaves_nothing",
        &needs("ext4"),
    ) {
        return;
    }
    let scratch = Scratch::new();
    for (spec, parts) in [
        (
            "ext4:block_bytes=3000",
            &["3000", "1024 or 2048 or 4096"][..],
        ),
        ("ext4:size=4M", &["too small", "size=8M"]),
        ("ext4:size=8M", &["for files", "make its image larger"]),
        (
            "ext4:size=900T",
            &["not enough space", "needed", "available"],
        ),
        ("ext4:mkfs=-m 99", &["mkfs.ext4", "failed"]),
        (
            "ext4:size=32M,mount=data=nonsense",
            &["mount", "nonsense", "failed"],
        ),
    ] {
        let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
        let message = make(&workspace, spec).expect_err(spec).to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{spec}: `{part}` is not in: {message}"
            );
        }
        workspace.remove().unwrap();
        expect_nothing_left(&scratch);
    }
}

#[test]
fn without_root_the_plain_form_is_named() {
    let scratch = Scratch::new();
    let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
    let message = support::without_root(|| make(&workspace, "ext4").unwrap_err().to_string());
    for part in ["needs root", "sudo", "`diskperf run`", "`--fresh`"] {
        assert!(message.contains(part), "{message}");
    }
    workspace.remove().unwrap();
    expect_nothing_left(&scratch);
}

/// What a former user of the loop device left would be parts of the image: who
/// opens one would read and write in the midst of the file system.
#[test]
fn partitions_of_a_former_user_are_not_those_of_the_image() {
    const NAME: &str = "partitions_of_a_former_user_are_not_those_of_the_image";
    const ATTEMPTS: usize = 10;
    let tools = ["sfdisk", "partx"].map(Needs::Tool);
    if !can_run(NAME, &[needs("ext2"), tools.to_vec()].concat()) {
        return;
    }
    for _ in 0..ATTEMPTS {
        let (elsewhere, scratch) = (Scratch::new(), Scratch::new());
        let left = LoopDevice::left_with_partitions(&elsewhere);
        let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
        let fresh = make(&workspace, "ext2:size=16M").unwrap();
        let mounts = Mounts::read_mounts().unwrap();
        let mount = mounts
            .mount_of_path(fresh.mounted_directory())
            .unwrap()
            .unwrap();
        let device = BlockDevice::from_path(&mount.mount_source).unwrap();
        assert_eq!(device.list_partitions().unwrap(), []);
        assert!(fresh.unmount_and_check().unwrap().is_clean());
        workspace.remove().unwrap();
        if device.path() == left {
            return;
        }
        // Somebody else was first, with a device that is not as it should be.
        let _ = std::process::Command::new("partx")
            .arg("--delete")
            .arg(&left)
            .output();
    }
    eprintln!("SKIPPED {NAME}: in {ATTEMPTS} attempts somebody else was first");
}
