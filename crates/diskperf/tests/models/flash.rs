//! Flash drives on the command line: what their slowest requests waited for, what their spare
//! is worth, and what there is no such drive of.

use crate::support::{User, words};
use serde_json::Value;

/// Reads and writes at random on a drive in its steady state.
const MIXED: &str =
    "--suite random --direct --runs 1 --set program.write_share=0.3 --set drive.past=random";

/// What a rerun removes of the time above p99, it removes of the same load with other random
/// numbers, within this share.
const AGREES: f64 = 0.1;

fn tails(line: &str) -> Vec<Value> {
    let user = User::new();
    let found = user.run(&words(&format!("explain {line} {MIXED} --format json")));
    let found = found.expect(0, &[]).json();
    let tails = found["programs"][0]["tails"].as_array();
    tails.expect("of a flash drive").clone()
}

fn ns(value: &Value) -> f64 {
    value.as_f64().expect("nanoseconds")
}

#[test]
fn a_rerun_without_the_top_cause_removes_the_time_that_was_stated() {
    for (load, cause) in [
        // Programs are three of four collection's in the steady state.
        (
            "--set program.rate_iops=400000 --set program.arrivals=poisson --set program.depth=128",
            "collection",
        ),
        ("--set program.depth=32", "collection"),
        (
            "--set program.depth=32 --set drive.suspends_most=0",
            "erase",
        ),
    ] {
        let tails = tails(&format!("bare-nvme-tlc-plp --size 512M {load}"));
        assert_eq!(tails.len(), 2, "{load}");
        assert_eq!(
            (
                &tails[0]["causes"][0]["stage"],
                &tails[0]["causes"][0]["cause"]
            ),
            (&"die_wait".into(), &cause.into()),
            "{load}"
        );
        for tail in &tails {
            check_tail(load, tail);
        }
    }
}

fn check_tail(load: &str, tail: &Value) {
    let above = ns(&tail["above_p99_ns"]);
    let causes = tail["causes"].as_array().expect("causes");
    let removed = ns(&causes[0]["rerun"]["removed_ns"]);
    let check = &tail["check"];
    let (stated, there) = (
        removed / above,
        ns(&check["removed_ns"]) / ns(&check["above_p99_ns"]),
    );
    println!(
        "{load}, {}: {stated} stated, {there} removed",
        tail["requests_of"]
    );
    assert!((there / stated - 1.0).abs() < AGREES, "{load}: {tail}");
    assert_ne!(ns(&check["above_p99_ns"]), above, "{load}: the same load");
    for other in causes {
        assert!(ns(&other["spent_above_p99_ns"]) <= above, "{load}: {other}");
        let less = other["rerun"]["removed_ns"].as_f64();
        assert!(less.is_none_or(|less| less <= removed), "{load}: {other}");
    }
    let parts = tail["example"]["parts"].as_array().expect("its parts");
    let sum: f64 = parts.iter().map(|part| ns(&part["ns"])).sum();
    assert_eq!(sum, ns(&tail["example"]["ns"]), "{load}");
    assert_eq!(sum, ns(&tail["p999_ns"]), "{load}");
}

#[test]
fn where_a_p999_comes_from_is_said_in_words() {
    let user = User::new();
    let line = format!("explain bare-nvme-tlc-plp {MIXED} --size 16M --set program.depth=32");
    user.run(&words(&line)).expect(0, &[]).shows(&[
        "The slowest 29 of 2901 reads took more than",
        "A rerun without it removes",
        "µs behind other reads",
        "the slowest 1 % of reads",
        "spent above p99",
        "removed without it",
        "With other random numbers (seed ",
        "die busy: collection",
    ]);
}

/// Superblocks of a 24th of their size: the drive comes to its steady state in so many fewer
/// writes, and what is amplified hangs on shares alone.
const SMALL: &str = "--set drive.word_lines_per_block=24 --set drive.erase_us=420 --set program.area_bytes=28G --set drive.write_buffer_bytes=4M --set drive.slc_fixed_bytes=0 --set drive.slc_dynamic_bytes=0";

#[test]
fn the_cliff_of_writes_at_random_over_the_spare() {
    let user = User::new();
    let line = format!(
        "tune bare-nvme-tlc --suite random --over drive.spare_share=0.05,0.1,0.28 --set drive.past=random --set program.write_share=1 --set program.depth=32 {SMALL} --size 512M --seeds 0 --format json"
    );
    let found = user.run(&words(&line)).expect(0, &[]).json();
    let points = found["points"].as_array().expect("points");
    let rates: Vec<f64> = points
        .iter()
        .map(|one| one["value"].as_f64().unwrap())
        .collect();
    println!("{rates:?} KB/s");
    assert_eq!(found["best"]["settings"]["drive.spare_share"], "0.28");
    // From 0.28 to 0.1 the rate falls less than in proportion; below that it drops.
    let cliff = &found["cliffs"][0];
    let step = (&cliff["path"], &cliff["from"], &cliff["to"]);
    let names = ["drive.spare_share", "0.1", "0.05"].map(Value::from);
    assert_eq!(step, (&names[0], &names[1], &names[2]), "{cliff}");
    assert!(rates[0] < rates[1] && rates[1] < rates[2], "{rates:?}");
    // Facts 4.1: the amplification is 10.2, 5.18 and 1.99; the first writes go into the
    // reserve, so that not all of it is seen.
    assert!(rates[2] / rates[1] > 2.0, "{rates:?}");
}

/// A setting that there is no drive with, the key that the refusal is about, and why.
const REFUSED: [(&str, &str, &str); 28] = [
    ("channels=0", "channels", "from 1 to 64"),
    ("dies_per_channel=0", "dies_per_channel", "from 1 to 64"),
    ("planes=0", "planes", "from 1 to 16"),
    ("planes=17", "planes", "from 1 to 16"),
    ("blocks_per_plane=0", "blocks_per_plane", "from 1 to"),
    (
        "blocks_per_plane=10",
        "blocks_per_plane",
        "collection would deadlock",
    ),
    (
        "blocks_per_plane=1000000",
        "blocks_per_plane",
        "addresses at most 4294967294",
    ),
    (
        "word_lines_per_block=0",
        "word_lines_per_block",
        "from 1 to",
    ),
    (
        "pages_per_word_line=4",
        "read_ns",
        "3 read times for 4 pages",
    ),
    (
        "page_bytes=1000",
        "page_bytes",
        "whole mapping units of 4096",
    ),
    ("read_ns=[]", "read_ns", "0 read times for 3 pages"),
    ("spare_share=0", "spare_share", "leave no over-provisioning"),
    ("spare_share=1", "spare_share", "an over-provisioning of 1"),
    ("spare_share=-0.1", "spare_share", "from 0 to 1"),
    (
        "spare_share=0.005",
        "spare_share",
        "collection would deadlock",
    ),
    (
        "soft_free_superblocks=4",
        "soft_free_superblocks",
        "not above the hard threshold of 4",
    ),
    (
        "soft_free_superblocks=500",
        "soft_free_superblocks",
        "collection would deadlock",
    ),
    (
        "hard_free_superblocks=2",
        "hard_free_superblocks",
        "collection needs 3",
    ),
    ("past_fill_share=1.1", "past_fill_share", "from 0 to 1"),
    (
        "past=full",
        "past",
        "`fresh`, `sequential`, `random`, `hot_cold`, `zipf`",
    ),
    ("past_hot_percent=100", "past_hot_percent", "from 1 to 99"),
    ("past_zipf_percent=0", "past_zipf_percent", "from 1 to 250"),
    ("queue_depth=0", "queue_depth", "from 1 to 65536"),
    (
        "write_buffer_bytes=1",
        "write_buffer_bytes",
        "a die programs 24 at once",
    ),
    (
        "write_buffer_bytes=4096",
        "write_buffer_bytes",
        "a die programs 24 at once",
    ),
    ("dies_erasing=0", "dies_erasing", "from 1 to"),
    ("read_retry_share=1", "read_retry_share", "from 0 to 0.9"),
    ("in_place=true", "in_place", "a program of 24 mapping units"),
];

#[test]
fn drives_that_there_cannot_be_are_refused_with_key_place_and_reason() {
    let user = User::new();
    for (setting, key, why) in REFUSED {
        let line =
            format!("run random --on bare-nvme-tlc-plp --direct --size 1M --set drive.{setting}");
        let key = format!("`{key}`");
        // The place is that of the setting, or of the value that it contradicts.
        let place = match setting.starts_with(&key[1..key.len() - 1]) {
            true => "--> --set:1:",
            false => "--> catalogue/drives/nvme-tlc-plp.toml:",
        };
        user.run(&words(&line)).expect(2, &[&key, why, place]);
    }
    assert!(user.stored().is_empty(), "nothing was run");
}

/// A setting that leaves a drive no room to collect is what the error begins with and points
/// at, whatever else is short then; the parameters that it advises are whole paths, and help.
#[test]
fn a_setting_without_room_to_collect_is_named() {
    let user = User::new();
    let base = "run random --on bare-nvme-tlc --size 256K --runs 1 --set drive.";
    // Settings, the key that they set, and one that the error advises.
    let cases = [
        ("channels=2", "channels", "soft_free_superblocks=7"),
        ("channels=2", "channels", "spare_share=0.1"),
        ("channels=1", "channels", "slc_fixed_bytes=1_000_000_000"),
        (
            "dies_per_channel=1",
            "dies_per_channel",
            "soft_free_superblocks=7",
        ),
    ];
    for (setting, key, advised) in cases {
        let line = format!("{base}{setting}");
        let (path, _) = advised.split_once('=').expect("a setting");
        let begins = format!("error: `{key}`: ");
        let refused = user.run(&words(&line)).expect(
            2,
            &[
                &begins,
                "--> --set:1:",
                "collection would deadlock; give a",
                &format!("drive.{path}"),
            ],
        );
        assert!(!refused.has("catalogue/drives"), "{refused:?}");
        user.run(&words(&format!("{line} --set drive.{advised}")))
            .expect(0, &[]);
    }
}

#[test]
fn a_drive_that_is_too_small_says_which_limit() {
    let user = User::new();
    let line = "run random --on bare-nvme-tlc-plp --direct --size 1M --set program.area_bytes=4T";
    user.run(&words(line)).expect(
        2,
        &[
            "not enough space",
            "take 4 TiB",
            "1.7 TiB free",
            "program.area_bytes",
        ],
    );
}

/// Reads of a drive that was never written are of no die, and its rows say so; a drive in use
/// answers from its dies.
#[test]
fn rows_of_a_drive_that_was_never_written_say_so() {
    let user = User::new();
    let run = |more: &str| {
        let line = format!("run random --on bare-nvme-tlc --size 256K --runs 1 --quiet {more}");
        user.run(&words(&line)).expect(0, &[])
    };
    let (mark, says) = ("¶", "never written");
    let fresh = run("");
    assert!(fresh.has(mark) && fresh.has(says), "{}", fresh.stdout);
    let used = run("--set drive.past=random");
    assert!(!used.has(mark) && !used.has(says), "{}", used.stdout);
    // Whatever else shows the figure.
    run("--label fresh");
    run("--set drive.past=random --label used");
    let tune = "tune bare-nvme-tlc --suite random --size 256K --seeds 0 --over depth=1,2";
    for line in [
        "compare fresh used",
        "explain fresh --no-counterfactuals",
        tune,
    ] {
        let shown = user.run(&words(line)).expect(0, &[]);
        assert!(
            shown.has(mark) && shown.has(says),
            "{line}: {}",
            shown.stdout
        );
        let json = user.run(&words(&format!("{line} --format json")));
        let json = json.expect(0, &[]).json().to_string();
        assert!(json.contains(r#""unwritten_share":1.0"#), "{line}: {json}");
    }
    let share = |label: &str| {
        let line = format!("show {label} --format json");
        let run = user.run(&words(&line)).expect(0, &[]).json();
        run["runs"][0]["results"][0]["unwritten_share"].clone()
    };
    assert_eq!((share("fresh"), share("used")), (1.0.into(), Value::Null));
    for line in ["explain used --no-counterfactuals", "compare used used"] {
        let shown = user.run(&words(line)).expect(0, &[]);
        assert!(!shown.has(mark), "{line}: {}", shown.stdout);
    }
    // What it writes is not what was read.
    let writes = run("--set program.write_share=1");
    assert!(!writes.has(mark), "{}", writes.stdout);
}

/// A pilot finds sizes on real storage; a model's go past what a drive takes into its buffer.
#[test]
fn writes_move_several_times_what_the_buffer_holds() {
    let user = User::new();
    let size = |more: &str| {
        let line = format!(
            "run random --on bare-nvme-qlc --set drive.write_buffer_bytes=1048576 --runs 1 --quiet --format json {more}"
        );
        let run = user.run(&words(&line)).expect(0, &[]).json()["runs"][0].clone();
        run["results"][0]["size_bytes"].as_u64().expect("a size")
    };
    assert_eq!(size(""), 8 << 20);
    assert_eq!(size("--set program.write_share=1"), 4 << 20);
    assert_eq!(size("--set program.write_share=1 --size 1M"), 1 << 20);
}

/// A run that fills the cache of one bit a cell says after how much.
#[test]
fn a_cliff_that_a_run_crosses_is_named() {
    let user = User::new();
    let run = |size: &str| {
        let line = format!(
            "run sequential --on bare-nvme-qlc --set program.write_share=1 --set drive.slc_fixed_bytes=500000000 --set drive.slc_dynamic_bytes=0 --size {size} --runs 1 --quiet"
        );
        user.run(&words(&line)).expect(0, &[])
    };
    run("600M").shows(&["falls at 0.4 GB: the drive's SLC cache is full"]);
    let short = run("16M");
    assert!(!short.has("falls at"), "{}", short.stdout);
}

/// A shingled disk writes into its media cache until that, or its map, is full; the table, JSON
/// and pages say after how much.
#[test]
fn the_cliff_of_a_shingled_disk_is_named() {
    let user = User::new();
    let run = |extents: u32, more: &str| {
        let line = format!(
            "run random --on bare-smr-5400 --set program.write_share=1 --set drive.media_cache_extents={extents} --set drive.write_cache_extents=16 --size 4M --runs 1 --quiet {more}"
        );
        user.run(&words(&line)).expect(0, &[])
    };
    let cliff = "the disk's media cache, or its map, is full";
    run(500, "").shows(&["falls at 2.", cliff]);
    let found = run(500, "--format json").json()["runs"][0]["results"][0]["cliff"].clone();
    assert_eq!(found["cache"], "media");
    // 500 extents of 4 KiB, and as much as fills the last places.
    let at_bytes = found["at_bytes"].as_u64().expect("bytes");
    assert!((400 * 4096..=540 * 4096).contains(&at_bytes), "{found}");
    let past = found["past_share"].as_f64().expect("a share");
    assert!((0.3..0.7).contains(&past), "{found}");
    let report = user.run(&words("report last -o page.html"));
    report.expect(0, &[]);
    let page = std::fs::read_to_string(user.file("page.html")).expect("a page");
    assert!(page.contains("media cache, or its map, is full"));
    let room = run(5000, "--format json").json()["runs"][0]["results"][0].clone();
    assert!(room.get("cliff").is_none(), "{room}");
}
