//! Stores that cannot be used: the measurement is printed and saved as a file
//! all the same, and whoever asks for the store itself is told what is wrong.

use crate::support::machine::can_run;
use crate::support::{MOUNTS, User, mount_tmpfs, open_to_all, words};
use rusqlite::Connection;
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

const MEASURE: &[&str] = &[
    "run",
    "write_8192",
    "--on",
    "./target",
    "--size",
    "64K",
    "--runs",
    "2",
];

/// Makes a store with a run in it.
fn make_store(user: &User) {
    user.run(MEASURE).expect(0, &["stored as run"]);
}

/// The file that a message says the run was saved in.
fn saved(stderr: &str) -> PathBuf {
    let (_, rest) = stderr
        .split_once("they are saved in ")
        .unwrap_or_else(|| panic!("nothing was saved: {stderr}"));
    let (path, _) = rest.split_once(';').unwrap();
    PathBuf::from(path)
}

/// Measures, expects the figures on standard output and in a file, and that
/// `list runs` says of the store what the measurement said.
fn expect_unusable(user: &User, nobody: bool, says: &[&str]) {
    let ask = |words: &[&str]| {
        if nobody {
            user.run_as_nobody(words)
        } else {
            user.run(words)
        }
    };
    let outcome = ask(MEASURE).expect(1, &[&["the results are not in the store"], says].concat());
    assert!(outcome.stdout.contains("write_8192"), "{outcome:?}");
    user.assert_nothing_left(&outcome);
    let file = saved(&outcome.stderr);
    let shown = ask(&["show", file.to_str().unwrap(), "--format", "json"])
        .expect(0, &[])
        .json();
    let result = &shown["runs"][0]["results"][0];
    assert_eq!(result["program"], "write_8192");
    // More where the machine was disturbed.
    assert!(result["repetitions"].as_array().unwrap().len() >= 2);
    assert_eq!(shown["runs"][0]["state"], "finished");
    ask(&["compare", file.to_str().unwrap(), file.to_str().unwrap()]).expect(0, &[]);
    for words in [
        &["list", "runs"][..],
        &["show", "last"],
        &["export", "last", "-o", "out.json"],
    ] {
        ask(words).expect(2, says);
    }
    // What killed runs left is removed without the store as well.
    ask(&["clean", "--on", "./target"]).expect(0, &[]);
}

#[test]
fn a_text_file() {
    let user = User::new();
    fs::create_dir_all(user.store().parent().unwrap()).unwrap();
    fs::write(user.store(), "my only copy\n").unwrap();
    expect_unusable(&user, false, &["is not a diskperf store", "--store FILE"]);
    assert_eq!(fs::read_to_string(user.store()).unwrap(), "my only copy\n");
}

#[test]
fn a_directory() {
    let user = User::new();
    fs::create_dir_all(user.store()).unwrap();
    expect_unusable(&user, false, &["it is a directory", "--store FILE"]);
}

#[test]
fn a_corrupt_store() {
    let user = User::new();
    make_store(&user);
    // The header stays: only the tables behind it are overwritten.
    let file = OpenOptions::new().write(true).open(user.store()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0xa5; length as usize - 100], 100)
        .unwrap();
    let before = fs::read(user.store()).unwrap();
    expect_unusable(&user, false, &["is damaged", "a backup"]);
    assert!(fs::read(user.store()).unwrap() == before);
}

#[test]
fn a_newer_store() {
    let user = User::new();
    make_store(&user);
    Connection::open(user.store())
        .and_then(|connection| connection.pragma_update(None, "user_version", 999))
        .unwrap();
    let before = fs::read(user.store()).unwrap();
    expect_unusable(
        &user,
        false,
        &[
            "schema version 999",
            "use the newer diskperf",
            "--store FILE",
        ],
    );
    assert!(fs::read(user.store()).unwrap() == before);
}

#[test]
fn a_store_that_may_not_be_read() {
    let user = User::new();
    make_store(&user);
    open_to_all(&user.home());
    open_to_all(&user.target());
    open_to_all(user.store().parent().unwrap());
    for file in fs::read_dir(user.store().parent().unwrap()).unwrap() {
        fs::set_permissions(file.unwrap().path(), Permissions::from_mode(0o000)).unwrap();
    }
    expect_unusable(
        &user,
        true,
        &["cannot be opened", "check the permissions", "--store FILE"],
    );
}

/// Of all that is asked of a locked store, each waits its 30 s.
#[test]
fn a_locked_store() {
    let user = User::new();
    make_store(&user);
    let locker = Connection::open(user.store()).unwrap();
    locker
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM workspaces;")
        .unwrap();
    let measuring = user.start(MEASURE);
    let listing = user.start(&words("list runs"));
    let says = ["is locked by another program", "try again"];
    let measured = measuring.finish().expect(1, &says);
    listing.finish().expect(2, &says);
    assert!(measured.stdout.contains("write_8192"), "{measured:?}");
    user.assert_nothing_left(&measured);
    drop(locker);
    let file = saved(&measured.stderr);
    user.run(&["show", file.to_str().unwrap()]).expect(0, &[]);
    user.run(&["compare", "last", file.to_str().unwrap()])
        .expect(0, &[]);
}

/// The store's disk is full before the first repetition: the file goes where
/// there is room.
#[test]
fn a_store_without_room() {
    if !can_run("a_store_without_room", MOUNTS) {
        return;
    }
    let user = User::new();
    let folder = user.store().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    let mounted = mount_tmpfs(&folder, "size=4k");
    let outcome = user
        .run(MEASURE)
        .expect(1, &["its disk is full", "free some space"]);
    assert!(outcome.stdout.contains("write_8192"), "{outcome:?}");
    let file = user.home().join(saved(&outcome.stderr));
    assert!(!file.starts_with(&folder), "{outcome:?}");
    user.run(&["show", file.to_str().unwrap()]).expect(0, &[]);
    drop(mounted);
}
