//! A run that is told to end removes what it made, keeps what it measured, and
//! says so; one that is told twice ends at once.

mod support;

use diskperf_timeline::RunState;
use rustix::process::Signal;
use std::thread;
use std::time::Duration;
use support::machine::can_run;
use support::{MOUNTS, Random, User, entries, words};

/// On the directory as it is, and on a fresh file system in it.
const KINDS: [&str; 2] = ["", "--fresh ext4:block_bytes=4096"];

/// Answer to a signal while a run has files.
const REMOVING: &str = "diskperf: interrupted: the run's folder is being removed; a second signal leaves it to `diskperf clean`\n";

/// Answer to the second.
const LEFT: &str =
    "diskperf: ended at once: the run's folder is left; `diskperf clean` removes it\n";

/// A signal has an answer within this: a watchdog, for machines that do much else.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

fn endless(options: &str) -> String {
    format!("run write_8192 --on ./target --size 1M --runs 100000 {options}")
}

fn can_run_kind(test: &str, kind: &str) -> bool {
    kind.is_empty() || can_run(&format!("{test} ({kind})"), MOUNTS)
}

#[test]
fn a_run_ends_in_order() {
    for kind in KINDS {
        if !can_run_kind("a_run_ends_in_order", kind) {
            continue;
        }
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let user = User::new();
            let mut process = user.start(&words(&endless(kind)));
            user.wait_for_repetitions(&mut process, 3);
            assert_eq!(entries(&user.target()).len(), 1);
            process.signal(signal);
            let outcome = process.finish().expect(130, &["interrupted"]);
            let when = format!("{signal:?} {kind}: {outcome:?}");
            user.assert_nothing_left(&when);
            // What was measured is printed and stored.
            assert!(outcome.stdout.contains("write_8192"), "{when}");
            let stored = user.stored();
            assert_eq!(stored.len(), 1, "{when}");
            assert!(stored[0].repetition_count >= 3, "{when}");
            assert_eq!(stored[0].state, RunState::Interrupted, "{when}");
            let shown = user.run(&words("show last --format json")).expect(0, &[]);
            let run = &shown.json()["runs"][0];
            assert_eq!(run["state"], "interrupted", "{when}");
            assert_eq!(
                run["results"][0]["repetitions"].as_array().unwrap().len(),
                stored[0].repetition_count as usize,
                "{when}"
            );
            user.run(&words("clean --on ./target")).expect(0, &[]);
        }
    }
}

/// Both arms keep their blocks, which are compared.
#[test]
fn an_ab_measurement_ends_in_order() {
    let user = User::new();
    let line = "ab ./target ./target write_8192 --size 64K --budget 1h --min-effect 0%";
    let mut process = user.start(&words(line));
    user.wait_for_repetitions(&mut process, 20);
    process.signal(Signal::INT);
    let outcome = process.finish().expect(130, &["interrupted"]);
    user.assert_nothing_left(line);
    assert!(outcome.stdout.contains("write_8192"), "{outcome:?}");
    let stored = user.stored();
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0].repetition_count, stored[1].repetition_count);
    for run in stored {
        assert_eq!(run.state, RunState::Interrupted);
    }
    // A hook does not hold it up.
    let mut line = words("ab ./target ./target write_8192 --before-a");
    line.push("touch here; exec sleep 3600");
    let mut process = user.start(&line);
    process.wait_until(|| user.file("here").exists());
    process.signal(Signal::TERM);
    process.finish().expect(130, &["interrupted"]);
    user.assert_nothing_left("a hook");
}

/// Whatever else ends a process by default does so in order too, unless whoever
/// started it had it ignored.
#[test]
fn a_run_ends_in_order_whatever_the_signal() {
    for signal in [
        Signal::QUIT,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::USR1,
        Signal::USR2,
    ] {
        let user = User::new();
        let mut process = user.start(&words(&endless("")));
        user.wait_for_repetitions(&mut process, 1);
        process.signal(signal);
        let outcome = process.finish().expect(130, &["interrupted"]);
        let when = format!("{signal:?}: {outcome:?}");
        user.assert_nothing_left(&when);
        assert_eq!(user.stored()[0].state, RunState::Interrupted, "{when}");
    }
}

/// Several programs, several targets: the first signal ends all of it.
#[test]
fn a_suite_ends_in_order() {
    let user = User::new();
    let other = user.file("other");
    std::fs::create_dir(&other).unwrap();
    let mut process = user.start(&words(
        "run vme87 --on ./target --on ./other --size 1M --runs 1000",
    ));
    user.wait_for_repetitions(&mut process, 3);
    process.signal(Signal::INT);
    process.finish().expect(130, &["interrupted"]);
    user.assert_nothing_left("a suite");
    assert_eq!(entries(&other), [""; 0]);
    assert_eq!(user.stored().len(), 1, "the second target was not begun");
}

/// From the first instruction to the end: making the file system, finding the
/// size, measuring, checking.
#[test]
fn a_run_ends_in_order_at_any_moment() {
    let mut random = Random::new("a_run_ends_in_order_at_any_moment");
    for number in 0..16 {
        let kind = KINDS[number % 2];
        if !can_run_kind("a_run_ends_in_order_at_any_moment", kind) {
            continue;
        }
        let user = User::new();
        let line = format!("run ffs83 --on ./target --size 1M --runs 2 {kind}");
        let mut process = user.start(&words(&line));
        let delay = random.up_to(Duration::from_millis(600));
        thread::sleep(delay);
        process.signal(Signal::INT);
        let outcome = process.finish();
        let when = format!("after {delay:?}, {kind}: {outcome:?}");
        user.assert_nothing_left(&when);
        match outcome.code {
            // It was over, or had not begun to watch for signals.
            Some(0) | None => {}
            Some(130) => assert!(outcome.stderr.contains("interrupted"), "{when}"),
            Some(_) => panic!("{when}"),
        }
        for run in user.stored() {
            let ended = matches!(run.state, RunState::Finished | RunState::Interrupted);
            assert!(ended || outcome.code.is_none(), "{run:?} {when}");
        }
    }
}

/// `timeout` signals a process, and then the group that it is in.
#[test]
fn a_signal_that_is_sent_twice_ends_it_in_order() {
    for _ in 0..5 {
        let user = User::new();
        let mut process = user.start(&words(&endless("")));
        user.wait_for_repetitions(&mut process, 2);
        process.signal(Signal::TERM);
        process.signal(Signal::TERM);
        process.finish().expect(130, &["interrupted"]);
        user.assert_nothing_left("TERM twice");
        assert_eq!(user.stored()[0].state, RunState::Interrupted);
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // Two threads may take a signal each, and the one with the first end the run in
    // order before the other has begun: then the second was never seen, and it is tried
    // again.
    const ATTEMPTS: usize = 10;
    for kind in KINDS {
        if !can_run_kind("a_second_signal_ends_it_at_once", kind) {
            continue;
        }
        let ended = (0..ATTEMPTS).any(|_| ends_at_once(kind));
        assert!(ended, "{kind:?}: in {ATTEMPTS} attempts it never did");
    }
}

/// Whether the second of two signals was seen; if so, all that follows is as it has to be.
fn ends_at_once(kind: &str) -> bool {
    let user = User::new();
    let mut process = user.start(&words(&endless(kind)));
    user.wait_for_repetitions(&mut process, 2);
    // Both are delivered when it goes on, before it can do anything.
    for signal in [Signal::STOP, Signal::INT, Signal::TERM, Signal::CONT] {
        process.signal(signal);
    }
    let outcome = process.finish().expect(130, &[]);
    if outcome
        .stdout
        .contains("NOT FINISHED: interrupted by the user")
    {
        user.assert_nothing_left(kind);
        return false;
    }
    // There was no time to print or to clean up: only the signals were answered.
    assert_eq!(outcome.stdout, "");
    assert_eq!(outcome.stderr, format!("{REMOVING}{LEFT}"));
    assert!(user.stored()[0].repetition_count >= 2);
    assert_eq!(user.stored()[0].state, RunState::Running);
    assert_eq!(entries(&user.target()).len(), 1);
    user.run(&words("clean --on ./target")).expect(0, &[]);
    user.assert_nothing_left(kind);
    true
}

/// Programs whose folders hold many files: making and removing these takes far longer than
/// a call.
const TREES: [&str; 4] = [
    "read_files --size 24M --set program.file_bytes=2K --set program.churn=2",
    "metadata --set program.files=4000 --set program.fsync=none",
    "dump_restore --size 24M",
    "populate --size 24M",
];

/// The answer comes at any moment, while files are made, used or removed; then the folder is
/// gone, or, after a second signal, found by `clean`.
#[test]
fn a_signal_is_answered_at_once_whatever_a_run_is_at() {
    let test = "a_signal_is_answered_at_once_whatever_a_run_is_at";
    let mut random = Random::new(test);
    for (number, program) in TREES.iter().cycle().take(4 * TREES.len()).enumerate() {
        let signal = [Signal::HUP, Signal::QUIT, Signal::TERM, Signal::INT][number / TREES.len()];
        let insists = number % 2 == 1;
        let user = User::new();
        let line = format!("run {program} --on ./target --runs 100000");
        let mut process = user.start(&words(&line));
        let answers = process.lines_of_stderr();
        process.wait_until(|| !entries(&user.target()).is_empty());
        let delay = random.up_to(Duration::from_millis(1500));
        thread::sleep(delay);
        let when = format!("{line}: {signal:?} after {delay:?}");
        process.signal(signal);
        let first = answers.recv_timeout(ANSWERED_WITHIN);
        assert_eq!(first.as_deref(), Ok(REMOVING.trim_end()), "{when}");
        if insists {
            // The other wish: the same within a second is the same.
            process.signal(Signal::USR1);
        }
        let code = process.finish().code;
        assert_eq!(code, Some(130), "{when}");
        let left = entries(&user.target());
        let rest: Vec<String> = answers.iter().collect();
        let was_left = rest.iter().any(|line| line == LEFT.trim_end());
        assert!(left.is_empty() || was_left, "{when}: {left:?}, {rest:?}");
        let cleaned = user.run(&words("clean --on ./target")).expect(0, &[]);
        assert!(
            left.is_empty() || cleaned.stdout.contains("removed"),
            "{when}: {cleaned:?}"
        );
        user.assert_nothing_left(&when);
    }
}
