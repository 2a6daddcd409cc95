//! Layouts of ext4 against those that mke2fs makes on sparse files.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use diskperf_linux::ext4::{Ext4Layout, Ext4MakeOptions, GroupPlaces};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("the program was found above");
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn number_behind(text: &str, key: &str) -> u64 {
    let rest = text.split_once(key).map_or("", |(_, rest)| rest);
    let digits = rest
        .trim_start()
        .split(|letter: char| !letter.is_ascii_digit());
    digits
        .into_iter()
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_else(|| panic!("no number behind {key}"))
}

/// Makes a file system on a sparse file, and reads its layout.
fn make(path: &Path, bytes: u64, block_bytes: Option<u32>) -> Ext4Layout {
    let file = std::fs::File::create(path).expect("a file is made");
    file.set_len(bytes).expect("a file is sparse");
    let path = path.to_str().expect("the path is text");
    let mut arguments = vec!["-q", "-F", "-t", "ext4", "-E", "lazy_journal_init=1"];
    let block_text = block_bytes.map(|bytes| bytes.to_string());
    if let Some(text) = &block_text {
        arguments.extend(["-b", text]);
    }
    arguments.push(path);
    output("mke2fs", &arguments);
    let text = output("dumpe2fs", &[path]);
    let (header, groups) = text.split_once("\nGroup 0:").expect("there is a group");
    let groups = groups
        .split("\nGroup ")
        .map(|group| GroupPlaces {
            block_bitmap: number_behind(group, "Block bitmap at "),
            inode_bitmap: number_behind(group, "Inode bitmap at "),
            inode_table: number_behind(group, "Inode table at "),
        })
        .collect();
    let inode = output("debugfs", &["-R", "stat <8>", path]);
    let extents = inode.split_once("EXTENTS:").map_or("", |(_, rest)| rest);
    let mut journal: Vec<Range<u64>> = Vec::new();
    for extent in extents.split(", ").filter(|extent| !extent.contains("ETB")) {
        let Some((_, run)) = extent.trim().split_once("):") else {
            continue;
        };
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let first: u64 = first.parse().expect("a block has a number");
        let end = last.parse::<u64>().expect("a block has a number") + 1;
        match journal.last_mut() {
            Some(last) if last.end == first => last.end = end,
            _ => journal.push(first..end),
        }
    }
    Ext4Layout {
        block_bytes: number_behind(header, "Block size:"),
        blocks: number_behind(header, "Block count:"),
        inodes_per_group: number_behind(header, "Inodes per group:"),
        groups,
        journal,
        free_blocks: number_behind(header, "Free blocks:"),
    }
}

#[test]
fn layouts_are_those_of_mke2fs() {
    let programs = ["mke2fs", "dumpe2fs", "debugfs"];
    if let Some(missing) = programs
        .iter()
        .find(|program| Command::new(program).arg("-V").output().is_err())
    {
        println!("skipped: {missing} is not installed");
        return;
    }
    let path = std::env::temp_dir().join(format!("diskperf-ext4-{}", std::process::id()));
    for (bytes, block_bytes) in [
        (2 * MIB, None),
        (9 * MIB, None),
        (41 * MIB, None),
        (100 * MIB, None),
        (100 * MIB, Some(4096)),
        (200 * MIB, Some(4096)),
        (385 * MIB, Some(4096)),
        (400 * MIB, None),
        (500 * MIB, Some(2048)),
        (513 * MIB, None),
        (700 * MIB, Some(2048)),
        (1000 * MIB, None),
        (2100 * MIB, None),
        (20 * GIB, None),
        (150 * GIB, None),
    ] {
        let made = make(&path, bytes, block_bytes);
        let options = Ext4MakeOptions {
            block_bytes,
            ..Ext4MakeOptions::default()
        };
        let modelled = Ext4Layout::new(bytes, &options).expect("it is modelled");
        assert_eq!(modelled, made, "{bytes} bytes, blocks {block_bytes:?}");
    }
    std::fs::remove_file(&path).expect("the file was made above");
}
