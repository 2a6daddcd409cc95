//! A store whose file loses its name while it is in use.

use crate::samples::{empty_run, full_run, numbered_repetition, result};
use diskperf_store::{Store, StoreErrorKind};
use diskperf_timeline::Run;
use std::fs;
use std::path::Path;
use tempfile::tempdir;

/// A store in use, with a run that is being made.
fn in_use(path: &Path) -> (Store, Run) {
    let mut store = Store::open(path).unwrap();
    let mut run = empty_run("00c0ffee00", 5);
    store.begin_run(&run).unwrap();
    run.results.push(result("write_8192", Vec::new()));
    store.begin_result(&run.run_id, 0, &run.results[0]).unwrap();
    let repetition = numbered_repetition(1);
    store.add_repetition(&run.run_id, 0, &repetition).unwrap();
    run.results[0].repetitions.push(repetition);
    (store, run)
}

/// What somebody does to the files of a store in this folder.
type Act = fn(&Path);

const ACTS: &[(&str, Act)] = &[
    ("deleted", |folder| {
        fs::remove_file(folder.join("runs.sqlite")).unwrap();
    }),
    ("deleted with its log", |folder| {
        for name in ["runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm"] {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }),
    ("log deleted", |folder| {
        fs::remove_file(folder.join("runs.sqlite-wal")).unwrap();
    }),
    ("moved", |folder| {
        fs::rename(folder.join("runs.sqlite"), folder.join("away.sqlite")).unwrap();
    }),
    ("replaced by a copy", |folder| {
        fs::copy(folder.join("runs.sqlite"), folder.join("copy")).unwrap();
        fs::rename(folder.join("copy"), folder.join("runs.sqlite")).unwrap();
    }),
    ("replaced by something else", |folder| {
        fs::remove_file(folder.join("runs.sqlite")).unwrap();
        fs::write(folder.join("runs.sqlite"), "notes\n").unwrap();
    }),
    ("folder moved", |folder| {
        fs::rename(folder, folder.with_extension("away")).unwrap();
    }),
];

#[test]
fn a_write_into_a_file_without_its_name_is_an_error() {
    for (what, act) in ACTS {
        let scratch = tempdir().unwrap();
        let folder = scratch.path().join("data");
        let path = folder.join("runs.sqlite");
        let (mut store, run) = in_use(&path);
        act(&folder);
        for _ in 0..2 {
            let error = store
                .add_repetition(&run.run_id, 0, &numbered_repetition(2))
                .unwrap_err();
            assert!(
                matches!(error.kind, StoreErrorKind::Moved),
                "{what}: {error}"
            );
            assert!(
                error.to_string().contains("was deleted, moved or replaced"),
                "{error}"
            );
        }
    }
}

/// To close a store that was moved touches nothing of the one that has its name now.
#[test]
fn a_store_that_was_moved_leaves_its_successor_alone() {
    let scratch = tempdir().unwrap();
    let path = scratch.path().join("runs.sqlite");
    let (store, _) = in_use(&path);
    for name in ["runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm"] {
        let away = scratch.path().join(format!("away-{name}"));
        fs::rename(scratch.path().join(name), away).unwrap();
    }
    let (mut successor, run) = in_use(&path);
    drop(store);
    let repetition = numbered_repetition(2);
    successor
        .add_repetition(&run.run_id, 0, &repetition)
        .unwrap();
    drop(successor);
    let loaded = Store::open(&path).unwrap().load_run(&run.run_id).unwrap();
    assert_eq!(loaded.results[0].repetitions.len(), 2);
}

#[test]
fn a_link_to_a_store_is_a_name_too() {
    let scratch = tempdir().unwrap();
    let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
    Store::open(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let (mut store, run) = in_use(&link);
    let repetition = numbered_repetition(2);
    store.add_repetition(&run.run_id, 0, &repetition).unwrap();
    fs::remove_file(&link).unwrap();
    let error = store
        .add_repetition(&run.run_id, 0, &repetition)
        .unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Moved), "{error}");
}

#[test]
fn a_run_takes_the_place_of_its_beginning() {
    let scratch = tempdir().unwrap();
    let path = scratch.path().join("runs.sqlite");
    let (mut store, begun) = in_use(&path);
    let other = full_run("ffffffffff", 9, 2);
    store.insert_run(&other).unwrap();
    let whole = full_run(&begun.run_id, 5, 1);
    for _ in 0..2 {
        store.replace_run(&whole).unwrap();
        assert_eq!(store.load_run(&whole.run_id).unwrap(), whole);
        assert_eq!(store.load_run(&other.run_id).unwrap(), other);
        assert_eq!(store.list_runs().unwrap().len(), 2);
    }
}
