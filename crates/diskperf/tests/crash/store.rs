//! The store of diskperf itself on a drive that loses its power during a run.

use super::*;

/// Crash test of a run with its store on the drive, by the script of the documentation.
fn crash_store(user: &User, more: &[&str]) -> Outcome {
    let program = format!("DISKPERF={} ", env!("CARGO_BIN_EXE_diskperf"));
    let [workload, check] = ["write 1 3", "check"]
        .map(|words| program.clone() + &shipped(&format!("store.py {words}")));
    crash(user, &workload, &check, more)
}

#[test]
fn a_store_opens_after_each_cut_and_has_every_finished_repetition() {
    let test = "a_store_opens_after_each_cut_and_has_every_finished_repetition";
    if !can_run(test, EXT4) {
        return;
    }
    let user = User::new();
    let report = crash_store(&user, &[]).expect(0, &[]).json();
    assert!(report["marks"].as_u64() >= Some(3), "{report:#}");
    assert!(report["cuts"].as_u64() >= Some(30), "{report:#}");
    // A drive that ignores flushes loses repetitions, so the check can fail.
    let report = crash_store(&user, &["--lying-flush", "--cut", "none"]);
    let report = report.expect(1, &[]).json();
    let lost = report["lost"].as_array().expect("losses are a list");
    let is_lost_repetition = |loss: &Value| loss.to_string().contains("finished repetitions");
    assert!(lost.iter().any(is_lost_repetition), "{report:#}");
}
