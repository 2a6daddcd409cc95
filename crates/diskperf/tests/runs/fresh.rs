//! Fresh file systems of every kind, and that nothing of them is left.

use crate::support::machine::{Needs, can_run, mounts_in};
use crate::support::{MOUNTS, User, words};

/// What is asked for, what it needs, and the file systems of the results.
const KINDS: &[(&str, &str, &[&str])] = &[
    ("ext2:block_bytes=1024", "ext2", &["ext2/1024"]),
    ("ext2:block_bytes=4096", "ext2", &["ext2/4096"]),
    ("ext4:block_bytes=1024", "ext4", &["ext4/1024"]),
    ("ext4:block_bytes=4096", "ext4", &["ext4/4096"]),
    ("ext4", "ext4", &["ext4/4096", "ext4/1024"]),
    ("xfs:block_bytes=4096", "xfs", &["xfs/4096"]),
    ("btrfs:block_bytes=4096", "btrfs", &["btrfs/4096"]),
];

fn tool(kind: &str) -> Needs {
    Needs::Tool(match kind {
        "xfs" => "mkfs.xfs",
        "btrfs" => "mkfs.btrfs",
        _ => "mkfs.ext4",
    })
}

#[test]
fn every_kind_is_made_measured_and_removed() {
    for (spec, kind, filesystems) in KINDS {
        let test = format!("every_kind_is_made_measured_and_removed ({spec})");
        let kind_name: &'static str = kind;
        let needs = [MOUNTS, &[tool(kind), Needs::Filesystem(kind_name)]].concat();
        if !can_run(&test, &needs) {
            continue;
        }
        let user = User::new();
        let line =
            format!("run ffs83 --on ./target --size 1M --runs 2 --format json --fresh {spec}");
        let run = user.run(&words(&line)).expect(0, &[]).json();
        let run = &run["runs"][0];
        assert_eq!(run["state"], "finished", "{spec}");
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 4 * filesystems.len(), "{spec}");
        for filesystem in *filesystems {
            let of_it = results
                .iter()
                .filter(|result| result["filesystem"] == *filesystem);
            assert_eq!(of_it.count(), 4, "{spec}");
        }
        user.assert_nothing_left(spec);
        assert_eq!(mounts_in(&user.target()), [""; 0], "{spec}");
        assert_eq!(user.stored().len(), 1);
    }
}

/// The two block sizes of 1983 are for its suite alone.
#[test]
fn other_programs_run_on_the_usual_blocks() {
    if !can_run("other_programs_run_on_the_usual_blocks", MOUNTS) {
        return;
    }
    let user = User::new();
    let dry = user.run(&words(
        "run write_8192 --on ./target --fresh ext4 --size 1M --dry-run",
    ));
    let text = &dry.expect(0, &[]).stdout;
    assert!(
        text.contains("ext4 with blocks of 4096") && !text.contains("1024"),
        "{text}"
    );
}

/// Reads of a fresh file system come from its own device.
#[test]
fn a_fresh_file_system_is_cold() {
    if !can_run("a_fresh_file_system_is_cold", MOUNTS) {
        return;
    }
    let user = User::new();
    let line = "run read_8192 --on ./target --size 1M --runs 2 --format json --fresh ext4:block_bytes=4096";
    let run = user.run(&words(line)).expect(0, &[]).json();
    let result = &run["runs"][0]["results"][0];
    assert_eq!(result["cache_verdict"], "as_asked", "{result}");
    for repetition in result["repetitions"].as_array().unwrap() {
        assert_eq!(repetition["residency"]["before_bytes"], 0);
    }
}

/// Two drives, each with a fresh file system of its own.
#[test]
fn fresh_file_systems_together() {
    if !can_run("fresh_file_systems_together", MOUNTS) {
        return;
    }
    let user = User::new();
    std::fs::create_dir(user.file("other")).unwrap();
    let line = "run write_8192 --on ./target --on ./other --together --size 1M --runs 2 --format json --fresh ext4:block_bytes=1024";
    let run = user.run(&words(line)).expect(0, &[]).json();
    assert_eq!(run["runs"][0]["results"][0]["drives"], 2);
    user.assert_nothing_left("together");
    assert_eq!(crate::support::entries(&user.file("other")), [""; 0]);
}
