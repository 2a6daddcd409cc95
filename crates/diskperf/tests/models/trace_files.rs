//! The files of traces, on the command line: which are taken, how large what is made of them
//! becomes, and how soon a signal ends it.

use crate::support::machine::can_run;
use crate::support::{MOUNTS, User, mount_tmpfs, words};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn fixture(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../blocktrace/tests/data");
    tests.join(name)
}

/// Requests of one device each.
fn of_devices(devices: u64) -> String {
    let mut text = "time_us,op,offset,length,device\n".to_owned();
    for number in 0..devices {
        writeln!(text, "{number},R,{},4096,disk{number}", number * 4096).expect("memory");
    }
    text
}

/// A conversion is linear in the devices that a trace names, and no larger than they are.
#[test]
fn a_conversion_of_many_devices_is_as_large_as_its_requests() {
    const DEVICES: u64 = 100_000;
    let user = User::new();
    std::fs::write(user.file("many.csv"), of_devices(DEVICES)).expect("a trace");
    for form in ["diskperf", "csv", "fio-iolog-3", "msr", "alibaba"] {
        let line = format!("trace many.csv --convert {form} -o out");
        let says = format!("{DEVICES} requests written as {form}");
        user.run(&words(&line)).expect(0, &[&says]);
        let bytes = user.file("out").metadata().expect("an output").len();
        let names_bytes = 16 * DEVICES;
        assert!(
            bytes <= 64 * DEVICES + names_bytes + (1 << 20),
            "{form}: {bytes}"
        );
    }
    let devices = format!("on {DEVICES} devices");
    user.run(&words("trace many.csv"))
        .expect(0, &[])
        .shows(&[&devices]);
    // Only devices that have requests are named.
    let line = "trace many.csv --device disk99999 --convert diskperf -o one.dptrace";
    user.run(&words(line)).expect(0, &["1 requests written"]);
    let bytes = user
        .file("one.dptrace")
        .metadata()
        .expect("an output")
        .len();
    assert!(bytes < 300, "{bytes}");
    user.run(&words("trace one.dptrace"))
        .expect(0, &[])
        .shows(&["1 request of diskperf", "on disk99999"]);
}

#[test]
fn a_conversion_that_has_no_room_is_refused_before_it_writes_and_leaves_nothing() {
    if !can_run("a_conversion_that_has_no_room", MOUNTS) {
        return;
    }
    let user = User::new();
    let mut plain = String::new();
    for number in 0..40_000 {
        writeln!(plain, "0,{},512,W,{number}", number % 100).expect("memory");
    }
    std::fs::write(user.file("many.spc"), &plain).expect("a trace");
    let mut gzip = std::process::Command::new("gzip");
    let packed = gzip.arg("-k").arg(user.file("many.spc")).status();
    assert!(packed.expect("gzip").success());
    let mounted = mount_tmpfs(&user.target(), "size=1m");
    for name in ["many.spc", "many.spc.gz"] {
        let line = format!("trace {name} --convert diskperf -o ./target/out");
        user.run(&words(&line))
            .expect(1, &["the trace comes to 1.5 MiB as diskperf", "free"]);
        user.assert_nothing_left(name);
    }
    // What cannot be read twice fails when it does.
    let outcome = piped(
        &user,
        &words("trace - --convert diskperf -o ./target/out"),
        &plain,
    );
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left"), "{said}");
    user.assert_nothing_left("standard input");
    drop(mounted);
}

fn piped(user: &User, arguments: &[&str], text: &str) -> std::process::Output {
    let mut child = waiting(user, arguments);
    let mut input = child.stdin.take().expect("a pipe");
    // Whoever fails reads no more.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    child.wait_with_output().expect("it ends")
}

fn waiting(user: &User, arguments: &[&str]) -> Child {
    let mut command = user.command(arguments);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("diskperf starts")
}

/// Whether a process has a handler for SIGINT.
fn hears_signals(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << 1) != 0)
}

#[test]
fn the_first_signal_ends_a_trace_whose_input_waits() {
    let user = User::new();
    for line in ["trace -", "trace - --convert csv -o out.csv"] {
        let mut child = waiting(&user, &words(line));
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"0,1,512,W,0.5\n").expect("it reads");
        let begun = Instant::now();
        while !hears_signals(&child) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{line}");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_child(&child), Signal::INT).expect("a child");
        // The pipe stays open: only the signal can end it.
        let ended = child.wait().expect("it ends");
        drop(input);
        assert_eq!(ended.code(), Some(130), "{line}");
        assert!(!user.file("out.csv").exists());
    }
}

#[test]
fn files_of_blktrace_are_found_by_their_folder_and_by_their_name() {
    let user = User::new();
    std::fs::create_dir(user.file("rec")).expect("a folder");
    for cpu in 0..2 {
        let bytes = std::fs::read(fixture(&format!("issue-complete.blktrace.{cpu}")));
        let path = user.file(&format!("rec/loop0.blktrace.{cpu}"));
        std::fs::write(path, bytes.expect("a fixture")).expect("a file");
    }
    std::fs::write(user.file("rec/loop0.blktrace.2"), "").expect("a file");
    std::fs::write(user.file("rec/notes.txt"), "mine").expect("a file");
    for line in [
        "trace rec",
        "trace rec/loop0",
        "trace rec/loop0.blktrace.0 rec/loop0.blktrace.1",
    ] {
        let found = user.run(&words(&format!("{line} --format json")));
        let found = found.expect(0, &[]).json();
        assert_eq!(found["summary"]["requests"], 55, "{line}");
        assert_eq!(found["notices"]["lines"]["read"], 116, "{line}");
    }
    user.run(&words("trace rec")).expect(0, &[]).shows(&[
        "55 requests of blktrace",
        "116 lines read: 55 begin a request, 55 say more of one",
    ]);
    user.run(&words("replay rec --on bare-fixed --depth 4"))
        .expect(0, &[]);
    user.run(&words("trace rec --convert csv -o out.csv"))
        .expect(0, &["55 requests written as csv"]);
    std::fs::write(user.file("rec/sda.blktrace.0"), "").expect("a file");
    user.run(&words("trace rec"))
        .expect(2, &["several traces of blktrace: loop0, sda", "rec/loop0"]);
    user.run(&words("trace ."))
        .expect(2, &["is a directory, and holds no files of blktrace"]);
}

/// By what they are: nothing is opened that may never end.
#[test]
fn inputs_that_may_never_end_are_refused_by_what_they_are() {
    let user = User::new();
    let made = std::process::Command::new("mkfifo")
        .arg(user.file("pipe.fio"))
        .status();
    assert!(made.expect("mkfifo").success());
    std::fs::create_dir(user.file("folder.fio")).expect("a folder");
    std::fs::write(user.file("pipe.job"), "[x]\ninclude pipe.fio\n").expect("a file");
    std::fs::write(user.file("kernel.job"), "[x]\ninclude /proc/kmsg\n").expect("a file");
    for (line, says) in [
        ("trace pipe.fio", "is a named pipe"),
        ("trace /proc/kmsg", "is a file of the kernel"),
        ("trace /dev/zero", "is a character device"),
        ("replay pipe.fio --on bare-fixed", "is a named pipe"),
        ("run pipe.fio --dry-run", "is a named pipe"),
        ("run folder.fio --dry-run", "is a directory"),
        ("run pipe.job --dry-run", "is a named pipe"),
        ("run kernel.job --dry-run", "is a file of the kernel"),
        ("import pipe.fio -o out.toml", "is a named pipe"),
    ] {
        user.run(&words(line)).expect(2, &[says]);
    }
}

/// What a trace holds that has no request, with exit code 1.
#[test]
fn a_trace_without_requests_says_what_it_holds() {
    let user = User::new();
    let all = std::fs::read_to_string(fixture("issue-complete.blkparse")).expect("text");
    let completions: String = all
        .lines()
        .filter(|line| line.contains("  C "))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(user.file("completions"), completions).expect("a file");
    let other = " sh-1 [000] ..... 1.000000: sched_switch: prev_comm=sh ==> next_comm=sh\n";
    std::fs::write(user.file("sched"), other.repeat(3)).expect("a file");
    std::fs::write(user.file("plugs"), "  8,0 0 1 0.000000000 4 P N [sh]\n").expect("a file");
    std::fs::write(
        user.file("idle"),
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n",
    )
    .expect("a file");
    std::fs::write(user.file("web"), "0,1,512,W,0.5\n").expect("a file");
    for (line, says) in [
        (
            "trace completions",
            &[
                "55 completions without an issue",
                "blktrace -a issue -a complete",
            ][..],
        ),
        (
            "trace sched",
            &["3 lines of other events", "block_rq_issue"],
        ),
        ("trace plugs", &["1 line of other steps of the block layer"]),
        ("trace idle", &["1 headings"]),
        (
            "trace completions --convert csv -o out",
            &["55 completions"],
        ),
        (
            "trace web --form blkparse",
            &["1 line of text that is neither", "--form NAME"],
        ),
    ] {
        let outcome = user.run(&words(line)).expect(1, says);
        assert!(
            outcome.stderr.contains("the trace has no request"),
            "{outcome:?}"
        );
        assert!(outcome.stdout.is_empty(), "{outcome:?}");
    }
    assert!(!user.file("out").exists());
    user.run(&words("replay completions --on bare-fixed"))
        .expect(2, &["55 completions without an issue"]);
}

#[test]
fn rates_and_quantiles_are_told_only_where_the_trace_can_tell_them() {
    let user = User::new();
    // At one moment.
    std::fs::write(user.file("moment"), "0,1,512,W,0.5\n0,9,512,W,0.5\n").expect("a file");
    let outcome = user.run(&words("trace moment")).expect(0, &[]);
    let outcome = outcome.shows(&["in 0 ns on 0: - requests/s, - MB/s"]);
    assert!(!outcome.stdout.contains("p99 0 ns"), "{outcome:?}");
    // Whole seconds, ten requests each.
    let mut text = String::new();
    for number in 0..100 {
        writeln!(
            text,
            "{},{},8,1,12",
            1_538_323_200 + number / 10,
            number * 8
        )
        .expect("memory");
    }
    std::fs::write(user.file("cloud"), text).expect("a file");
    user.run(&words("trace cloud")).expect(0, &[]).shows(&[
        "in 9.000 s on 12: 10 requests/s",
        "times are in steps of 1.000 s: 90.0 % of the requests have that of the one before",
    ]);
    let found = user.run(&words("trace cloud --format json"));
    let found = found.expect(0, &[]).json();
    assert_eq!(found["summary"]["resolution"]["ns"], 1_000_000_000);
    let interval = found["summary"]["series"]["interval_ns"].as_u64();
    assert!(interval >= Some(1_000_000_000), "{interval:?}");
    // Five requests have no 99.9th percentile.
    let five: String = (0..5)
        .map(|number| format!("12816640000001000{number},web,0,Read,{number},512,1500\n"))
        .collect();
    std::fs::write(user.file("five"), five).expect("a file");
    let found = user.run(&words("trace five --format json"));
    let response = &found.expect(0, &[]).json()["summary"]["operations"][0]["response_ns"];
    assert!(
        response["p999"].is_null() && response["p99"].is_null(),
        "{response}"
    );
    assert!(response["p50"].is_number(), "{response}");
}

/// What is measured of a replay is the trace's, and so are the words.
#[test]
fn a_replay_that_cannot_be_says_what_of_the_trace_is_why() {
    let user = User::new();
    let write = |name: &str, lines: &str| {
        let text = format!("time_us,op,offset,length\n{lines}");
        std::fs::write(user.file(name), text).expect("a trace");
    };
    write("nothing.csv", "1,R,0,0\n2,W,4096,0\n");
    write("flushes.csv", "1,F,0,0\n2,F,0,0\n");
    write("parts.csv", "1,R,32,64\n2,W,4096,64\n");
    for (line, says, not) in [
        ("nothing.csv --on bare-fixed", "transfers data", "--size"),
        ("nothing.csv --on ./target", "transfers data", "--size"),
        ("flushes.csv --on bare-fixed", "transfers data", "--size"),
        (
            "parts.csv --on bare-sata-7200",
            "its requests begin or end between sectors of 4096 bytes (all of them are at multiples of 32 alone)",
            "calls of",
        ),
    ] {
        let outcome = user
            .run(&words(&format!("replay {line}")))
            .expect(2, &[says]);
        assert!(!outcome.stderr.contains(not), "{outcome:?}");
    }
}
