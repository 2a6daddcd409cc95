//! A writer that is killed at any moment loses nothing that was stored.

use crate::samples::{Random, empty_run, full_run, numbered_repetition, result};
use crate::{again, part};
use diskperf_store::Store;
use rusqlite::Connection;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

const TEST: &str = "killed::a_killed_writer_loses_no_repetition_that_was_stored";
const KILLS: u64 = 40;

/// Stores repetitions in a run until it is killed, and after each prints its
/// number to stderr. The part is `FOLDER/ID`: the run's id, and the folder of
/// the store.
fn write_until_killed(part: &Path) {
    let id = part.file_name().unwrap().to_str().unwrap();
    let mut store = Store::open(&part.with_file_name("runs.sqlite")).unwrap();
    store.begin_run(&empty_run(id, 0)).unwrap();
    store
        .begin_result(id, 0, &result("scan", Vec::new()))
        .unwrap();
    for number in 0_u64.. {
        let repetition = numbered_repetition(number);
        store.add_repetition(id, 0, &repetition).unwrap();
        let line = format!("{number}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
}

/// Runs a writer for `delay`, kills it, and says how many repetitions it had
/// stored for certain.
fn kill_a_writer(part: &Path, delay: Duration) -> u64 {
    let mut child = again(TEST, part)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    let mut printed = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut printed).unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "the writer failed: {printed}");
    let lines = printed.split_inclusive('\n');
    let stored = lines.filter(|line| line.ends_with('\n')).count() as u64;
    assert!(
        printed
            .lines()
            .zip(0_u64..)
            .take(stored as usize)
            .all(|(line, n)| line == n.to_string()),
        "{printed}"
    );
    stored
}

/// Every fourth writer begins a store of its own, the others share one.
#[test]
fn a_killed_writer_loses_no_repetition_that_was_stored() {
    if let Some(part) = part() {
        return write_until_killed(&part);
    }
    let mut random = Random::seeded_by_time(TEST);
    let shared = tempdir().unwrap();
    let mut written = Vec::new();
    for kill in 0..KILLS {
        let own = tempdir().unwrap();
        let folder = if kill % 4 == 0 { &own } else { &shared };
        // Long enough, mostly, for the writer to get somewhere; the shorter
        // ones die while they create the store.
        let delay = Duration::from_micros(random.below(60_000));
        let id = format!("{kill:010x}");
        let stored = kill_a_writer(&folder.path().join(&id), delay);

        let mut store = Store::open(&folder.path().join("runs.sqlite")).unwrap();
        if kill % 4 != 0 {
            written.push((id, stored));
            for (id, stored) in &written {
                check(&store, id, *stored);
            }
        } else {
            check(&store, &id, stored);
        }
        let next = format!("after{kill}");
        store.begin_run(&empty_run(&next, 0)).unwrap();
    }
    let stored: u64 = written.iter().map(|(_, stored)| stored).sum();
    assert!(
        stored > 0,
        "no writer lived long enough to store a repetition"
    );
}

/// The run has its repetitions in order: all that were printed, and at most
/// the one that was stored but not printed yet.
fn check(store: &Store, id: &str, stored: u64) {
    let begun = store.list_runs().unwrap().iter().any(|run| run.id == id);
    if !begun {
        assert_eq!(stored, 0, "run {id}");
        return;
    }
    let results = store.load_run(id).unwrap().results;
    let repetitions = results
        .first()
        .map_or(&[][..], |result| &result.repetitions);
    let numbers: Vec<_> = repetitions.iter().map(|one| one.payload_bytes()).collect();
    let found = numbers.len() as u64;
    assert_eq!(numbers, (0..found).collect::<Vec<_>>(), "run {id}");
    assert!(
        (stored..=stored + 1).contains(&found),
        "run {id}: {stored} {found}"
    );
}

/// A checkpoint writes the log's pages into the file in ascending order, and
/// only then is the log dropped: a kill leaves the first of them written.
#[test]
fn a_kill_in_the_middle_of_a_checkpoint_loses_nothing() {
    const PAGE_BYTES: usize = 4096;
    let origin = tempdir().unwrap();
    let path = origin.path().join("runs.sqlite");
    let run = full_run("00c0ffee00", 0, 1);
    let mut store = Store::open(&path).unwrap();
    store.insert_run(&run).unwrap();
    let before = fs::read(&path).unwrap();
    let log = fs::read(origin.path().join("runs.sqlite-wal")).unwrap();
    drop(store);
    let after = fs::read(&path).unwrap();
    assert!(
        after.len() > before.len(),
        "the log was moved into the file"
    );

    for written in 0..=after.len() / PAGE_BYTES {
        let folder = tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        let mut killed = before.clone();
        killed.resize(before.len().max(written * PAGE_BYTES), 0);
        killed[..written * PAGE_BYTES].copy_from_slice(&after[..written * PAGE_BYTES]);
        fs::write(&path, killed).unwrap();
        fs::write(folder.path().join("runs.sqlite-wal"), &log).unwrap();
        let store = Store::open(&path).unwrap();
        assert_eq!(
            store.load_run(&run.run_id).unwrap(),
            run,
            "{written} pages written"
        );
    }
}

/// A database whose creation a power cut interrupted: the journal was synced, and of the pages
/// the first was not written. The copies are taken while the transaction is under way.
#[test]
fn a_creation_that_a_power_cut_interrupted_is_made_again() {
    let origin = tempdir().unwrap();
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    for (setup, is_store) in [
        ("", true),
        (
            "CREATE TABLE runs (id); INSERT INTO runs VALUES (1);",
            false,
        ),
    ] {
        let database = origin.path().join("runs.sqlite");
        let connection = Connection::open(&database).unwrap();
        connection.execute_batch(setup).unwrap();
        connection
            .execute_batch(
                "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; CREATE TABLE results (id);
                 INSERT INTO results SELECT zeroblob(100000) FROM (VALUES (1), (2), (3));",
            )
            .unwrap();
        let mut bytes = fs::read(&database).unwrap();
        bytes[..4096].fill(0);
        fs::write(&path, &bytes).unwrap();
        let journal = fs::read(origin.path().join("runs.sqlite-journal")).unwrap();
        fs::write(folder.path().join("runs.sqlite-journal"), &journal).unwrap();
        match is_store {
            true => assert!(Store::open(&path).unwrap().list_runs().unwrap().is_empty()),
            false => assert!(Store::open(&path).is_err()),
        }
        if !is_store {
            assert_eq!(
                fs::read(&path).unwrap(),
                bytes,
                "what is refused is unchanged"
            );
        }
        drop(connection);
        for file in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        fs::remove_file(&database).unwrap();
    }
}
