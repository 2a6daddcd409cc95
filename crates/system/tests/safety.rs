//! A block device is written only if the user named it and it is provably
//! idle; and a refusal changes none of its bytes.

mod support;

use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::safety::{ClaimedDevice, WriteRefusal, claim_for_writing};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use support::{LoopDevice, Needs, Scratch, Undo, can_run, checksum, fill, run};

const LOOPS: &[Needs] = &[Needs::LoopDevices, Needs::Tool("wipefs")];

fn device(path: &Path) -> BlockDevice {
    BlockDevice::from_path(path).unwrap()
}

/// Asks to write to `path`, expects a refusal whose message has all `parts`,
/// and that no byte of the device has changed. It is tried again while losetup has the
/// device open, with which another test looks for a free one.
#[track_caller]
fn expect_refusal(
    path: &Path,
    named: &Path,
    ignore_signature: bool,
    parts: &[&str],
) -> WriteRefusal {
    let before = checksum(path);
    let refusal = support::retry(|| {
        let refusal = claim_for_writing(&device(path), named, ignore_signature)
            .expect_err("the device must be refused");
        match refusal.to_string() {
            message if message.contains("(losetup)") => Err(message),
            _ => Ok(refusal),
        }
    });
    let message = refusal.to_string();
    let name = path.canonicalize().unwrap().display().to_string();
    for part in parts.iter().copied().chain([name.as_str()]) {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert_eq!(checksum(path), before, "a refusal changed the device");
    refusal
}

/// Claims a device. It is tried again, because a process that another test is
/// just starting has a copy of a claim that this one has given back.
#[track_caller]
fn claim(path: &Path, named: &Path, ignore_signature: bool) -> ClaimedDevice {
    support::retry(|| {
        claim_for_writing(&device(path), named, ignore_signature)
            .map_err(|refusal| refusal.to_string())
    })
}

/// Expects that `path` may be claimed, and that claiming changes nothing.
#[track_caller]
fn expect_claim(path: &Path, named: &Path, ignore_signature: bool) {
    let before = checksum(path);
    let claimed = claim(path, named, ignore_signature);
    assert_eq!(
        claimed.device().device_number(),
        device(path).device_number()
    );
    drop(claimed);
    assert_eq!(checksum(path), before, "a claim changed the device");
}

#[test]
fn a_blank_device_is_claimed_and_kept() {
    if !can_run("a_blank_device_is_claimed_and_kept", LOOPS) {
        return;
    }
    let scratch = Scratch::new();
    let blank = LoopDevice::blank(&scratch, 4);
    expect_claim(&blank.path, &blank.path, false);

    let claimed = claim(&blank.path, &blank.path, false);
    let refusal = expect_refusal(&blank.path, &blank.path, false, &["in use", "fuser"]);
    assert!(
        matches!(refusal, WriteRefusal::InUseByKernel { .. }),
        "{refusal:?}"
    );
    drop(claimed);
    expect_claim(&blank.path, &blank.path, false);
}

#[test]
fn device_numbers_are_compared_and_not_names() {
    if !can_run("device_numbers_are_compared_and_not_names", LOOPS) {
        return;
    }
    let scratch = Scratch::new();
    let (ours, other) = (
        LoopDevice::blank(&scratch, 2),
        LoopDevice::blank(&scratch, 2),
    );
    let link = |name: &str, to: &Path| {
        let link = scratch.path().join(name);
        std::os::unix::fs::symlink(to, &link).unwrap();
        link
    };
    let to_ours = link("ours", &ours.path);
    let to_link = link("ours-again", &to_ours);
    let to_other = link("other", &other.path);
    // A node of our own is the same device under a name without any link.
    let node = scratch.path().join("node");
    let minor = ours.name().trim_start_matches("loop").to_owned();
    run("mknod", &[node.to_str().unwrap(), "b", "7", &minor]);

    for (path, named) in [
        (&ours.path, &to_ours),
        (&to_link, &ours.path),
        (&to_link, &to_ours),
        (&ours.path, &node),
        (&node, &to_link),
    ] {
        expect_claim(path, named, false);
    }
    for named in [&other.path, &to_other] {
        let parts = [
            "names another device",
            "--destroy-data-on",
            named.to_str().unwrap(),
        ];
        let refusal = expect_refusal(&ours.path, named, true, &parts);
        assert!(
            matches!(refusal, WriteRefusal::PermittedOtherDevice { .. }),
            "{refusal:?}"
        );
    }
    for (named, part) in [
        (Path::new("/dev/null"), "not a block device"),
        (&scratch.path().join("nothing"), "does not exist"),
    ] {
        let refusal = expect_refusal(&ours.path, named, true, &[part]);
        assert!(
            matches!(refusal, WriteRefusal::PermittedNoDevice { .. }),
            "{refusal:?}"
        );
    }
}

#[test]
fn a_mounted_device_is_refused() {
    let needs = [LOOPS, &[Needs::Tool("mkfs.ext4")]].concat();
    if !can_run("a_mounted_device_is_refused", &needs) {
        return;
    }
    let scratch = Scratch::new();
    let mounted = LoopDevice::blank(&scratch, 8);
    run("mkfs.ext4", &["-q", &mounted.text()]);
    let mount_point = scratch.path().join("mount point");
    std::fs::create_dir(&mount_point).unwrap();
    let mount_point = mount_point.display().to_string();
    run("mount", &["-o", "ro", &mounted.text(), &mount_point]);
    let unmount = Undo::by(&["umount", &mount_point]);

    let parts = ["is mounted on", &mount_point, "umount"];
    let refusal = expect_refusal(&mounted.path, &mounted.path, true, &parts);
    assert!(
        matches!(refusal, WriteRefusal::MountedFilesystem { .. }),
        "{refusal:?}"
    );
    drop(unmount);
    expect_claim(&mounted.path, &mounted.path, true);
}

#[test]
fn a_mounted_member_of_a_btrfs_is_refused() {
    let needs = [
        LOOPS,
        &[Needs::Tool("mkfs.btrfs"), Needs::Filesystem("btrfs")],
    ]
    .concat();
    if !can_run("a_mounted_member_of_a_btrfs_is_refused", &needs) {
        return;
    }
    let scratch = Scratch::new();
    let members = [
        LoopDevice::blank(&scratch, 128),
        LoopDevice::blank(&scratch, 128),
    ];
    run(
        "mkfs.btrfs",
        &["-q", "-K", &members[0].text(), &members[1].text()],
    );
    run("btrfs", &["device", "scan", &members[0].text()]);
    run("btrfs", &["device", "scan", &members[1].text()]);
    let mount_point = scratch.path().display().to_string() + "/mount";
    std::fs::create_dir(&mount_point).unwrap();
    run("mount", &["-o", "ro", &members[0].text(), &mount_point]);
    let unmount = Undo::by(&["umount", &mount_point]);

    // The kernel shows such a file system under a number of no device's.
    for member in &members {
        let refusal = expect_refusal(&member.path, &member.path, true, &["is not written"]);
        let used = matches!(
            refusal,
            WriteRefusal::MountedFilesystem { .. } | WriteRefusal::InUseByKernel { .. }
        );
        assert!(used, "{refusal:?}");
    }
    drop(unmount);
    for member in &members {
        expect_claim(&member.path, &member.path, true);
        run("btrfs", &["device", "scan", "--forget", &member.text()]);
    }
}

#[test]
fn a_swap_device_is_refused() {
    let needs = [LOOPS, &[Needs::Tool("mkswap"), Needs::Tool("swapon")]].concat();
    if !can_run("a_swap_device_is_refused", &needs) {
        return;
    }
    let scratch = Scratch::new();
    let swap = LoopDevice::blank(&scratch, 4);
    run("mkswap", &["-q", &swap.text()]);
    let unused = expect_refusal(
        &swap.path,
        &swap.path,
        false,
        &["swap at", "--ignore-signature"],
    );
    assert!(
        matches!(unused, WriteRefusal::HasSignature { .. }),
        "{unused:?}"
    );

    // Without a priority it is the last swap to be used.
    run("swapon", &[&swap.text()]);
    let swap_off = Undo::by(&["swapoff", &swap.text()]);
    let parts = ["is swap", "swapoff"];
    let refusal = expect_refusal(&swap.path, &swap.path, true, &parts);
    assert!(
        matches!(refusal, WriteRefusal::UsedAsSwap { .. }),
        "{refusal:?}"
    );
    drop(swap_off);
    expect_claim(&swap.path, &swap.path, true);
}

#[test]
fn a_device_that_another_loop_device_shows_is_refused() {
    if !can_run("a_device_that_another_loop_device_shows_is_refused", LOOPS) {
        return;
    }
    let scratch = Scratch::new();
    let below = LoopDevice::blank(&scratch, 2);
    let above = LoopDevice::over(&below.path, &[]);
    let parts = [" backs ", &above.text(), "losetup --detach"];
    let refusal = expect_refusal(&below.path, &below.path, true, &parts);
    assert!(
        matches!(refusal, WriteRefusal::AttachedToLoop { .. }),
        "{refusal:?}"
    );
    expect_claim(&above.path, &above.path, false);
}

#[test]
fn a_device_whose_file_another_loop_device_shows_is_refused() {
    const NAME: &str = "a_device_whose_file_another_loop_device_shows_is_refused";
    let needs = [LOOPS, &[Needs::Tool("mkfs.ext2")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.path().join("image");
    fill(&image, 4, 0);
    let ours = LoopDevice::over(&image, &[]);
    // The same file by another name.
    let linked = scratch.path().join("linked");
    std::fs::hard_link(&image, &linked).unwrap();
    let other = LoopDevice::over(&linked, &[]);
    run("mkfs.ext2", &["-q", &other.text()]);
    let mount_point = scratch.path().join("mount").display().to_string();
    std::fs::create_dir(&mount_point).unwrap();
    run("mount", &["-o", "ro", &other.text(), &mount_point]);
    let unmount = Undo::by(&["umount", &mount_point]);
    let before = checksum(&image);

    // A node of our own is the same device under another name.
    let node = scratch.path().join("node");
    let minor = ours.name().trim_start_matches("loop").to_owned();
    run("mknod", &[node.to_str().unwrap(), "b", "7", &minor]);
    for path in [&ours.path, &node] {
        let parts = [
            "has the same backing file as",
            &other.text(),
            image.to_str().unwrap(),
            "losetup --detach",
        ];
        let refusal = expect_refusal(path, path, true, &parts);
        assert!(
            matches!(refusal, WriteRefusal::SharedBackingFile { .. }),
            "{refusal:?}"
        );
    }
    // A loop device over the refused one has the same file's bytes.
    let above = LoopDevice::over(&ours.path, &[]);
    let parts = ["has the same backing file as", &other.text()];
    let refusal = expect_refusal(&above.path, &above.path, true, &parts);
    assert!(
        matches!(refusal, WriteRefusal::SharedBackingFile { .. }),
        "{refusal:?}"
    );
    drop(above);

    assert_eq!(checksum(&image), before);
    drop(unmount);
    drop(other);
    expect_claim(&ours.path, &ours.path, true);
}

#[test]
fn a_device_that_shows_one_in_use_is_refused() {
    const NAME: &str = "a_device_that_shows_one_in_use_is_refused";
    let needs = [LOOPS, &[Needs::Tool("mkfs.ext2")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let scratch = Scratch::new();
    let below = LoopDevice::blank(&scratch, 4);
    run("mkfs.ext2", &["-q", &below.text()]);
    let mount_point = scratch.path().join("mount").display().to_string();
    std::fs::create_dir(&mount_point).unwrap();
    let above = LoopDevice::over(&below.path, &[]);
    run("mount", &["-o", "ro", &below.text(), &mount_point]);
    let unmount = Undo::by(&["umount", &mount_point]);

    let parts = [&*below.text(), "is mounted on", &mount_point];
    let refusal = expect_refusal(&above.path, &above.path, true, &parts);
    assert!(
        matches!(refusal, WriteRefusal::MountedFilesystem { .. }),
        "{refusal:?}"
    );
    drop(unmount);
    expect_claim(&above.path, &above.path, true);
}

#[test]
fn a_read_only_device_is_refused() {
    if !can_run("a_read_only_device_is_refused", LOOPS) {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.path().join("image");
    fill(&image, 2, 0);
    let read_only = LoopDevice::over(&image, &["--read-only"]);
    let refusal = expect_refusal(&read_only.path, &read_only.path, true, &["is read-only"]);
    assert!(
        matches!(refusal, WriteRefusal::ReadOnlyDevice { .. }),
        "{refusal:?}"
    );
}

#[test]
fn signatures_are_refused_unless_ignored() {
    if !can_run("signatures_are_refused_unless_ignored", LOOPS) {
        return;
    }
    let makers: [(&str, usize, &[&str], &str); 5] = [
        ("mkfs.ext2", 4, &["-q"], "ext2 at 0x438"),
        ("mkfs.ext4", 8, &["-q"], "ext4 at 0x438"),
        ("mkfs.xfs", 300, &["-q", "-K"], "xfs at 0x0"),
        ("mkfs.btrfs", 128, &["-q", "-K"], "btrfs at 0x10040"),
        ("mkswap", 4, &["-q"], "swap at 0xff6"),
    ];
    for (tool, mib, options, found) in makers {
        if !can_run(tool, &[Needs::Tool(tool)]) {
            continue;
        }
        let scratch = Scratch::new();
        let signed = LoopDevice::blank(&scratch, mib);
        run(tool, &[options, &[&signed.text()]].concat());
        let parts = ["contains", found, "--ignore-signature"];
        let refusal = expect_refusal(&signed.path, &signed.path, false, &parts);
        assert!(
            matches!(refusal, WriteRefusal::HasSignature { .. }),
            "{refusal:?}"
        );
        expect_claim(&signed.path, &signed.path, true);
    }
}

/// Writes a table of two partitions, and has the kernel show them.
fn partitioned(scratch: &Scratch, label: &str) -> LoopDevice {
    let disk = LoopDevice::blank(scratch, 24);
    let script = scratch.path().join("partitions");
    std::fs::write(&script, format!("label: {label}\nsize=8M\nsize=8M\n")).unwrap();
    let command = format!(
        "sfdisk --quiet --no-reread {} < {}",
        disk.text(),
        script.display()
    );
    run("sh", &["-c", &command]);
    disk.add_partitions();
    disk
}

#[test]
fn a_partition_table_is_a_signature() {
    let needs = [LOOPS, &[Needs::Tool("sfdisk"), Needs::Tool("partx")]].concat();
    if !can_run("a_partition_table_is_a_signature", &needs) {
        return;
    }
    for (label, found) in [("dos", "dos at 0x1fe"), ("gpt", "gpt at 0x200")] {
        let scratch = Scratch::new();
        let disk = partitioned(&scratch, label);
        let parts = ["contains", found, "--ignore-signature"];
        let refusal = expect_refusal(&disk.path, &disk.path, false, &parts);
        assert!(
            matches!(refusal, WriteRefusal::HasSignature { .. }),
            "{refusal:?}"
        );
        expect_claim(&disk.path, &disk.path, true);
    }
}

#[test]
fn a_disk_with_a_partition_in_use_is_refused() {
    const NAME: &str = "a_disk_with_a_partition_in_use_is_refused";
    let tools = ["sfdisk", "partx", "mkfs.ext2", "mkswap", "swapon"].map(Needs::Tool);
    if !can_run(NAME, &[LOOPS, &tools].concat()) {
        return;
    }
    let scratch = Scratch::new();
    let disk = partitioned(&scratch, "dos");
    let partitions = device(&disk.path).list_partitions().unwrap();
    let [first, second] = &partitions[..] else {
        eprintln!("SKIPPED {NAME}: this kernel shows no partitions of a loop device");
        return;
    };
    if !first.path().exists() || !second.path().exists() {
        eprintln!("SKIPPED {NAME}: nothing makes nodes of partitions in /dev");
        return;
    }
    let (one, two) = (
        first.path().display().to_string(),
        second.path().display().to_string(),
    );
    assert_eq!(first.whole_disk().unwrap(), device(&disk.path));

    // A partition that nobody uses carries no signature of the disk's.
    expect_claim(second.path(), second.path(), false);

    run("mkfs.ext2", &["-q", &one]);
    let mount_point = scratch.path().join("mount").display().to_string();
    std::fs::create_dir(&mount_point).unwrap();
    run("mount", &["-o", "ro", &one, &mount_point]);
    let unmount = Undo::by(&["umount", &mount_point]);
    for path in [&disk.path, first.path()] {
        let parts = [one.as_str(), "is mounted on", &mount_point];
        let refusal = expect_refusal(path, path, true, &parts);
        assert!(
            matches!(refusal, WriteRefusal::MountedFilesystem { .. }),
            "{refusal:?}"
        );
    }
    // Its sibling is not in the way.
    expect_claim(second.path(), second.path(), false);
    drop(unmount);

    run("mkswap", &["-q", &two]);
    run("swapon", &[&two]);
    let swap_off = Undo::by(&["swapoff", &two]);
    for path in [&disk.path, second.path()] {
        let refusal = expect_refusal(path, path, true, &[two.as_str(), "is swap"]);
        assert!(
            matches!(refusal, WriteRefusal::UsedAsSwap { .. }),
            "{refusal:?}"
        );
    }
    drop(swap_off);

    let above = LoopDevice::over(first.path(), &[]);
    let parts = [one.as_str(), " backs ", &above.text()];
    let refusal = expect_refusal(&disk.path, &disk.path, true, &parts);
    assert!(
        matches!(refusal, WriteRefusal::AttachedToLoop { .. }),
        "{refusal:?}"
    );
    drop(above);

    // The whole disk, claimed, keeps its partitions, and one of them the disk.
    let claimed = claim(&disk.path, &disk.path, true);
    let refusal = expect_refusal(first.path(), first.path(), true, &["in use"]);
    assert!(
        matches!(refusal, WriteRefusal::InUseByKernel { .. }),
        "{refusal:?}"
    );
    drop(claimed);
    let claimed = claim(first.path(), first.path(), true);
    let refusal = expect_refusal(&disk.path, &disk.path, true, &["in use"]);
    assert!(
        matches!(refusal, WriteRefusal::InUseByKernel { .. }),
        "{refusal:?}"
    );
    drop(claimed);
}

#[test]
fn a_device_held_by_device_mapper_is_refused() {
    const NAME: &str = "a_device_held_by_device_mapper_is_refused";
    let needs = [LOOPS, &[Needs::Tool("dmsetup")]].concat();
    if !can_run(NAME, &needs) {
        return;
    }
    let has_driver = std::process::Command::new("dmsetup")
        .arg("version")
        .output();
    if !has_driver.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED {NAME}: this kernel has no device mapper");
        return;
    }
    let scratch = Scratch::new();
    let below = LoopDevice::blank(&scratch, 2);
    let name = format!("diskperf-test-{:08x}", support::unique());
    let table = format!("0 4096 linear {} 0", below.text());
    run("dmsetup", &["create", &name, "--table", &table]);
    let remove = Undo::by(&["dmsetup", "remove", "--retry", &name]);
    let refusal = expect_refusal(&below.path, &below.path, true, &["device mapper"]);
    assert!(
        matches!(refusal, WriteRefusal::HeldByOtherDevice { .. }),
        "{refusal:?}"
    );
    drop(remove);
}

#[test]
fn reading_needs_no_claim() {
    if !can_run("reading_needs_no_claim", LOOPS) {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.path().join("image");
    fill(&image, 1, 7);
    let read_only = LoopDevice::over(&image, &["--read-only"]);
    let mut bytes = Vec::new();
    let opened = device(&read_only.path).open_device(OFlags::RDONLY).unwrap();
    File::from(opened).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 1 << 20);
    assert!(bytes.iter().all(|&byte| byte == 7));
}

#[test]
fn a_node_that_became_another_device_is_not_opened() {
    const NAME: &str = "a_node_that_became_another_device_is_not_opened";
    if !can_run(NAME, LOOPS) {
        return;
    }
    let scratch = Scratch::new();
    let devices = [
        LoopDevice::blank(&scratch, 1),
        LoopDevice::blank(&scratch, 1),
    ];
    let node = scratch.path().join("node");
    let [first, second] = devices.each_ref().map(|looped| {
        let _ = std::fs::remove_file(&node);
        let minor = looped.name().trim_start_matches("loop").to_owned();
        run("mknod", &[node.to_str().unwrap(), "b", "7", &minor]);
        device(&node)
    });
    second.open_device(OFlags::RDONLY).unwrap();
    let message = first.open_device(OFlags::RDONLY).unwrap_err().to_string();
    assert!(
        message.contains("is no longer block device 7:"),
        "{message}"
    );
    let refusal = claim_for_writing(&first, &devices[0].path, true).unwrap_err();
    assert!(
        matches!(refusal, WriteRefusal::CannotOpen { .. }),
        "{refusal:?}"
    );
}
