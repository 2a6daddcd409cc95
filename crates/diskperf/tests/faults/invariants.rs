//! What must hold whatever has failed.

use crate::injector::Watched;
use crate::scenarios::{RUNS, Scenario, Stage, repetitions};
use crate::support::machine::{instances_of, loops_in, mounts_in};
use crate::support::{User, words};
use diskperf_store::Store;
use diskperf_timeline::RunState;
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// What a process had goes a moment after it: the kernel detaches a loop device when
/// its last user has closed it.
const SETTLING: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// Everything that does not hold after a run.
pub(crate) fn broken(stage: &Stage, user: &User, watched: &Watched) -> Vec<String> {
    let mut broken = stage.touched(user);
    let changed = watched.seen.changed.iter();
    let elsewhere = changed.filter(|path| !stage.may_change(user, path));
    broken.extend(elsewhere.map(|path| format!("{} was changed", path.display())));
    broken.extend(stage.output_damage(user));
    broken.extend(of_the_end(stage, user, watched));
    broken.extend(of_the_store(stage, user, watched));
    broken.extend(of_leftovers(stage, user, watched));
    broken
}

fn was_killed(watched: &Watched) -> bool {
    let failed = watched.seen.failed.as_ref();
    failed.is_some_and(|(_, errno)| errno.is_none())
}

/// How it ended, and what it said.
fn of_the_end(stage: &Stage, user: &User, watched: &Watched) -> Vec<String> {
    let outcome = &watched.outcome;
    let mut broken = Vec::new();
    if watched.seen.hung {
        broken.push("it hangs".to_owned());
    }
    if outcome.stderr.contains("panicked") {
        broken.push("it panics".to_owned());
    }
    if was_killed(watched) {
        return broken;
    }
    // An interrupted write is made again.
    let failed = watched.seen.failed.as_ref();
    let failed = failed.filter(|(_, errno)| *errno != Some(libc::EINTR));
    let unheard = failed.is_some_and(|(failed, _)| failed.is_to_standard_error());
    match outcome.code {
        Some(0) if failed.is_some_and(|(failed, _)| failed.is_to_standard_output()) => {
            broken.push("nothing was printed, and the exit code is 0".to_owned());
        }
        Some(0) => broken.extend(
            stage
                .undone(user, outcome)
                .map(|undone| format!("exit code 0, and {undone}")),
        ),
        Some(1 | 2) if outcome.stderr.is_empty() && !unheard => {
            broken.push("it fails without a word".to_owned());
        }
        Some(1 | 2) => {}
        code => broken.push(format!("its exit code is {code:?}")),
    }
    broken
}

/// The runs that standard error says were saved beside the store.
fn saved(user: &User, stderr: &str) -> Vec<Value> {
    let words = stderr.split_whitespace();
    let names = words.map(|word| word.trim_matches(['`', ';', ',', ':', '\'']));
    let files = names.filter(|name| name.ends_with(".json"));
    let texts = files.filter_map(|name| fs::read(user.home().join(name)).ok());
    texts
        .filter_map(|text| serde_json::from_slice(&text).ok())
        .collect()
}

/// That the store opens, and that what was finished is in it or beside it.
fn of_the_store(stage: &Stage, user: &User, watched: &Watched) -> Vec<String> {
    let mut broken = Vec::new();
    let (store, outcome) = (user.store(), &watched.outcome);
    if store.exists() && store.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        let sound = Connection::open(&store).and_then(|connection| {
            connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
        });
        if sound.as_deref() != Ok("ok") {
            broken.push(format!("the store is damaged: {sound:?}"));
            return broken;
        }
    }
    if !stage.scenario.is_run() {
        return broken;
    }
    let Ok(json) = serde_json::from_str::<Value>(&outcome.stdout) else {
        return broken;
    };
    let run = &json["runs"][0];
    let (id, finished) = (run["id"].as_str().unwrap_or_default(), repetitions(&json));
    let kept = store.exists().then(|| {
        let store = Store::open(&store).map_err(|error| error.to_string())?;
        store.load_run(id).map_err(|error| error.to_string())
    });
    let (state, stored) = match &kept {
        Some(Ok(run)) => {
            let of = run.results.iter().map(|result| result.repetitions.len());
            (Some(run.state.clone()), of.sum())
        }
        _ => (None, 0),
    };
    let beside = saved(user, &outcome.stderr);
    let beside = beside.iter().map(repetitions).max().unwrap_or(0);
    if stored.max(beside) < finished {
        broken.push(format!(
            "{finished} repetitions finished, {stored} are in the store and {beside} beside it: {kept:?}"
        ));
    }
    let whole = stored >= RUNS && state == Some(RunState::Finished);
    if outcome.code == Some(0) && !whole {
        broken.push(format!(
            "exit code 0, and the store has {stored} repetitions of a run that is {state:?}"
        ));
    }
    if stored < finished && !outcome.stderr.contains("the store") {
        broken.push("the store lacks it, and nobody says so".to_owned());
    }
    broken
}

/// That what is left was told, and is found by `clean`.
fn of_leftovers(stage: &Stage, user: &User, watched: &Watched) -> Vec<String> {
    let mut broken = Vec::new();
    let stderr = &watched.outcome.stderr;
    let told = |left: &String| {
        let thing = left.split(" is ").next().unwrap_or_default();
        // A `clean` that could not go on has said why.
        let gave_up = stage.scenario == Scenario::Clean && !stderr.is_empty();
        gave_up || stderr.contains("clean") || stderr.contains(thing)
    };
    let instances = || match stage.scenario {
        Scenario::Explain => watched.seen.process.map_or(Vec::new(), instances_of),
        _ => Vec::new(),
    };
    let left = [stage.left(user), instances()].concat();
    if !was_killed(watched) {
        let untold = left.iter().filter(|left| !told(left));
        broken.extend(untold.map(|left| format!("{left} is left, and nobody says so")));
        let strangers = stage.strangers(user).into_iter();
        let unnamed = strangers.filter(|name| !stderr.contains(name.as_str()));
        broken.extend(unnamed.map(|name| format!("the file {name} is left")));
    }
    let other = user.file("other").exists();
    let line = if other {
        "clean --on . --on ./target --on ./other"
    } else {
        "clean --on . --on ./target"
    };
    let mut cleaned = user.run(&words(line));
    let after = || [stage.left(user), instances()].concat();
    let mut waited = Duration::ZERO;
    // A tool that was being started holds the dead one's locks for a moment.
    while was_killed(watched) && !after().is_empty() && waited < SETTLING {
        thread::sleep(POLL);
        waited += POLL;
        cleaned = user.run(&words(line));
    }
    if cleaned.code != Some(0) {
        broken.push(format!("clean fails: {cleaned:?}"));
    }
    let after = after().into_iter();
    broken.extend(after.map(|left| format!("{left} is left after clean, which said {cleaned:?}")));
    broken.extend(devices_left(user));
    broken
}

/// Loop devices and mounts of the user's.
fn devices_left(user: &User) -> Option<String> {
    let places: Vec<PathBuf> = ["target", "other"].map(|name| user.file(name)).into();
    let mut waited = Duration::ZERO;
    loop {
        let found = |place: &PathBuf| [loops_in(place), mounts_in(place)].concat();
        let left: Vec<String> = places.iter().flat_map(found).collect();
        if left.is_empty() {
            return None;
        }
        if waited > SETTLING {
            return Some(format!("{left:?} is left after clean"));
        }
        thread::sleep(POLL);
        waited += POLL;
    }
}
