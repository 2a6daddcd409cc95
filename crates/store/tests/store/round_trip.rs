//! What is stored comes back, whole or piece by piece.

use crate::samples::{Random, empty_run, full_run, numbered_repetition, repetition, result};
use diskperf_store::{Store, StoreErrorKind};
use diskperf_timeline::{MeasuredWorld, ProgramResult, Repetition, Run, RunState};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

/// The rows of a query as the sqlite3 shell prints them.
fn shell(path: &Path, sql: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cells = (0..columns).map(|i| {
            Ok(match row.get::<_, rusqlite::types::Value>(i)? {
                rusqlite::types::Value::Null => String::new(),
                rusqlite::types::Value::Integer(i) => i.to_string(),
                rusqlite::types::Value::Real(r) => r.to_string(),
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Blob(_) => "blob".to_owned(),
            })
        });
        Ok(cells.collect::<rusqlite::Result<Vec<_>>>()?.join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn deleted_runs_are_gone_with_all_that_they_had() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut store = Store::open(&path).unwrap();
    let ids = ["0000000001", "0000000002", "0000000003"];
    for (i, id) in (1..).zip(ids) {
        store.insert_run(&full_run(id, i, i)).unwrap();
    }
    // All or none.
    let missing = store.delete_runs(&[ids[0], "0000000009"]).unwrap_err();
    assert!(matches!(missing.kind, StoreErrorKind::NoSuchRun { .. }));
    assert_eq!(store.list_runs().unwrap().len(), 3);
    store.delete_runs(&[ids[0], ids[2]]).unwrap();
    let left: Vec<_> = store
        .list_runs()
        .unwrap()
        .into_iter()
        .map(|run| run.id)
        .collect();
    assert_eq!(left, [ids[1]]);
    for table in ["results", "repetitions"] {
        let sql = format!("SELECT DISTINCT run_id FROM {table}");
        assert_eq!(shell(&path, &sql), [ids[1]], "{table}");
    }
}

#[test]
fn a_whole_run_comes_back_as_it_was() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("not/yet/there/runs.sqlite");
    let states = [
        RunState::Running,
        RunState::Finished,
        RunState::Interrupted,
        RunState::Failed("read: EIO".to_owned()),
    ];
    let mut runs = Vec::new();
    let mut store = Store::open(&path).unwrap();
    for (i, state) in (0..).zip(states) {
        let mut run = full_run(&format!("{i:010x}"), i, 7 + i);
        run.state = state;
        run.world = if i % 2 == 0 {
            MeasuredWorld::Model
        } else {
            MeasuredWorld::Host
        };
        store.insert_run(&run).unwrap();
        runs.push(run);
    }
    drop(store);
    let store = Store::open(&path).unwrap();
    for run in &runs {
        assert_eq!(store.load_run(&run.run_id).unwrap(), *run);
    }
    for (heading, run) in store.list_runs().unwrap().iter().zip(runs.iter().rev()) {
        assert_eq!(heading.id, run.run_id);
        assert_eq!(heading.started_unix_ms, run.started_unix_ms);
        assert_eq!(heading.suite, run.suite_name);
        assert_eq!(heading.target, run.target_label);
        assert_eq!(heading.world, run.world);
        assert_eq!(heading.label, run.user_label);
        assert_eq!(heading.state, run.state);
        assert_eq!((heading.result_count, heading.repetition_count), (3, 4));
    }
}

#[test]
fn a_run_stored_piece_by_piece_equals_the_whole() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let whole = full_run("00c0ffee00", 5, 1);
    let mut store = Store::open(&path).unwrap();
    let begun = Run {
        state: RunState::Running,
        notes: Vec::new(),
        ..whole.clone()
    };
    store.begin_run(&begun).unwrap();
    assert_eq!(store.load_run(&whole.run_id).unwrap().results, []);
    for (ordinal, result) in (0..).zip(&whole.results) {
        let begun = ProgramResult {
            program: "to be replaced".to_owned(),
            notes: Vec::new(),
            ..result.clone()
        };
        store.begin_result(&whole.run_id, ordinal, &begun).unwrap();
        for repetition in &result.repetitions {
            // Which of them do not count is known when all are there.
            let counted = Repetition {
                is_discarded: false,
                ..repetition.clone()
            };
            store
                .add_repetition(&whole.run_id, ordinal, &counted)
                .unwrap();
        }
        store.update_result(&whole.run_id, ordinal, result).unwrap();
    }
    store
        .finish_run(&whole.run_id, &whole.state, &whole.notes)
        .unwrap();
    assert_eq!(store.load_run(&whole.run_id).unwrap(), whole);
    drop(store);

    let mut copy = Store::open(&folder.path().join("copy.sqlite")).unwrap();
    copy.insert_run(&whole).unwrap();
    for table in ["runs", "results", "repetitions"] {
        let all = format!("SELECT * FROM {table} ORDER BY rowid");
        assert_eq!(shell(&path, &all), shell(copy.path(), &all), "{table}");
    }
}

#[test]
fn the_columns_answer_the_shell() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut run = full_run("00c0ffee00", 5, 1);
    run.state = RunState::Failed("EIO".to_owned());
    run.target_label = "/var/tmp".to_owned();
    run.results.truncate(1);
    run.results[0].size_bytes = u64::MAX;
    run.results[0].repetitions = vec![numbered_repetition(512 * 1024)];
    Store::open(&path).unwrap().insert_run(&run).unwrap();
    for (table, row) in [
        (
            "id, started_unix_ms, version, suite, target, world, label, cache, state, error FROM runs",
            "00c0ffee00|5|0.1.0|ffs83|/var/tmp|host|before the new firmware|cold|failed|EIO",
        ),
        (
            "ordinal, program, title, drives, filesystem, size_bytes, cache FROM results",
            "0|write_8192|write_8192 layer=direct|2|ext4/4096|9223372036854775807|warm",
        ),
        (
            "number, discarded, elapsed_ns, durable_ns, kb_per_s, durable_kb_per_s, cpu_percent,
                 payload_bytes FROM repetitions",
            "0|0|500000000||1024||0|524288",
        ),
    ] {
        assert_eq!(shell(&path, &format!("SELECT {table}")), [row]);
    }
}

#[test]
fn a_name_resolves_to_one_run() {
    let folder = tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("runs.sqlite")).unwrap();
    assert!(matches!(
        store.resolve_run_id("last").unwrap_err().kind,
        StoreErrorKind::NoLastRun
    ));
    // Stored in another order than started; the newest has no repetition.
    for (id, started, measured) in [
        ("ab12000000", 30, true),
        ("ab34000000", 10, true),
        ("cd%_000000", 20, true),
        ("ef56000000", 40, false),
        ("ab", 1, true),
    ] {
        let mut run = empty_run(id, started);
        let repetitions = vec![numbered_repetition(1); usize::from(measured)];
        run.results.push(result("read_8192", repetitions));
        store.insert_run(&run).unwrap();
    }
    let order = store.list_runs().unwrap();
    let order: Vec<_> = order.iter().map(|run| &run.id[..2]).collect();
    assert_eq!(order, ["ef", "ab", "cd", "ab", "ab"]);
    for (text, expected) in [
        ("last", Ok("ab12000000")),
        ("ab12000000", Ok("ab12000000")),
        ("ab3", Ok("ab34000000")),
        ("ab", Ok("ab")),
        ("cd%", Ok("cd%_000000")),
        ("a", Err("`a`: give one of ab, ab12000000, ab34000000")),
        ("", Err("no run ``")),
        ("%", Err("no run `%`")),
        ("ab120000000", Err("no run `ab120000000`")),
    ] {
        match (store.resolve_run_id(text), expected) {
            (Ok(id), Ok(expected)) => assert_eq!(id, expected, "{text}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (outcome, _) => panic!("{text}: {outcome:?}"),
        }
    }
}

#[test]
fn what_is_not_there_or_there_already_is_refused() {
    let folder = tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("runs.sqlite")).unwrap();
    let run = full_run("00c0ffee00", 5, 1);
    store.insert_run(&run).unwrap();
    let (program, repetition) = (&run.results[0], &run.results[0].repetitions[0]);
    let mut unmeasured = full_run("ffffffffff", 6, 2);
    unmeasured.environment.load_average = f64::NAN;
    for (outcome, part) in [
        (store.begin_run(&run), "already has a run `00c0ffee00`"),
        (store.insert_run(&run), "already has a run `00c0ffee00`"),
        (
            store.insert_run(&unmeasured),
            "cannot store run `ffffffffff`",
        ),
        (
            store.begin_result("00c0ffee", 0, program),
            "no run `00c0ffee`",
        ),
        (
            store.begin_result(&run.run_id, 2, program),
            "already has result 2 of run `00c0ffee00`",
        ),
        (
            store.update_result(&run.run_id, 3, program),
            "no result 3 of run `00c0ffee00`",
        ),
        (
            store.add_repetition(&run.run_id, 3, repetition),
            "no result 3 of run `00c0ffee00`",
        ),
        (
            store.finish_run("00c0ffee", &RunState::Finished, &[]),
            "no run `00c0ffee`",
        ),
        (store.load_run("00c0ffee").map(drop), "no run `00c0ffee`"),
    ] {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("runs.sqlite"), "{error}");
    }
    assert_eq!(store.list_runs().unwrap().len(), 1);
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
}

#[test]
fn workspaces_are_noted_until_forgotten() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut paths = vec![PathBuf::from("/z"), PathBuf::from("/tmp/ä b")];
    #[cfg(unix)]
    paths.push({
        use std::os::unix::ffi::OsStrExt;
        std::ffi::OsStr::from_bytes(b"/tmp/\xff\xfe").into()
    });
    let mut store = Store::open(&path).unwrap();
    let filesystems = [Some("ext4 1f"), None, Some("vfat")];
    for (path, filesystem) in paths.iter().zip(filesystems) {
        store.note_workspace(path, filesystem).unwrap();
        store.note_workspace(path, Some("another")).unwrap();
    }
    drop(store);
    let mut store = Store::open(&path).unwrap();
    let noted = store.list_workspaces().unwrap();
    let noted: Vec<_> = noted
        .iter()
        .map(|noted| (noted.path.clone(), noted.filesystem.as_deref()))
        .collect();
    let expected: Vec<_> = paths.iter().cloned().zip(filesystems).collect();
    assert_eq!(noted, expected);
    for path in paths.iter().chain(&paths) {
        store.forget_workspace(path).unwrap();
    }
    assert!(store.list_workspaces().unwrap().is_empty());
}

/// Version 2 added the workspaces to version 1, version 3 the points, version 4
/// the settings of devices, which version 5 takes away again, so that this is a
/// store of version 1.
#[test]
fn a_store_of_version_1_is_brought_forward_with_its_runs() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let run = full_run("00c0ffee00", 5, 1);
    Store::open(&path).unwrap().insert_run(&run).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("DROP TABLE workspaces; DROP TABLE points; PRAGMA user_version = 1;")
        .unwrap();
    drop(connection);

    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
    store.note_workspace(&path, Some("ext4 1f")).unwrap();
    assert_eq!(store.list_workspaces().unwrap()[0].path, path);
    assert_eq!(shell(&path, "PRAGMA user_version"), ["5"]);
}

/// A folder that version 4 knew is known, and its table of settings is gone.
#[test]
fn a_store_of_version_4_keeps_its_folders() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    Store::open(&path).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE workspaces DROP COLUMN filesystem;
             INSERT INTO workspaces VALUES (CAST('/z/diskperf-1-00ff3a' AS BLOB));
             CREATE TABLE device_settings
                 (path BLOB NOT NULL PRIMARY KEY, value TEXT NOT NULL, owner TEXT NOT NULL) STRICT;
             INSERT INTO device_settings VALUES
                 (CAST('/sys/../etc/queue/scheduler' AS BLOB), 'x', '1 1');
             PRAGMA user_version = 4;",
        )
        .unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    let noted = &store.list_workspaces().unwrap()[0];
    assert_eq!(noted.path, Path::new("/z/diskperf-1-00ff3a"));
    assert_eq!(noted.filesystem, None);
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'device_settings'";
    assert_eq!(shell(&path, tables), ["0"]);
}

#[test]
fn points_are_kept_by_their_fingerprints() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let mut store = Store::open(&path).unwrap();
    let point = |fingerprint: &str, document: &str| (fingerprint.to_owned(), document.to_owned());
    store
        .add_points(&[point("a", "1"), point("b", "2")])
        .unwrap();
    store.add_points(&[point("b", "3")]).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    let read = |fingerprint| store.read_point(fingerprint).unwrap();
    assert_eq!(read("a").as_deref(), Some("1"));
    assert_eq!(read("b").as_deref(), Some("3"));
    assert_eq!(read("c"), None);
}

#[test]
fn special_names_of_sqlite_are_ordinary_files() {
    let folder = tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a#b?c%41&d", "ü \\ 'q'"] {
        let path = folder.path().join(name);
        let run = full_run("00c0ffee00", 5, 1);
        Store::open(&path).unwrap().insert_run(&run).unwrap();
        assert!(path.is_file(), "{name}");
        assert_eq!(
            Store::open(&path).unwrap().load_run(&run.run_id).unwrap(),
            run
        );
    }
    assert!(matches!(
        Store::open(Path::new("")).unwrap_err().kind,
        StoreErrorKind::CannotOpen { .. }
    ));
}

#[test]
fn repetitions_keep_their_order() {
    let folder = tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("runs.sqlite")).unwrap();
    let mut random = Random::new(3);
    let repetitions: Vec<_> = (0..12).map(|_| repetition(&mut random)).collect();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    for ordinal in [11, 2] {
        let begun = result("scan", Vec::new());
        store.begin_result("aa", ordinal, &begun).unwrap();
    }
    for repetition in &repetitions {
        store.add_repetition("aa", 11, repetition).unwrap();
    }
    let results = store.load_run("aa").unwrap().results;
    assert_eq!(results[0].repetitions, []);
    assert_eq!(results[1].repetitions, repetitions);
}
