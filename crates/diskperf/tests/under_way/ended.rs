//! A run that is killed, or told to end.

use crate::filesystem::Operation;
use crate::served::Served;
use crate::support::machine::{Needs, can_run};
use crate::support::{Process, Random, User, entries, words};
use crate::{ENGINES, assert_kept, endless, measuring, newest};
use diskperf_timeline::RunState;
use rustix::process::Signal;
use std::thread;
use std::time::Duration;

/// Ends of each kind, with each engine.
const ENDS: usize = 4;

/// Reads, writes and syncs.
fn mixed(engine: &str) -> String {
    let more = format!(
        "--set program.write_share=0.5 --set program.sync_every=100 --set program.engine={engine}"
    );
    endless("./target", &more)
}

/// Sends a signal at random moments, with each engine; `check` is told when it came.
fn end_by(signal: Signal, test: &str, check: impl Fn(&User, Process, String)) {
    let mut random = Random::new(test);
    for engine in ENGINES {
        for _ in 0..ENDS {
            let user = User::new();
            let mut process = measuring(&user, &mixed(engine));
            let delay = random.up_to(Duration::from_millis(100));
            thread::sleep(delay);
            process.signal(signal);
            check(&user, process, format!("{engine} after {delay:?}"));
        }
    }
}

#[test]
fn a_kill_loses_nothing_that_was_finished() {
    let test = "a_kill_loses_nothing_that_was_finished";
    end_by(Signal::KILL, test, |user, process, when| {
        let when = format!("{when}: {:?}", process.finish());
        let run = newest(user);
        assert_eq!(run.state, RunState::Running, "{when}");
        assert!(run.results[0].repetitions.len() >= 2, "{when}");
        let cleaned = user.run(&["clean"]).expect(0, &[]);
        assert!(cleaned.stdout.contains("removed"), "{when}: {cleaned:?}");
        user.assert_nothing_left(when);
    });
}

#[test]
fn an_interrupt_ends_it_in_order() {
    let test = "an_interrupt_ends_it_in_order";
    end_by(Signal::INT, test, |user, process, when| {
        let outcome = process.finish().expect(130, &["interrupted"]);
        let run = newest(user);
        assert_eq!(run.state, RunState::Interrupted, "{when}: {outcome:?}");
        assert_kept(&run, &outcome);
        user.assert_nothing_left(&outcome);
    });
}

/// What a device has cannot be taken back: the run ends when it answers.
#[test]
fn an_interrupt_while_nothing_answers() {
    if !can_run("an_interrupt_while_nothing_answers", &[Needs::Fuse]) {
        return;
    }
    for engine in ENGINES {
        let user = User::new();
        let served = Served::on_target(&user);
        let mut process = measuring(&user, &mixed(engine));
        thread::scope(|scope| {
            scope.spawn(|| served.stall(Duration::from_millis(800)));
            thread::sleep(Duration::from_millis(100));
            process.signal(Signal::INT);
            let outcome = process.finish().expect(130, &["interrupted"]);
            assert_kept(&newest(&user), &outcome);
            user.assert_nothing_left(&outcome);
        });
        assert_eq!(entries(&served.behind), [""; 0]);
        // Nor does an error of what is given up hide that it was ended.
        let mut process = user.start(&words(&mixed(engine)));
        process.wait_until(|| user.stored().len() == 2);
        user.wait_for_repetitions(&mut process, 1);
        process.signal(Signal::INT);
        served.fail(Operation::Read, libc::EIO);
        let outcome = process.finish();
        assert!(matches!(outcome.code, Some(1 | 130)), "{outcome:?}");
        user.assert_nothing_left(&outcome);
    }
}
