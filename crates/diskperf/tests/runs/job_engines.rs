//! Engines, logs and appended files of fio's job files, on a directory and on models.

use crate::support::{User, entries, words};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

/// The rows of the one run that was printed: program, reads and writes.
fn rows(run: &Value) -> Vec<(String, [u64; 2])> {
    let results = run["runs"][0]["results"].as_array().expect("results");
    let row = |result: &Value| {
        let count = |name: &str| {
            let path = format!("/latency/{name}/response/count");
            result.pointer(&path).and_then(Value::as_u64).unwrap_or(0)
        };
        let name = result["program"].as_str().expect("a name");
        (name.to_owned(), [count("read"), count("write")])
    };
    results.iter().map(row).collect()
}

/// The reads and writes of each section.
fn counts(user: &User, job: &str, on: &str) -> Vec<[u64; 2]> {
    fs::write(user.file("job.fio"), job).unwrap();
    let line = format!("run job.fio --on {on} --format json");
    let run = user.run(&words(&line)).expect(0, &[]).json();
    rows(&run).into_iter().map(|(_, counts)| counts).collect()
}

const NAMES: &str = "[global]\nfilesize=4k\nnrfiles=6\n\
                     [create]\nioengine=filecreate\nrw=write\n\
                     [stat]\nstonewall\nioengine=filestat\nrw=read\n\
                     [delete]\nstonewall\nioengine=filedelete\nrw=write\n";

#[test]
fn calls_on_names_are_ios_on_a_directory_and_on_a_model() {
    let user = User::new();
    for on in ["./target", "vax780-sc780-eagle"] {
        let found = counts(&user, NAMES, on);
        assert_eq!(found, [[0, 6], [6, 0], [0, 6]], "{on}");
    }
    assert_eq!(entries(&user.target()), [""; 0]);
    // The files of the first section are those of the others.
    let shared = NAMES.replace("nrfiles=6", "nrfiles=6\nfilename_format=x.$filenum");
    assert_eq!(counts(&user, &shared, "./target"), [[0, 6], [6, 0], [0, 6]]);
    let cut = "[x]\nioengine=ftruncate\nrw=write\nsize=64k\n";
    assert_eq!(counts(&user, cut, "vax780-sc780-eagle"), [[0, 16]]);
}

#[test]
fn what_is_appended_is_behind_what_the_sections_above_wrote() {
    let user = User::new();
    let job = "[global]\nfilename=x\nrw=write\nsize=64k\n[a]\n\
               [b]\nstonewall\nfile_append=1\nwrite_iolog=b.log\n\
               [c]\nstonewall\nfile_append=1\nbs=32k\nwrite_iolog=c.log\n";
    assert_eq!(counts(&user, job, "./target"), [[0, 16], [0, 16], [0, 2]]);
    for (log, first) in [
        ("b.log", "write 65536 4096"),
        ("c.log", "write 131072 32768"),
    ] {
        let text = fs::read_to_string(user.file(log)).unwrap();
        let found = text.lines().find(|line| line.contains(" write "));
        let found = found.expect("a write");
        assert!(found.ends_with(&format!("x {first}")), "{found}");
    }
}

#[test]
fn a_log_replaces_a_log_and_no_other_file_and_is_repeated() {
    let user = User::new();
    let write = "[a]\nrw=randwrite\nsize=64k\nfsync=8\nwrite_iolog=a.log\n";
    fs::write(user.file("a.log"), "mine").unwrap();
    fs::write(user.file("job.fio"), write).unwrap();
    let refused = user.run(&words("run job.fio --on ./target"));
    refused.expect(1, &["a.log is there and is no such log"]);
    assert_eq!(fs::read(user.file("a.log")).unwrap(), b"mine");
    fs::remove_file(user.file("a.log")).unwrap();
    for _ in 0..2 {
        assert_eq!(counts(&user, write, "./target"), [[0, 16]]);
    }
    let read = "[again]\nread_iolog=a.log\nreplay_no_stall=1\n";
    for on in ["./target", "null", "vax780-sc780-eagle"] {
        assert_eq!(counts(&user, read, on), [[0, 16]], "{on}");
    }
    for (log, says) in [
        ("gone", "gone cannot be repeated"),
        ("job.fio", "job.fio cannot be"),
    ] {
        fs::write(user.file("job.fio"), format!("[x]\nread_iolog={log}\n")).unwrap();
        let refused = user.run(&words("run job.fio --on ./target"));
        refused.expect(2, &["job.fio:2:12", says]);
    }
}

/// A log is of one section, and of one that repeats none.
#[test]
fn a_log_that_is_repeated_or_written_by_two_is_refused_or_left() {
    let user = User::new();
    let log = "fio version 3 iolog\n0 f add\n0 f open\n0 f read 0 4096\n9 f close\n";
    fs::write(user.file("own.log"), log).unwrap();
    symlink("own.log", user.file("link.log")).unwrap();
    let both = "[a]\nread_iolog=own.log\nwrite_iolog=";
    for (on, written) in [
        ("./target", "own.log"),
        ("vax780-sc780-eagle", "link.log"),
        ("null", "other.log"),
    ] {
        let job = format!("{both}{written}\n");
        assert_eq!(counts(&user, &job, on), [[1, 0]], "{on}");
        assert_eq!(fs::read_to_string(user.file("own.log")).unwrap(), log);
    }
    assert!(!user.file("other.log").exists());
    let job = "rw=read\nsize=64k\n";
    for (text, says) in [
        (
            format!("[global]\nwrite_iolog=x\n{job}[a]\n[b]\nstonewall\n"),
            "[a] writes it too",
        ),
        (
            format!("[global]\n{job}[a]\nnumjobs=2\nwrite_iolog=x\n[b]\nwrite_iolog=./x.1\n"),
            "[a] writes it too",
        ),
        (
            format!("[a]\nwrite_iolog=link.log\n{job}[b]\nstonewall\nread_iolog=own.log\n"),
            "[b] repeats it",
        ),
    ] {
        fs::write(user.file("job.fio"), &text).unwrap();
        for on in ["./target", "vax780-sc780-eagle"] {
            user.run(&words(&format!("run job.fio --on {on}")))
                .expect(2, &["would be lost", says, "name a log for each section"]);
        }
        assert_eq!(fs::read_to_string(user.file("own.log")).unwrap(), log);
    }
}

/// No time of a log comes to more than a clock holds.
#[test]
fn a_log_with_times_that_no_run_reaches_is_refused() {
    let user = User::new();
    for (at_us, options, is_run) in [
        ("18446744073709551", "", false),
        ("18446744073709551615", "", false),
        ("2000000000000000", "", false),
        ("100000000000000", "replay_time_scale=1\n", false),
        ("18446744073709551", "replay_no_stall=1\n", true),
        ("1000", "replay_time_scale=1\n", true),
    ] {
        let log = format!("fio version 3 iolog\n0 f add\n0 f open\n{at_us} f read 0 4096\n");
        fs::write(user.file("own.log"), log).unwrap();
        let job = format!("[a]\nread_iolog=own.log\n{options}");
        fs::write(user.file("job.fio"), job).unwrap();
        for on in ["null", "vax780-sc780-eagle"] {
            let run = user.run(&words(&format!("run job.fio --on {on}")));
            match is_run {
                true => run.expect(0, &["1 I/Os of the log"]),
                false => run.expect(2, &["own.log cannot be repeated"]),
            };
        }
    }
}
