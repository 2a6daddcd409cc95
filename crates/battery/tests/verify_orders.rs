//! Blocks of jobs whose order, mix or sizes are each program's own: good data of either is
//! verified, and what was changed is found.
#![cfg(target_os = "linux")]

mod verification;

use diskperf_battery::set_read_back_hook;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use verification::installed::is_fio_installed;
use verification::{by_fio, flip, on_host};

/// Jobs whose surviving blocks follow from the order in which offsets, directions and sizes
/// are drawn.
const DRAWN: &[&str] = &[
    "rw=randwrite bs=4k norandommap verify=crc32c",
    "rw=randwrite bsrange=4k-16k verify=crc32c",
    "rw=randwrite bsrange=4k-16k norandommap verify=md5",
    "rw=randwrite bssplit=4k/50:8k/50 verify_interval=2k verify=md5",
    "rw=randwrite bssplit=4k/50:8k/50 verify_interval=2k verify=crc64",
    "rw=randwrite bssplit=4k/50:8k/50 verify_interval=2k verify=crc7",
    "rw=randwrite bssplit=4k/50:8k/50 verify_interval=2k verify=xxhash",
    "rw=randwrite bssplit=4k/50:8k/50 verify_interval=2k verify=sha256",
    "rw=randwrite bssplit=4k/50:8k/50 verify_interval=2k verify=sha512",
    "rw=write bssplit=4k/50:8k/50 verify=crc32c",
    "rw=randrw bs=4k verify=crc32c",
    "rw=randrw bs=4k loops=2 verify=crc32c",
    "rw=randrw bs=4k randseed=7 verify=crc32c",
    "rw=randrw bs=8k,4k verify=crc32c",
    "rw=rw bs=4k rwmixread=70 verify=crc32c",
    "rw=randwrite bs=4k norandommap random_distribution=zipf:1.1 verify=crc32c",
    "rw=randwrite bs=4k random_distribution=pareto:0.3 verify=crc32c",
    "rw=randwrite bs=4k norandommap random_distribution=zoned:60/10:40/90 verify=crc32c",
    "rw=randwrite bs=4k percentage_random=40 verify=crc32c",
    "rw=randwrite bs=4k number_ios=9 verify=crc32c",
    "rw=randwrite bs=4k io_size=48k verify=crc32c verify_offset=64",
    "rw=randwrite bs=4k loops=3 verify=crc32c",
    "rw=write bs=4k loops=3 verify=crc32c",
    "rw=randwrite bs=4k nrfiles=4 file_service_type=random verify=crc32c",
    "rw=randwrite bs=4k nrfiles=4 norandommap verify=crc32c",
];

/// The section of a row, on files of its own.
fn section(number: usize, row: &str) -> String {
    match row.contains("nrfiles") {
        true => format!("filename=a{number}:b{number}:c{number}:d{number} size=128k {row}")
            .replace(" nrfiles=4", ""),
        false => format!("filename=a{number} size=128k {row}"),
    }
}

/// Block that is found by its header.
struct Block {
    path: PathBuf,
    offset_bytes: usize,
    length_bytes: usize,
}

/// Blocks of a row's files.
fn blocks(folder: &Path, number: usize) -> Vec<Block> {
    let names = ["a", "b", "c", "d"].map(|name| folder.join(format!("{name}{number}")));
    let mut blocks = Vec::new();
    for path in names.into_iter().filter(|path| path.exists()) {
        let bytes = fs::read(&path).expect("a file");
        for offset_bytes in (0..bytes.len()).step_by(2048) {
            let mut starts = [offset_bytes, offset_bytes + 64].into_iter();
            let header = starts.find(|start| bytes[*start..].starts_with(&[0xca, 0xac]));
            let Some(header) = header else { continue };
            let length = bytes[header + 4..header + 8].try_into();
            blocks.push(Block {
                path: path.clone(),
                offset_bytes,
                length_bytes: u32::from_le_bytes(length.expect("four bytes")) as usize,
            });
        }
    }
    assert!(blocks.len() >= 5, "row {number}: {} blocks", blocks.len());
    blocks
}

/// Verifies good data, and then data of which a block's last byte was flipped.
fn verify_and_find(folder: &Path, (number, row): (usize, &str)) -> u64 {
    let only = format!("{} verify_only", section(number, row));
    let load = on_host(folder, &only).unwrap_or_else(|error| panic!("{only}: {error}"));
    let verified = load.verified_blocks.expect("it verifies");
    assert!(verified.block_count >= 5, "{only}: {verified:?}");
    assert_eq!(
        (verified.mismatch_count, verified.unread_block_count),
        (0, 0),
        "{only}"
    );
    let Block {
        path,
        offset_bytes: at,
        length_bytes,
    } = blocks(folder, number).remove(0);
    flip(&path, at + length_bytes - 1);
    let error = on_host(folder, &only).expect_err(&only).to_string();
    let name = path.file_name().expect("a name").to_string_lossy();
    let is_named = error.contains(&format!("{name}: byte {at}: ")) && error.contains(": 1 of ");
    assert!(is_named, "{only}: byte {at}: {error}");
    verified.block_count
}

#[test]
fn good_data_that_fio_wrote_in_an_order_of_its_own_is_verified() {
    if !is_fio_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let rows = DRAWN.iter().enumerate();
    let writes = rows.map(|(number, row)| format!("{} do_verify=0", section(number, row)));
    let writes: Vec<String> = writes.collect();
    for (write, error) in writes.iter().zip(by_fio(folder.path(), &writes)) {
        assert_eq!(error, 0, "{write}");
    }
    for (number, row) in DRAWN.iter().enumerate() {
        let written = blocks(folder.path(), number).len() as u64;
        let verified = verify_and_find(folder.path(), (number, row));
        assert_eq!(verified, written, "{row}");
    }
}

#[test]
fn data_that_was_written_here_in_a_drawn_order_is_verified_and_a_lost_block_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    // Rests of blocks that were written over in part are no blocks.
    let are_whole = |row: &&str| !(row.contains("bsrange") && row.contains("norandommap"));
    let rows = DRAWN.iter().filter(|row| are_whole(row));
    for (number, row) in rows.enumerate() {
        let write = format!("{} do_verify=0", section(number, row));
        on_host(folder.path(), &write).unwrap_or_else(|error| panic!("{write}: {error}"));
        let Block {
            path,
            offset_bytes: at,
            ..
        } = blocks(folder.path(), number).remove(0);
        verify_and_find(folder.path(), (number, row));
        // A block that lost its header is one that must be there.
        on_host(folder.path(), &write).expect(&write);
        let mut bytes = fs::read(&path).expect("a file");
        bytes[at..at + 128].fill(0);
        fs::write(&path, bytes).expect("a file");
        let only = format!("{} verify_only", section(number, row));
        let error = on_host(folder.path(), &only).expect_err(&only).to_string();
        assert!(error.contains(&format!("byte {at}: ")), "{only}: {error}");
    }
}

#[test]
fn a_place_without_any_block_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a0"), vec![0; 128 << 10]).expect("a file");
    let only = format!("{} verify_only", section(0, DRAWN[0]));
    let error = on_host(folder.path(), &only).expect_err(&only).to_string();
    assert!(error.contains("no header"), "{error}");
}

/// Jobs each of whose passes and runs begins with the same seeds.
const REPEATED: &[&str] = &[
    "rw=write bs=4k verify=crc32c",
    "rw=randwrite bs=4k verify=sha512",
    "rw=write bs=4k verify=meta",
    "rw=randwrite bs=8k verify=md5 verify_interval=2k",
    "rw=randwrite bs=4k verify=crc32c ioengine=io_uring iodepth=4",
];

/// Runs a job whose write of the second block is lost in its last pass or run: the block is
/// still that of the one before.
fn lose_a_write(folder: &Path, (job, runs): (&str, u32)) -> Option<String> {
    let path = folder.join("f");
    let stale: Rc<RefCell<Option<Vec<u8>>>> = Rc::default();
    let kept = Rc::clone(&stale);
    set_read_back_hook(Some(Box::new(move || {
        let mut image = fs::read(&path).expect("a file");
        let before = kept.borrow_mut().replace(image.clone());
        if let Some(before) = before {
            image[8192..16384].copy_from_slice(&before[8192..16384]);
            fs::write(&path, image).expect("a file");
        }
    })));
    let mut outcomes = (0..runs).map(|_| on_host(folder, job));
    let found = outcomes.find_map(Result::err);
    set_read_back_hook(None);
    let passes = stale.borrow().is_some();
    assert!(passes, "{job}: nothing was read back");
    found.map(|error| error.to_string())
}

#[test]
fn a_write_that_was_lost_in_a_second_pass_or_run_is_found() {
    for row in REPEATED {
        for (passes, runs) in [("", 2), (" loops=2", 1), (" loops=3", 1)] {
            let folder = tempfile::tempdir().expect("a folder");
            let job = format!("filename=f size=64k {row}{passes}");
            let found = lose_a_write(folder.path(), (&job, runs));
            let found = found.unwrap_or_else(|| panic!("{job}, {runs} runs: not found"));
            assert!(found.contains("byte 8192: "), "{job}: {found}");
            assert!(
                found.contains("block of an") && found.contains("write; "),
                "{job}: {found}"
            );
        }
    }
}

/// Jobs that end before all that they wrote is read back.
const ENDED: &[&str] = &[
    "rw=randwrite runtime=1 rate_iops=60",
    "rw=randwrite runtime=1 rate_iops=60 time_based verify_backlog=16",
    "rw=write runtime=1 rate_iops=60 time_based verify_backlog=16 verify_backlog_batch=4",
];

#[test]
fn blocks_that_were_not_read_back_are_counted() {
    for row in ENDED {
        let folder = tempfile::tempdir().expect("a folder");
        let job = format!("filename=f size=8m bs=4k verify=crc32c {row}");
        let load = on_host(folder.path(), &job).unwrap_or_else(|error| panic!("{job}: {error}"));
        let verified = load.verified_blocks.expect("it verifies");
        let written = load.write.bytes / 4096;
        assert!(verified.unread_block_count > 0, "{job}: {verified:?}");
        assert_eq!(
            verified.block_count + verified.unread_block_count,
            written,
            "{job}: {verified:?}"
        );
        assert_eq!(
            verified.block_count > 0,
            row.contains("backlog"),
            "{job}: {verified:?}"
        );
    }
}
