//! A disk without space.

use crate::samples::{Random, empty_run, repetition, result};
use diskperf_store::{Store, StoreErrorKind};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::{TempDir, tempdir};

/// A file system of one MiB, until it is dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// None, and the reason on stderr, where it cannot be mounted.
    fn mount(test: &str) -> Option<Self> {
        let folder = tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1M", "tmpfs"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(mount) if mount.status.success() => Some(Self(folder)),
            Ok(mount) => {
                let reason = String::from_utf8_lossy(&mount.stderr).into_owned();
                eprintln!("SKIPPED {test}: {}", reason.trim());
                None
            }
            Err(error) => {
                eprintln!("SKIPPED {test}: mount: {error}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let umount = Command::new("umount").arg(self.0.path()).status();
        if !umount.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.path().display());
        }
    }
}

#[test]
fn a_full_disk_is_named_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount("a_full_disk_is_named_and_loses_nothing") else {
        return;
    };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; 300 << 10]).unwrap();
    let mut store = Store::open(&disk.path().join("runs.sqlite")).unwrap();
    store.begin_run(&empty_run("aa", 0)).unwrap();
    store
        .begin_result("aa", 0, &result("scan", Vec::new()))
        .unwrap();
    let mut random = Random::new(5);
    let mut stored = Vec::new();
    let error = loop {
        let repetition = repetition(&mut random);
        match store.add_repetition("aa", 0, &repetition) {
            Ok(()) => stored.push(repetition),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind, StoreErrorKind::DiskFull), "{error}");
    assert!(!stored.is_empty());
    assert_eq!(store.load("aa").unwrap().results[0].repetitions, stored);

    fs::remove_file(ballast).unwrap();
    let repetition = repetition(&mut random);
    store.add_repetition("aa", 0, &repetition).unwrap();
    stored.push(repetition);
    drop(store);
    let store = Store::open(&disk.path().join("runs.sqlite")).unwrap();
    assert_eq!(store.load("aa").unwrap().results[0].repetitions, stored);
}

#[test]
fn a_store_without_space_is_not_created() {
    let Some(disk) = SmallDisk::mount("a_store_without_space_is_not_created") else {
        return;
    };
    // From no space at all, over just too little, to enough.
    for free_kib in [0, 4, 16, 40, 60, 80, 512] {
        let ballast = disk.path().join("ballast");
        fs::write(&ballast, vec![1; (1024 - free_kib) << 10]).unwrap();
        let path = disk.path().join("runs.sqlite");
        match Store::open(&path).and_then(|mut store| store.begin_run(&empty_run("aa", 0))) {
            Ok(()) => {}
            Err(error) => {
                assert!(free_kib < 512, "{error}");
                let full = matches!(error.kind, StoreErrorKind::DiskFull);
                assert!(full, "{free_kib} KiB free: {error}");
            }
        }
        fs::remove_file(ballast).unwrap();
        assert!(Store::open(&path).is_ok(), "{free_kib} KiB were free");
        for file in fs::read_dir(disk.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
}
