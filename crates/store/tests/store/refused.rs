//! Files that are no store, no longer one, or not for this program.

use crate::samples::{Random, empty_run, full_run};
use diskperf_store::{Store, StoreError, StoreErrorKind};
use diskperf_timeline::Run;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::{TempDir, tempdir};

/// The name and a checksum of every file of a folder.
fn contents(folder: &Path) -> BTreeMap<OsString, u64> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mut checksum = DefaultHasher::new();
            checksum.write(&fs::read(entry.path()).unwrap());
            (entry.file_name(), checksum.finish())
        })
        .collect()
}

/// Opens a store, and reads all that it says it has.
fn read_all(path: &Path) -> Result<Vec<Run>, StoreError> {
    let store = Store::open(path)?;
    store.list_workspaces()?;
    if let Some(damaged) = store.list_damaged_runs()?.into_iter().next() {
        return Err(StoreError {
            path: path.to_owned(),
            kind: StoreErrorKind::Malformed {
                place: format!("run `{}`", damaged.id),
                detail: damaged.problem,
            },
        });
    }
    let headings = store.list_runs()?;
    headings.iter().map(|run| store.load_run(&run.id)).collect()
}

/// A closed store with one run.
fn store_with_a_run() -> (TempDir, PathBuf, Run) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let run = full_run("00c0ffee00", 5, 1);
    Store::open(&path).unwrap().insert_run(&run).unwrap();
    (folder, path, run)
}

#[test]
fn a_file_of_something_else_is_left_as_it_is() {
    let random: Vec<u8> = {
        let mut random = Random::new(1);
        (0..100_000).map(|_| random.below(256) as u8).collect()
    };
    for (name, bytes) in [
        ("text", b"my only copy of the results\n".as_slice()),
        ("one byte", b"x"),
        ("noise", random.as_slice()),
        ("zeros", &[0; 8192]),
    ] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("runs.sqlite");
        fs::write(&path, bytes).unwrap();
        let before = contents(folder.path());
        let error = Store::open(&path).unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::NotAStore),
            "{name}: {error}"
        );
        assert_eq!(contents(folder.path()), before, "{name}");
    }
}

#[test]
fn another_applications_database_is_left_as_it_is() {
    for setup in [
        "CREATE TABLE mail (body); INSERT INTO mail VALUES ('hello');",
        "PRAGMA journal_mode = WAL; CREATE TABLE mail (body); INSERT INTO mail VALUES (1);",
        "PRAGMA application_id = 252006675; CREATE TABLE runs (id);",
        "PRAGMA user_version = 1; CREATE TABLE runs (id);",
        "PRAGMA user_version = 2;",
        "PRAGMA application_id = 1;",
    ] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("mail.sqlite");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(setup).unwrap();
        connection.close().unwrap();
        let before = contents(folder.path());
        let error = Store::open(&path).unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::NotAStore),
            "{setup}: {error}"
        );
        assert_eq!(contents(folder.path()), before, "{setup}");
    }
}

/// The copy is what a kill of the other application leaves: its tables are in
/// the log alone, and only reading the log tells that the file is not empty.
#[test]
fn another_applications_log_is_not_moved_into_its_database() {
    let origin = tempdir().unwrap();
    let connection = Connection::open(origin.path().join("mail.sqlite")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE mail (body);")
        .unwrap();
    let folder = tempdir().unwrap();
    for name in ["mail.sqlite", "mail.sqlite-wal"] {
        fs::copy(origin.path().join(name), folder.path().join(name)).unwrap();
    }
    let before = contents(folder.path());
    let error = Store::open(&folder.path().join("mail.sqlite")).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::NotAStore), "{error}");
    let mut after = contents(folder.path());
    after.remove(&OsString::from("mail.sqlite-shm"));
    assert_eq!(after, before);
}

#[test]
fn a_newer_store_is_left_as_it_is() {
    let (folder, path, _) = store_with_a_run();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA user_version = 99;")
        .unwrap();
    connection.close().unwrap();
    let before = contents(folder.path());
    let error = Store::open(&path).unwrap_err();
    let StoreErrorKind::Newer { found: 99, known } = error.kind else {
        panic!("{error}");
    };
    assert!(error.to_string().contains(&format!("up to {known}")));
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn what_is_no_regular_file_cannot_be_opened() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (path, reason) in [
        (folder.path().to_owned(), "it is a directory"),
        (file.join("runs.sqlite"), "ot a directory"),
        ("/dev/null".into(), "it is not a regular file"),
    ] {
        let error = Store::open(&path).unwrap_err();
        let StoreErrorKind::CannotOpen { reason: ref found } = error.kind else {
            panic!("{error}");
        };
        assert!(found.contains(reason), "{error}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn a_truncated_store_is_damaged() {
    let (_folder, path, _) = store_with_a_run();
    let bytes = fs::read(&path).unwrap();
    let page = 4096;
    for length in [100, page, page + 1, bytes.len() / 2, bytes.len() - page] {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = read_all(&path).unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::Corrupt { .. }),
            "{length}: {error}"
        );
    }
}

/// Damage is found when its page is read, and never passes for a run.
#[test]
fn a_page_of_garbage_is_found() {
    let (_folder, path, run) = store_with_a_run();
    let bytes = fs::read(&path).unwrap();
    let mut found = 0;
    for page in 1..bytes.len() / 4096 {
        let mut damaged = bytes.clone();
        damaged[page * 4096..][..4096].fill(0xff);
        fs::write(&path, &damaged).unwrap();
        match read_all(&path) {
            Ok(runs) => assert_eq!(runs, std::slice::from_ref(&run), "page {page}"),
            Err(error) => {
                let damage = matches!(
                    error.kind,
                    StoreErrorKind::Corrupt { .. } | StoreErrorKind::Malformed { .. }
                );
                assert!(damage, "page {page}: {error}");
                found += 1;
            }
        }
    }
    assert!(found > 10, "only {found} pages were read");
}

#[test]
fn flipped_bytes_never_panic() {
    let (_folder, path, _) = store_with_a_run();
    let bytes = fs::read(&path).unwrap();
    let mut random = Random::seeded_by_time("flipped_bytes_never_panic");
    let mut refused = 0;
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(20) {
            let at = random.below(bytes.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
        }
        fs::write(&path, &damaged).unwrap();
        match read_all(&path) {
            // A digit that became another one cannot be told.
            Ok(_) => {}
            Err(error) => {
                assert!(!matches!(error.kind, StoreErrorKind::Failed(_)), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_malformed_row_is_named() {
    for (damage, place) in [
        (
            "UPDATE repetitions SET document = '{' WHERE number = 1",
            "repetition 1 of result 0 of run `00c0ffee00`",
        ),
        (
            "UPDATE results SET document = '{}' WHERE ordinal = 2",
            "result 2 of run `00c0ffee00`",
        ),
        ("UPDATE runs SET document = ''", "run `00c0ffee00`"),
        ("UPDATE runs SET world = 'moon'", "its world is `moon`"),
        ("UPDATE runs SET state = 'lost'", "its state is `lost`"),
        ("UPDATE runs SET started_unix_ms = -1", "its start is `-1`"),
        (
            "UPDATE runs SET suite = CAST(x'ff' AS TEXT)",
            "run `00c0ffee00` in a format that this diskperf cannot read",
        ),
    ] {
        let (_folder, path, _) = store_with_a_run();
        Connection::open(&path)
            .unwrap()
            .execute_batch(damage)
            .unwrap();
        let error = read_all(&path).unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::Malformed { .. }),
            "{damage}: {error}"
        );
        assert!(error.to_string().contains(place), "{damage}: {error}");
    }
}

/// One bad row beside a good one: whatever it holds, the good one is listed, is
/// `last`, and loads.
#[test]
fn a_bad_row_takes_no_other_with_it() {
    let bad = "id = '00000bad00'";
    for (damage, problem) in [
        (
            "started_unix_ms = 253402300800000",
            "its start is `253402300800000`",
        ),
        (
            "started_unix_ms = 9223372036854775807",
            "its start is `9223372036854775807`",
        ),
        ("started_unix_ms = -1", "its start is `-1`"),
        ("world = 'moon'", "its world is `moon`"),
        ("state = ''", "its state is ``"),
        ("state = 'failed'", "its state is `failed`"),
        ("label = CAST(x'ff1b' AS TEXT)", "invalid utf-8"),
        ("target = hex(zeroblob(40000000))", "longer than any"),
        ("label = printf('%.*c', 70000000, 'x')", "longer than any"),
        ("id = printf('%.*c', 70000000, 'x')", "longer than any"),
        ("id = CAST(x'fffe' AS TEXT)", "invalid utf-8"),
    ] {
        let (_folder, path, good) = store_with_a_run();
        let mut store = Store::open(&path).unwrap();
        store.begin_run(&empty_run("00000bad00", 7)).unwrap();
        Connection::open(&path)
            .unwrap()
            .execute(&format!("UPDATE runs SET {damage} WHERE {bad}"), [])
            .unwrap();
        let listed: Vec<_> = store
            .list_runs()
            .unwrap()
            .into_iter()
            .map(|run| run.id)
            .collect();
        assert_eq!(listed, [good.run_id.as_str()], "{damage}");
        let [damaged] = &store.list_damaged_runs().unwrap()[..] else {
            panic!("{damage}");
        };
        assert!(damaged.problem.contains(problem), "{damage}: {damaged:?}");
        assert!(damaged.id.chars().count() <= 64, "{damage}");
        assert_eq!(
            store.resolve_run_id("last").unwrap(),
            good.run_id,
            "{damage}"
        );
        assert_eq!(
            store.resolve_run_id(&good.run_id[..4]).unwrap(),
            good.run_id,
            "{damage}"
        );
        assert_eq!(store.load_run(&good.run_id).unwrap(), good, "{damage}");
        // As the command line tells the user to.
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!(
                "PRAGMA foreign_keys = ON; DELETE FROM runs WHERE rowid = {}",
                damaged.row
            ))
            .unwrap();
        assert_eq!(store.list_damaged_runs().unwrap(), [], "{damage}");
        assert_eq!(store.list_runs().unwrap().len(), 1, "{damage}");
    }
}

/// A table without types, as anybody can make one: each column holds something else
/// than it should.
#[test]
fn columns_of_other_types_are_damage_of_their_row() {
    let columns = ["id", "started_unix_ms", "suite", "target", "world", "state"];
    for (column, value) in columns
        .iter()
        .flat_map(|column| ["NULL", "x'00ff'", "1.5", "'1e3'"].map(|value| (*column, value)))
    {
        let (_folder, path, good) = store_with_a_run();
        drop(
            Store::open(&path)
                .unwrap()
                .begin_run(&empty_run("00000bad00", 7)),
        );
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!(
                "PRAGMA foreign_keys = OFF; CREATE TABLE loose AS SELECT * FROM runs;
                 DROP TABLE runs; ALTER TABLE loose RENAME TO runs;
                 UPDATE runs SET {column} = {value} WHERE id = '00000bad00';"
            ))
            .unwrap();
        let store = Store::open(&path).unwrap();
        let whole = store.list_runs().unwrap();
        let (whole, damaged) = (whole.len(), store.list_damaged_runs().unwrap().len());
        assert_eq!(whole + damaged, 2, "{column} = {value}");
        assert_eq!(
            store.load_run(&good.run_id).unwrap(),
            good,
            "{column} = {value}"
        );
        store.resolve_run_id("last").unwrap();
    }
}

#[test]
fn documents_that_are_none_are_refused_by_their_run() {
    let nested = "replace(hex(zeroblob(50000)), '0', '[')";
    for (damage, said) in [
        (
            format!("UPDATE runs SET document = '{{\"x\":' || {nested}"),
            "recursion limit exceeded",
        ),
        (
            format!("UPDATE repetitions SET document = replace(document, '\"discarded\":', '\"x\":' || {nested} || ',\"discarded\":')"),
            "expected value at line 1",
        ),
        (
            "UPDATE repetitions SET document = json_set(document, '$.workers[0].elapsed', -5) WHERE number = 1".to_owned(),
            "invalid value: integer `-5`",
        ),
        (
            "UPDATE repetitions SET document = json_set(document, '$.workers[1].elapsed', 1 << 62) WHERE number = 1".to_owned(),
            "results[0].repetitions[1].workers[1].elapsed is 4611686018427387904",
        ),
        (
            "UPDATE repetitions SET document = json_set(document, '$.workers[1].drive', 4294967295) WHERE number = 1".to_owned(),
            "results[0].repetitions[1].workers[1].drive is 4294967295",
        ),
        (
            "UPDATE runs SET document = json_set(document, '$.started_unix_ms', 253402300800000)".to_owned(),
            "started_unix_ms is 253402300800000",
        ),
        (
            "UPDATE runs SET document = json_set(document, '$.id', '/etc/passwd')".to_owned(),
            "id is `/etc/passwd`",
        ),
        (
            "UPDATE runs SET document = json_set(document, '$.id', 'ffffffffff')".to_owned(),
            "its document is that of run `ffffffffff`",
        ),
        (
            "UPDATE runs SET document = printf('%.*c', 70000000, ' ')".to_owned(),
            "longer than any",
        ),
    ] {
        let (_folder, path, run) = store_with_a_run();
        Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
        let error = Store::open(&path).unwrap().load_run(&run.run_id).unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::Malformed { .. }),
            "{damage}: {error}"
        );
        let text = error.to_string();
        assert!(text.contains(said), "{damage}: {error}");
        assert!(text.len() < 2000, "{damage}: {} characters", text.len());
    }
}

/// Triggers and views of a file that somebody else made do nothing.
#[test]
fn what_a_schema_does_by_itself_is_not_done() {
    let (_folder, path, run) = store_with_a_run();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER mine AFTER INSERT ON runs BEGIN DELETE FROM runs; END;
             CREATE TABLE kept AS SELECT * FROM workspaces; DROP TABLE workspaces;
             CREATE VIEW workspaces AS SELECT path FROM kept UNION SELECT '/etc';",
        )
        .unwrap();
    let mut store = Store::open(&path).unwrap();
    store.begin_run(&empty_run("ffffffffff", 9)).unwrap();
    assert_eq!(store.list_runs().unwrap().len(), 2);
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
    assert!(store.list_workspaces().is_err());
}

#[test]
fn a_locked_store_is_given_up_after_the_wait() {
    let wait = Duration::from_millis(20);
    for (lock, opens) in [
        ("BEGIN IMMEDIATE; DELETE FROM runs;", true),
        (
            "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM runs;",
            false,
        ),
    ] {
        let (_folder, path, run) = store_with_a_run();
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch(lock).unwrap();
        let outcome = Store::open_with_lock_wait(&path, wait).and_then(|mut store| {
            assert_eq!(store.load_run(&run.run_id)?, run, "a reader does not wait");
            assert_eq!(store.resolve_run_id("last")?, run.run_id);
            assert!(opens, "{lock}");
            store.begin_run(&empty_run("aa", 0))
        });
        let error = outcome.unwrap_err();
        assert!(matches!(error.kind, StoreErrorKind::Locked), "{error}");
        drop(holder);
        assert_eq!(read_all(&path).unwrap(), [run]);
    }
}

#[test]
fn a_new_store_that_is_locked_is_given_up_after_the_wait() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("runs.sqlite");
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE;").unwrap();
    let error = Store::open_with_lock_wait(&path, Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Locked), "{error}");
    drop(holder);
    assert_eq!(read_all(&path).unwrap(), []);
}
