//! A disk without space.

use crate::samples::{Random, empty_run, full_run, repetition, result};
use diskperf_store::{Store, StoreErrorKind};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use tempfile::{TempDir, tempdir};

/// A file system of one MiB, until it is dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// None, and the reason on stderr, where it cannot be mounted.
    fn mount(test: &str) -> Option<Self> {
        Self::mount_with(test, &["-t", "tmpfs", "-o", "size=1M", "tmpfs"])
    }

    /// An ext4 on an image.
    fn mount_ext4(test: &str, image: &Path) -> Option<Self> {
        fs::File::create(image)
            .and_then(|file| file.set_len(4 << 20))
            .unwrap();
        let words = ["-q", "-F", "-m", "0", "-N", "64"];
        let made = Command::new("mkfs.ext4").args(words).arg(image).output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("SKIPPED {test}: no mkfs.ext4");
            return None;
        }
        Self::mount_with(test, &["-o", "loop", image.to_str().unwrap()])
    }

    fn mount_with(test: &str, words: &[&str]) -> Option<Self> {
        let folder = tempdir().unwrap();
        let mount = Command::new("mount")
            .args(words)
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

    /// Leaves no room in any file.
    fn fill(&self) {
        let mut ballast = fs::File::create(self.path().join("ballast")).unwrap();
        for block in [64 << 10, 4096, 1] {
            while ballast.write_all(&vec![1; block]).is_ok() {}
        }
        // What is not written yet is not known to find no room.
        let _ = ballast.sync_all();
    }

    /// Leaves no room for another file.
    fn fill_names(&self) {
        let files = self.path().join("files");
        fs::create_dir(&files).unwrap();
        for number in 0.. {
            if fs::File::create(files.join(format!("{number}"))).is_err() {
                return;
            }
        }
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
    assert_eq!(store.load_run("aa").unwrap().results[0].repetitions, stored);

    fs::remove_file(ballast).unwrap();
    let repetition = repetition(&mut random);
    store.add_repetition("aa", 0, &repetition).unwrap();
    stored.push(repetition);
    drop(store);
    let store = Store::open(&disk.path().join("runs.sqlite")).unwrap();
    assert_eq!(store.load_run("aa").unwrap().results[0].repetitions, stored);
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

/// Whatever there is no room for, a store can be read, and says of a write what is
/// wrong. `has_log` is whether the last writer was killed.
fn read_without_space(disk: &SmallDisk, fill: fn(&SmallDisk), has_log: bool) {
    let path = disk.path().join("runs.sqlite");
    let run = full_run("00c0ffee00", 5, 1);
    let mut store = Store::open(&path).unwrap();
    store.insert_run(&run).unwrap();
    drop(store);
    if has_log {
        let mut store = Store::open(&path).unwrap();
        store.begin_run(&empty_run("aa", 0)).unwrap();
        let log = fs::read(disk.path().join("runs.sqlite-wal")).unwrap();
        drop(store);
        fs::write(disk.path().join("runs.sqlite-wal"), log).unwrap();
    }
    fill(disk);
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
    let mut number = 0;
    let error = loop {
        number += 1;
        match store.begin_run(&empty_run(&format!("b{number:05}"), 0)) {
            // A log of before has room of its own.
            Ok(()) if has_log => {}
            Ok(()) => panic!("there was room"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind, StoreErrorKind::DiskFull), "{error}");
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
    drop(store);

    fs::remove_file(disk.path().join("ballast")).ok();
    fs::remove_dir_all(disk.path().join("files")).ok();
    let mut store = Store::open(&path).unwrap();
    store.begin_run(&empty_run("cc", 0)).unwrap();
    assert_eq!(store.load_run(&run.run_id).unwrap(), run);
}

#[test]
fn a_store_on_a_full_disk_is_read() {
    const TEST: &str = "a_store_on_a_full_disk_is_read";
    let folder = tempdir().unwrap();
    for has_log in [false, true] {
        // Room for the store and for its log, each with the whole run.
        let options = ["-t", "tmpfs", "-o", "size=4M", "tmpfs"];
        let Some(disk) = SmallDisk::mount_with(TEST, &options) else {
            return;
        };
        eprintln!("no room in memory, log: {has_log}");
        read_without_space(&disk, SmallDisk::fill, has_log);
        let image = folder.path().join(format!("image {has_log}"));
        let Some(disk) = SmallDisk::mount_ext4(TEST, &image) else {
            return;
        };
        eprintln!("no room on ext4, log: {has_log}");
        read_without_space(&disk, SmallDisk::fill, has_log);
    }
}

#[test]
fn a_store_on_a_disk_without_room_for_files_is_read() {
    const TEST: &str = "a_store_on_a_disk_without_room_for_files_is_read";
    let options = "size=4M,nr_inodes=16";
    let folder = tempdir().unwrap();
    let Some(disk) = SmallDisk::mount_with(TEST, &["-t", "tmpfs", "-o", options, "tmpfs"]) else {
        return;
    };
    read_without_space(&disk, SmallDisk::fill_names, false);
    let Some(disk) = SmallDisk::mount_ext4(TEST, &folder.path().join("image")) else {
        return;
    };
    read_without_space(&disk, SmallDisk::fill_names, false);
}
