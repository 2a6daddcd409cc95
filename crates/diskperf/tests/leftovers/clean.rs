//! What `clean` finds, and what it leaves alone.

use crate::support::machine::{
    LoopDevice, Needs, Undo, can_run, expect_no_loops_in, fill, loops_in, retry, run,
};
use crate::support::{MOUNTS, User, entries, open_to_all, tree, words};
use crate::{abandoned_folder, dead_pid, killed, measuring, the_folder_in};
use diskperf_store::Store;
use rustix::process::Signal;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A report that a kill stopped half-way.
#[test]
fn an_output_file_that_was_never_finished_is_removed() {
    let user = User::new();
    let name = "diskperf-0123456789abcdef.partial";
    std::fs::write(user.target().join(name), "<!DOCTYPE html>").unwrap();
    let line = "clean --on ./target";
    let dry = user.run(&words(&format!("{line} --dry-run")));
    dry.expect(0, &[]).shows(&[&format!(
        "would remove {}",
        user.target().join(name).display()
    )]);
    assert_eq!(entries(&user.target()), [name]);
    let clean = user.run(&words(line));
    clean
        .expect(0, &[])
        .shows(&[&format!("removed {}", user.target().join(name).display())]);
    assert!(entries(&user.target()).is_empty());
}

#[test]
fn a_directory_that_cannot_be_listed_does_not_stop_it() {
    let user = User::new();
    // An ordinary user has to come so far.
    open_to_all(&user.home());
    open_to_all(&user.target());
    let locked = user.file("a-locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    let folder = abandoned_folder(&user.target());
    let odd = user
        .target()
        .join(format!("diskperf-{}-00ff3b", dead_pid()));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("diskperf-workspace"), "text").unwrap();
    std::fs::set_permissions(
        odd.join("diskperf-workspace"),
        Permissions::from_mode(0o000),
    )
    .unwrap();
    if rustix::process::geteuid().is_root() {
        let all = [
            &folder,
            &folder.join("file"),
            &folder.join("diskperf-workspace"),
        ];
        for path in all
            .into_iter()
            .chain([&odd, &odd.join("diskperf-workspace")])
        {
            std::os::unix::fs::chown(path, Some(65_534), Some(65_534)).unwrap();
        }
    }
    let line = "clean --on ./a-locked --on ./target";
    user.run_as_nobody(&words(line))
        .expect(
            1,
            &["a-locked", "no permission to list", &odd.to_string_lossy()],
        )
        .shows(&[&format!("removed {}", folder.display())]);
    assert_eq!(entries(&user.target()).len(), 1);
    for (on, part) in [
        ("./none", "does not exist"),
        ("./data/diskperf/runs.sqlite", "is not a directory"),
    ] {
        user.run(&["list", "runs"]).expect(0, &[]);
        user.run(&["clean", "--on", on]).expect(2, &[part]);
    }
}

#[test]
fn a_rehearsal_changes_nothing() {
    let user = User::new();
    let folder = killed(&user);
    let before = tree(&user.target());
    let would = format!("would remove {}", folder.display());
    for line in ["clean --dry-run", "clean --dry-run --on ./target"] {
        user.run(&words(line)).expect(0, &[]).shows(&[&would]);
        assert_eq!(tree(&user.target()), before);
    }
    let id = user.stored()[0].id.clone();
    let delete = format!("delete --killed {id}");
    let noted = format!(
        "1 run of the store was killed, or still runs: `diskperf list runs` shows more, and `diskperf {delete}`"
    );
    user.run(&["clean"])
        .expect(0, &[&noted])
        .shows(&[&format!("removed {}", folder.display())]);
    user.assert_nothing_left("after the rehearsal");
    user.run(&words(&delete)).expect(0, &[]);
    let again = user.run(&["clean"]).expect(0, &[]);
    assert!(!again.stderr.contains("was killed"), "{again:?}");
    let again = user.run(&words("clean --dry-run")).expect(0, &[]);
    assert!(
        !again.stdout.contains(&*folder.to_string_lossy()),
        "{again:?}"
    );
}

/// A disk that is mounted when the test says so.
struct Disk<'a> {
    user: &'a User,
    device: LoopDevice,
}

impl Disk<'_> {
    fn new(user: &User) -> Disk<'_> {
        let device = LoopDevice::blank(user.scratch(), 64);
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &device.text()]);
        Disk { user, device }
    }

    fn mount(&self) -> Undo {
        let target = self.user.target();
        let target = target.to_str().unwrap();
        run("mount", &[&self.device.text(), target]);
        let _ = std::fs::remove_dir(Path::new(target).join("lost+found"));
        Undo::by(&["umount", target])
    }
}

#[test]
fn a_folder_is_not_forgotten_while_its_file_system_is_not_mounted() {
    if !can_run(
        "a_folder_is_not_forgotten_while_its_file_system_is_not_mounted",
        MOUNTS,
    ) {
        return;
    }
    let user = User::new();
    let disk = Disk::new(&user);
    let noted = || {
        Store::open(&user.store())
            .unwrap()
            .list_workspaces()
            .unwrap()
    };
    let mounted = disk.mount();
    let folder = killed(&user);
    drop(mounted);
    let said = [&*folder.to_string_lossy(), "not mounted now"];
    user.run(&["clean"]).expect(0, &said);
    assert_eq!(noted()[0].path, folder);
    // Nor where the directory that it was mounted on has gone.
    std::fs::remove_dir(user.target()).unwrap();
    user.run(&["clean"]).expect(0, &said);
    assert_eq!(noted().len(), 1);
    std::fs::create_dir(user.target()).unwrap();

    let mounted = disk.mount();
    let removed = format!("removed {}", folder.display());
    user.run(&["clean"]).expect(0, &[]).shows(&[&removed]);
    assert_eq!(entries(&user.target()), [""; 0]);
    assert_eq!(noted(), []);

    // The user knows that it will not come back.
    killed(&user);
    drop(mounted);
    user.run(&words("clean --forget-unmounted --dry-run"))
        .expect(0, &[]);
    assert_eq!(noted().len(), 1);
    user.run(&words("clean --forget-unmounted")).expect(0, &[]);
    assert_eq!(noted(), []);
}

/// A target that was removed with all that was in it, on the same file system.
#[test]
fn a_folder_that_was_removed_is_forgotten() {
    let user = User::new();
    killed(&user);
    std::fs::remove_dir_all(user.target()).unwrap();
    user.run(&["clean"]).expect(0, &[]);
    let store = Store::open(&user.store()).unwrap();
    assert_eq!(store.list_workspaces().unwrap(), []);
}

/// At Ctrl-C, at the end of all programs, and after an error.
#[test]
fn a_folder_that_cannot_be_removed_is_told() {
    if !can_run("a_folder_that_cannot_be_removed_is_told", MOUNTS) {
        return;
    }
    for end in ["signal", "end", "error"] {
        let user = User::new();
        let line = "run write_8192 --on ./target --size 64K --quiet --runs 100000";
        let line = match end {
            "end" => line.replace("100000", "200"),
            _ => line.to_owned(),
        };
        let mut process = user.start(&words(&line));
        user.wait_for_repetitions(&mut process, 1);
        let folder = the_folder_in(&user.target());
        let kept = folder.join("kept");
        process.signal(Signal::STOP);
        std::fs::write(&kept, "text").unwrap();
        run("chattr", &["+i", kept.to_str().unwrap()]);
        if end == "error" {
            // No file can be made there any more.
            run("chattr", &["+i", folder.to_str().unwrap()]);
        }
        process.signal(Signal::CONT);
        if end == "signal" {
            process.signal(Signal::INT);
        }
        let outcome = process.finish();
        run("chattr", &["-i", folder.to_str().unwrap()]);
        run("chattr", &["-i", kept.to_str().unwrap()]);
        let (code, said) = match end {
            "signal" => (130, "interrupted"),
            "end" => (1, "Operation not permitted"),
            _ => (1, "write_8192"),
        };
        let left = format!("{} is left", folder.display());
        let outcome = outcome.expect(code, &[said, &left, "`diskperf clean` removes it"]);
        if end == "end" {
            assert!(!outcome.stdout.contains("NOT FINISHED"), "{outcome:?}");
        }
        user.run(&["clean"])
            .expect(0, &[])
            .shows(&[&format!("removed {}", folder.display())]);
        user.assert_nothing_left(end);
    }
}

/// Of several folders each is tried, and each that stays is told.
#[test]
fn a_mount_inside_is_told_with_its_remedy() {
    if !can_run("a_mount_inside_is_told_with_its_remedy", MOUNTS) {
        return;
    }
    let user = User::new();
    let mut process = measuring(&user);
    let inside = the_folder_in(&user.target()).join("inside");
    std::fs::create_dir(&inside).unwrap();
    let mounted = crate::support::mount_tmpfs(&inside, "size=4k");
    process.signal(Signal::INT);
    let remedy = format!("`umount {}`, then `diskperf clean`", inside.display());
    process.finish().expect(130, &["interrupted", &remedy]);
    drop(mounted);
    user.run(&["clean"]).expect(0, &[]);
    user.assert_nothing_left("a mount inside");
}

/// Somebody has removed the folder of a killed run by hand.
#[test]
fn a_loop_device_without_its_folder_is_detached() {
    let needs = [MOUNTS, &[Needs::Tool("mkfs.ext2")]].concat();
    if !can_run("a_loop_device_without_its_folder_is_detached", &needs) {
        return;
    }
    let user = User::new();
    let attached = |pid: u32| {
        let folder = user.target().join(format!("diskperf-{pid}-00ff3a"));
        std::fs::create_dir_all(folder.join("fresh-1")).unwrap();
        let image = folder.join("fresh-1/image");
        fill(&image, 4, 0);
        let device = LoopDevice::over(&image, &[]);
        (folder, device)
    };
    let (used_folder, used) = attached(dead_pid());
    run("mkfs.ext2", &["-q", &used.text()]);
    let mount_point = user.file("mount");
    std::fs::create_dir(&mount_point).unwrap();
    let mount_point = mount_point.to_str().unwrap();
    run("mount", &[&used.text(), mount_point]);
    let mounted = Undo::by(&["umount", mount_point]);
    let (living_folder, living) = attached(std::process::id());
    let (folder, orphan) = attached(dead_pid());
    for folder in [&used_folder, &living_folder, &folder] {
        std::fs::remove_dir_all(folder).unwrap();
    }
    // Another test's `clean` may be first.
    std::mem::forget(orphan);
    let rehearsed = user.run(&["clean", "--dry-run"]).expect(0, &[]);
    for kept in [&used, &living] {
        assert!(!rehearsed.stdout.contains(&kept.text()), "{rehearsed:?}");
    }
    user.run(&["clean"]).expect(0, &[]);
    expect_no_loops_in(&folder);
    assert_eq!(loops_in(&used_folder).len(), 1);
    assert_eq!(loops_in(&living_folder).len(), 1);
    drop(mounted);
    drop((used, living));
    retry(|| match loops_in(&user.target()).len() {
        0 => Ok(()),
        left => Err(format!("{left} loop devices are left")),
    });
}

/// Whoever can edit the store has root's `clean` write and remove nothing.
#[test]
fn rows_of_the_store_are_only_places_to_look() {
    let user = User::new();
    let precious = user.file("precious");
    std::fs::create_dir_all(precious.join("queue")).unwrap();
    let file = precious.join("queue/scheduler");
    std::fs::write(&file, "text").unwrap();
    let folder = precious.join("diskperf-results");
    std::fs::create_dir(&folder).unwrap();
    let without_marker = precious.join(format!("diskperf-{}-00ff3a", dead_pid()));
    std::fs::create_dir(&without_marker).unwrap();
    std::fs::write(without_marker.join("file"), "text").unwrap();

    user.run(&["list", "runs"]).expect(0, &[]);
    let connection = rusqlite::Connection::open(user.store()).unwrap();
    // As version 4 had it.
    let hostile = format!("/sys/..{}", file.display());
    connection
        .execute_batch(
            "DROP TABLE IF EXISTS device_settings;
             DROP TABLE workspaces;
             CREATE TABLE workspaces (path BLOB NOT NULL PRIMARY KEY) STRICT;
             CREATE TABLE device_settings
                 (path BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL, owner TEXT NOT NULL) STRICT;
             PRAGMA user_version = 4;",
        )
        .unwrap();
    connection
        .execute(
            "INSERT INTO device_settings VALUES (?1, 'owned', '1 1')",
            [hostile.as_bytes()],
        )
        .unwrap();
    for path in [
        file.to_str().unwrap(),
        folder.to_str().unwrap(),
        without_marker.to_str().unwrap(),
        "precious/diskperf-1-00ff3a",
        "/",
        "",
    ] {
        let add = "INSERT INTO workspaces VALUES (?1)";
        connection.execute(add, [path.as_bytes()]).unwrap();
    }
    drop(connection);
    let before = tree(&precious);
    user.run(&["clean"]).expect(0, &[]);
    assert_eq!(tree(&precious), before);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
    let noted = Store::open(&user.store())
        .unwrap()
        .list_workspaces()
        .unwrap();
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(noted[0].path, without_marker);
}
