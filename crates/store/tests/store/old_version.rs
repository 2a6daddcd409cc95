//! A store and a file of runs as diskperf 0.1.0 wrote them, whatever has changed
//! since.

use diskperf_store::Store;
use diskperf_timeline::{Run, World};
use rusqlite::Connection;
use tempfile::tempdir;

const STORE: &str = include_str!("../data/version_0_1_0.sql");
const FILE: &str = include_str!("../data/version_0_1_0.json");

#[test]
fn a_store_of_0_1_0_opens_and_has_its_runs() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(&format!("PRAGMA journal_mode = WAL; {STORE}"))
        .unwrap();
    drop(old);
    let file: serde_json::Value = serde_json::from_str(FILE).unwrap();
    let runs: Vec<Run> = serde_json::from_value(file["runs"].clone()).unwrap();
    assert_eq!(runs.len(), 2);

    let mut store = Store::open(&path).unwrap();
    let listed = store.list().unwrap();
    let ids: Vec<_> = listed.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["5af1bee297", "011478f716"]);
    assert_eq!(listed[0].world, World::Model);
    assert_eq!(listed[1].label.as_deref(), Some("before"));
    assert_eq!(store.damaged().unwrap(), []);
    assert_eq!(store.resolve("last").unwrap(), runs[0].id);
    for run in &runs {
        run.check().unwrap();
        assert_eq!(store.load(&run.id).unwrap(), *run);
        // It takes what is written today.
        store.replace_run(run).unwrap();
        assert_eq!(store.load(&run.id).unwrap(), *run);
    }
    assert!(store.point("400f08c8c37bcff4").unwrap().is_some());
}
