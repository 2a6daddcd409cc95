//! Sizes that diskperf finds by itself: every suite and every program runs
//! through, on whatever it is given, or says beforehand why it cannot.

use crate::support::machine::{LoopDevice, can_run, fill};
use crate::support::{MOUNTS, User, entries, mount_tmpfs, words};
use diskperf_battery::{Program, Suite};
use std::fs::create_dir;

/// Runs every suite and program. Those of `through` come to their end; others
/// may also be refused, before anything of them is run.
fn expect_through_or_refused(user: &User, options: &str, through: &[&str]) {
    let suites = Suite::list_suites().map(|(name, _)| name);
    let programs = Program::list_programs().into_iter().map(|(name, _)| name);
    let before = entries(&user.target());
    for what in suites.into_iter().chain(programs) {
        // Its rounds have a time, of minutes, and no size to be found.
        let short = match what {
            "ssd26" => " --set program.duration_ms=50",
            "cap_probe" => {
                " --set program.rounds=1 --set program.window_ms=100 --set program.settle_ms=0"
            }
            _ => "",
        };
        let line = format!("run {what} --runs 1 --quiet {options}{short}");
        let stored = user.stored().len();
        let outcome = user.run(&words(&line));
        match outcome.code {
            Some(0) => {}
            Some(2) => {
                assert_eq!(user.stored().len(), stored, "it was begun: {outcome:?}");
                assert!(!through.contains(&what), "{outcome:?}");
            }
            _ => panic!("{outcome:?}"),
        }
        assert_eq!(entries(&user.target()), before, "{outcome:?}");
    }
}

#[test]
fn every_program_finds_its_size_in_a_directory() {
    if !can_run("every_program_finds_its_size_in_a_directory", MOUNTS) {
        return;
    }
    let user = User::new();
    // A tenth of what is free is taken: what is small is quick.
    let memory = mount_tmpfs(&user.target(), "size=512m");
    create_dir(user.file("other")).unwrap();
    let through = [
        "ffs83",
        "seqread89",
        "vme87",
        "read_8192",
        "read_files",
        "write_8192",
        "rewrite_8192",
        "copy",
        "scan",
        "populate",
        "fsck",
        "dump_restore",
    ];
    expect_through_or_refused(&user, "--on ./target --other ./other", &through);
    let line = "run read_files --runs 3 --set program.churn=1 --on ./target";
    user.run(&words(line)).expect(0, &[]);
    drop(memory);
}

#[test]
fn every_program_finds_its_size_on_a_file() {
    let user = User::new();
    fill(&user.file("small"), 3, 0x5a);
    expect_through_or_refused(&user, "--on ./small", &["seqread89", "read_8192", "scan"]);
    fill(&user.file("large"), 96, 0x5a);
    let through = [
        "vme87",
        "seqread89",
        "read_8192",
        "copy",
        "scan",
        "fsck",
        "random_mix",
    ];
    let reading = "--on ./large --set program.write_share=0";
    for what in through {
        let options = match what {
            "random_mix" => reading,
            _ => "--on ./large",
        };
        let line = format!("run {what} --runs 1 --quiet {options}");
        user.run(&words(&line)).expect(0, &[]);
    }
}

#[test]
fn every_program_finds_its_size_on_a_device() {
    if !can_run("every_program_finds_its_size_on_a_device", MOUNTS) {
        return;
    }
    let user = User::new();
    let device = LoopDevice::blank(user.scratch(), 96);
    let on = device.text();
    let read = ["vme87", "seqread89", "read_8192", "scan"];
    expect_through_or_refused(&user, &format!("--on {on}"), &read);
    let written = format!("--on {on} --destroy-data-on {on} --ignore-signature");
    let through = [
        "ffs83",
        "write_8192",
        "rewrite_8192",
        "copy",
        "random_mix",
        "fsck",
    ];
    expect_through_or_refused(&user, &written, &[&read[..], &through].concat());
}
