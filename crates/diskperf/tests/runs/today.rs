//! The suite of today's storage and its programs, on real storage and on none.

use crate::support::machine::forbid_io_uring;
use crate::support::{User, words};
use diskperf_store::Store;
use serde_json::Value;

fn results(user: &User, line: &str) -> (Value, Vec<Value>) {
    let run = user.run(&words(line)).expect(0, &[]).json()["runs"][0].clone();
    let results = run["results"].as_array().expect("a run has results");
    (run.clone(), results.clone())
}

#[test]
fn today26_on_a_directory() {
    let user = User::new();
    let line = "run today26 --on ./target --size 2M --runs 2 --format json";
    let (run, results) = results(&user, line);
    user.assert_nothing_left(line);
    let programs: Vec<&str> = results
        .iter()
        .map(|one| one["program"].as_str().unwrap())
        .collect();
    let expected = [&["sequential"; 2][..], &["random"; 5], &["log_append"]].concat();
    assert_eq!(programs, expected);
    let notes = run["notes"].to_string();
    assert!(notes.contains("requests cover 2 MiB"), "{notes}");
    for result in &results {
        assert!(result["iops"].as_f64() > Some(0.0), "{result}");
        assert!(result["mb_per_s"].as_f64() > Some(0.0), "{result}");
        assert!(result["cpu_us_per_io"].as_f64() > Some(0.0), "{result}");
        let latency = result["latency"].as_object().unwrap();
        let reads = result["read_share"].as_f64().unwrap();
        assert_eq!(latency.contains_key("read"), reads > 0.0, "{result}");
        assert_eq!(latency.contains_key("write"), reads < 1.0, "{result}");
        let is_log = result["program"] == "log_append";
        assert_eq!(latency.contains_key("commit"), is_log, "{result}");
        assert_eq!(result["workers"], 1, "{result}");
    }
    let depths: Vec<u64> = results
        .iter()
        .filter_map(|one| one["depth"].as_u64())
        .collect();
    assert_eq!(depths, [8, 8, 1, 32, 1, 32, 16, 1]);
    user.run(&words("show last")).expect(0, &[]).shows(&[
        "IOPS",
        "p99.9",
        "CPU/IO",
        "log append",
        "commit",
    ]);
}

#[test]
fn arrivals_by_the_clock() {
    let user = User::new();
    for engine in ["best", "threads"] {
        let line = format!(
            "run random --on ./target --runs 1 --format json --set program.area_bytes=1M --set program.depth=8 --set program.rate_iops=100 --set program.duration_ms=500 --set program.engine={engine}"
        );
        let (_, results) = results(&user, &line);
        user.assert_nothing_left(&line);
        let result = &results[0];
        // All that arrive are there, whatever the machine does meanwhile.
        assert_eq!(result["response"]["count"], 50, "{result}");
        let lag = &result["issue_lag_us"];
        assert!(lag["p50"].as_f64() <= lag["max"].as_f64(), "{result}");
        assert!(lag["max"].is_f64(), "{result}");
    }
    user.run(&words("show last")).expect(0, &[]).shows(&[
        "in open loop, a response",
        "requests were issued",
        "late at p99",
        "threads with preadv2",
    ]);
}

/// One name means one thing, in a suite and by itself.
#[test]
fn requests_go_past_the_page_cache_unless_it_is_asked_for() {
    let user = User::new();
    let cases = [
        ("random", "O_DIRECT", "yes"),
        ("sequential", "O_DIRECT", "yes"),
        ("log_append", "O_DIRECT", "yes"),
        ("database", "O_DIRECT", "yes"),
        ("today26", "O_DIRECT", "yes"),
        ("random --cache cold", "cold page cache", "no"),
        ("log_append --cache warm", "warm page cache", "no"),
        ("random --set program.direct=no", "cold page cache", "no"),
    ];
    for (asked, header, direct) in cases {
        let line =
            format!("run {asked} --on ./target --runs 1 --size 1M --set program.area_bytes=1M");
        let shown = user.run(&words(&line)).expect(0, &[]);
        if shown.has("O_DIRECT does not bypass") {
            println!("SKIPPED requests_go_past_the_page_cache_unless_it_is_asked_for: no O_DIRECT");
            return;
        }
        let second = shown.stdout.lines().nth(1).unwrap_or_default().to_owned();
        assert!(
            second.starts_with(&format!("host, {header},")),
            "{line}: {second}"
        );
        let stored = user.run(&words("show last --format json")).expect(0, &[]);
        for result in stored.json()["runs"][0]["results"].as_array().unwrap() {
            assert_eq!(result["parameters"]["direct"], direct, "{line}");
        }
    }
}

/// The client of a log waits for its commit.
#[test]
fn a_log_is_judged_by_its_commits() {
    let user = User::new();
    for program in ["log_append", "database"] {
        let line = format!(
            "run {program} --on ./target --runs 1 --size 1M --format json --set program.area_bytes=1M"
        );
        let (_, results) = results(&user, &line);
        let result = &results[0];
        let commit = &result["latency"]["commit"];
        assert_eq!(result["response"], commit["response"], "{result}");
        assert_eq!(result["iops"], commit["iops"], "{result}");
    }
    user.run(&words("show last")).expect(0, &[]).shows(&[
        "for programs that commit, commits count",
        "database, 8 clients",
    ]);
}

/// JSON keeps the name of the program and its parameters; the title is for people.
#[test]
fn rows_are_named_for_people() {
    let user = User::new();
    let line = "run today26 --on ./target --runs 1 --size 1M --format json";
    let (_, results) = results(&user, line);
    let named: Vec<(&str, &str)> = results
        .iter()
        .map(|one| {
            (
                one["program"].as_str().unwrap(),
                one["title"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("sequential", "1 MiB sequential read, QD8"),
        ("sequential", "1 MiB sequential write, QD8"),
        ("random", "4 KiB random read, QD1"),
        ("random", "4 KiB random read, QD32"),
        ("random", "4 KiB random write, QD1"),
        ("random", "4 KiB random write, QD32"),
        ("random", "4 KiB random, 30 % writes, QD16"),
        ("log_append", "4 KiB log append"),
    ];
    assert_eq!(named, expected);
}

/// Slots that wait for one another would hold the arrivals up.
#[test]
fn an_open_loop_has_the_slots_of_a_replay() {
    let user = User::new();
    let cases: [(&str, &str, u64); 4] = [
        ("random", "program.area_bytes=1M", 1024),
        ("random --set program.depth=8", "program.area_bytes=1M", 8),
        ("log_append", "program.area_bytes=1M", 1),
        ("database", "program.area_bytes=1M", 16),
    ];
    for (program, setting, slots) in cases {
        let line = format!(
            "run {program} --on ./target --runs 1 --format json --set {setting} --set program.rate_iops=50 --set program.duration_ms=200"
        );
        let (_, results) = results(&user, &line);
        let result = &results[0];
        assert_eq!(result["depth"], slots, "{line}");
        assert_eq!(result["response"]["count"], 10, "{result}");
        assert!(result["issue_lag_us"]["max"].is_f64(), "{result}");
    }
    let (_, closed) = results(
        &user,
        "run random --on ./target --runs 1 --size 1M --format json --set program.area_bytes=1M",
    );
    assert_eq!(closed[0]["depth"], 1);
}

/// Requests that had arrived are served after the end, for as long again.
#[test]
fn a_dry_run_says_how_long_an_open_loop_may_last() {
    let user = User::new();
    let line = "run random --on ./target --runs 1 --dry-run --set program.area_bytes=1M --set program.rate_iops=2000";
    let of_time = user
        .run(&words(&format!("{line} --set program.duration_ms=10000")))
        .expect(0, &[]);
    of_time.shows(&[
        "10 s, up to 20 s if the storage falls behind",
        "s more if the storage falls behind the rate",
    ]);
    // 2,000 requests of 4 KiB each second.
    let of_size = user
        .run(&words(&format!("{line} --size 80000K")))
        .expect(0, &[]);
    let time = of_size.stdout.lines().find(|line| line.contains("time:"));
    assert!(
        time.is_some_and(|line| !line.contains("about 1 s")),
        "{}",
        of_size.stdout
    );
}

#[test]
fn a_target_that_is_not_there() {
    let user = User::new();
    let line = "run today26 --on null --size 2M --runs 1 --format json";
    let (run, results) = results(&user, line);
    let notes = run["notes"].to_string();
    assert!(notes.contains("left out: 4 KiB log append"), "{notes}");
    assert_eq!(results.len(), 7);
    for result in &results {
        assert_eq!(result["engine"], serde_json::json!(["null"]), "{result}");
        assert!(result["iops"].as_f64() > Some(0.0), "{result}");
    }
    user.run(&words("show last"))
        .expect(0, &[])
        .shows(&["each request completes on submission"]);
}

/// The reason why another way was taken is beside the result, wherever it is shown.
#[test]
fn why_threads_took_the_place_of_io_uring() {
    let user = User::new();
    let line = "run random --on ./target --runs 1 --size 1M --format json --set program.area_bytes=1M --set program.depth=4";
    let of_thread = std::thread::scope(|scope| {
        let forbidden = || {
            forbid_io_uring();
            results(&user, line).1
        };
        scope.spawn(forbidden).join().expect("it does not panic")
    });
    let result = &of_thread[0];
    assert_eq!(result["engine"], serde_json::json!(["threads"]));
    let notes = result["notes"].to_string();
    let said = "requests go through threads";
    assert!(
        notes.contains(said) && notes.contains("io_uring"),
        "{notes}"
    );
    user.run(&words("show last")).expect(0, &[]).shows(&[said]);
    let insisting = format!("{line} --set program.engine=io_uring");
    std::thread::scope(|scope| {
        let forbidden = || {
            forbid_io_uring();
            user.run(&words(&insisting))
                .expect(1, &["io_uring", "EPERM"])
        };
        scope.spawn(forbidden).join().expect("it does not panic")
    });
    user.assert_nothing_left(insisting);
}

/// A store has a bounded part of it, and a table some lines.
#[test]
fn a_long_course_over_time() {
    let user = User::new();
    let line = "run random --on null --runs 1 --format json --set program.duration_ms=12000 --set program.interval_ms=10 --set program.depth=4 --set program.rate_iops=2000";
    let (_, results) = results(&user, line);
    let interval_s = results[0]["interval_s"].as_f64().unwrap();
    let points = results[0]["series"].as_array().unwrap().len();
    assert!(
        interval_s > 0.01 && points <= 1024,
        "{points} of {interval_s} s"
    );
    let store = Store::open(&user.store()).unwrap();
    let run = store.load_run(&user.stored()[0].id).unwrap();
    let load = run.results[0].repetitions[0]
        .load_measures()
        .next()
        .unwrap();
    let text = serde_json::to_string(&load.time_series).unwrap();
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    let counted: u64 = load.time_series.iter().map(|one| one.read_count).sum();
    assert_eq!(counted, load.read.request_count() - load.unfinished_count);
    let table = user.run(&words("show last --series")).expect(0, &[]);
    assert!(table.stdout.lines().count() < 130, "{}", table.stdout);
    let table = table.shows(&["--format csv", "of repetition 1"]);
    assert!(table.stdout.contains("IOPS"));
    let csv = user
        .run(&words("show last --series --format csv"))
        .expect(0, &[]);
    assert_eq!(csv.stdout.lines().count(), 1 + points);
}
