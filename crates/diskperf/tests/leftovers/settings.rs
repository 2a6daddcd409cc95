//! Settings of a disk's queue: what was noted first comes back, whoever is killed
//! and whoever looks.
//!
//! The notes of these tests are in a /run of their own, so that the `clean` of
//! one does not put back what another's search has just left.

use crate::support::machine::{LoopDevice, Undo, can_run, run};
use crate::support::{MOUNTS, Process, User, entries, words};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A disk with a queue that is nobody else's.
struct Disk {
    user: User,
    device: LoopDevice,
    before: String,
}

impl Disk {
    /// `None` where there is none to be had.
    fn new(test: &str) -> Option<Self> {
        if !can_run(test, MOUNTS) {
            return None;
        }
        let user = User::with_own_run_directory();
        let device = LoopDevice::blank(user.scratch(), 32);
        let before = value(&device);
        Some(Self {
            user,
            device,
            before,
        })
    }

    fn value(&self) -> String {
        value(&self.device)
    }

    fn line(&self, runs: u32) -> String {
        let path = self.device.text();
        format!(
            "tune {path} --suite read_8192 --size 1M --runs {runs} --change-device-settings --over device.read_ahead_kb=4,64"
        )
    }

    /// A search that goes on, stopped at a moment when the setting is changed.
    fn stopped(&self) -> Process {
        self.stopped_on(&self.device.text())
    }

    /// The same, of what is on the device.
    fn stopped_on(&self, target: &str) -> Process {
        let line = self.line(1000).replace(&self.device.text(), target);
        let mut process = self.user.start(&words(&line));
        loop {
            process.wait_until(|| self.value() != self.before);
            process.signal(Signal::STOP);
            // It stops a moment later.
            std::thread::sleep(std::time::Duration::from_millis(20));
            if self.value() != self.before {
                return process;
            }
            process.signal(Signal::CONT);
        }
    }

    /// A search that was killed while the setting was changed.
    fn kill(&self) {
        self.kill_on(&self.device.text());
    }

    fn kill_on(&self, target: &str) {
        let mut process = self.stopped_on(target);
        process.signal(Signal::KILL);
        process.finish();
        assert_ne!(self.value(), self.before);
    }

    /// Detaches the device, and attaches another one, to which the kernel mostly
    /// gives the number that is free now.
    fn take_out(&mut self) {
        run("losetup", &["--detach", &self.device.text()]);
        let another = LoopDevice::blank(self.user.scratch(), 32);
        // What has its number now may be somebody else's.
        std::mem::forget(std::mem::replace(&mut self.device, another));
    }

    fn notes(&self) -> PathBuf {
        self.user.file("run/diskperf")
    }

    /// The disk's note.
    fn note(&self) -> PathBuf {
        let notes = entries(&self.notes());
        assert_eq!(notes.len(), 1, "{notes:?}");
        self.notes().join(&notes[0])
    }

    #[track_caller]
    fn expect_as_before(&self) {
        assert_eq!(self.value(), self.before);
        assert_eq!(entries(&self.notes()), [""; 0]);
    }
}

fn value(device: &LoopDevice) -> String {
    let path = format!("/sys/block/{}/queue/read_ahead_kb", device.name());
    let text = std::fs::read_to_string(path).unwrap();
    text.trim().to_owned()
}

#[test]
fn they_are_put_back_at_the_end_on_an_error_and_after_a_signal() {
    let test = "they_are_put_back_at_the_end_on_an_error_and_after_a_signal";
    let Some(disk) = Disk::new(test) else { return };
    let user = &disk.user;
    let found = user
        .run(&words(&format!("{} --format json", disk.line(3))))
        .expect(0, &[])
        .json();
    assert_eq!(
        found["today"]["settings"]["device.read_ahead_kb"],
        disk.before.as_str()
    );
    disk.expect_as_before();
    // An error: the device is too small.
    let error = disk.line(3).replace("1M", "1G");
    assert_ne!(user.run(&words(&error)).code, Some(0));
    disk.expect_as_before();
    // Values that no queue takes.
    for (over, part) in [
        (
            "read_ahead_kb=4,4294967296",
            "whole numbers up to 4294967295",
        ),
        ("read_ahead_kb=4,064", "`064` is not allowed"),
        ("scheduler=none,nosuch", "`nosuch` is not allowed"),
    ] {
        let line = disk.line(3).replace("read_ahead_kb=4,64", over);
        user.run(&words(&line)).expect(2, &[part]);
        disk.expect_as_before();
    }
    // A signal.
    let mut process = disk.stopped();
    process.signal(Signal::INT);
    process.signal(Signal::CONT);
    process.finish().expect(130, &["interrupted"]);
    disk.expect_as_before();
}

/// A file system on a loop device sends its requests to the loop device's queue, and
/// not to that of the disk below.
#[test]
fn the_queue_below_a_directory_is_that_of_its_own_device() {
    let test = "the_queue_below_a_directory_is_that_of_its_own_device";
    let Some(disk) = Disk::new(test) else { return };
    let user = &disk.user;
    run("mkfs.ext4", &["-q", "-F", &disk.device.text()]);
    let directory = user.target().display().to_string();
    run("mount", &[&disk.device.text(), &directory]);
    let _mounted = Undo::by(&["umount", "--lazy", &directory]);
    let process = |target: &str| {
        let line = disk.line(1000).replace(&disk.device.text(), target);
        let mut process = user.start(&words(&line));
        process.wait_until(|| disk.value() != disk.before);
        process.signal(Signal::INT);
        process.finish().expect(130, &[]);
        disk.expect_as_before();
    };
    process(&directory);
    let file = user.target().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    process(&file.display().to_string());

    // What a killed search leaves there is named by a run in the directory.
    disk.kill_on(&directory);
    let line = format!("run read_8192 --on {directory} --size 1M --runs 2");
    let left = format!("read_ahead_kb of {} is", disk.device.name());
    user.run(&words(&line)).expect(0, &[&left]);
    user.run(&["clean", "--on", &directory]).expect(0, &[]);
    disk.expect_as_before();
}

/// A kill, and a second signal, which ends it at once: what is left, `clean` puts
/// back, with another store too; not while it runs.
#[test]
fn clean_puts_back_what_a_killed_search_left() {
    let Some(disk) = Disk::new("clean_puts_back_what_a_killed_search_left") else {
        return;
    };
    let user = &disk.user;
    let said = format!(
        "put back read_ahead_kb of {} to {}",
        disk.device.name(),
        disk.before
    );
    for clean in ["clean", "clean --store ./another.sqlite"] {
        let mut process = disk.stopped();
        let changed = disk.value();
        let nothing = user.run(&["clean"]).expect(0, &[]);
        assert!(!nothing.stdout.contains("put back"), "{nothing:?}");
        assert_eq!(disk.value(), changed);
        match clean {
            "clean" => process.signal(Signal::KILL),
            _ => {
                for signal in [Signal::INT, Signal::TERM, Signal::CONT] {
                    process.signal(signal);
                }
            }
        }
        let ended = process.finish();
        if ended.stderr.contains("interrupted") {
            // One thread took the first signal and was done before the second.
            disk.expect_as_before();
            continue;
        }
        assert_eq!(disk.value(), changed, "{ended:?}");
        user.run(&words(&format!("{clean} --dry-run")))
            .expect(0, &[])
            .shows(&[&format!("would {said}")]);
        assert_eq!(disk.value(), changed);
        user.run(&words(clean)).expect(0, &[]).shows(&[&said]);
        disk.expect_as_before();
        let nothing = user.run(&words(clean)).expect(0, &[]);
        assert!(!nothing.stdout.contains("put back"), "{nothing:?}");
    }
}

/// Today is what the machine had before any search, whatever store the killed
/// one used.
#[test]
fn what_was_noted_first_comes_back_after_a_second_search() {
    let test = "what_was_noted_first_comes_back_after_a_second_search";
    let Some(disk) = Disk::new(test) else { return };
    for store in ["", " --store ./another.sqlite"] {
        disk.kill();
        let line = format!("{} --format json{store}", disk.line(3));
        let found = disk.user.run(&words(&line)).expect(0, &[]).json();
        let today = &found["today"]["settings"]["device.read_ahead_kb"];
        assert_eq!(today, disk.before.as_str());
        let notes = found["notes"].to_string();
        assert!(notes.contains("a killed search"), "{notes}");
        disk.expect_as_before();
    }
    // Also where the second is killed too.
    disk.kill();
    disk.kill();
    disk.user.run(&["clean"]).expect(0, &[]);
    disk.expect_as_before();
}

#[test]
fn two_searches_of_one_disk_are_not_at_once() {
    let Some(disk) = Disk::new("two_searches_of_one_disk_are_not_at_once") else {
        return;
    };
    let mut first = disk.stopped();
    let holder = format!("process {}", first.pid().as_raw_nonzero());
    let line = format!("{} --store ./another.sqlite", disk.line(3));
    disk.user
        .run(&words(&line))
        .expect(2, &[&disk.device.name(), &holder, "wait until it ends"]);
    first.signal(Signal::INT);
    first.signal(Signal::CONT);
    first.finish().expect(130, &[]);
    disk.expect_as_before();
}

/// A run measures what is set, and says that it is not what it was.
#[test]
fn a_run_names_what_a_killed_search_left() {
    let Some(disk) = Disk::new("a_run_names_what_a_killed_search_left") else {
        return;
    };
    let line = format!(
        "run read_8192 --on {} --size 1M --runs 2 --format json",
        disk.device.text()
    );
    let notes = |stderr: &str| {
        let outcome = disk.user.run(&words(&line)).expect(0, &[stderr]);
        outcome.json()["runs"][0]["notes"].to_string()
    };
    assert!(!notes("").contains("clean"));
    disk.kill();
    let left = format!(
        "read_ahead_kb of {} is {}, and was {} before",
        disk.device.name(),
        disk.value(),
        disk.before
    );
    let said = notes(&left);
    assert!(said.contains(&left), "{said}");
    assert!(said.contains("diskperf clean"), "{said}");
    disk.user.run(&["clean"]).expect(0, &[]);
    disk.expect_as_before();
    assert!(!notes("").contains("clean"));
}

/// A loop device that shows another file, and another boot.
#[test]
fn another_disk_is_left_as_it_is() {
    let Some(mut disk) = Disk::new("another_disk_is_left_as_it_is") else {
        return;
    };
    disk.kill();
    let note = disk.note();
    let text = std::fs::read_to_string(&note).unwrap();
    let kept = disk.value();
    let changed = |text: String| {
        std::fs::write(&note, text).unwrap();
        std::fs::set_permissions(&note, PermissionsExt::from_mode(0o600)).unwrap();
    };
    for text in [
        text.replace("\nboot ", "\nboot 0"),
        text.replace("\ndisk ", "\ndisk 1"),
        // Written by a process that was killed in the middle.
        text[..text.len() - 2].to_owned(),
        String::new(),
    ] {
        changed(text);
        let cleaned = disk.user.run(&["clean"]).expect(0, &[]);
        assert!(!cleaned.stdout.contains("put back"), "{cleaned:?}");
        assert_eq!(disk.value(), kept);
        assert_eq!(entries(&disk.notes()), [""; 0]);
    }
    // Whatever root's note says, it is a value that the key takes.
    for value in ["../x", "-1", "4294967296", "nosuch"] {
        changed(text.replace(&format!("kb {}\n", disk.before), &format!("kb {value}\n")));
        disk.user.run(&["clean"]).expect(
            1,
            &[
                "is not allowed",
                &note.file_name().unwrap().to_string_lossy(),
            ],
        );
        assert_eq!(disk.value(), kept);
    }
    changed(text);
    let before = disk.device.text();
    disk.take_out();
    if disk.device.text() == before {
        let setting = format!("/sys/block/{}/queue/read_ahead_kb", disk.device.name());
        std::fs::write(setting, "16").unwrap();
        let cleaned = disk.user.run(&["clean"]).expect(0, &[]);
        assert!(!cleaned.stdout.contains("put back"), "{cleaned:?}");
        assert_eq!(disk.value(), "16");
        assert_eq!(entries(&disk.notes()), [""; 0]);
    }
}

/// It is taken out while a search runs: there is nothing to put back.
#[test]
fn a_disk_that_vanishes_leaves_no_note() {
    let Some(mut disk) = Disk::new("a_disk_that_vanishes_leaves_no_note") else {
        return;
    };
    let mut process = disk.stopped();
    disk.take_out();
    process.signal(Signal::CONT);
    let outcome = process.finish();
    assert!(matches!(outcome.code, Some(1 | 2)), "{outcome:?}");
    assert_eq!(entries(&disk.notes()), [""; 0], "{outcome:?}");
    let cleaned = disk.user.run(&["clean"]).expect(0, &[]);
    assert!(!cleaned.stdout.contains("put back"), "{cleaned:?}");
}

/// Nobody but root can have written what root puts back.
#[test]
fn notes_of_others_are_not_trusted() {
    let Some(disk) = Disk::new("notes_of_others_are_not_trusted") else {
        return;
    };
    disk.kill();
    let (note, changed) = (disk.note(), disk.value());
    let owner = |path: &PathBuf, user| std::os::unix::fs::chown(path, Some(user), None).unwrap();
    for path in [&note, &disk.notes()] {
        owner(path, 65_534);
        let said = [
            &*path.file_name().unwrap().to_string_lossy(),
            "is not owned by root alone",
        ];
        disk.user.run(&["clean"]).expect(1, &said);
        disk.user.run(&words(&disk.line(3))).expect(2, &said);
        assert_eq!(disk.value(), changed);
        owner(path, 0);
    }
    disk.user.run(&["clean"]).expect(0, &[]);
    disk.expect_as_before();
}
