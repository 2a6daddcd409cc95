//! Stores that may not be opened, or read but not written. Root may do
//! everything, so that root's tests run as the user `nobody`.

use crate::samples::{empty_run, full_run, numbered_repetition, result};
use crate::{again, part};
use diskperf_store::{Store, StoreErrorKind};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A folder that everyone may enter, and becomes removable again at the end.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        Self(folder)
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("runs.sqlite")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        set_mode(self.0.path(), 0o755);
    }
}

/// Runs the test again as a user whom permissions bind.
fn as_ordinary_user(test: &str, path: &Path) {
    let mut child = again(test, path);
    let folder = tempfile::tempdir().unwrap();
    let root = fs::metadata(folder.path()).unwrap().uid() == 0;
    if root {
        child.uid(NOBODY).gid(NOBODY);
    }
    match child.output() {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => eprintln!("SKIPPED {test}: `nobody` cannot run the test: {error}"),
    }
}

#[test]
fn without_permission_a_store_cannot_be_opened() {
    const TEST: &str = "permission::without_permission_a_store_cannot_be_opened";
    if let Some(path) = part() {
        let error = Store::open(&path).unwrap_err();
        assert!(
            matches!(error.kind, StoreErrorKind::CannotOpen { .. }),
            "{error}"
        );
        let text = error.to_string();
        let reason = text.contains("ermission denied") || text.contains("cannot be created");
        assert!(reason && text.contains(path.to_str().unwrap()), "{text}");
        return;
    }
    for (exists, file_mode, folder_mode) in [
        (true, 0o000, 0o755),
        (true, 0o644, 0o000),
        (false, 0, 0o555),
        (false, 0, 0o000),
    ] {
        let folder = Folder::new();
        if exists {
            drop(Store::open(&folder.store()).unwrap());
            set_mode(&folder.store(), file_mode);
        }
        set_mode(folder.0.path(), folder_mode);
        as_ordinary_user(TEST, &folder.store());
    }
    let folder = Folder::new();
    set_mode(folder.0.path(), 0o555);
    as_ordinary_user(TEST, &folder.0.path().join("below/runs.sqlite"));
}

#[test]
fn a_store_that_may_only_be_read_is_read() {
    const TEST: &str = "permission::a_store_that_may_only_be_read_is_read";
    let run = full_run("00c0ffee00", 5, 1);
    if let Some(path) = part() {
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.list_runs().unwrap().len(), 1);
        assert_eq!(store.load_run(&run.run_id).unwrap(), run);
        assert!(store.list_workspaces().unwrap().is_empty());
        for outcome in [
            store.begin_run(&empty_run("aa", 0)),
            store.add_repetition(&run.run_id, 0, &numbered_repetition(1)),
            store.note_workspace(&path, None),
        ] {
            let error = outcome.unwrap_err();
            assert!(matches!(error.kind, StoreErrorKind::ReadOnly), "{error}");
        }
        return;
    }
    for (file_mode, folder_mode) in [(0o444, 0o755), (0o444, 0o555), (0o666, 0o555)] {
        let folder = Folder::new();
        Store::open(&folder.store())
            .unwrap()
            .insert_run(&run)
            .unwrap();
        set_mode(&folder.store(), file_mode);
        set_mode(folder.0.path(), folder_mode);
        as_ordinary_user(TEST, &folder.store());
    }
}

/// The writer's last commits are in the log, which a reader finds as long as
/// the writer lives.
#[test]
fn a_store_that_another_user_writes_is_read() {
    const TEST: &str = "permission::a_store_that_another_user_writes_is_read";
    if let Some(path) = part() {
        let store = Store::open(&path).unwrap();
        let run = store
            .load_run(&store.resolve_run_id("last").unwrap())
            .unwrap();
        assert_eq!(run.results[0].repetitions, [numbered_repetition(7)]);
        return;
    }
    let folder = Folder::new();
    let mut store = Store::open(&folder.store()).unwrap();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    store
        .begin_result("aa", 0, &result("scan", Vec::new()))
        .unwrap();
    store
        .add_repetition("aa", 0, &numbered_repetition(7))
        .unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let mut file = folder.store().into_os_string();
        file.push(suffix);
        set_mode(Path::new(&file), 0o444);
    }
    set_mode(folder.0.path(), 0o555);
    as_ordinary_user(TEST, &folder.store());
}

#[test]
fn a_log_that_cannot_be_read_is_not_passed_over() {
    const TEST: &str = "permission::a_log_that_cannot_be_read_is_not_passed_over";
    if let Some(path) = part() {
        let error = Store::open(&path).unwrap_err();
        assert!(error.to_string().contains("runs.sqlite-wal"), "{error}");
        return;
    }
    let origin = Folder::new();
    let mut store = Store::open(&origin.store()).unwrap();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    let folder = Folder::new();
    for name in ["runs.sqlite", "runs.sqlite-wal"] {
        fs::copy(origin.0.path().join(name), folder.0.path().join(name)).unwrap();
        set_mode(&folder.0.path().join(name), 0o444);
    }
    set_mode(folder.0.path(), 0o555);
    as_ordinary_user(TEST, &folder.store());
}
