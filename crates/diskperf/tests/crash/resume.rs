//! Interrupted tests that go on: their reports are those of tests without an interruption.

use super::support::machine::retry;
use super::*;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

/// Check at which a test is interrupted. It never ends by itself.
const LAST_CHECK: usize = 5;

/// Check that counts its calls, and waits for ever at the last one before the interruption.
fn stopping(check: &str) -> String {
    format!(
        "printf x >>\"$DISKPERF_DIRECTORY/checks\"; \
         [ $(wc -c <\"$DISKPERF_DIRECTORY/checks\") -ne {LAST_CHECK} ] || \
         {{ : >\"$DISKPERF_DIRECTORY/reached\"; exec sleep 1000; }}; {check}"
    )
}

fn check_count(user: &User) -> usize {
    fs::read(user.file("checks")).map_or(0, |calls| calls.len())
}

/// The part of a kept test that was there when the first cut was checked: a line, and two parts
/// behind their lengths and digests.
fn without_verdicts(kept: &[u8]) -> &[u8] {
    let mut end = kept.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for _ in 0..2 {
        let length = kept[end..end + 8].try_into().unwrap();
        end += 16 + u64::from_le_bytes(length) as usize;
    }
    &kept[..end]
}

/// Interrupts a test, and compares its report with that of a test of the same log that begins with
/// the first cut.
fn expect_the_same_report(place: &[&str], signal: Signal) {
    let user = User::new();
    let [workload, check] = ["write", "check"].map(|word| shipped(&format!("append.py {word}")));
    let check = stopping(&check);
    let common = ["crash", &workload, "--check", &check, "--lying-flush=2/3"];
    let with = |kept: &'static str| {
        let sample = ["--cuts", "7", "--cut", "none", "--jobs", "1"];
        let more = ["--format", "json", "--resume", kept];
        [&common[..], place, &sample, &more].concat()
    };
    let mut process = user.start_in_target(&with("kept"));
    process.wait_until(|| user.file("reached").exists());
    let busy = user.run(&with("kept"));
    busy.expect(2, &["kept", "in use by a test that runs"]);
    process.signal(signal);
    let outcome = process.finish();
    if signal == Signal::INT {
        let expected = format!("{} of", LAST_CHECK - 1);
        outcome.expect(130, &[&expected, "cuts are checked and kept in kept"]);
    }
    retry(|| {
        user.run(&["clean"]);
        match support::entries(&user.target())[..] {
            [] => Ok(()),
            ref left => Err(format!("{left:?} is left")),
        }
    });
    user.assert_nothing_left(signal);
    let kept = fs::read(user.file("kept")).unwrap();
    fs::write(user.file("begun"), without_verdicts(&kept)).unwrap();
    // A part that a kill cut short.
    fs::write(user.file("kept"), [&kept[..], &kept[30..60]].concat()).unwrap();

    let report = user.run(&with("begun")).expect(1, &[]);
    let after_all = check_count(&user);
    let resumed = user.run(&with("kept")).expect(1, &[]);
    let after_resumed = check_count(&user);
    assert_eq!(resumed.stdout, report.stdout);
    let checks = [after_all - LAST_CHECK, after_resumed - after_all];
    assert_eq!(checks[0] - checks[1], LAST_CHECK - 1, "{checks:?}");
    // The workload did not run again.
    let marks = report.json()["marks"].as_u64();
    assert_eq!(marks, Some(6), "{}", report.stdout);

    let other_seed = [&with("begun")[..], &["--seed", "7"]].concat();
    // A test that has ended is begun anew, and another one is refused.
    user.run(&other_seed).expect(2, &["begun", "other options"]);
    let before = check_count(&user);
    user.run(&with("begun")).expect(1, &[]);
    assert!(check_count(&user) - before > checks[1]);
}

#[test]
fn a_killed_test_on_a_drive_goes_on() {
    if can_run("a_killed_test_on_a_drive_goes_on", EXT4) {
        expect_the_same_report(&["--on", "nvme-tlc"], Signal::KILL);
    }
}

#[test]
fn an_interrupted_test_of_a_directory_goes_on() {
    let needs = [
        Needs::Fuse,
        Needs::Tool("fusermount3"),
        Needs::Tool("python3"),
    ];
    if can_run("an_interrupted_test_of_a_directory_goes_on", &needs) {
        expect_the_same_report(&["--directory"], Signal::INT);
    }
}

#[test]
fn a_file_that_keeps_no_test_is_left_as_it_is() {
    let user = User::new();
    fs::write(user.file("mine"), "mine").unwrap();
    let words = [
        "crash",
        "true",
        "--directory",
        "--check",
        "true",
        "--resume",
    ];
    let with = |path: &'static str| user.run(&[&words[..], &[path]].concat());
    with("mine").expect(2, &["mine", "no interrupted crash test"]);
    assert_eq!(fs::read(user.file("mine")).unwrap(), b"mine");
    if rustix::process::geteuid().is_root() {
        fs::write(user.file("others"), "diskperf crash test 1\n").unwrap();
        chown(user.file("others"), Some(65_534), None).unwrap();
        with("others").expect(2, &["others", "belongs to another user"]);
    }
    with("no/where").expect(2, &["no/where"]);
    assert!(!Path::new(&user.file("no")).exists());
}
