//! Files of verification: blocks that differ are dumped as fio dumps them, and the state of an
//! interrupted job is read by either program, whichever wrote it.
#![cfg(target_os = "linux")]

mod verification;

use diskperf_fio::verify::VerifyState;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use verification::installed::is_fio_installed;
use verification::{ByFio, flip, on_host, one_by_fio};

/// The working directory, where these files are, is the process's.
static WORKING_DIRECTORY: Mutex<()> = Mutex::new(());

fn work_in(folder: &Path) -> MutexGuard<'static, ()> {
    let guard = WORKING_DIRECTORY.lock();
    let guard = guard.unwrap_or_else(|poisoned| poisoned.into_inner());
    std::env::set_current_dir(folder).expect("a folder");
    guard
}

/// Names of the dumps in a folder, each with its bytes, which are then removed.
fn take_dumps(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let is_dump = |name: &String| name.ends_with(".received") || name.ends_with(".expected");
    let mut names: Vec<String> = names.filter(is_dump).collect();
    names.sort();
    let take = |name: String| {
        let path = folder.join(&name);
        let bytes = fs::read(&path).expect("a dump");
        fs::remove_file(&path).expect("a dump");
        (name, bytes)
    };
    names.into_iter().map(take).collect()
}

/// A kind of verification, and bytes that are flipped behind its headers.
const DUMPED: &[(&str, &[usize])] = &[
    ("verify=crc32c", &[9000]),
    ("verify=md5", &[9000, 21_000]),
    ("verify=crc32c verify_interval=1k", &[5500, 7500, 30_000]),
    ("verify_pattern=0xaa", &[5500]),
    ("verify=pattern verify_pattern=\"ab\"%o", &[5500]),
    ("verify=sha512", &[4090]),
];

#[test]
fn a_block_that_differs_is_dumped_as_fio_dumps_it() {
    if !is_fio_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let _guard = work_in(folder.path());
    for (kind, flipped) in DUMPED {
        let job = format!("filename=f size=32k bs=4k rw=write verify_state_save=0 {kind}");
        on_host(folder.path(), &format!("{job} do_verify=0")).expect("it writes");
        let written = fs::read(folder.path().join("f")).expect("a file");
        flipped
            .iter()
            .for_each(|at| flip(&folder.path().join("f"), *at));
        let only = format!("{job} verify_only=1 verify_dump=1 continue_on_error=verify");
        assert!(
            matches!(one_by_fio(folder.path(), &only), ByFio::Ended(_)),
            "{kind}"
        );
        let of_fio = take_dumps(folder.path());
        let strict = only.replace(" continue_on_error=verify", "");
        let error = on_host(folder.path(), &strict).expect_err(kind).to_string();
        let here = take_dumps(folder.path());
        let names = |dumps: &[(String, Vec<u8>)]| -> Vec<String> {
            dumps.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&here), names(&of_fio), "{kind}: {error}");
        assert_eq!(here.len(), 2 * flipped.len(), "{kind}: {error}");
        let damaged = fs::read(folder.path().join("f")).expect("a file");
        for ((name, bytes), (_, bytes_of_fio)) in here.iter().zip(&of_fio) {
            assert!(error.contains(name.as_str()), "{kind}: {name} in {error}");
            let offset: usize = name
                .split('.')
                .nth(1)
                .expect("an offset")
                .parse()
                .expect("a number");
            let range = offset..offset + bytes.len();
            let image = if name.ends_with("received") {
                &damaged
            } else {
                &written
            };
            assert!(*bytes == image[range], "{kind}: {name}");
            assert_eq!(bytes.len(), bytes_of_fio.len(), "{kind}: {name}");
            if name.ends_with("received") {
                assert!(bytes == bytes_of_fio, "{kind}: {name}");
            }
        }
    }
}

#[test]
fn a_dump_replaces_no_file_and_follows_no_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let _guard = work_in(folder.path());
    let job = "filename=f size=32k bs=4k rw=write verify=crc32c";
    on_host(folder.path(), job).expect("it writes");
    flip(&folder.path().join("f"), 9000);
    fs::write("f.8192.received", "mine").expect("a file");
    let victim = folder.path().join("victim");
    std::os::unix::fs::symlink(&victim, "f.8192.expected").expect("a link");
    let only = format!("{job} verify_only verify_dump=1");
    let error = on_host(folder.path(), &only)
        .expect_err("it differs")
        .to_string();
    for name in ["f.8192.received", "f.8192.expected"] {
        assert!(
            error.contains(&format!("not dumped: {name} is there")),
            "{error}"
        );
    }
    assert_eq!(fs::read("f.8192.received").expect("a file"), b"mine");
    assert!(!victim.exists());
}

/// Jobs that a runtime ends, each with the number of clones.
const INTERRUPTED: &[&str] = &[
    "rw=write",
    "rw=write ioengine=libaio direct=1 iodepth=4",
    "rw=randwrite",
    "rw=randwrite ioengine=io_uring iodepth=8",
];

/// The jobs that write, and that verify what was written, on a file of their own.
fn interrupted(order: &str) -> [String; 2] {
    let job = format!("filename=f size=1m bs=4k verify=crc32c {order}");
    let write = format!("{job} do_verify=0 runtime=1 rate_iops=60 verify_state_save=1");
    let verify = format!("{job} verify_only verify_state_load=1 verify_state_save=0");
    [write, verify]
}

fn state(folder: &Path) -> VerifyState {
    let bytes = fs::read(folder.join(VerifyState::file_name("job", 0))).expect("a state");
    VerifyState::decode(&bytes).expect("it can be read")
}

/// Verifies here, and finds damage of what was written and of nothing else.
fn verify_here(folder: &Path, (order, verify): (&str, &str)) {
    let state = state(folder);
    assert!((20..200).contains(&state.write_count), "{order}: {state:?}");
    let load = on_host(folder, verify).unwrap_or_else(|error| panic!("{order}: {error}"));
    let verified = load.verified_blocks.expect("it verifies");
    assert_eq!(
        (verified.block_count, verified.mismatch_count),
        (state.write_count, 0),
        "{order}"
    );
    let last = state
        .completed_writes
        .first()
        .expect("a write")
        .offset_bytes as usize;
    flip(&folder.join("f"), last + 100);
    let error = on_host(folder, verify).expect_err(order).to_string();
    assert!(
        error.contains(&format!("byte {last}: ")),
        "{order}: {error}"
    );
    flip(&folder.join("f"), last + 100);
}

#[test]
fn a_state_of_fio_is_loaded_here() {
    if !is_fio_installed() {
        return;
    }
    for order in INTERRUPTED {
        let folder = tempfile::tempdir().expect("a folder");
        let _guard = work_in(folder.path());
        let [write, verify] = interrupted(order);
        assert_eq!(
            one_by_fio(folder.path(), &write),
            ByFio::Ended(0),
            "{order}"
        );
        verify_here(folder.path(), (order, &verify));
    }
}

#[test]
fn a_state_of_ours_is_loaded_here_and_by_fio() {
    for order in INTERRUPTED {
        let folder = tempfile::tempdir().expect("a folder");
        let _guard = work_in(folder.path());
        let [write, verify] = interrupted(order);
        on_host(folder.path(), &write).unwrap_or_else(|error| panic!("{order}: {error}"));
        verify_here(folder.path(), (order, &verify));
        // fio draws random offsets in an order of its own.
        if order.contains("randwrite") || !is_fio_installed() {
            continue;
        }
        let of_fio = one_by_fio(folder.path(), &verify);
        assert_eq!(of_fio, ByFio::Ended(0), "{order}");
        let last = state(folder.path()).completed_writes[0].offset_bytes as usize;
        flip(&folder.path().join("f"), last + 100);
        let of_fio = one_by_fio(folder.path(), &verify);
        assert!(matches!(of_fio, ByFio::Ended(1..)), "{order}: {of_fio:?}");
    }
}

#[test]
fn a_state_that_is_missing_or_damaged_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let _guard = work_in(folder.path());
    let [write, verify] = interrupted("rw=write");
    on_host(folder.path(), &write).expect("it writes");
    let name = VerifyState::file_name("job", 0);
    let mut bytes = fs::read(&name).expect("a state");
    bytes[40] ^= 1;
    fs::write(&name, bytes).expect("a state");
    let damaged = on_host(folder.path(), &verify)
        .expect_err("damage")
        .to_string();
    assert!(
        damaged.contains(&name) && damaged.contains("checksum"),
        "{damaged}"
    );
    fs::remove_file(&name).expect("a state");
    let missing = on_host(folder.path(), &verify)
        .expect_err("no state")
        .to_string();
    assert!(
        missing.contains(&name) && missing.contains("verify_state_save=1"),
        "{missing}"
    );
    // Without the option a job that comes to its end leaves nothing.
    let whole = "filename=f size=64k bs=4k verify=crc32c rw=write";
    on_host(folder.path(), whole).expect("it writes");
    assert!(!Path::new(&name).exists());
}
