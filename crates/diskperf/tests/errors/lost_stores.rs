//! Stores that are lost while something is measured: nothing that was finished is
//! lost with them, and what is said is so.

use crate::support::{Outcome, Process, User, words};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Disturbed repetitions are run again, so that there may be more.
const RUN: &str = "run write_8192 --on ./target --size 64K --runs 200 --quiet";
const LONG: &str = "run write_8192 --on ./target --size 64K --runs 100000 --quiet";
const FILES: [&str; 3] = ["runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm"];

/// The files beside the store that runs are kept in.
fn side_files(user: &User) -> Vec<PathBuf> {
    let folder = user.store().parent().unwrap().to_owned();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}

/// How many repetitions the side file has; 0 while there is none.
fn kept(user: &User) -> usize {
    let text = side_files(user)
        .first()
        .and_then(|path| fs::read(path).ok());
    let file = text.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    file.map_or(0, |file| repetitions(&file))
}

fn repetitions(shown: &Value) -> usize {
    let list = &shown["runs"][0]["results"][0]["repetitions"];
    list.as_array().map_or(0, Vec::len)
}

fn shown(user: &User, name: &str) -> usize {
    let shown = user.run(&["show", name, "--format", "json"]);
    repetitions(&shown.expect(0, &[]).json())
}

/// A run that is under way, with repetitions in the store.
fn under_way(user: &User, line: &str) -> Process {
    let mut process = user.start(&words(line));
    user.wait_for_repetitions(&mut process, 3);
    process
}

/// Waits until repetitions are kept beside the store.
fn wait_for_side_file(user: &User, process: &mut Process) {
    process.wait_until(|| kept(user) > 0);
    let so_far = kept(user);
    process.wait_until(|| kept(user) > so_far + 1);
}

#[track_caller]
fn assert_all_stored(user: &User, outcome: Outcome) {
    let outcome = outcome.expect(0, &["is kept in", "has everything again"]);
    assert!(side_files(user).is_empty(), "{outcome:?}");
    assert!(shown(user, "last") >= 200, "{outcome:?}");
    user.assert_nothing_left(&outcome);
}

#[test]
fn a_store_that_is_deleted_takes_nothing_with_it() {
    for files in [&FILES[..1], &FILES] {
        let user = User::new();
        let mut process = under_way(&user, RUN);
        for name in files {
            fs::remove_file(user.store().with_file_name(name)).unwrap();
        }
        wait_for_side_file(&user, &mut process);
        let outcome = process.finish().expect(
            1,
            &[
                "was deleted, moved or replaced during its use",
                "until it takes results again, run",
                "the results are not in the store",
                "they are saved in",
            ],
        );
        assert!(!outcome.stderr.contains("stored as"), "{outcome:?}");
        let [file] = &side_files(&user)[..] else {
            panic!("{outcome:?}");
        };
        assert!(
            outcome.stderr.contains(file.to_str().unwrap()),
            "{outcome:?}"
        );
        assert!(shown(&user, file.to_str().unwrap()) >= 200);
        user.run(&["compare", file.to_str().unwrap(), file.to_str().unwrap()])
            .expect(0, &[]);
        user.assert_nothing_left(&outcome);
    }
}

#[test]
fn a_store_that_is_put_back_takes_everything() {
    let user = User::new();
    let mut process = under_way(&user, RUN);
    let away = |name: &str| user.file(&format!("away-{name}"));
    for name in FILES {
        fs::rename(user.store().with_file_name(name), away(name)).unwrap();
    }
    wait_for_side_file(&user, &mut process);
    for name in ["runs.sqlite-shm", "runs.sqlite-wal", "runs.sqlite"] {
        fs::rename(away(name), user.store().with_file_name(name)).unwrap();
    }
    let outcome = process
        .finish()
        .expect(0, &["was deleted, moved or replaced during its use"]);
    assert!(!outcome.stderr.contains("was replaced"), "{outcome:?}");
    assert_all_stored(&user, outcome);
}

/// What is at the store's name is the store: a run goes there, all of it.
#[test]
fn a_store_that_takes_the_place_of_another_gets_the_whole_run() {
    let user = User::new();
    let no_directory = "--store data/other.sqlite: there is no directory data; make it";
    user.run(&words("list runs --store data/other.sqlite"))
        .expect(2, &[no_directory]);
    fs::create_dir(user.file("data")).unwrap();
    user.run(&words("list runs --store data/other.sqlite"))
        .expect(0, &[]);
    let process = under_way(&user, RUN);
    fs::rename(user.file("data/other.sqlite"), user.store()).unwrap();
    for name in &FILES[1..] {
        fs::remove_file(user.store().with_file_name(name)).unwrap();
    }
    let outcome = process.finish().expect(0, &["was replaced by another"]);
    assert!(side_files(&user).is_empty(), "{outcome:?}");
    assert!(shown(&user, "last") >= 200, "{outcome:?}");
}

/// Another process holds the store's lock until this goes.
fn lock(user: &User) -> Connection {
    let locker = Connection::open(user.store()).unwrap();
    locker
        .execute_batch("BEGIN IMMEDIATE; DELETE FROM workspaces WHERE path = x'00';")
        .unwrap();
    locker
}

#[test]
fn a_lock_that_is_held_too_long_is_waited_for_again() {
    let user = User::new();
    let mut process = under_way(&user, RUN);
    let locker = lock(&user);
    wait_for_side_file(&user, &mut process);
    drop(locker);
    let outcome = process
        .finish()
        .expect(0, &["is locked by another program"]);
    assert_all_stored(&user, outcome);
}

/// What the side file had when the process was killed, it has.
#[test]
fn a_kill_while_the_store_is_locked_loses_nothing() {
    let user = User::new();
    let mut process = under_way(&user, LONG);
    let locker = lock(&user);
    // One repetition waits for the lock, and is in the file meanwhile.
    process.wait_until(|| kept(&user) > 0);
    let waiting = kept(&user);
    assert!(waiting >= 3, "{waiting}");
    wait_for_side_file(&user, &mut process);
    let before = kept(&user);
    process.signal(Signal::KILL);
    let killed = process.finish();
    assert_eq!(killed.code, None, "{killed:?}");
    assert!(
        killed.stderr.contains("is kept in"),
        "said at once: {killed:?}"
    );
    let [file] = &side_files(&user)[..] else {
        panic!("{killed:?}");
    };
    let after = shown(&user, file.to_str().unwrap());
    assert!(
        after >= before && before > waiting,
        "{after} {before} {waiting}"
    );
    drop(locker);
    assert!(user.stored()[0].repetition_count as usize <= after);
    user.run(&words("clean --on ./target")).expect(0, &[]);
    user.assert_nothing_left(&killed);
}

/// A folder that the store could not be told of is found all the same, where the
/// user is told to look.
#[test]
fn a_folder_that_is_not_noted_is_named() {
    let user = User::new();
    user.run(&words(
        "run write_8192 --on ./target --size 64K --runs 1 --quiet",
    ))
    .expect(0, &[]);
    let locker = lock(&user);
    let mut process = user.start(&words(LONG));
    process.wait_until(|| kept(&user) > 1);
    process.signal(Signal::KILL);
    let killed = process.finish();
    let place = user.target().canonicalize().unwrap();
    let told = format!("diskperf clean --on {}", place.display());
    assert!(killed.stderr.contains(&told), "{told}: {killed:?}");
    drop(locker);
    let told: Vec<&str> = told.split(' ').skip(1).collect();
    user.run(&told).expect(0, &[]).shows(&["removed"]);
    user.assert_nothing_left(&killed);
}

const TUNE: &str = "tune vax780-sc780-eagle --suite write_8192 --over filesystem.rotdelay_ms=0..10:1 --seeds 100 --size 256K --quiet --format json";

/// Points that were found while the store was locked are in it at the end.
#[test]
fn points_of_a_search_wait_for_the_store() {
    let user = User::new();
    user.run(&words("list runs")).expect(0, &[]);
    let locker = lock(&user);
    let search = user.start(&words(TUNE));
    // Longer than a write waits.
    thread::sleep(Duration::from_secs(8));
    drop(locker);
    let first = search.finish().expect(0, &[]).json();
    assert_eq!(first["method"]["from_store"], 0, "{first}");
    let second = user.run(&words(TUNE)).expect(0, &[]).json();
    assert_eq!(
        second["method"]["from_store"], second["method"]["tried"],
        "{second}"
    );
}

#[test]
fn points_that_are_not_kept_are_said_to_be() {
    let user = User::new();
    user.run(&words("list runs")).expect(0, &[]);
    let locker = lock(&user);
    let line = TUNE.replace("--seeds 100", "--seeds 0");
    user.run(&words(&line)).expect(
        0,
        &[
            "the points are not in the store",
            "is locked by another program",
        ],
    );
    drop(locker);
}
