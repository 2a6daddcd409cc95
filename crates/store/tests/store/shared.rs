//! Stores in directories where other users can put files: only root can make
//! files of others, so these tests need root.

use crate::samples::{empty_run, full_run};
use diskperf_store::{Store, StoreErrorKind};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// A directory of this user's that everybody may write to, as `/tmp`.
struct Shared(TempDir);

impl Shared {
    /// None, with the reason on stderr, where files cannot be given away.
    fn new(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        if fs::metadata(folder.path()).unwrap().uid() != 0 {
            eprintln!("SKIPPED {test}: only root makes files of other users");
            return None;
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        Some(Self(folder))
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("r.sqlite")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.0.path().join(format!("r.sqlite{suffix}"))
    }
}

/// The write-ahead log of a copy of a store from which a run was deleted.
fn log_that_deletes(store: &Path, run: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.sqlite");
    fs::copy(store, &copy).unwrap();
    let mut copied = Store::open(&copy).unwrap();
    copied.delete_runs(&[run]).unwrap();
    fs::read(folder.path().join("copy.sqlite-wal")).unwrap()
}

/// Opens the store, which must be refused for one of its side files, and left as it
/// is.
#[track_caller]
fn expect_refused(shared: &Shared, suffix: &str, what: &str) {
    let before = fs::read(shared.store()).ok();
    let side = shared.beside(suffix);
    for attempt in [
        Store::check(&shared.store()),
        Store::open(&shared.store()).map(drop),
    ] {
        let error = attempt.expect_err(what);
        let is_named =
            matches!(&error.kind, StoreErrorKind::SideFile { file, .. } if *file == side);
        assert!(is_named, "{what}: {error}");
    }
    assert_eq!(fs::read(shared.store()).ok(), before, "{what}");
    assert!(side.symlink_metadata().is_ok(), "{what}");
}

#[test]
fn a_log_of_another_user_deletes_no_run() {
    let Some(shared) = Shared::new("a_log_of_another_user_deletes_no_run") else {
        return;
    };
    let run = full_run("00c0ffee00", 5, 1);
    let mut store = Store::open(&shared.store()).unwrap();
    store.insert_run(&run).unwrap();
    drop(store);
    let log = shared.beside("-wal");
    fs::write(&log, log_that_deletes(&shared.store(), &run.run_id)).unwrap();
    lchown(&log, Some(NOBODY), Some(NOBODY)).unwrap();
    expect_refused(&shared, "-wal", "a log that deletes a run");

    fs::remove_file(&log).unwrap();
    let store = Store::open(&shared.store()).unwrap();
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
}

#[test]
fn side_files_of_others_are_refused_whatever_they_are() {
    const TEST: &str = "side_files_of_others_are_refused_whatever_they_are";
    type Make = fn(&Path);
    let kinds: [(&str, Make); 5] = [
        ("a file", |path| fs::write(path, vec![0xa5; 4096]).unwrap()),
        ("an empty file", |path| fs::write(path, "").unwrap()),
        ("a link", |path| symlink("/etc/hostname", path).unwrap()),
        ("a FIFO", |path| {
            let done = Command::new("mkfifo").arg(path).status();
            assert!(done.unwrap().success());
        }),
        ("a directory", |path| fs::create_dir(path).unwrap()),
    ];
    for suffix in ["-journal", "-wal", "-shm"] {
        for (kind, make) in &kinds {
            for has_store in [true, false] {
                let Some(shared) = Shared::new(TEST) else {
                    return;
                };
                if has_store {
                    drop(Store::open(&shared.store()).unwrap());
                    let _ = fs::remove_file(shared.beside(suffix));
                }
                make(&shared.beside(suffix));
                lchown(shared.beside(suffix), Some(NOBODY), Some(NOBODY)).unwrap();
                let what = format!("{kind} as {suffix}, store: {has_store}");
                expect_refused(&shared, suffix, &what);
            }
        }
    }
}

#[test]
fn a_side_file_with_a_second_name_is_refused() {
    let Some(shared) = Shared::new("a_side_file_with_a_second_name_is_refused") else {
        return;
    };
    drop(Store::open(&shared.store()).unwrap());
    let elsewhere = shared.0.path().join("log of another store");
    fs::write(&elsewhere, "").unwrap();
    fs::hard_link(&elsewhere, shared.beside("-wal")).unwrap();
    expect_refused(&shared, "-wal", "a log with two names");
}

#[test]
fn the_name_of_the_journal_is_held_where_others_could_take_it() {
    let Some(shared) = Shared::new("the_name_of_the_journal_is_held") else {
        return;
    };
    drop(Store::open(&shared.store()).unwrap());
    // Of the owner of the store, who may be somebody else than its user.
    lchown(shared.store(), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut store = Store::open(&shared.store()).unwrap();
    let (journal, of_store) = (
        fs::metadata(shared.beside("-journal")).unwrap(),
        fs::metadata(shared.store()).unwrap(),
    );
    let access = |file: &fs::Metadata| (file.uid(), file.mode());
    assert_eq!(access(&journal), access(&of_store));
    assert_eq!(journal.len(), 0);
    store.begin_run(&empty_run("aa", 0)).unwrap();
    drop(store);
    assert_eq!(
        Store::open(&shared.store())
            .unwrap()
            .list_runs()
            .unwrap()
            .len(),
        1
    );
}

/// The owner of a store leaves its side files to root, who opens it.
#[test]
fn side_files_of_the_owner_of_the_store_are_taken() {
    let Some(shared) = Shared::new("side_files_of_the_owner_of_the_store_are_taken") else {
        return;
    };
    let mut store = Store::open(&shared.store()).unwrap();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        lchown(shared.beside(suffix), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    assert_eq!(
        Store::open(&shared.store())
            .unwrap()
            .list_runs()
            .unwrap()
            .len(),
        1
    );
}

/// A directory that nobody else may write to is the owner's own affair.
#[test]
fn side_files_in_a_private_directory_are_taken() {
    let Some(shared) = Shared::new("side_files_in_a_private_directory_are_taken") else {
        return;
    };
    fs::set_permissions(shared.0.path(), Permissions::from_mode(0o755)).unwrap();
    let mut store = Store::open(&shared.store()).unwrap();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    lchown(shared.beside("-wal"), Some(NOBODY), Some(NOBODY)).unwrap();
    assert_eq!(
        Store::open(&shared.store())
            .unwrap()
            .list_runs()
            .unwrap()
            .len(),
        1
    );
    assert!(shared.beside("-journal").symlink_metadata().is_err());
}
