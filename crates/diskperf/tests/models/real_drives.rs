//! Drives of a directory, replayed against their traces. The bars need the folder that
//! `DISKPERF_DRIVES` names, and say that they were skipped without it.

use crate::support::{User, words};
use serde_json::Value;
use std::path::PathBuf;

#[test]
fn a_drive_without_files_has_a_row_that_says_so() {
    let user = User::new();
    let data = user.file("drives");
    std::fs::create_dir(&data).expect("a folder");
    std::fs::write(data.join("lone.trace"), "R Miss 8 4 9000.0 100.0\n").expect("a trace");
    let line = format!(
        "reproduce real-drives --format json --data {}",
        data.display()
    );
    // Nothing was replayed.
    let found = user.run(&words(&line)).expect(1, &[]).json();
    let drive = &found["drives"][0];
    assert_eq!(drive["name"], "lone");
    let error = drive["error"].as_str().expect("an error");
    assert!(error.contains("lone.diskspecs"), "{error}");
}

#[test]
fn each_drive_of_a_folder_is_scored() {
    let Some(data) = std::env::var_os("DISKPERF_DRIVES").map(PathBuf::from) else {
        eprintln!("SKIPPED each_drive_of_a_folder_is_scored: DISKPERF_DRIVES names no folder");
        return;
    };
    let line = format!(
        "reproduce real-drives --format json --data {}",
        data.display()
    );
    let found = User::new().run(&words(&line)).expect(0, &[]).json();
    let drives = found["drives"].as_array().expect("drives");
    assert!(!drives.is_empty());
    for drive in drives {
        let figure = |of: &Value, key: &str| of[key].as_f64().expect("a figure");
        assert!(figure(drive, "within_half_ms_percent") > 90.0, "{drive}");
        assert!(
            figure(&drive["unfitted"], "within_half_ms_percent") < 90.0,
            "{drive}"
        );
        assert_eq!(drive["mean_ms"], drive["unfitted"]["mean_ms"], "{drive}");
        assert!(figure(&drive["phase"], "r") > 0.9, "{drive}");
        let off = drive["off"].as_array().expect("requests");
        let counted = drive["remaining"].as_array().expect("causes").iter();
        let counted: u64 = counted
            .map(|one| one["requests"].as_u64().expect("a number"))
            .sum();
        assert_eq!(counted, off.len() as u64);
        for one in off {
            let apart = figure(one, "modelled_ms") - figure(one, "measured_ms");
            assert!(apart.abs() > 0.5, "{one}");
        }
        for fitted in drive["fitted"].as_array().expect("numbers") {
            let value = figure(fitted, "value");
            let range = figure(fitted, "low")..=figure(fitted, "high");
            assert!(range.contains(&value), "{fitted}");
        }
    }
}
