//! `diskperf crash`: planted bugs are found on the real kernel, correct programs raise no alarm,
//! and nothing is left.

mod command;
mod directory;
mod programs;
mod resume;
mod store;
#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;
use std::process::Command;
use support::machine::{Needs, can_run};
use support::{Outcome, User};

/// Instants of a test: there is a handful of media for each.
const CUTS: &str = "12";

/// Correct programs of the script with planted bugs.
const RIGHT: [&str; 18] = [
    "create",
    "direct",
    "order",
    "torn",
    "early",
    "mapped",
    "size",
    "checkpoint",
    "fua",
    "truncate",
    "swallowed",
    "rotate",
    "link",
    "superblock",
    "doublewrite",
    "symlink",
    "reserved",
    "replaced_tree",
];

/// Everything that a crash test on ext4 needs.
const EXT4: &[Needs] = &[
    Needs::LoopDevices,
    Needs::Fuse,
    Needs::Tool("mkfs.ext4"),
    Needs::Tool("e2fsck"),
    Needs::Tool("python3"),
];

/// Command of the Python that `python3` stands for, without the script that may choose it: a check
/// would start it each time.
fn python() -> String {
    let words = ["-c", "import sys; print(sys.executable)"];
    let printed = Command::new("python3").args(words).output();
    let printed = printed.expect("the test needs python3").stdout;
    // Without the modules of the site, which nothing here uses.
    format!("{} -I -S", String::from_utf8_lossy(&printed).trim())
}

/// Path of a script that users get with the documentation.
fn shipped(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/crash");
    format!("{} {root}/{name}", python())
}

/// Path of the programs with planted bugs.
fn planted() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/programs.py");
    format!("{} {script}", python())
}

/// Crash test of a workload by a check, on a flash drive with a volatile cache.
fn crash(user: &User, workload: &str, check: &str, more: &[&str]) -> Outcome {
    let words = ["crash", workload, "--on", "nvme-tlc", "--check", check];
    let sample: &[&str] = match more.contains(&"--cuts") {
        true => &[],
        false => &["--cuts", CUTS],
    };
    let words = [
        &words[..],
        &["--jobs", "1", "--format", "json"],
        sample,
        more,
    ]
    .concat();
    user.run(&words)
}

/// Requests whose loss suffices for the first loss.
fn smallest_loss(report: &Value) -> usize {
    let first = &report["lost"][0]["requests_before"];
    first.as_array().map_or(usize::MAX, Vec::len)
}

/// Asserts that a workload loses nothing.
#[track_caller]
fn expect_no_alarm(workload: &str, check: &str, more: &[&str]) {
    let user = User::new();
    let report = crash(&user, workload, check, more).expect(0, &[]).json();
    assert!(report["cuts"].as_u64() >= Some(10), "{workload}: {report}");
    assert!(report["marks"].as_u64() >= Some(5), "{workload}: {report}");
}

/// Asserts that a workload loses something, for which few requests suffice.
#[track_caller]
fn expect_loss(workload: &str, check: &str, more: &[&str]) -> Value {
    let user = User::new();
    let report = crash(&user, workload, check, more).expect(1, &[]).json();
    assert!(smallest_loss(&report) <= 3, "{workload}: {report:#}");
    report
}
