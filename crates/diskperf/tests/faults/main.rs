//! Faults by count: the first operation beneath diskperf fails, the second, the
//! third, ... until a run passes, and after each it is checked what must always
//! hold (ARCHITECTURE.md). The binary is the one that users have; its system calls
//! fail, SQLite's too.
//!
//! By default a sample of the operations fails, with DISKPERF_FAULTS=all each of
//! them, and with DISKPERF_FAULTS=NUMBER a sample as large as that.

mod calls;
mod filter;
mod injector;
mod invariants;
mod scenarios;
#[path = "../support/mod.rs"]
mod support;
mod sweep;

use injector::{Answer, Fault, watch};
use scenarios::Scenario;
use support::User;
use sweep::sweep;

#[test]
fn no_operation_of_a_run_that_writes_breaks_anything() {
    sweep(Scenario::Write);
}

#[test]
fn no_operation_of_a_run_that_reads_breaks_anything() {
    sweep(Scenario::Read);
}

#[test]
fn no_operation_of_a_run_on_a_fresh_file_system_breaks_anything() {
    sweep(Scenario::Fresh);
}

#[test]
fn no_operation_of_a_search_on_a_path_breaks_anything() {
    sweep(Scenario::TunePath);
}

#[test]
fn no_operation_of_a_search_of_device_settings_breaks_anything() {
    sweep(Scenario::TuneDevice);
}

#[test]
fn no_operation_of_an_explanation_breaks_anything() {
    sweep(Scenario::Explain);
}

#[test]
fn no_operation_of_a_report_breaks_anything() {
    sweep(Scenario::Report);
}

#[test]
fn no_operation_of_an_export_breaks_anything() {
    sweep(Scenario::Export);
}

#[test]
fn no_operation_of_clean_breaks_anything() {
    sweep(Scenario::Clean);
}

/// Otherwise nothing above could fail.
#[test]
fn a_fault_is_met() {
    if let Some(why) = filter::missing() {
        eprintln!("SKIPPED a_fault_is_met: {why}");
        return;
    }
    let user = User::new();
    let read = |fault| {
        let words = ["list", "systems", "--catalogue", "./target"];
        watch(user.command(&words), fault)
    };
    let passed = read(None);
    assert_eq!(passed.outcome.code, Some(0), "{:?}", passed.outcome);
    let mut operations = passed.seen.operations.iter();
    let number = operations.position(|operation| operation.path == user.target());
    let number = number.expect("the catalogue is read");
    let fault = |answer| Some(Fault { number, answer });
    let failed = read(fault(Answer::Errno(0))).outcome;
    assert!(failed.stderr.contains("./target"), "{failed:?}");
    assert_eq!(read(fault(Answer::Kill)).outcome.code, None);
}
