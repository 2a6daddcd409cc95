//! Logs of I/O that one of fio and this program writes and the other repeats.

use super::{SEED, is_fio_installed, job, on_host, run_on_host};
use diskperf_battery::{IoLog, Program};
use diskperf_blocktrace::{ReadOptions, TraceReader};
use diskperf_timeline::LoadMeasure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Sections whose logs are repeated.
const LOGGED: &[&str] = &[
    "rw=randrw size=64k bs=8k nrfiles=2",
    "rw=write size=64k fsync=4",
    "rw=randread size=256k ioengine=io_uring iodepth=4",
    "rw=read bsrange=4k-16k size=128k",
    "rw=write size=64k ioengine=mmap fsync=3",
];

/// Counts of reads, writes and syncs, with bytes.
type Counts = [(u64, u64); 3];

/// What fio does in a folder, by its JSON.
fn fio(folder: &Path, arguments: &[&str]) -> Counts {
    let output = Command::new("fio")
        .args(["--name=job", "--output-format=json"])
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let start = said.find('{').expect("JSON");
    let json: Value = serde_json::from_str(&said[start..]).expect("JSON");
    let job = &json["jobs"][0];
    let number = |of: &str, key: &str| job[of][key].as_u64().expect("a number");
    [
        (number("read", "total_ios"), number("read", "io_bytes")),
        (number("write", "total_ios"), number("write", "io_bytes")),
        (number("sync", "total_ios"), 0),
    ]
}

fn counts(load: &LoadMeasure) -> Counts {
    [
        (load.read.request_count(), load.read.bytes),
        (load.write.request_count(), load.write.bytes),
        (load.sync.request_count(), 0),
    ]
}

/// The program of a section that repeats a log.
fn repeating(log: &Path, options: &str) -> Program {
    let mut job = job(&format!("read_iolog={} {options}", log.display()));
    let file = File::open(log).expect("a log");
    let reader = TraceReader::open("log", Box::new(file), &ReadOptions::default());
    let script = IoLog::read_log(&job, reader.expect("a log")).expect("a script");
    // A section with both writes no log; here it shows what was repeated.
    job.iolog.replayed_path = None;
    let program = Program::from_fio_log(&job, script, &BTreeMap::new());
    program.unwrap_or_else(|errors| panic!("{errors}"))
}

/// The reads, writes and syncs of a log, without their times.
fn ios(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("a log");
    let lines = text.lines().filter(|line| {
        let what = line.split(' ').nth(2);
        matches!(what, Some("read" | "write" | "sync"))
    });
    let untimed = lines.map(|line| line.split_once(' ').expect("a time").1);
    // fio logs a sync with the place of the I/O before it.
    let placed = untimed.map(|line| match line.split_once(" sync") {
        Some((file, _)) => format!("{file} sync"),
        None => line.to_owned(),
    });
    placed.collect()
}

#[test]
fn fio_repeats_the_log_that_a_job_writes() {
    if !is_fio_installed() {
        return;
    }
    for options in LOGGED {
        let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let log = logs.path().join("log");
        let logging = format!("{options} write_iolog={}", log.display());
        let ours = on_host(folder.path(), &logging);
        let read = format!("--read_iolog={}", log.display());
        let theirs = fio(folder.path(), &[&read, "--replay_no_stall=1"]);
        assert_eq!(counts(&ours[0]), theirs, "seed {SEED}, {options}");
        // A log that is there is replaced, where fio would append a second one.
        on_host(folder.path(), &logging);
        assert_eq!(
            fio(folder.path(), &[&read]),
            theirs,
            "seed {SEED}, {options}"
        );
    }
}

/// Each action that a log of ours can have, but trims, which need a device.
#[test]
fn every_action_of_a_log_is_read() {
    if !is_fio_installed() {
        return;
    }
    for (options, action) in [
        ("rw=read size=16k", " read "),
        ("rw=write size=16k", " write "),
        ("rw=write size=16k fsync=2", " sync "),
        ("rw=write size=16k fdatasync=2", " datasync "),
        (
            "rw=write size=16k sync_file_range=write:2",
            " sync_file_range ",
        ),
    ] {
        let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let log = logs.path().join("log");
        let logging = format!("{options} write_iolog={}", log.display());
        let ours = counts(&on_host(folder.path(), &logging)[0]);
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains(action), "{options}: {text}");
        let again = run_on_host(folder.path(), &repeating(&log, ""), options);
        assert_eq!(counts(&again[0]), ours, "{options}");
        // fio 3.33 leaves out a sync_file_range, with a remark, and goes on.
        let read = format!("--read_iolog={}", log.display());
        let [reads, writes, _] = fio(folder.path(), &[&read]);
        assert_eq!([reads, writes], [ours[0], ours[1]], "{options}");
    }
}

#[test]
fn a_job_repeats_the_log_that_fio_wrote() {
    if !is_fio_installed() {
        return;
    }
    for options in LOGGED {
        let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [log, again] = ["log", "again"].map(|name| logs.path().join(name));
        let write = format!("--write_iolog={}", log.display());
        let options: Vec<String> = options.split(' ').map(|one| format!("--{one}")).collect();
        let arguments: Vec<&str> = options
            .iter()
            .map(String::as_str)
            .chain([&*write])
            .collect();
        let theirs = fio(folder.path(), &arguments);
        let program = repeating(&log, &format!("write_iolog={}", again.display()));
        let folder = tempfile::tempdir().unwrap();
        let ours = run_on_host(folder.path(), &program, "read_iolog");
        assert_eq!(counts(&ours[0]), theirs, "seed {SEED}, {options:?}");
        assert_eq!(ios(&again), ios(&log), "{options:?}");
    }
}

/// A log of two files with every action but trims.
const LOG: &str = "fio version 3 iolog\n0 x add\n0 y add\n1 x open\n1 y open\n\
                   5 x read 4096 4096\n9 y write 12288 8192\n30 x sync 0 0\n40 y read 0 512\n";

#[test]
fn options_of_a_log_change_what_is_repeated_as_in_fio() {
    if !is_fio_installed() {
        return;
    }
    for options in [
        "replay_no_stall=1",
        "replay_scale=3",
        "replay_scale=2 replay_align=4096",
        "replay_align=8192",
        "replay_redirect=z",
        "loops=3",
        "rw=randread bs=64k size=1m",
    ] {
        let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [log, again] = ["log", "again"].map(|name| logs.path().join(name));
        fs::write(&log, LOG).unwrap();
        for name in ["x", "y", "z"] {
            fs::write(folder.path().join(name), [7; 32 << 10]).unwrap();
        }
        let arguments = options.split(' ').map(|option| format!("--{option}"));
        let output = Command::new("fio")
            .args(["--name=job", "--debug=io"])
            .arg(format!("--read_iolog={}", log.display()))
            .args(arguments)
            .current_dir(folder.path())
            .env("LC_ALL", "C")
            .output()
            .expect("fio");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{options}: {said}");
        let queued = said.lines().filter(|line| line.contains(" queue: io_u "));
        let theirs: Vec<String> = queued.map(queued_io).collect();
        let ours = tempfile::tempdir().unwrap();
        let program = repeating(&log, &format!("{options} write_iolog={}", again.display()));
        run_on_host(ours.path(), &program, options);
        assert_eq!(ios(&again), theirs, "{options}");
    }
}

/// `... queue: io_u 0x7f12: off=0x1000,len=0x200,ddir=1,file=x` as a line of a log.
fn queued_io(line: &str) -> String {
    let value = |key: &str| {
        let (_, after) = line.split_once(key).unwrap_or_else(|| panic!("{line}"));
        after.split(',').next().unwrap_or("").trim().to_owned()
    };
    let number = |key: &str| {
        let digits = value(key);
        let digits = digits.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).expect("a number")
    };
    let action = match value("ddir=").as_str() {
        "0" => "read",
        "1" => "write",
        "3" => return format!("{} sync", value("file=")),
        other => panic!("{other}"),
    };
    let (offset, length) = (number("off="), number("len="));
    format!("{} {action} {offset} {length}", value("file="))
}
