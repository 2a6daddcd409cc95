//! Stores and a file of runs as diskperf 0.1.0 wrote them, whatever has changed
//! since: its first one, and its last, whose runs do not keep experiments yet.

use diskperf_store::Store;
use diskperf_timeline::{MeasuredWorld, Run};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

const FIRST_STORE: &str = include_str!("../data/version_0_1_0.sql");
const LAST_STORE: &str = include_str!("../data/version_0_1_0_schema_5.sql");
const FILE: &str = include_str!("../data/version_0_1_0.json");

/// A store from its dump.
fn open(dump: &str) -> (TempDir, Store) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(&format!("PRAGMA journal_mode = WAL; {dump}"))
        .unwrap();
    drop(old);
    let store = Store::open(&path).unwrap();
    (folder, store)
}

#[test]
fn a_store_of_0_1_0_opens_and_has_its_runs() {
    let file: serde_json::Value = serde_json::from_str(FILE).unwrap();
    let runs: Vec<Run> = serde_json::from_value(file["runs"].clone()).unwrap();
    assert_eq!(runs.len(), 2);

    let (_folder, mut store) = open(FIRST_STORE);
    let listed = store.list_runs().unwrap();
    let ids: Vec<_> = listed.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["5af1bee297", "011478f716"]);
    assert_eq!(listed[0].world, MeasuredWorld::Model);
    assert_eq!(listed[1].label.as_deref(), Some("before"));
    assert_eq!(store.list_damaged_runs().unwrap(), []);
    assert_eq!(store.resolve_run_id("last").unwrap(), runs[0].run_id);
    for run in &runs {
        run.check_run().unwrap();
        assert_eq!(store.load_run(&run.run_id).unwrap(), *run);
        // It takes what is written today.
        store.replace_run(run).unwrap();
        assert_eq!(store.load_run(&run.run_id).unwrap(), *run);
    }
    assert!(store.read_point("400f08c8c37bcff4").unwrap().is_some());
}

#[test]
fn a_store_whose_runs_keep_no_experiments_opens_and_has_its_runs() {
    let (_folder, mut store) = open(LAST_STORE);
    let listed = store.list_runs().unwrap();
    let labels: Vec<_> = listed.iter().map(|run| run.label.as_deref()).collect();
    assert_eq!(labels, [Some("two drives"), Some("before")]);
    assert_eq!(store.list_damaged_runs().unwrap(), []);
    for run in listed {
        let run = store.load_run(&run.id).unwrap();
        run.check_run().unwrap();
        assert_eq!(run.experiment, None);
        assert_eq!(run.command_line[1], "run");
        store.replace_run(&run).unwrap();
        assert_eq!(store.load_run(&run.run_id).unwrap(), run);
    }
}
