//! Replays of block traces on modelled systems, on the command line.

use crate::support::{User, words};
use std::fmt::Write;

/// A trace of MSR's form: a request each ms, one of four written, each over in 100 us.
fn msr(requests: u64) -> String {
    let mut text = String::new();
    for number in 0..requests {
        let ticks = 128_166_400_000_000_000 + number * 10_000;
        let what = if number % 4 == 0 { "Write" } else { "Read" };
        let offset = number * 7919 % 1000 * 4096;
        writeln!(text, "{ticks},web,0,{what},{offset},4096,1000").expect("memory");
    }
    text
}

/// A user with traces.
fn user() -> User {
    let user = User::new();
    let files = [
        ("web.csv", msr(400)),
        ("two.csv", msr(4).replacen(",web,0,", ",web,1,", 1)),
        (
            "order.log",
            "fio version 2 iolog\nd add\nd open\nd read 0 4096\nd write 8192 4096\nd close\n"
                .to_owned(),
        ),
        (
            "cloud.csv",
            "12,W,126976,4096,1577808000000411\n12,R,126976,4096,1577808000000911\n".to_owned(),
        ),
        (
            "far.csv",
            "12,W,999999999999488,4096,1577808000000411\n".to_owned(),
        ),
        (
            "closed.txt",
            "R Miss 70336 16 12500.0 8000.0\nW Miss 16 16 500.0 100.0\nR Miss 1024 8 900.0 0.0\n"
                .to_owned(),
        ),
        ("torn.csv", msr(10) + "128166400000999999,web,0,Re"),
        ("none.csv", String::new()),
    ];
    for (name, text) in files {
        std::fs::write(user.file(name), text).expect("a trace");
    }
    user
}

#[test]
fn a_trace_is_replayed_at_each_pace_in_every_format() {
    let user = user();
    for (pace, told) in [
        ("", "open"),
        ("--speed 2.5", "open-2.5x"),
        ("--depth 4", "depth-4"),
        ("--think", "think"),
    ] {
        let line = format!("replay web.csv --on bare-sata-7200 {pace} --format json");
        let run = user.run(&words(&line)).expect(0, &[]).json()["runs"][0].clone();
        let result = &run["results"][0];
        assert_eq!(result["program"], "replay", "{line}");
        assert_eq!(result["parameters"]["pace"], told, "{line}");
        assert_eq!(
            result["latency"]["read"]["response"]["count"], 300,
            "{line}"
        );
        assert_eq!(
            result["latency"]["write"]["response"]["count"], 100,
            "{line}"
        );
        let replay = &result["replay"];
        assert_eq!(replay["form"], "msr", "{line}");
        assert_eq!(replay["trace_requests"], 400, "{line}");
        let in_trace = replay["trace_latency"]["read"]["p50_us"].as_f64();
        assert_eq!(in_trace.map(f64::round), Some(100.0), "{line}");
        match told {
            "depth-4" => assert!(replay["fidelity"].is_null(), "{line}"),
            _ => {
                assert_eq!(replay["fidelity"]["max_us"], 0.0, "{line}");
                assert_eq!(replay["fidelity"]["kept_up"], true, "{line}");
                assert_eq!(result["issue_lag_us"]["max"], 0.0, "{line}");
            }
        }
        let held = &run["experiment"]["workload"]["replay"]["held"];
        assert_eq!(held["files"][0]["sha256"].as_str().map(str::len), Some(64));
        assert_eq!(held["files"][0]["size_bytes"], msr(400).len());
    }
    user.run(&words("show last")).expect(0, &[]).shows(&[
        "replay trace=web.csv pace=think",
        "Responses here, and where the trace was recorded",
        "100.00 % of the requests were issued within 100 µs",
    ]);
    user.run(&words("show last --format csv")).expect(0, &[]);
    user.run(&words("report last -o page.html")).expect(0, &[]);
}

/// Beside each other, replays are told by their names.
#[test]
fn replays_on_several_drives_name_them() {
    let user = user();
    let line = "replay web.csv --on bare-sata-7200 --on bare-sas-10k";
    let shown = user.run(&words(line)).expect(0, &[]).shows(&[
        "Responses of bare-sata-7200, and where the trace was recorded",
        "Responses of bare-sas-10k, and where the trace was recorded",
        "pace=open, bare-sata-7200: 100.00 %",
        "pace=open, bare-sas-10k: 100.00 %",
    ]);
    assert_eq!(shown.stdout.matches("open loop: ").count(), 1, "{shown:?}");
}

#[test]
fn a_closed_trace_of_disksim_keeps_its_pauses() {
    let user = user();
    let line = "replay closed.txt --on bare-fixed --think --format json";
    let run = user.run(&words(line)).expect(0, &[]).json()["runs"][0].clone();
    let result = &run["results"][0];
    assert_eq!(result["replay"]["form"], "validate");
    let notes = run["notes"].to_string();
    assert!(notes.contains("--form validate-before"), "{notes}");
    assert_eq!(result["replay"]["fidelity"]["deepest"], 1);
    // The pauses are its own, and what requests take is the drive's.
    let took = ["read", "write"].map(|name| {
        let response = &result["latency"][name]["response"];
        let mean_us = response["mean_us"].as_f64().expect("a mean");
        mean_us * response["count"].as_f64().expect("a count")
    });
    let elapsed_us = result["elapsed_s"].as_f64().expect("a time") * 1e6;
    let paused_us = elapsed_us - took.iter().sum::<f64>();
    assert!((paused_us - 8100.0).abs() < 20.0, "{paused_us}");
}

#[test]
fn what_would_be_done_is_told_and_nothing_is_run() {
    let user = user();
    let line = "replay web.csv --on bare-sata-7200 --speed 2 --dry-run";
    user.run(&words(line)).expect(0, &[]).shows(&[
        "web.csv on bare-sata-7200",
        "msr",
        "SHA-256",
        "300 read of 1.2 MiB, 100 write of 400 KiB",
        "in 0.200 s (2 times as fast as the trace)",
    ]);
    assert!(user.stored().is_empty(), "nothing was run");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_remedy() {
    let user = user();
    for (line, told) in [
        ("far.csv --on bare-fixed", "add --scale-addresses"),
        (
            "far.csv --on bare-fixed --scale-addresses=900T",
            "give --scale-addresses without a size",
        ),
        ("order.log --on bare-fixed", "has no issue times"),
        ("order.log --on bare-fixed --speed 2", "give --depth N"),
        (
            "cloud.csv --on bare-fixed --think",
            "this trace of the form alibaba has no completions",
        ),
        (
            "two.csv --on bare-fixed",
            "add --device NAME, of web.1, web.0",
        ),
        ("two.csv --on bare-fixed --device web.7", "no such device"),
        ("torn.csv --on bare-fixed", "torn.csv, line 11"),
        ("none.csv --on bare-fixed", "none.csv"),
        ("- --on bare-fixed", "standard input can be read once"),
        (
            ". --on bare-fixed",
            "is a directory, and holds no files of blktrace",
        ),
        ("absent.csv --on bare-fixed", "absent.csv"),
        ("web.csv --on bare-fixed --speed 0", "--speed 0"),
        (
            "web.csv --on bare-fixed --set program.depth=2",
            "a replay does what its trace says",
        ),
        (
            "web.csv --on bare-fixed --window 10s..20s",
            "this part of the trace has no request",
        ),
        (
            "web.csv --on bare-fixed --scale-addresses=1K",
            "is less than the longest request",
        ),
        ("web.csv --on bare-fixed --form spc", "web.csv"),
        ("web.csv --on nowhere", "nowhere"),
    ] {
        let outcome = user.run(&words(&format!("replay {line}")));
        outcome.expect(2, &[told]);
    }
    assert!(user.stored().is_empty(), "nothing was run");
    for line in [
        "replay order.log --on bare-fixed --depth 2",
        "replay torn.csv --on bare-fixed --partial",
        "replay two.csv --on bare-fixed --device web.0",
        "replay far.csv --on bare-fixed --scale-addresses",
        "replay web.csv --on bare-fixed --scale-addresses=64K --window 0s..100ms",
    ] {
        user.run(&words(line)).expect(0, &[]);
    }
}

#[test]
fn a_replay_is_explained_compared_and_made_again_of_the_same_trace_alone() {
    let user = user();
    for (system, label) in [("bare-sata-7200", "buffered"), ("bare-sas-10k", "through")] {
        let line = format!("replay web.csv --on {system} --depth 4 --label {label}");
        user.run(&words(&line)).expect(0, &[]);
    }
    user.run(&words("compare buffered through"))
        .expect(0, &[])
        .shows(&["replay trace=web.csv pace=depth-4", "slower"]);
    user.run(&words("explain buffered"))
        .expect(0, &[])
        .shows(&["replay trace=web.csv", "rotational"]);
    user.run(&words("explain buffered through")).expect(0, &[]);
    user.run(&words(
        "run --like buffered --on bare-sas-10k --format json",
    ))
    .expect(0, &[]);
    user.run(&words("export buffered -o slow.json"))
        .expect(0, &[]);
    user.run(&words("show slow.json")).expect(0, &[]);
    std::fs::write(user.file("web.csv"), msr(399)).expect("a trace");
    for line in ["explain buffered", "run --like buffered"] {
        user.run(&words(line))
            .expect(2, &["the trace has changed since it was replayed"]);
    }
}

/// Twenty writes one behind the other, as blkparse prints them.
fn written(how: &str) -> String {
    let mut text = String::new();
    for number in 0..20 {
        let (at, sector) = (number * 20, 2048 + number * 8);
        let line = |what: &str, at: u64, end: &str| {
            format!(
                "  8,0 0 {} 0.{at:03}000000 42 {what} {how} {sector} + 8 [{end}]\n",
                number + 1
            )
        };
        text += &line("Q", at, "prog");
        text += &line("C", at + 10, "0");
    }
    text
}

/// A write that was durable when it completed waits for the medium on a disk whose cache
/// takes plain ones: the next of a stream comes a revolution of 8.33 ms later.
#[test]
fn writes_that_were_durable_are_made_so() {
    let user = User::new();
    for (how, durable) in [("WS", false), ("WFS", true)] {
        std::fs::write(user.file("written.txt"), written(how)).expect("a trace");
        let line =
            |target| format!("replay written.txt --on {target} --depth 1 --quiet --format json");
        let run = user.run(&words(&line("bare-sata-7200"))).expect(0, &[]);
        let run = run.json()["runs"][0].clone();
        let p50_us = run["results"][0]["response"]["p50_us"].as_f64();
        let p50_us = p50_us.expect("a median");
        assert_eq!(p50_us > 8_000.0, durable, "{how}: {p50_us} us");
        assert!(!run["notes"].to_string().contains("FUA"), "{run}");
        // A modelled file system has no O_DSYNC, and says so.
        let run = user.run(&words(&line("vax780-uda50-ra81"))).expect(0, &[]);
        let notes = run.json()["runs"][0]["notes"].to_string();
        let told = notes.contains("20 writes were durable when they completed (FUA)");
        assert_eq!(told, durable, "{notes}");
    }
}

/// Sectors of 512 bytes on a drive of 4096: refused with the option that helps, which does.
#[test]
fn requests_are_made_whole_sectors_where_that_is_asked_for() {
    let user = User::new();
    let small = "R Miss 1 2 900.0 0.0\nR Miss 7 2 900.0 0.0\nW Miss 16 8 900.0 0.0\n";
    std::fs::write(user.file("small.txt"), small).expect("a trace");
    let line = "replay small.txt --on bare-sata-7200 --depth 1 --quiet --format json";
    user.run(&words(line)).expect(
        2,
        &["between sectors of 4096 bytes", "--round-to-sectors=4096"],
    );
    let run = |option: &str| user.run(&words(&format!("{line} {option}")));
    for option in ["--round-to-sectors=4096", "--round-to-sectors"] {
        let run = run(option).expect(0, &[]).json()["runs"][0].clone();
        let notes = run["notes"].to_string();
        assert!(
            notes.contains("2 of 3 reads and writes are larger than in the trace"),
            "{notes}"
        );
        // A sector, two, and one that was whole.
        assert_eq!(run["results"][0]["size_bytes"], 16_384, "{run}");
    }
    let whole = "R Miss 0 8 900.0 0.0\nR Miss 3 0 900.0 0.0\nW Miss 16 8 900.0 0.0\n";
    std::fs::write(user.file("small.txt"), whole).expect("a trace");
    // What is of no bytes is left out, and no reason to refuse the others.
    user.run(&words(line)).expect(0, &[]);
    let notes = run("--round-to-sectors").expect(0, &[]).json()["runs"][0]["notes"].to_string();
    assert!(notes.contains("were whole sectors of 4096"), "{notes}");
    run("--round-to-sectors=1000").expect(2, &["a power of two"]);
}
