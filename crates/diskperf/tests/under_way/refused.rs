//! Requests that the storage refuses from some moment on.

use crate::filesystem::Operation;
use crate::served::Served;
use crate::support::machine::{LoopDevice, Needs, Undo, can_run, retry, run};
use crate::support::{MOUNTS, User, entries, words};
use crate::{ENGINES, assert_failed, endless, measuring, newest};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What fails, with what, and what is said of it.
const REFUSALS: [(Operation, i32, &str, &str); 7] = [
    (Operation::Write, libc::ENOSPC, "ENOSPC", "free some space"),
    (Operation::Write, libc::EDQUOT, "EDQUOT", "your quota"),
    (Operation::Write, libc::EIO, "EIO", "dmesg"),
    (Operation::Read, libc::EIO, "EIO", "dmesg"),
    // What the page cache or the drive had taken is lost.
    (Operation::Sync, libc::EIO, "EIO", "dmesg"),
    (Operation::Write, libc::EROFS, "EROFS", "dmesg"),
    (Operation::Read, libc::ENODEV, "ENODEV", "there no more"),
];

#[test]
fn the_cause_of_a_refusal_is_named() {
    if !can_run("the_cause_of_a_refusal_is_named", &[Needs::Fuse]) {
        return;
    }
    for (number, (operation, errno, symbol, remedy)) in REFUSALS.into_iter().enumerate() {
        let user = User::new();
        let served = Served::on_target(&user);
        let engine = ENGINES[number % 2];
        let more = format!(
            "--set program.write_share=0.5 --set program.sync_every=64 --set program.engine={engine}"
        );
        let process = measuring(&user, &endless("./target", &more));
        served.fail(operation, errno);
        let call = match operation {
            Operation::Read => "read ./target",
            Operation::Write => "write ./target",
            Operation::Sync => "fdatasync ./target",
        };
        let outcome = process
            .finish()
            .expect(1, &["random", call, symbol, remedy]);
        assert_failed(&user, symbol, &outcome);
        user.assert_nothing_left(&outcome);
        assert_eq!(entries(&served.behind), [""; 0], "{outcome:?}");
    }
}

/// Only the sync at the end of the timed part fails, after all requests are done.
#[test]
fn a_loss_that_only_the_last_sync_tells_fails_the_run() {
    let test = "a_loss_that_only_the_last_sync_tells_fails_the_run";
    if !can_run(test, &[Needs::Fuse]) {
        return;
    }
    let user = User::new();
    let served = Served::on_target(&user);
    let line = endless("./target", "--set program.write_share=1");
    let process = measuring(&user, &line);
    served.fail(Operation::Sync, libc::EIO);
    let outcome = process.finish().expect(1, &["fsync ./target", "EIO"]);
    assert_failed(&user, "EIO", &outcome);
    user.assert_nothing_left(&outcome);
}

fn mount(device: &LoopDevice, directory: &Path) -> Undo {
    let directory = directory.to_str().expect("scratch paths are text");
    retry(|| {
        let words = ["-o", "errors=remount-ro", &device.text(), directory];
        match Command::new("mount").args(words).output() {
            Ok(output) if output.status.success() => Ok(()),
            other => Err(format!("mount: {other:?}")),
        }
    });
    Undo::by(&["umount", directory])
}

/// An error of the file system's own makes it read-only, and what the run made cannot be
/// removed until it is mended.
#[test]
fn a_file_system_that_becomes_read_only() {
    if !can_run("a_file_system_that_becomes_read_only", MOUNTS) {
        return;
    }
    let user = User::new();
    let device = LoopDevice::blank(user.scratch(), 64);
    run("mkfs.ext4", &["-q", "-F", &device.text()]);
    let mounted = mount(&device, &user.target());
    let trigger = format!("/sys/fs/ext4/{}/trigger_fs_error", device.name());
    if !Path::new(&trigger).exists() {
        eprintln!("SKIPPED a_file_system_that_becomes_read_only: there is no {trigger}");
        return;
    }
    let line = endless("./target", "--direct --set program.write_share=1");
    let process = measuring(&user, &line);
    std::fs::write(&trigger, "a test").unwrap();
    let left = ["dmesg", "is left", "diskperf clean"];
    let outcome = process.finish().expect(1, &left);
    // A request that the journal had when it stopped fails of itself.
    let why = ["EROFS", "EIO"];
    let why = why.into_iter().find(|why| outcome.stderr.contains(why));
    assert_failed(&user, why.expect("an error is named"), &outcome);
    user.run(&["clean"]).expect(1, &["ead-only"]);
    drop(mounted);
    // It ends with 1 where it mended something.
    let mended = Command::new("fsck.ext4")
        .args(["-fy", &device.text()])
        .output();
    assert!(mended.unwrap().status.code() <= Some(1));
    let _mounted = mount(&device, &user.target());
    let cleaned = user.run(&["clean"]).expect(0, &[]);
    assert!(cleaned.stdout.contains("removed"), "{cleaned:?}");
    assert_eq!(entries(&user.target()), ["lost+found"]);
}

/// A stall of the storage shows in each request that arrived meanwhile: none is left out
/// because the generator waited too. What else the machine does makes more of them long,
/// never fewer: `bench/open-loop` holds the shares from above too.
#[test]
fn a_stall_is_in_every_response_that_it_held_up() {
    const RATE: u64 = 250;
    const DURATION_S: u64 = 4;
    if !can_run(
        "a_stall_is_in_every_response_that_it_held_up",
        &[Needs::Fuse],
    ) {
        return;
    }
    for engine in ENGINES {
        let user = User::new();
        let served = Served::on_target(&user);
        let arrivals = RATE * DURATION_S;
        served.stall_after(arrivals / 2, Duration::from_secs(1));
        let line = format!(
            "run random --on ./target --runs 1 --quiet --set program.area_bytes=4M --set program.depth=16 --set program.rate_iops={RATE} --set program.duration_ms={} --set program.engine={engine}",
            1000 * DURATION_S
        );
        user.run(&words(&line)).expect(0, &[]);
        let run = newest(&user);
        let load = run.results[0].repetitions[0]
            .load_measures()
            .next()
            .unwrap();
        assert_eq!(load.read.request_count(), arrivals, "{engine}");
        for tenths in 1..10 {
            let over = |(latency_ns, _): &&(u64, u64)| *latency_ns > tenths * 100_000_000;
            let held_up = load.read.response_times.buckets().iter().filter(over);
            let held_up: u64 = held_up.map(|(_, count)| count).sum();
            // A bucket is as wide as a thousandth, and the ends are one request each.
            let least = RATE * (10 - tenths) / 10 - 2;
            assert!(
                held_up >= least,
                "{engine}: {held_up} of {least} over 0.{tenths} s"
            );
        }
    }
}
