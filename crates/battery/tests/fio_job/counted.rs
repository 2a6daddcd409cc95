//! Numbers of I/Os in a time, beside those of fio: of options that pace a job.

use super::{SEED, is_fio_installed, on_host, on_model};
use std::path::Path;
use std::process::Command;

/// Sections of rates that the modelled device and fio's null engine both keep up with.
const PACED: &[&str] = &[
    "thinktime=300ms thinktime_iotime=200ms",
    "thinktime=300ms thinktime_iotime=200ms rate_ignore_thinktime=1",
    "thinktime=100ms thinktime_blocks=50",
    "thinktime=100ms thinktime_blocks=50 rate_ignore_thinktime=1",
    "thinktime=100ms thinktime_blocks=50 rate_ignore_thinktime=1 rate_process=poisson",
    "thinktime=100ms thinktime_blocks=50 thinktime_iotime=10s rate_ignore_thinktime=1",
    "thinktime=100ms thinktime_blocks=200 thinktime_iotime=100ms rate_ignore_thinktime=1",
    "thinktime=400ms thinktime_iotime=100ms ramp_time=1 rate_ignore_thinktime=1",
];

#[test]
fn paced_jobs_do_as_many_ios_in_a_time_as_those_of_fio() {
    if !is_fio_installed() {
        return;
    }
    let common = "rw=randread size=4m time_based=1 runtime=2 rate_iops=250";
    let sections = PACED.iter().enumerate().map(|(number, pacing)| {
        let options = format!("{common} {pacing}").replace(' ', "\n");
        format!("[job{number}]\nioengine=null\n{options}\n")
    });
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("job.fio"), sections.collect::<String>()).expect("a file");
    let output = Command::new("fio")
        .args(["--output-format=json", "job.fio"])
        .current_dir(folder.path())
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let start = said.find('{').expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&said[start..]).expect("JSON");
    let wrong = PACED.iter().enumerate().filter_map(|(number, pacing)| {
        let theirs = json["jobs"][number]["read"]["total_ios"]
            .as_u64()
            .expect("a number");
        let ours = on_model(&format!("{common} {pacing}"));
        let ours = ours
            .load_measure
            .expect("it has a ring")
            .read
            .request_count();
        // A machine with more to do delays fio's pauses.
        let room = theirs / 8 + 5;
        (ours.abs_diff(theirs) > room).then(|| format!("{pacing}: {ours} here, {theirs} by fio"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "seed {SEED}:\n{}", wrong.join("\n"));
}

/// Options of a job that writes four times as much as there is room for, and whether
/// errors end it here.
const FULL: &[&str] = &[
    "ignore_error=,ENOSPC",
    "ignore_error=EIO,ENOSPC:EIO",
    "continue_on_error=write ignore_error=,5:28",
    "ignore_error=,ENOSPC ioengine=io_uring iodepth=4",
    "ignore_error=,28 ioengine=libaio iodepth=2",
];

/// A file system in memory with room for 64 KiB, until it is dropped.
struct SmallRoom(tempfile::TempDir);

impl SmallRoom {
    /// Mounts one, where that is allowed.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "none"])
            .arg(folder.path())
            .output();
        let is_mounted = mount.is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallRoom {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn errors_that_are_passed_over_are_counted_as_fio_counts_them() {
    if !is_fio_installed() {
        return;
    }
    for options in FULL {
        let (Some(theirs), Some(ours)) = (SmallRoom::mount(), SmallRoom::mount()) else {
            eprintln!("SKIPPED errors_that_are_passed_over: mounting is for root");
            return;
        };
        let all = format!("rw=write size=256k fallocate=none {options}");
        let arguments = all.split(' ').map(|option| format!("--{option}"));
        let output = Command::new("fio")
            .args(["--name=job", "--output-format=json"])
            .args(arguments)
            .current_dir(theirs.path())
            .output()
            .expect("fio");
        let said = String::from_utf8_lossy(&output.stdout);
        let json = &said[said
            .find("{\n")
            .unwrap_or_else(|| panic!("{options}: {said}"))..];
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let number = |key: &str| json["jobs"][0][key].as_u64().expect("a number");
        let loads = on_host(ours.path(), &all);
        let counted = (loads[0].ignored_error_count, loads[0].first_ignored_errno);
        assert_eq!(
            counted,
            (number("total_err"), number("first_error")),
            "{options}"
        );
        assert_eq!(loads[0].write.request_count(), 16, "{options}");
    }
}
