//! Workspaces: a folder of one's own, removed with its owner, and found when
//! the owner was killed; never the folder of a living one.

mod support;

use diskperf_system::host::fresh::{FreshFilesystem, FreshSpec, enter_private_mounts};
use diskperf_system::host::workspace::{Workspace, WorkspaceError};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use support::{
    LoopDevice, Needs, Scratch, Undo, can_run, expect_no_loops_in, loops_in, mounts_in, run,
};

const MARKER: &str = "diskperf-workspace";
/// Tells a child process of these tests where to work, and how often.
const CHILD_TARGET: &str = "DISKPERF_TEST_TARGET";
const CHILD_ROUNDS: &str = "DISKPERF_TEST_ROUNDS";

fn folders_in(directory: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    folders
}

#[track_caller]
fn expect_empty(directory: &Path) {
    assert_eq!(folders_in(directory), Vec::<PathBuf>::new());
}

#[track_caller]
fn expect_abandoned(directory: &Path, expected: &[&Path]) {
    let found = Workspace::abandoned_in(directory).unwrap();
    let found: Vec<_> = found.iter().map(|abandoned| abandoned.path()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_workspace_is_a_new_folder_and_goes_with_its_owner() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let target = scratch.path();
    let first = Workspace::create(&target, 1 << 20, |_| ()).unwrap();
    let second = Workspace::create(&target, 1 << 20, |_| ()).unwrap();
    assert_ne!(first.path(), second.path());
    assert_eq!(first.path().parent(), Some(target.as_path()));
    assert_eq!(first.path().metadata().unwrap().mode() & 0o777, 0o700);
    let marker = std::fs::read_to_string(first.path().join(MARKER)).unwrap();
    for part in [
        &format!("pid {}\n", std::process::id()),
        "started_unix_ms ",
        "version ",
    ] {
        assert!(marker.contains(part), "{marker}");
    }
    expect_abandoned(&target, &[]);

    std::fs::create_dir_all(first.path().join("a/b")).unwrap();
    std::fs::write(first.path().join("a/b/file"), "text").unwrap();
    first.remove().unwrap();
    assert_eq!(folders_in(&target), [second.path()]);
    drop(second);
    expect_empty(&target);
}

#[test]
fn a_workspace_is_announced_before_it_is_made() {
    let scratch = Scratch::new();
    let mut announced = Vec::new();
    let workspace = Workspace::create(&scratch.path(), 0, |path| {
        expect_empty(&scratch.path());
        announced.push(path.to_owned());
    })
    .unwrap();
    assert_eq!(announced, [workspace.path()]);
}

/// The names that are announced first are taken, so that no folder can be made.
#[test]
fn each_name_that_is_tried_is_announced() {
    let scratch = Scratch::new();
    let mut announced: Vec<PathBuf> = Vec::new();
    let workspace = Workspace::create(&scratch.path(), 0, |path| {
        match announced.len() {
            0 => std::fs::create_dir(path).unwrap(),
            1 => std::os::unix::fs::symlink(&announced[0], path).unwrap(),
            _ => {}
        }
        announced.push(path.to_owned());
    })
    .unwrap();
    assert_eq!(announced.len(), 3);
    assert_eq!(announced[2], workspace.path());
    workspace.remove().unwrap();
    expect_empty(&announced[0]);
    announced.truncate(2);
    announced.sort();
    assert_eq!(folders_in(&scratch.path()), announced);
}

/// Whoever owns a directory above can put a link in its place.
#[test]
fn a_workspace_stays_itself_when_its_path_leads_elsewhere() {
    use std::os::fd::AsRawFd;
    let scratch = Scratch::new();
    let (target, moved) = (scratch.path().join("target"), scratch.path().join("moved"));
    let precious = scratch.path().join("precious");
    std::fs::create_dir(&target).unwrap();
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    let name = workspace.path().file_name().unwrap().to_owned();
    let trap = precious.join(&name);
    std::fs::create_dir_all(&trap).unwrap();
    std::fs::write(trap.join("file"), "text").unwrap();
    std::fs::copy(workspace.path().join(MARKER), trap.join(MARKER)).unwrap();

    std::fs::rename(&target, &moved).unwrap();
    std::os::unix::fs::symlink(&precious, &target).unwrap();
    let through = format!("/proc/self/fd/{}/file", workspace.directory().as_raw_fd());
    std::fs::write(through, "ours").unwrap();
    let ours = std::fs::read_to_string(moved.join(&name).join("file")).unwrap();
    assert_eq!(ours, "ours");
    workspace.remove().unwrap();
    expect_empty(&moved);
    assert_eq!(folders_in(&trap), [trap.join(MARKER), trap.join("file")]);
    assert_eq!(std::fs::read_to_string(trap.join("file")).unwrap(), "text");
}

#[test]
fn a_folder_that_was_moved_or_replaced_is_not_removed() {
    let scratch = Scratch::new();
    let target = scratch.path();
    for replaced in [false, true] {
        let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
        let path = workspace.path().to_owned();
        let moved = target.join("moved");
        std::fs::rename(&path, &moved).unwrap();
        if replaced {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("file"), "text").unwrap();
        }
        let error = workspace.remove().unwrap_err();
        assert!(
            matches!(error, WorkspaceError::FolderReplaced { .. }),
            "{error}"
        );
        assert!(moved.join(MARKER).exists());
        assert_eq!(path.join("file").exists(), replaced);
        std::fs::remove_dir_all(&moved).unwrap();
    }
    // What somebody else has removed is no error.
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    std::fs::remove_dir_all(workspace.path()).unwrap();
    workspace.remove().unwrap();
    // Nor is a marker that is gone already, in the folder that was made; but one
    // that somebody put in its place is.
    let scratch = Scratch::new();
    let target = scratch.path();
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    let marker = workspace.path().join(MARKER);
    std::fs::remove_file(&marker).unwrap();
    std::fs::write(workspace.path().join("file"), "text").unwrap();
    workspace.remove().unwrap();
    expect_empty(&target);
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    let marker = workspace.path().join(MARKER);
    std::fs::remove_file(&marker).unwrap();
    std::fs::write(&marker, "another").unwrap();
    let error = workspace.remove().unwrap_err();
    assert!(
        matches!(error, WorkspaceError::FolderReplaced { .. }),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), "another");
}

/// What a server of a file system had renamed when it was killed.
#[test]
fn hidden_files_do_not_make_a_folder_look_used() {
    let scratch = Scratch::new();
    let target = scratch.path();
    let dead = dead_pid();
    for hidden in [
        ".fuse_hidden0000000300000002",
        ".nfs000000000084006000000001",
    ] {
        let folder = target.join(format!("diskperf-{dead}-00ff3a"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(hidden), "text").unwrap();
        expect_abandoned(&target, &[&folder]);
        for abandoned in Workspace::abandoned_in(&target).unwrap() {
            abandoned.remove().unwrap();
        }
        expect_empty(&target);
    }
}

/// The folder cannot be removed in the end, and is found by whoever looks later.
#[test]
fn a_folder_that_stays_can_be_told() {
    const NAME: &str = "a_folder_that_stays_can_be_told";
    let Some((scratch, _unmount)) = served(NAME) else {
        return;
    };
    let target = scratch.path().join("target");
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    let folder = workspace.path().to_owned();
    // Open for longer than anybody waits.
    let reader = std::fs::File::open(folder.join(MARKER)).unwrap();
    workspace.remove().unwrap_err();
    drop(reader);
    expect_abandoned(&target, &[&folder]);
    for abandoned in Workspace::abandoned_in(&target).unwrap() {
        abandoned.remove().unwrap();
    }
    expect_empty(&scratch.path().join("behind"));
}

#[test]
fn links_are_removed_and_not_followed() {
    let scratch = Scratch::new();
    let precious = scratch.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("file"), "text").unwrap();
    let target = scratch.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let workspace = Workspace::create(&target, 0, |_| ()).unwrap();
    std::os::unix::fs::symlink(&precious, workspace.path().join("folder")).unwrap();
    std::fs::create_dir(workspace.path().join("in")).unwrap();
    std::os::unix::fs::symlink(&precious, workspace.path().join("in/folder")).unwrap();
    std::os::unix::fs::symlink(precious.join("file"), workspace.path().join("file")).unwrap();
    workspace.remove().unwrap();
    expect_empty(&target);
    assert_eq!(
        std::fs::read_to_string(precious.join("file")).unwrap(),
        "text"
    );
}

#[test]
fn targets_that_cannot_be_are_named_with_a_remedy() {
    let scratch = Scratch::new();
    let file = scratch.path().join("file");
    std::fs::write(&file, "").unwrap();
    let never = |path: &Path| panic!("{} is announced", path.display());
    for (target, needed_bytes, parts) in [
        (
            scratch.path().join("nothing"),
            0,
            &["nothing does not exist", "mkdir -p"][..],
        ),
        (file.clone(), 0, &["file is not a directory"]),
        (file.join("below"), 0, &["is not a directory"]),
        (
            PathBuf::from("/proc"),
            0,
            &["/proc cannot be written to", "name a directory"],
        ),
        (
            scratch.path(),
            1 << 62,
            &["not enough space", "TiB needed", "available", "--size"],
        ),
    ] {
        let message = Workspace::create(&target, needed_bytes, never)
            .unwrap_err()
            .to_string();
        for part in parts {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
    assert_eq!(folders_in(&scratch.path()), [file]);
}

#[test]
fn another_users_directory_and_folders_are_left_alone() {
    const NAME: &str = "another_users_directory_and_folders_are_left_alone";
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {NAME}: only root can make files of another user");
        return;
    }
    // The build directory may be hidden from other users.
    let target = tempfile::tempdir().unwrap();
    let target = target.path().canonicalize().unwrap();
    std::fs::set_permissions(&target, Permissions::from_mode(0o755)).unwrap();
    let folder = target.join(format!("diskperf-{}-00cd00", dead_pid()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(MARKER), "text").unwrap();
    for mode in [0o700, 0o777] {
        std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        support::without_root(|| expect_abandoned(&target, &[]));
    }
    expect_abandoned(&target, &[&folder]);
    // Nor a folder of this user's that another made look like a workspace.
    let marker = folder.join(MARKER);
    std::os::unix::fs::chown(&marker, Some(65_534), None).unwrap();
    expect_abandoned(&target, &[]);
    std::os::unix::fs::chown(&marker, Some(0), None).unwrap();
    std::fs::hard_link(&marker, target.join("link")).unwrap();
    expect_abandoned(&target, &[]);
    std::fs::remove_file(target.join("link")).unwrap();
    expect_abandoned(&target, &[&folder]);

    let error = support::without_root(|| Workspace::create(&target, 0, |_| ()).unwrap_err());
    let message = error.to_string();
    for part in [
        &*target.to_string_lossy(),
        "no permission to make a folder",
        "sudo",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

/// Mounts a small ext2 in a scratch directory.
fn mounted_ext2(scratch: &Scratch, device: &LoopDevice, options: &str) -> (PathBuf, Undo) {
    let mount_point = scratch.path().join("mount");
    std::fs::create_dir_all(&mount_point).unwrap();
    let text = mount_point.display().to_string();
    run("mount", &["-o", options, &device.text(), &text]);
    (mount_point, Undo::by(&["umount", &text]))
}

#[test]
fn full_and_read_only_file_systems_are_refused() {
    const NAME: &str = "full_and_read_only_file_systems_are_refused";
    if !can_run(NAME, &[Needs::LoopDevices, Needs::Tool("mkfs.ext2")]) {
        return;
    }
    let scratch = Scratch::new();
    let device = LoopDevice::blank(&scratch, 8);
    // Half of it is kept for root, and is not for a measurement.
    run("mkfs.ext2", &["-q", "-m", "50", &device.text()]);
    {
        let (target, _unmount) = mounted_ext2(&scratch, &device, "rw");
        let error = Workspace::create(&target, 5 << 20, |_| ()).unwrap_err();
        let WorkspaceError::NotEnoughSpace {
            available_bytes, ..
        } = error
        else {
            panic!("{error}");
        };
        assert!(available_bytes < 4 << 20, "{available_bytes}");
        Workspace::create(&target, 1 << 20, |_| ())
            .unwrap()
            .remove()
            .unwrap();
    }
    let (target, _unmount) = mounted_ext2(&scratch, &device, "ro");
    let error = Workspace::create(&target, 0, |_| ()).unwrap_err();
    assert!(matches!(error, WorkspaceError::ReadOnly { .. }), "{error}");
}

#[test]
fn a_mount_inside_keeps_the_folder_from_being_removed() {
    const NAME: &str = "a_mount_inside_keeps_the_folder_from_being_removed";
    if !can_run(NAME, &[Needs::LoopDevices]) {
        return;
    }
    let scratch = Scratch::new();
    let precious = scratch.path().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("file"), "text").unwrap();
    let workspace = Workspace::create(&scratch.path(), 0, |_| ()).unwrap();
    let folder = workspace.path().to_owned();
    let inside = folder.join("in side");
    std::fs::create_dir(&inside).unwrap();
    // The same file system again, which no device number tells apart.
    run(
        "mount",
        &[
            "--bind",
            precious.to_str().unwrap(),
            inside.to_str().unwrap(),
        ],
    );
    let unmount = Undo::by(&["umount", inside.to_str().unwrap()]);
    let error = workspace.remove().unwrap_err();
    assert!(
        matches!(&error, WorkspaceError::MountedInside { mount_point, .. } if *mount_point == inside),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(precious.join("file")).unwrap(),
        "text"
    );

    // Its owner has given up; `abandoned` unmounts first.
    std::mem::forget(unmount);
    let found = Workspace::abandoned_in(&scratch.path()).unwrap();
    assert_eq!(found.len(), 1);
    for abandoned in found {
        abandoned.remove().unwrap();
    }
    assert!(!folder.exists());
    assert_eq!(
        std::fs::read_to_string(precious.join("file")).unwrap(),
        "text"
    );
}

#[test]
fn only_folders_of_dead_owners_are_abandoned() {
    let scratch = Scratch::new();
    let target = scratch.path();
    let dead = dead_pid();
    let alive = std::process::id();
    let folder = |name: String, marker: Option<&str>, file: bool| -> PathBuf {
        let folder = target.join(name);
        std::fs::create_dir(&folder).unwrap();
        if let Some(text) = marker {
            std::fs::write(folder.join(MARKER), text).unwrap();
        }
        if file {
            std::fs::write(folder.join("file"), "text").unwrap();
        }
        folder
    };
    let abandoned = [
        folder(format!("diskperf-{dead}-000001"), Some("text"), true),
        folder(format!("diskperf-{dead}-000002"), Some(""), false),
        folder(format!("diskperf-{dead}-000003"), None, false),
        // The process number was given to another process since.
        folder(format!("diskperf-{alive}-000004"), Some("text"), true),
    ];
    let mut kept = vec![
        folder(format!("diskperf-{dead}-000005"), None, true),
        folder(format!("diskperf-{alive}-000006"), None, false),
        folder(format!("diskperf-{alive}-000007"), Some(""), false),
        folder(format!("diskperf-{dead}-00000"), Some("text"), true),
        folder(format!("other-{dead}-000008"), Some("text"), true),
    ];
    let linked = target.join(format!("diskperf-{dead}-000009"));
    std::os::unix::fs::symlink(&kept[4], &linked).unwrap();
    let folder_as_marker = target.join(format!("diskperf-{dead}-00000a"));
    std::fs::create_dir_all(folder_as_marker.join(MARKER)).unwrap();
    kept.extend([linked, folder_as_marker]);

    let mut expected: Vec<&Path> = abandoned.iter().map(PathBuf::as_path).collect();
    expected.sort();
    expect_abandoned(&target, &expected);

    // Whoever looks at them first keeps others from them.
    let held = Workspace::abandoned_in(&target).unwrap();
    let with_markers = |path: &&&Path| path.join(MARKER).exists();
    assert_eq!(expected.iter().filter(with_markers).count(), 3);
    let without: Vec<_> = expected
        .iter()
        .filter(|path| !with_markers(path))
        .copied()
        .collect();
    expect_abandoned(&target, &without);

    for abandoned in held {
        abandoned.remove().unwrap();
    }
    kept.sort();
    assert_eq!(folders_in(&target), kept);
}

/// The number of a process that has just ended.
fn dead_pid() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// A process that runs one of the tests that are marked as children.
struct Running {
    child: Child,
    /// What it said when it was ready.
    ready: String,
    /// Kept, because it prints its result when it ends.
    _stdout: BufReader<ChildStdout>,
}

/// Starts this test binary again to run `test`, and waits until it is ready.
fn start_child(test: &str, target: &Path) -> Running {
    start_child_for(test, target, 300)
}

fn start_child_for(test: &str, target: &Path, rounds: u32) -> Running {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CHILD_TARGET, target)
        .env(CHILD_ROUNDS, rounds.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let ready = stdout
        .by_ref()
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.split_once("READY ").map(|(_, text)| text.to_owned()))
        .expect("the child says when it is ready");
    Running {
        child,
        ready,
        _stdout: stdout,
    }
}

fn child_target() -> PathBuf {
    PathBuf::from(std::env::var_os(CHILD_TARGET).expect("this runs as a child only"))
}

#[test]
#[ignore = "a child process of another test"]
fn child_holds_a_fresh_file_system() {
    enter_private_mounts().unwrap();
    let workspace = Workspace::create(&child_target(), 0, |_| ()).unwrap();
    let spec: FreshSpec = "ext2:size=16M".parse().unwrap();
    let fresh = FreshFilesystem::make_filesystem_image(&workspace, &spec, 1 << 20).unwrap();
    std::fs::write(fresh.mounted_directory().join("file"), "text").unwrap();
    println!("READY {}", workspace.path().display());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_owner_leaves_only_what_is_found_and_removed() {
    const NAME: &str = "a_killed_owner_leaves_only_what_is_found_and_removed";
    if !can_run(NAME, &[Needs::LoopDevices, Needs::Tool("mkfs.ext2")]) {
        return;
    }
    let scratch = Scratch::new();
    let target = scratch.path();
    let mut running = start_child("child_holds_a_fresh_file_system", &target);
    let folder = PathBuf::from(&running.ready);
    assert_eq!(loops_in(&target).len(), 1);
    assert_eq!(mounts_in(&target), [""; 0], "the mount is the child's own");
    expect_abandoned(&target, &[]);

    running.child.kill().unwrap();
    running.child.wait().unwrap();
    expect_no_loops_in(&target);
    assert_eq!(folders_in(&target), [folder.as_path()]);
    expect_abandoned(&target, &[&folder]);
    for abandoned in Workspace::abandoned_in(&target).unwrap() {
        abandoned.remove().unwrap();
    }
    expect_empty(&target);
}

/// The kernel takes down what a dead owner had mounted and attached while
/// `abandoned` does the same.
#[test]
fn the_kernel_may_be_first_in_cleaning_up() {
    const NAME: &str = "the_kernel_may_be_first_in_cleaning_up";
    if !can_run(NAME, &[Needs::LoopDevices, Needs::Tool("mkfs.ext2")]) {
        return;
    }
    let scratch = Scratch::new();
    let target = scratch.path();
    for _ in 0..10 {
        let mut running = start_child("child_holds_a_fresh_file_system", &target);
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        for abandoned in Workspace::abandoned_in(&target).unwrap() {
            abandoned.remove().unwrap();
        }
        expect_empty(&target);
    }
    expect_no_loops_in(&target);
}

#[test]
fn what_a_killed_owner_left_mounted_and_attached_is_taken_down() {
    const NAME: &str = "what_a_killed_owner_left_mounted_and_attached_is_taken_down";
    if !can_run(NAME, &[Needs::LoopDevices, Needs::Tool("mkfs.ext2")]) {
        return;
    }
    // Of this thread alone: a process that another test starts meanwhile in a
    // namespace of its own would keep a copy of the mount.
    enter_private_mounts().unwrap();
    let scratch = Scratch::new();
    let folder = scratch
        .path()
        .join(format!("diskperf-{}-00ab00", dead_pid()));
    let mount_point = folder.join("fresh-1/files");
    std::fs::create_dir_all(&mount_point).unwrap();
    std::fs::write(folder.join(MARKER), "text").unwrap();
    for name in ["mounted", "attached"] {
        let image = folder.join("fresh-1").join(name);
        support::fill(&image, 4, 0);
        std::mem::forget(LoopDevice::over(&image, &[]));
    }
    let attached = loops_in(&folder);
    assert_eq!(attached.len(), 2);
    let mounted = attached
        .iter()
        .find(|line| line.ends_with("mounted"))
        .unwrap();
    let device = mounted.split(' ').next().unwrap();
    run("mkfs.ext2", &["-q", device]);
    run("mount", &[device, mount_point.to_str().unwrap()]);

    for abandoned in Workspace::abandoned_in(&scratch.path()).unwrap() {
        abandoned.remove().unwrap();
    }
    assert_eq!(mounts_in(&folder), [""; 0]);
    assert!(!folder.exists());
    // Another test's losetup may have looked at a device at that moment.
    expect_no_loops_in(&folder);
}

#[test]
#[ignore = "a child process of another test"]
fn child_makes_and_removes_workspaces() {
    println!("READY to make");
    let rounds = std::env::var(CHILD_ROUNDS).map_or(300, |rounds| rounds.parse().unwrap());
    for _ in 0..rounds {
        let workspace = Workspace::create(&child_target(), 0, |_| ()).unwrap();
        make_and_check(workspace);
    }
}

/// Uses a workspace, which nobody may take away meanwhile.
fn make_and_check(workspace: Workspace) {
    let file = workspace.path().join("file");
    std::fs::write(&file, "text").unwrap();
    std::thread::yield_now();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
    assert!(workspace.path().join(MARKER).exists());
    let path = workspace.path().to_owned();
    workspace.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn living_owners_keep_their_folders_while_others_clean() {
    make_while_others_clean(&Scratch::new().path(), 300);
}

/// Where what is removed while it is open stays, under another name, until it is
/// closed: `clean` opens the markers that their owners are removing.
#[test]
fn living_owners_keep_their_folders_on_fuse_too() {
    const NAME: &str = "living_owners_keep_their_folders_on_fuse_too";
    let Some((scratch, _unmount)) = served(NAME) else {
        return;
    };
    make_while_others_clean(&scratch.path().join("target"), 60);
    expect_empty(&scratch.path().join("behind"));
}

#[test]
fn owners_killed_on_fuse_leave_only_abandoned_folders() {
    const NAME: &str = "owners_killed_on_fuse_leave_only_abandoned_folders";
    let Some((scratch, _unmount)) = served(NAME) else {
        return;
    };
    kill_at_any_moment(&scratch.path().join("target"));
    expect_empty(&scratch.path().join("behind"));
}

/// The directory `behind` served by a process on `target`, until the guard goes.
fn served(test: &str) -> Option<(Scratch, Undo)> {
    if !can_run(test, &[Needs::Fuse, Needs::Tool("bindfs")]) {
        return None;
    }
    let scratch = Scratch::new();
    let [behind, target] = ["behind", "target"].map(|name| scratch.path().join(name));
    for directory in [&behind, &target] {
        std::fs::create_dir(directory).unwrap();
    }
    run("bindfs", &[&behind, &target]);
    let target = target.to_str().unwrap().to_owned();
    Some((scratch, Undo::by(&["umount", "--lazy", &target])))
}

fn make_while_others_clean(target: &Path, rounds: u32) {
    let done = AtomicBool::new(false);
    let mut children: Vec<Running> = (0..2)
        .map(|_| start_child_for("child_makes_and_removes_workspaces", target, rounds))
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for abandoned in Workspace::abandoned_in(target).unwrap() {
                        abandoned.remove().unwrap();
                    }
                }
            });
        }
        let makers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        make_and_check(Workspace::create(target, 0, |_| ()).unwrap());
                    }
                })
            })
            .collect();
        let made: Vec<bool> = makers
            .into_iter()
            .map(|maker| maker.join().is_ok())
            .collect();
        let exits: Vec<bool> = children
            .iter_mut()
            .map(|running| running.child.wait().unwrap().success())
            .collect();
        // Before the assertions, which would leave the cleaners running.
        done.store(true, Ordering::Relaxed);
        assert_eq!((made, exits), (vec![true; 2], vec![true; 2]));
    });
    expect_empty(target);
}

#[test]
fn owners_killed_at_any_moment_leave_only_abandoned_folders() {
    kill_at_any_moment(&Scratch::new().path());
}

fn kill_at_any_moment(target: &Path) {
    for _ in 0..20 {
        let mut running = start_child("child_makes_and_removes_workspaces", target);
        // The scheduler chooses the moment.
        for _ in 0..(support::unique() % 2000) {
            std::thread::yield_now();
        }
        running.child.kill().unwrap();
        running.child.wait().unwrap();
    }
    for abandoned in Workspace::abandoned_in(target).unwrap() {
        abandoned.remove().unwrap();
    }
    expect_empty(target);
}
