//! Directories that cannot be written, and disks that give up in the middle.

use crate::support::machine::{LoopDevice, can_run, fill};
use crate::support::{MOUNTS, SmallDisk, User, entries, mount_tmpfs, open_to_all, words};
use diskperf_store::Store;
use diskperf_timeline::RunState;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const WRITE: &[&str] = &["run", "write_8192", "--on", "./target", "--size", "8M"];

#[test]
fn a_read_only_file_system() {
    if !can_run("a_read_only_file_system", MOUNTS) {
        return;
    }
    let user = User::new();
    // The small one has no room either, which is not the cause.
    for options in ["ro,size=64m", "ro,size=4m", "ro,size=20m"] {
        let mounted = mount_tmpfs(&user.target(), options);
        for line in [
            WRITE.join(" "),
            "run log_append --on ./target --size 60M".to_owned(),
        ] {
            user.run(&words(&line)).expect(
                2,
                &["read-only file system", "a directory that can be written"],
            );
        }
        user.assert_nothing_left("read-only");
        drop(mounted);
    }
}

#[test]
fn a_directory_of_somebody_else() {
    let user = User::new();
    open_to_all(&user.home());
    std::fs::set_permissions(user.target(), std::fs::Permissions::from_mode(0o555)).unwrap();
    user.run_as_nobody(WRITE).expect(
        2,
        &["no permission", "a directory of your own, or use sudo"],
    );
    user.assert_nothing_left("no permission");
}

/// Advice names settings of the program that needs the room, and of no other.
#[test]
fn settings_that_make_room_are_those_of_the_program() {
    if !can_run("settings_that_make_room_are_those_of_the_program", MOUNTS) {
        return;
    }
    let user = User::new();
    let _mounted = mount_tmpfs(&user.target(), "size=17m");
    for (program, named) in [
        ("write_8192", "program.call_bytes"),
        ("log_append", "program.area_bytes"),
        ("random", "program.area_bytes"),
        ("sequential", "program.area_bytes"),
    ] {
        let shown = user.run(&["show", program]).expect(0, &[]).stdout.clone();
        for line in [
            format!("run {program} --on ./target --size 1G"),
            format!("ab ./target ./target {program} --size 1G"),
        ] {
            let outcome = user.run(&words(&line));
            let said = &outcome
                .expect(2, &["not enough space", named, "--size"])
                .stderr;
            let settings = said.split(|c: char| !c.is_alphanumeric() && !"._".contains(c));
            for setting in settings.filter(|word| word.starts_with("program.")) {
                assert!(shown.contains(setting), "{setting}: {said}");
            }
        }
    }
    assert_eq!(entries(&user.target()), [""; 0]);
}

/// A file that several sections name is there once.
#[test]
fn space_is_needed_once_for_a_file_that_sections_share() {
    if !can_run(
        "space_is_needed_once_for_a_file_that_sections_share",
        MOUNTS,
    ) {
        return;
    }
    let user = User::new();
    let _mounted = mount_tmpfs(&user.target(), "size=64m");
    for (names, fits) in [
        (["one", "one", "one"], true),
        (["one", "one", "two"], false),
        (["one:two", "two:one", "one:two"], true),
    ] {
        let [first, second, third] = names;
        let text = format!(
            "[global]\nsize=30m\nfallocate=none\n[a]\nrw=write\nfilename={first}\n\
             [b]\nstonewall\nrw=read\nfilename={second}\n[c]\nfilename={third}\n"
        );
        std::fs::write(user.file("job.fio"), text).unwrap();
        let planned = user.run(&words("run job.fio --on ./target --dry-run"));
        match fits {
            true => drop(planned.expect(0, &[])),
            false => {
                let warning = "warning: the run is refused here: not enough space";
                let shown = planned.expect(0, &[]).stdout.clone();
                assert!(shown.contains(warning), "{shown}");
                assert!(shown.contains("60 MiB needed"), "{shown}");
                let run = user.run(&words("run job.fio --on ./target"));
                run.expect(2, &["not enough space", "60 MiB needed"]);
                assert_eq!(entries(&user.target()), [""; 0]);
            }
        }
    }
}

#[test]
fn too_little_space_before_the_run() {
    if !can_run("too_little_space_before_the_run", MOUNTS) {
        return;
    }
    let user = User::new();
    let disk = SmallDisk::mounted_on(&user.target(), user.scratch(), 32);
    let before = entries(&user.target());
    for arguments in [
        &["--size", "1G"][..],
        &["--size", "24M"],
        &["--size", "16M", "--fresh", "ext4"],
        &["--fresh", "ext4"],
        &["--fresh", "xfs"],
    ] {
        let line = [&["run", "write_8192", "--on", "./target"], arguments].concat();
        let outcome = user.run(&line);
        assert!(matches!(outcome.code, Some(1 | 2)), "{outcome:?}");
        for part in ["enough space", "needed", "--size"] {
            assert!(outcome.stderr.contains(part), "`{part}`: {outcome:?}");
        }
        assert_eq!(entries(&user.target()), before, "{arguments:?}");
    }
    // What fits is measured, also where a tenth of the free space is less
    // than the smallest size that a pilot tries.
    user.run(&words("run write_8192 --on ./target --size 4M --runs 1"))
        .expect(0, &[]);
    assert_eq!(entries(&user.target()), before);
    drop(disk);
}

/// Takes what is left of a file system, and takes it again when somebody else
/// gives a part of it back, until `done`.
fn fill_up(path: &Path, mut done: impl FnMut() -> bool) {
    let mut file = File::create(path).unwrap();
    let block = vec![1; 64 << 10];
    while !done() {
        // No space: what the test wants. Whatever is freed is taken next time.
        let _ = file.write(&block);
    }
}

#[test]
fn too_little_space_in_the_middle_of_the_run() {
    if !can_run("too_little_space_in_the_middle_of_the_run", MOUNTS) {
        return;
    }
    let user = User::new();
    let disk = SmallDisk::mounted_on(&user.target(), user.scratch(), 64);
    let before = entries(&user.target());
    let line = [WRITE, &["--runs", "100000", "--quiet"]].concat();
    let mut process = user.start(&line);
    user.wait_for_repetitions(&mut process, 2);
    let filler = user.target().join("filler");
    fill_up(&filler, || !process.is_running());
    let outcome = process.finish().expect(
        1,
        &[
            "write_8192 on",
            "ENOSPC",
            "free some space or give a smaller --size",
        ],
    );
    // The figures of the repetitions before are printed all the same.
    assert!(outcome.stdout.contains("write_8192"), "{outcome:?}");
    std::fs::remove_file(filler).unwrap();
    assert_eq!(entries(&user.target()), before);
    let run = &user.stored()[0];
    assert!(run.repetition_count >= 2, "{run:?}");
    assert!(
        matches!(&run.state, RunState::Failed(why) if why.contains("ENOSPC")),
        "{run:?}"
    );
    drop(disk);
}

/// The second half of the device goes away: reading it is an I/O error.
#[test]
fn a_device_that_fails_in_the_middle() {
    if !can_run("a_device_that_fails_in_the_middle", MOUNTS) {
        return;
    }
    let user = User::new();
    let image = user.file("image");
    fill(&image, 16, 0x5a);
    // Only with direct I/O does a loop device give an error for what its file
    // does not have.
    let device = LoopDevice::over(&image, &["--direct-io=on"]);
    let line = [
        "run",
        "seqread",
        "--set",
        "program.layer=device_direct",
        "--size",
        "16M",
        "--runs",
        "100000",
        "--quiet",
        "--on",
        &device.text(),
    ];
    let mut process = user.start(&line);
    user.wait_for_repetitions(&mut process, 2);
    OpenOptions::new()
        .write(true)
        .open(&image)
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    process
        .finish()
        .expect(1, &["seqread", "EIO", &device.text(), "dmesg"]);
    let run = &user.stored()[0];
    assert!(
        matches!(&run.state, RunState::Failed(why) if why.contains("EIO")),
        "{run:?}"
    );
    let store = Store::open(&user.store()).unwrap();
    let stored = store.load_run(&run.id).unwrap();
    assert!(stored.results[0].repetitions.len() >= 2, "{run:?}");
}

/// Programs that keep requests in flight use the page cache where the file system has no
/// O_DIRECT, and say so: nobody gave `--direct`.
#[test]
fn a_file_system_without_direct_io_is_measured_through_its_cache() {
    if !can_run(
        "a_file_system_without_direct_io_is_measured_through_its_cache",
        MOUNTS,
    ) {
        return;
    }
    for kind in ["tmpfs", "ext4, data=journal"] {
        let user = User::new();
        let target = user.target();
        let _mounted = match kind {
            "tmpfs" => (Some(mount_tmpfs(&target, "size=96m")), None),
            _ => (
                None,
                Some(SmallDisk::journalling_data(&target, user.scratch(), 96)),
            ),
        };
        for program in ["log_append", "random", "sequential", "database"] {
            let line = format!(
                "run {program} --on ./target --runs 1 --size 1M --set program.area_bytes=1M"
            );
            let shown = user.run(&words(&line)).expect(0, &[]);
            assert!(
                shown.has("all goes through the page cache"),
                "{kind}, {program}: {}{}",
                shown.stdout,
                shown.stderr
            );
            let stored = user.run(&words("show last --format json")).expect(0, &[]);
            for result in stored.json()["runs"][0]["results"].as_array().unwrap() {
                assert_eq!(result["parameters"]["direct"], "no", "{kind}, {program}");
            }
        }
        let refused = "run read_8192 --direct --on ./target --runs 1 --size 1M";
        user.run(&words(refused))
            .expect(2, &["O_DIRECT does not bypass the page cache"]);
    }
}
