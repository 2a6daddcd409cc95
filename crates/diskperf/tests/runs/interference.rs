//! Disturbances that are made on purpose, and whether a run names them.

use crate::support::machine::{LoopDevice, Needs, can_run};
use crate::support::{User, words};
use rustix::process::Signal;
use serde_json::Value;
use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A program that goes on until it is dropped.
struct Hog(Child);

impl Hog {
    fn of(line: &str, directory: &std::path::Path) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("while :; do {line}; done")])
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().expect("there is a shell"))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // It may have ended by itself, which the test will see by what is missing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What disturbed the repetitions of a run's first program.
fn found(run: &Value) -> Vec<Value> {
    let repetitions = run["runs"][0]["results"][0]["repetitions"].as_array();
    let repetitions = repetitions.expect("the contract has repetitions");
    let of_one = |one: &Value| one["interference"].as_array().cloned();
    repetitions.iter().filter_map(of_one).flatten().collect()
}

#[track_caller]
fn expect_kind(run: &Value, kinds: &[&str]) {
    let found = found(run);
    let is_kind = |one: &Value| kinds.iter().any(|kind| one["kind"] == *kind);
    assert!(found.iter().any(is_kind), "no {kinds:?} in {found:?}");
    // Nothing of it is kept in silence.
    let notes = run["runs"][0]["results"][0]["notes"].to_string();
    assert!(notes.contains("disturbed"), "{notes}");
}

#[test]
fn busy_processors_are_named_and_bound_what_is_repeated() {
    let user = User::new();
    let processors = thread::available_parallelism().map_or(2, usize::from);
    let hogs: Vec<Hog> = (0..2 * processors)
        .map(|_| Hog::of(":", &user.home()))
        .collect();
    let line = "run read_8192 --on ./target --size 16M --cache warm --runs 4 --format json";
    let run = user.run(&words(line)).expect(0, &[]).json();
    drop(hogs);
    expect_kind(&run, &["processor_wait", "processor_busy"]);
    let result = &run["runs"][0]["results"][0];
    let repetitions = result["repetitions"].as_array().unwrap();
    assert!((4..=6).contains(&repetitions.len()), "{result}");
    // What was set aside stays so in the store, and so does what disturbed it.
    let shown = user.run(&words("show last --format json")).expect(0, &[]);
    assert_eq!(
        shown.json()["runs"][0]["results"][0]["repetitions"],
        result["repetitions"]
    );
    let table = user.run(&words("show last")).expect(0, &[]);
    table.shows(&["disturbed"]);
}

#[test]
fn other_io_on_the_device_is_named() {
    let user = User::new();
    let writer = "dd if=/dev/zero of=other bs=1M count=64 oflag=direct";
    let hog = Hog::of(writer, &user.home());
    let line = "run read_8192 --on ./target --size 32M --runs 4 --format json";
    let run = user.run(&words(line)).expect(0, &[]).json();
    drop(hog);
    let repetition = &run["runs"][0]["results"][0]["repetitions"][0];
    let devices = repetition["devices"].as_array().map_or(0, Vec::len);
    if devices == 0 || !user.file("other").exists() {
        eprintln!(
            "SKIPPED other_io_on_the_device_is_named: the build directory is in memory, or has no O_DIRECT"
        );
        return;
    }
    expect_kind(&run, &["other_io"]);
}

#[test]
fn a_changed_setting_is_named() {
    if !can_run("a_changed_setting_is_named", &[Needs::LoopDevices]) {
        return;
    }
    let user = User::new();
    let device = LoopDevice::blank(user.scratch(), 16);
    let line = format!(
        "run read_8192 --on {} --size 8M --runs 60 --format json",
        device.text()
    );
    let mut process = user.start(&words(&line));
    user.wait_for_repetitions(&mut process, 3);
    let setting = format!("/sys/block/{}/queue/read_ahead_kb", device.name());
    std::fs::write(setting, "4").unwrap();
    let run = process.finish().expect(0, &[]).json();
    expect_kind(&run, &["setting_changed"]);
    let all = found(&run);
    let changed = all.iter().find(|one| one["kind"] == "setting_changed");
    let changed = changed.unwrap();
    assert_eq!(changed["setting"], "read_ahead_kb");
    assert_eq!(changed["device"], device.name());
    assert_eq!(changed["is"], "4");
}

#[test]
fn a_stopped_process_is_named() {
    let user = User::new();
    let line = "run read_8192 --on ./target --size 64M --cache warm --runs 100 --format json";
    let mut process = user.start(&words(line));
    user.wait_for_repetitions(&mut process, 2);
    // Some of these come between two timed parts.
    for _ in 0..10 {
        process.signal(Signal::STOP);
        thread::sleep(Duration::from_millis(60));
        process.signal(Signal::CONT);
        thread::sleep(Duration::from_millis(25));
    }
    let run = process.finish().expect(0, &[]).json();
    expect_kind(&run, &["stopped"]);
}

#[test]
fn memory_that_others_take_is_named() {
    let user = User::new();
    let stop = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut taken = vec![0_u8; 256 << 20];
                    taken.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
                    black_box(taken);
                }
            });
        }
        let line = "run read_8192 --on ./target --size 256M --cache warm --runs 4 --format json";
        let outcome = user.run(&words(line));
        stop.store(true, Ordering::Relaxed);
        outcome.expect(0, &[]).json()
    });
    expect_kind(&run, &["memory_taken"]);
}
