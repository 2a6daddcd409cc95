//! Several writers of one store, and readers beside them.

use crate::samples::{empty_run, numbered_repetition, result};
use crate::{again, part};
use diskperf_store::Store;
use diskperf_timeline::{Run, RunState};
use rusqlite::Connection;
use std::path::Path;
use std::process::Stdio;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

const PROCESSES: u64 = 3;
const THREADS: u64 = 2;
const RUNS: u64 = 3;
const RESULTS: u32 = 2;
const REPETITIONS: u64 = 4;

/// The run that one thread of one process makes.
fn run_of(writer: u64, number: u64) -> Run {
    let mut run = empty_run(&format!("{writer:05x}{number:05x}"), writer);
    run.state = RunState::Finished;
    for ordinal in 0..u64::from(RESULTS) {
        let payload = (writer * RUNS + number) * 100 + ordinal * 10;
        let repetitions = (0..REPETITIONS).map(|i| numbered_repetition(payload + i));
        run.results.push(result("scan", repetitions.collect()));
    }
    run
}

/// Opens the store, new or not, and stores the writer's runs piece by piece.
fn write_runs(path: &Path, writer: u64) {
    let mut store = Store::open(path).unwrap();
    for number in 0..RUNS {
        let run = run_of(writer, number);
        let begun = Run {
            state: RunState::Running,
            ..run.clone()
        };
        store.begin_run(&begun).unwrap();
        for (ordinal, result) in (0..).zip(&run.results) {
            store.begin_result(&run.run_id, ordinal, result).unwrap();
            for repetition in &result.repetitions {
                store
                    .add_repetition(&run.run_id, ordinal, repetition)
                    .unwrap();
            }
            store.load_run(&run.run_id).unwrap();
        }
        store
            .finish_run(&run.run_id, &run.state, &run.notes)
            .unwrap();
    }
}

fn write_from_threads(path: &Path, process: u64) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || write_runs(path, process * THREADS + thread));
        }
    });
}

/// The part of a child process is `FOLDER/NUMBER`: its number, and the folder
/// of the store.
#[test]
fn the_runs_of_all_writers_are_there() {
    if let Some(part) = part() {
        let number = part.file_name().unwrap().to_str().unwrap();
        let store = part.with_file_name("runs.sqlite");
        return write_from_threads(&store, number.parse().unwrap());
    }
    let folder = tempdir().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            let part = folder.path().join(process.to_string());
            again("concurrent::the_runs_of_all_writers_are_there", &part)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = Store::open(&folder.path().join("runs.sqlite")).unwrap();
    let expected = PROCESSES * THREADS * RUNS;
    assert_eq!(store.list_runs().unwrap().len() as u64, expected);
    for writer in 0..PROCESSES * THREADS {
        for number in 0..RUNS {
            let run = run_of(writer, number);
            assert_eq!(store.load_run(&run.run_id).unwrap(), run);
        }
    }
}

#[test]
fn a_new_store_may_be_opened_by_many_at_once() {
    const OPENERS: usize = 8;
    for round in 0..20 {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a/b/runs.sqlite");
        let start = Barrier::new(OPENERS);
        thread::scope(|scope| {
            for opener in 0..OPENERS {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut store = Store::open(path).unwrap();
                    store
                        .begin_run(&empty_run(&format!("{opener:x}"), 0))
                        .unwrap();
                });
            }
        });
        let runs = Store::open(&path).unwrap().list_runs().unwrap();
        assert_eq!(runs.len(), OPENERS, "round {round}");
    }
}

/// SQLite itself does not wait when the lock that it needs to turn on the log
/// is taken, as it is while another process turns it on.
#[test]
fn opening_waits_for_its_turn_to_turn_on_the_log() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    drop(Store::open(&path).unwrap());
    let holder = Connection::open(&path).unwrap();
    holder
        .execute_batch("PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE;")
        .unwrap();
    thread::scope(|scope| {
        let opener = scope.spawn(|| Store::open(&path).map(drop));
        thread::sleep(Duration::from_millis(100));
        holder.execute_batch("COMMIT;").unwrap();
        opener.join().unwrap().unwrap();
    });
    let connection = Connection::open(&path).unwrap();
    let mode = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0));
    assert_eq!(mode, Ok("wal".to_owned()));
}

/// A file's locks belong to the process, and end when any of its connections
/// to the file is closed carelessly; another process would then remove the log
/// under the first connection.
#[test]
fn opening_a_store_again_keeps_the_locks_of_the_first() {
    const TEST: &str = "concurrent::opening_a_store_again_keeps_the_locks_of_the_first";
    if let Some(path) = part() {
        assert_eq!(Store::open(&path).unwrap().list_runs().unwrap().len(), 1);
        return;
    }
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    drop(Store::open(&path).unwrap());
    let child = again(TEST, &path).output().unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(folder.path().join("runs.sqlite-wal").exists());
    store.begin_run(&empty_run("bb", 1)).unwrap();
    drop(store);
    assert_eq!(Store::open(&path).unwrap().list_runs().unwrap().len(), 2);
}
