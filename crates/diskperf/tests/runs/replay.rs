//! Replays of block traces on real storage, on the command line.

use crate::support::{User, words};
use std::fmt::Write;

/// A trace with named columns: a request every half ms, some of them written, each over in
/// 80 us, flushes and a discard.
fn trace() -> String {
    let mut text = "time_ns,op,offset,length,response_ns,device\n".to_owned();
    for number in 0..200_u64 {
        let what = match number % 10 {
            3 => "W",
            7 => "F",
            9 if number == 199 => "D",
            _ => "R",
        };
        let (at, block) = (number * 500_000, number * 37 % 64);
        let length = if what == "F" { 0 } else { 4096 };
        writeln!(text, "{at},{what},{},{length},80000,d", block * 4096).expect("memory");
    }
    text
}

#[test]
fn a_trace_is_replayed_in_a_directory_at_each_pace() {
    let user = User::new();
    std::fs::write(user.file("some.csv"), trace()).expect("a trace");
    for pace in ["", "--speed 4", "--depth 4", "--think", "--cache cold"] {
        let line = format!("replay some.csv --on ./target {pace} --format json");
        let run = user.run(&words(&line)).expect(0, &[]).json()["runs"][0].clone();
        user.assert_nothing_left(&line);
        let result = &run["results"][0];
        let count = |name: &str| result["latency"][name]["response"]["count"].as_u64();
        let counts = ["read", "write", "sync", "discard"].map(count);
        assert_eq!(counts, [Some(159), Some(20), Some(20), Some(1)], "{result}");
        let in_trace = &result["replay"]["trace_latency"]["sync"]["count"];
        assert_eq!(*in_trace, 20, "{result}");
        let is_closed = pace.starts_with("--depth");
        let fidelity = &result["replay"]["fidelity"];
        assert_eq!(fidelity.is_null(), is_closed, "{result}");
        if !is_closed {
            assert_eq!(fidelity["issued"], 200, "{result}");
        }
    }
    user.run(&words("show last")).expect(0, &[]).shows(&[
        "replay trace=some.csv",
        "were issued within 100 µs of the trace's times",
        "in the trace",
    ]);
}

#[test]
fn storage_that_is_not_there_takes_all() {
    let user = User::new();
    std::fs::write(user.file("some.csv"), trace()).expect("a trace");
    let line = "replay some.csv --on null --runs 2 --format json";
    let run = user.run(&words(line)).expect(0, &[]).json()["runs"][0].clone();
    let result = &run["results"][0];
    assert_eq!(result["engine"], serde_json::json!(["null"]), "{result}");
    // A repetition that others disturbed is done again.
    let issued = result["replay"]["fidelity"]["issued"].as_u64();
    let issued = issued.expect("a number");
    assert!(issued >= 400 && issued.is_multiple_of(200), "{result}");
}

/// A trace that writes is no reason to write what is the user's.
#[test]
fn a_users_file_is_only_read() {
    let user = User::new();
    std::fs::write(user.file("some.csv"), trace()).expect("a trace");
    std::fs::write(
        user.file("reads.csv"),
        trace().replace(",W,", ",R,").replace(",D,", ",R,"),
    )
    .expect("a trace");
    let bytes: Vec<u8> = (0..1 << 20).map(|number| (number % 251) as u8).collect();
    std::fs::write(user.file("mine"), &bytes).expect("a file");
    user.run(&words("replay some.csv --on ./mine"))
        .expect(2, &["is a file of yours"]);
    user.run(&words("replay reads.csv --on ./mine --depth 2"))
        .expect(0, &[]);
    std::fs::write(user.file("short"), &bytes[..8192]).expect("a file");
    user.run(&words("replay reads.csv --on ./short")).expect(
        2,
        &["its addresses come to 256 KiB", "add --scale-addresses"],
    );
    user.run(&words("replay reads.csv --on ./short --scale-addresses"))
        .expect(0, &[]);
    assert_eq!(std::fs::read(user.file("mine")).expect("a file"), bytes);
}

#[test]
fn the_plan_of_a_replay_says_what_is_written_and_for_how_long() {
    let user = User::new();
    std::fs::write(user.file("some.csv"), trace()).expect("a trace");
    user.run(&words("replay some.csv --on ./target --dry-run"))
        .expect(0, &[])
        .shows(&[
            "159 read of 636 KiB, 20 write of 80 KiB, 20 flush, 1 discard of 4 KiB",
            "over 0.100 s",
            "written in all: at most",
        ]);
    assert!(user.stored().is_empty(), "nothing was run");
}
