//! Storage that fails, and a run that is ended or stopped, while 128 requests are under
//! way: nothing is left, nothing hangs, what was finished is kept, and the cause is named.

mod ended;
#[path = "../../../laboratory/examples/slowed/filesystem.rs"]
mod filesystem;
mod gone;
#[path = "../../../laboratory/examples/slowed/nodes.rs"]
mod nodes;
mod refused;
mod served;
mod stopped;
#[path = "../support/mod.rs"]
mod support;

use diskperf_store::Store;
use diskperf_timeline::{Run, RunState};
use support::{Outcome, Process, User, words};

/// The engines that requests go through.
const ENGINES: [&str; 2] = ["best", "threads"];

/// A run on a target with 128 requests under way, which goes on until it is ended.
fn endless(target: &str, more: &str) -> String {
    format!(
        "run random --on {target} --size 4M --runs 100000 --quiet --set program.depth=128 --set program.area_bytes=4M {more}"
    )
}

/// Starts it, and waits until some repetitions are done.
fn measuring(user: &User, line: &str) -> Process {
    let mut process = user.start(&words(line));
    user.wait_for_repetitions(&mut process, 2);
    process
}

/// The newest run, of which all can be read.
fn newest(user: &User) -> Run {
    let store = Store::open(&user.store()).expect("the store opens");
    let headings = store.list_runs().expect("the store can be read");
    store
        .load_run(&headings[0].id)
        .expect("the run can be read")
}

/// Asserts that the newest run failed for this reason, and that it kept what it had finished.
#[track_caller]
fn assert_failed(user: &User, why: &str, outcome: &Outcome) {
    let run = newest(user);
    let said = matches!(&run.state, RunState::Failed(text) if text.contains(why));
    assert!(said, "{why}: {:?} {outcome:?}", run.state);
    assert_kept(&run, outcome);
}

/// Asserts that what a run had finished is kept, and printed.
#[track_caller]
fn assert_kept(run: &Run, outcome: &Outcome) {
    let repetitions = &run.results[0].repetitions;
    assert!(repetitions.len() >= 2, "{outcome:?}");
    for load in repetitions.iter().flat_map(|one| one.load_measures()) {
        assert_eq!((load.queue_depth, load.read_write_count()), (128, 1024));
    }
    assert!(outcome.stdout.contains("random"), "{outcome:?}");
}
