//! Duplicates among what is written, counted in the file, beside those of fio.

use super::{SEED, is_fio_installed, on_host};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const BLOCKS: usize = 2048;

/// Blocks of 4 KiB in a file.
#[derive(Clone, Copy, Debug)]
struct Found {
    distinct: usize,
    /// Blocks that are the same as the one before.
    repeated: usize,
    /// Blocks of the commonest content.
    commonest: usize,
}

fn found(folder: &Path) -> Found {
    let data = fs::read(folder.join("job.0.0")).expect("a file");
    let blocks: Vec<&[u8]> = data.chunks(4096).collect();
    assert_eq!(blocks.len(), BLOCKS);
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for block in &blocks {
        *counts.entry(block).or_default() += 1;
    }
    Found {
        distinct: counts.len(),
        repeated: blocks.windows(2).filter(|two| two[0] == two[1]).count(),
        commonest: counts.values().copied().max().unwrap_or(0),
    }
}

/// Whether two counts of blocks are within six standard deviations of their difference.
fn are_alike(one: usize, other: usize) -> bool {
    let room = 6.0 * (2.0 * BLOCKS as f64 * 0.25).sqrt();
    one.abs_diff(other) as f64 <= room
}

#[test]
fn as_many_blocks_are_duplicates_as_in_fio_and_of_the_same_kind() {
    if !is_fio_installed() {
        return;
    }
    for options in [
        "dedupe_percentage=0",
        "dedupe_percentage=30",
        "dedupe_percentage=80 buffer_compress_percentage=50",
        "dedupe_percentage=100",
        "dedupe_percentage=50 dedupe_mode=working_set",
        "dedupe_percentage=50 dedupe_mode=working_set dedupe_working_set_percentage=0",
        "dedupe_percentage=60 dedupe_mode=working_set dedupe_working_set_percentage=40",
        "dedupe_percentage=40 ioengine=io_uring iodepth=8",
        "dedupe_percentage=40 ioengine=mmap",
    ] {
        let options = format!("rw=write size=8m bs=4k {options}");
        let theirs = tempfile::tempdir().unwrap();
        let arguments = options.split(' ').map(|option| format!("--{option}"));
        let output = Command::new("fio")
            .arg("--name=job")
            .args(arguments)
            .current_dir(theirs.path())
            .output()
            .expect("fio");
        assert!(output.status.success(), "{options}: {output:?}");
        let ours = tempfile::tempdir().unwrap();
        on_host(ours.path(), &options);
        let (ours, theirs) = (found(ours.path()), found(theirs.path()));
        let alike = [
            (ours.distinct, theirs.distinct),
            (ours.repeated, theirs.repeated),
            (ours.commonest, theirs.commonest),
        ];
        let are_all = alike.iter().all(|(one, other)| are_alike(*one, *other));
        assert!(are_all, "seed {SEED}, {options}: {ours:?} and {theirs:?}");
    }
}
