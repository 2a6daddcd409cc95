//! The command: its outputs, its errors, its end by a signal, and what it leaves.

use super::support::machine::retry;
use super::*;
use rustix::process::Signal;
use std::fs;

/// Appends records for a minute.
const SLOW: &str =
    "echo started >&2; for i in $(seq 600); do echo $i >> log; sync log; sleep 0.1; done";

#[test]
fn the_table_names_the_loss_and_junit_has_it_too() {
    if !can_run("the_table_names_the_loss_and_junit_has_it_too", EXT4) {
        return;
    }
    let user = User::new();
    let script = planted();
    let [workload, check] =
        ["write early bug", "check early"].map(|words| format!("{script} {words}"));
    let words = [
        "crash",
        &workload,
        "--on",
        "nvme-tlc",
        "--check",
        &check,
        "--junit",
        "junit.xml",
    ];
    let parts = [
        "first loss: power cut ",
        "after the mark `0`",
        "lost `0`, which was marked durable",
        "it suffices to lose request",
        "before the mark `0` would have saved it",
        "| block 0 of group is lost",
    ];
    let outcome = user.run(&words);
    let outcome = outcome.expect(1, &[]);
    for part in parts {
        assert!(outcome.stdout.contains(part), "{part}: {outcome:?}");
    }
    let junit = fs::read_to_string(user.file("junit.xml")).unwrap();
    assert!(junit.contains("failures=\"1\""), "{junit}");
    assert!(junit.contains("lost `0`"), "{junit}");
}

#[test]
fn an_exported_log_has_the_same_verdict() {
    if !can_run("an_exported_log_has_the_same_verdict", EXT4) {
        return;
    }
    let user = User::new();
    let script = planted();
    let check = format!("{script} check early");
    for (program, code) in [("bug", 1), ("right", 0)] {
        let workload = format!("{script} write early {program}");
        crash(&user, &workload, &check, &["--export-log", "log"]).expect(code, &[]);
        let words = [
            "crash", "--log", "log", "--check", &check, "--format", "json",
        ];
        let report = user.run(&words).expect(code, &[]).json();
        assert_eq!(report["marks"], 5, "{report:#}");
    }
    fs::write(user.file("log"), [1; 5000]).unwrap();
    user.run(&["crash", "--log", "log"])
        .expect(2, &["log", "no log of dm-log-writes"]);
}

#[test]
fn what_cannot_be_tested_is_refused_with_the_reason() {
    let user = User::new();
    for (words, parts) in [
        (&["crash"][..], &["--on", "CMD"][..]),
        (
            &["crash", "true", "--on", "vax780-sc780-eagle"],
            &["whole computer"],
        ),
        (
            &["crash", "true", "--on", "nvme-tlc", "--cuts", "0"],
            &["each, marks, all, or a number"],
        ),
        (
            &["crash", "true", "--on", "nvme-tlc", "--cut", "random"],
            &["random:7"],
        ),
        (
            &["crash", "true", "--on", "nvme-tlc", "--lying-flush=3/2"],
            &["2/3"],
        ),
        (
            &["crash", "true", "--on", "nvme-tlc", "--fs", "ext5"],
            &["did you mean `ext"],
        ),
        (&["crash", "--log", "absent"], &["absent", "No such file"]),
    ] {
        user.run(words).expect(2, parts);
    }
    if !can_run("what_cannot_be_tested_is_refused_with_the_reason", EXT4) {
        return;
    }
    user.run(&["crash", "exit 3", "--on", "nvme-tlc"]).expect(
        2,
        &["`exit 3` failed", "must succeed on a drive that works"],
    );
    user.run(&[
        "crash",
        "true",
        "--on",
        "fixed",
        "--set",
        "drive.sectors=4096",
    ])
    .expect(2, &["name a larger drive"]);
    user.run_as_nobody(&["crash", "true", "--on", "nvme-tlc"])
        .expect(2, &["needs root"]);
}

#[test]
fn a_signal_ends_a_test_without_leftovers() {
    if !can_run("a_signal_ends_a_test_without_leftovers", EXT4) {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let user = User::new();
        let mut process = user.start_in_target(&["crash", SLOW, "--on", "nvme-tlc"]);
        let lines = process.lines_of_stderr();
        while lines.recv().expect("the workload starts") != "started" {}
        process.signal(signal);
        process.finish().expect(130, &[]);
        user.assert_nothing_left(signal);
    }
}

#[test]
fn what_a_killed_test_leaves_is_cleaned() {
    if !can_run("what_a_killed_test_leaves_is_cleaned", EXT4) {
        return;
    }
    let user = User::new();
    let place = user.target();
    let mut process = user.start_in_target(&["crash", SLOW, "--on", "nvme-tlc"]);
    let lines = process.lines_of_stderr();
    while lines.recv().expect("the workload starts") != "started" {}
    process.signal(Signal::KILL);
    process.finish();
    assert_eq!(support::entries(&place).len(), 1);
    // The store knows where to look.
    retry(|| {
        user.run(&["clean"]);
        match support::entries(&place)[..] {
            [] => Ok(()),
            ref left => Err(format!("{left:?} is left")),
        }
    });
    user.assert_nothing_left("after a kill");
}

/// The drive of a crash test has no storage of others beneath it, so it keeps nobody from writing
/// a loop device.
#[test]
fn a_loop_device_beside_a_crash_test_is_written() {
    if !can_run("a_loop_device_beside_a_crash_test_is_written", EXT4) {
        return;
    }
    let user = User::new();
    let workload = format!(
        "set -e; cd \"$DISKPERF_DIRECTORY\"; truncate -s 16M beside; \
         disk=$(losetup --find --show beside); trap 'losetup -d '$disk EXIT; \
         {} run write_8192 --size 1M --runs 1 --quiet --store beside.db --on $disk --destroy-data-on $disk",
        env!("CARGO_BIN_EXE_diskperf")
    );
    let words = ["crash", &workload, "--on", "nvme-tlc", "--cuts", "1"];
    let outcome = user.run(&words).expect(0, &[]);
    assert!(outcome.stdout.contains("0 lost data"), "{outcome:?}");
}
