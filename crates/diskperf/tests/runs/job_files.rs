//! fio job files: run on real storage and on models, stored, compared, made again, and
//! printed as fio prints its results.

use crate::support::machine::{Needs, can_run};
use crate::support::{User, entries, words};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Two at the same time, and one after them.
const JOBS: &str = "; by all\n[global]\nbs=4k\nsize=1m\nioengine=io_uring\niodepth=4\n\
                    [reads]\nrw=randread\n[writes]\nrw=randwrite\n\
                    [log]\nstonewall\nrw=write\nfdatasync=8\nnice=3\n";

fn user() -> User {
    let user = User::new();
    fs::write(user.file("job.fio"), JOBS).unwrap();
    user
}

/// The rows of the one run that was printed: program, reads and writes.
fn rows(run: &Value) -> Vec<(&str, [u64; 2])> {
    let results = run["runs"][0]["results"].as_array().expect("results");
    let count = |result: &Value, name: &str| {
        let path = format!("/latency/{name}/response/count");
        result.pointer(&path).and_then(Value::as_u64).unwrap_or(0)
    };
    let row = |result| {
        let counts = ["read", "write"].map(|name| count(result, name));
        (result["program"].as_str().unwrap(), counts)
    };
    results.iter().map(row).collect()
}

#[test]
fn jobs_run_in_a_directory_and_leave_nothing() {
    let user = user();
    let done = user.run(&words(
        "run job.fio --on ./target --format json --label job",
    ));
    let done = done.expect(0, &["job.fio:15:1: nice is ignored"]);
    let run = done.json();
    assert_eq!(
        rows(&run),
        [("reads", [256, 0]), ("writes", [0, 256]), ("log", [0, 256]),]
    );
    assert_eq!(entries(&user.target()), [""; 0]);
    // The file is kept with it, and may be gone.
    fs::remove_file(user.file("job.fio")).unwrap();
    let again = user.run(&words("run --like job --label again --format json"));
    assert_eq!(rows(&again.expect(0, &[]).json()), rows(&run));
    let compared = user.run(&words("compare job again"));
    compared.expect(0, &[]).shows(&["reads", "writes", "log"]);
}

#[test]
fn on_a_model_the_same_file_gives_the_same_bytes() {
    let user = user();
    let run = |label: &str| {
        let line = format!("run job.fio --on vax780-sc780-eagle --format json --label {label}");
        user.run(&words(&line)).expect(0, &[]).json()
    };
    let (one, other) = (run("one"), run("other"));
    assert_eq!(one["runs"][0]["results"], other["runs"][0]["results"]);
    let counts: Vec<_> = rows(&one).into_iter().map(|(_, counts)| counts).collect();
    assert_eq!(counts, [[256, 0], [0, 256], [0, 256]]);
}

#[test]
fn several_targets_and_standard_input_take_a_job_file() {
    let user = user();
    let done = user.run(&words(
        "run job.fio --on ./target --on vax780-sc780-eagle --on null",
    ));
    done.expect(0, &[]).shows(&["reads", "writes", "log"]);
    assert_eq!(user.stored().len(), 3);
    let piped = Command::new("sh")
        .args(["-c", "cat job.fio | \"$0\" run - --on null --format json"])
        .arg(user.command(&[]).get_program())
        .current_dir(user.home())
        .env("XDG_DATA_HOME", user.file("data"))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&piped.stderr);
    assert!(piped.status.success(), "{words}");
    let run: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(rows(&run)[0], ("reads", [256, 0]));
}

#[test]
fn a_dry_run_says_what_a_file_becomes_and_does_nothing() {
    let user = user();
    let done = user.run(&words("run job.fio --on ./target --dry-run"));
    done.expect(0, &[]).shows(&[
        "step 1, once, at the same time:",
        "[reads]: randomread of 4 KiB, 256 I/Os, 1 MiB in all, depth 4; reads.0.0 of 1 MiB",
        "step 2, once:",
        "nice is ignored",
    ]);
    assert_eq!(user.stored().len(), 0);
    assert_eq!(entries(&user.target()), [""; 0]);
}

#[test]
fn what_is_below_the_jobs_is_searched_and_two_files_are_told_apart() {
    let user = User::new();
    let job = |bytes: u32| format!("[x]\nrw=randread\nbs={bytes}\nsize=256k\n");
    fs::write(user.file("a.fio"), job(512)).unwrap();
    fs::write(user.file("b.fio"), job(65536)).unwrap();
    let searches = [
        "tune vax780-sc780-eagle --suite b.fio --seeds 0 --over host.speed=1,4 --format json",
        "tune ./target --suite b.fio --runs 2 --over read_ahead=normal,random --format json",
    ];
    for line in searches {
        let found = user.run(&words(line)).expect(0, &[]).json();
        let points = found["points"].as_array().expect("points");
        let rates = points.iter().map(|point| point["value"].as_f64());
        let rates: Vec<f64> = rates.map(|rate| rate.expect("a rate")).collect();
        assert!(
            rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0),
            "{line}: {points:?}"
        );
    }
    // Another file is another point, and not one of those that are stored.
    let again = format!("{} --store ./s.sqlite", searches[0]);
    let tried = |line: &str| {
        let found = user.run(&words(line)).expect(0, &[]).json();
        found["method"]["from_store"].as_u64().expect("a count")
    };
    let other = again.replace("b.fio", "a.fio");
    assert_eq!([&again, &again, &other].map(|line| tried(line)), [0, 2, 0]);
    let compared = user.run(&[
        "ab",
        "--suite a.fio",
        "--suite b.fio",
        "--on",
        "./target",
        "--blocks",
        "4",
        "--format",
        "json",
    ]);
    let compared = compared.expect(0, &[]).json();
    assert_eq!(compared["comparison"]["pairs"][0]["quantity"], "iops");
}

/// What people add on fio's command line: defaults for what the file does not say.
#[test]
fn a_file_without_a_size_takes_one_from_the_command_line() {
    let user = User::new();
    let job = "[global]\nrw=randread\n[a]\n[b]\nstonewall\nsize=64k\nrw=write\n";
    fs::write(user.file("job.fio"), job).unwrap();
    for (line, expected) in [
        (
            "run job.fio --on ./target --size 1M",
            &[("a", [256, 0]), ("b", [0, 16])][..],
        ),
        (
            "run job.fio --on ./target --fio-arg=--size=32k --fio-arg=--bs=1k --fio-arg=--rw=trim",
            &[("a", [32, 0]), ("b", [0, 64])],
        ),
        (
            "run job.fio --on ./target --fio-arg --size=8k --fio-arg --section=a",
            &[("a", [2, 0])],
        ),
        (
            "run job.fio --fio-arg=--directory=target --fio-arg=--section=b --label kept",
            &[("b", [0, 16])],
        ),
        ("run --like kept", &[("b", [0, 16])]),
        (
            "run job.fio --on vax780-sc780-eagle --size 16K",
            &[("a", [4, 0]), ("b", [0, 16])],
        ),
    ] {
        let line = format!("{line} --format json");
        let run = user.run(&words(&line)).expect(0, &[]).json();
        assert_eq!(rows(&run), expected, "{line}");
    }
    // The size is of the run, and so of one that is like it.
    let first = user.run(&words("run job.fio --on ./target --size 8K --label first"));
    first.expect(0, &[]);
    let again = user.run(&words("run --like first --format json"));
    let expected = [("a", [2, 0]), ("b", [0, 16])];
    assert_eq!(rows(&again.expect(0, &[]).json()), expected);
}

/// What the job names is obeyed by the rules of all runs.
#[test]
fn a_file_of_the_users_is_read_and_never_written() {
    let user = User::new();
    let mine = vec![7; 1 << 20];
    fs::write(user.file("mine"), &mine).unwrap();
    let job = |rw: &str| format!("[x]\nfilename=mine\nrw={rw}\nbs=64k\n");
    fs::write(user.file("job.fio"), job("read")).unwrap();
    let run = user
        .run(&words("run job.fio --format json"))
        .expect(0, &[])
        .json();
    assert_eq!(rows(&run), [("x", [16, 0])]);
    // fio would make it longer, which nobody does with a file of the user's.
    fs::write(user.file("job.fio"), job("read") + "size=4m\noffset=512k\n").unwrap();
    let run = user.run(&words("run job.fio --format json"));
    let run = run.expect(0, &["the file stays 1048576 bytes long"]).json();
    assert_eq!(rows(&run), [("x", [8, 0])]);
    fs::write(user.file("job.fio"), job("write")).unwrap();
    let refused = user.run(&words("run job.fio"));
    refused.expect(2, &["mine is a file of yours: give a directory"]);
    assert_eq!(fs::read(user.file("mine")).unwrap(), mine);
}

/// The paths of all members, lists by their first.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                // Which values occurred is nobody's choice.
                if path.ends_with("/bins") {
                    break;
                }
                found.insert(format!("{path}/{key}"));
                paths(member, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(list) => {
            if let Some(first) = list.first() {
                paths(first, &format!("{path}/0"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn fio_prints_the_same_keys_of_the_same_job() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
        return;
    }
    let user = user();
    for format in ["json", "json+"] {
        let line = format!("run job.fio --on ./target --format fio-{format}");
        let ours = user.run(&words(&line)).expect(0, &[]).json();
        let theirs = Command::new("fio")
            .args([&format!("--output-format={format}"), "job.fio"])
            .current_dir(user.home())
            .output()
            .unwrap();
        let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
        let theirs = &theirs[theirs.find('{').expect("fio prints an object")..];
        let theirs: Value = serde_json::from_str(theirs).unwrap();
        let keys = |root: &Value| {
            let mut found = BTreeSet::new();
            paths(root, "", &mut found);
            // Which disks are below is said of real ones alone, and fio counts more there;
            // `job options` always has what fio-plot reads.
            found.retain(|path| !path.contains("disk_util") && !path.contains("job options"));
            found
        };
        let missing: Vec<_> = keys(&theirs).difference(&keys(&ours)).cloned().collect();
        assert!(missing.is_empty(), "{format}: {missing:?}");
        for (number, name) in ["reads", "writes", "log"].into_iter().enumerate() {
            let (ours, theirs) = (&ours["jobs"][number], &theirs["jobs"][number]);
            for path in [
                "/jobname",
                "/groupid",
                "/read/total_ios",
                "/read/io_bytes",
                "/write/total_ios",
                "/write/io_bytes",
                "/job options/rw",
            ] {
                assert_eq!(ours.pointer(path), theirs.pointer(path), "{name}{path}");
            }
        }
    }
    let shown = user.run(&words("show last --format fio-json"));
    let shown = shown.expect(0, &[]).json();
    assert_eq!(shown["jobs"][2]["write"]["total_ios"], 256);
}

/// Seconds after which a file of many sections counts as one whose cost is not in proportion to
/// them: it takes a tenth of that.
const PATIENCE_S: &str = "240";

/// Planned, run, printed, stored, listed and shown, beside each other and one after the other.
#[test]
fn a_file_of_a_thousand_sections_takes_time_in_proportion_to_them() {
    let user = User::new();
    let before = ["timeout", "-k", "1", PATIENCE_S];
    for options in ["", "stonewall\n"] {
        let sections = (0..1024).map(|number| format!("[s{number}]\n{options}"));
        let sections: String = sections.collect();
        let text = format!("[global]\nrw=read\nsize=64k\nfilename=x\n{sections}");
        fs::write(user.file("many.fio"), text).expect("a job file");
        let line = "run many.fio --on bare-nvme-tlc --label many";
        let done = user.run_by(&before, &words(line)).expect(0, &[]);
        let done = done.shows(&["s0 ", "s1023 ", "[s0], [s1], [s2] and 1021 more: psync"]);
        let lines = done.stderr.lines().map(|line| line.chars().count());
        assert!(lines.max() < Some(500), "{done:?}");
        for line in ["list runs", "show last", "show last --format markdown"] {
            let shown = user.run_by(&before, &words(line)).expect(0, &[]);
            shown.shows(&["many.fio"]);
        }
    }
}

/// Runs a program on a terminal of its own, and prints what that shows.
const ON_TERMINAL: &str = "import os, pty, sys\n\
    sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))\n";

/// Notes are said as a run begins and stand below its table: of the two a terminal has one.
#[test]
fn a_terminal_shows_each_note_once() {
    if !can_run("a_terminal_shows_each_note_once", &[Needs::Tool("python3")]) {
        return;
    }
    let user = user();
    fs::write(user.file("one.fio"), "[a]\nrw=write\nsize=64k\nnice=3\n").expect("a job file");
    for (line, notes) in [
        (
            "run one.fio --on ./target",
            &["one.fio:4:1: nice is ignored", "[a]: psync: preadv2"][..],
        ),
        (
            "run one.fio --on bare-nvme-tlc --on ./target",
            &["one.fio:4:1: nice is ignored", "[a]: direct=1"],
        ),
        (
            "run random --on ./target --size 1M --runs 1",
            &["--runs 1 keeps the first repetition"],
        ),
    ] {
        let shown = user.run_by(&["python3", "-c", ON_TERMINAL], &words(line));
        let shown = shown.expect(0, &[]);
        for note in notes {
            let count = shown.stdout.matches(note).count();
            assert_eq!(count, 1, "{line}: {note}: {}", shown.stdout);
        }
    }
}
