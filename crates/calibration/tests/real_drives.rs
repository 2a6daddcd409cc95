//! Four drives whose parameters and traces were published, calibrated on the first half of
//! each trace and scored on the second. They are not part of this project:
//! `DISKPERF_DRIVES` names the folder that has them, and without it these tests say that
//! they were skipped.

use diskperf_calibration::{Calibration, FitOptions, calibrate};
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::{SpecificationFiles, import, trace};
use std::path::{Path, PathBuf};

/// What each drive has to reach: the root mean square in milliseconds, the share within half
/// a millisecond in per cent, and the demerit in milliseconds.
const BARS: [(&str, f64, f64, f64); 4] = [
    ("hp_c2490a", 1.55, 94.0, 0.12),
    ("barracuda", 1.20, 96.0, 0.14),
    ("cheetah4LP", 1.25, 94.5, 0.20),
    ("atlas10k", 0.85, 97.0, 0.07),
];
/// Most numbers that may be fitted.
const PARAMETERS_MAX: usize = 80;

fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DISKPERF_DRIVES").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED {test}: DISKPERF_DRIVES names no folder of measured drives");
    }
    folder
}

fn calibrated(folder: &Path, name: &str, options: FitOptions) -> Calibration {
    let search = vec![folder.to_owned()];
    let import = import(
        &format!("{name}.diskspecs"),
        &SpecificationFiles::FileSystem { search },
    );
    let drive = import
        .unwrap_or_else(|errors| panic!("{errors}"))
        .drives
        .remove(0);
    let content = std::fs::read_to_string(folder.join(format!("{name}.trace"))).expect("a trace");
    let requests = trace::parse(name, &content).unwrap_or_else(|errors| panic!("{errors}"));
    calibrate(&drive, &requests, options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_second_half_is_met() {
    let Some(folder) = folder("the_second_half_is_met") else {
        return;
    };
    for (name, rms_ms, within_percent, demerit_ms) in BARS {
        let found = calibrated(&folder, name, FitOptions::default());
        let score = found.fitted_score;
        println!("{name}: {:?} {score:?}", found.last_stage);
        assert!(score.request_rms_ms <= rms_ms, "{name}: {score:?}");
        assert!(
            score.within_half_ms_percent >= within_percent,
            "{name}: {score:?}"
        );
        assert!(score.demerit_ms <= demerit_ms, "{name}: {score:?}");
        assert!(
            found.parameters.len() <= PARAMETERS_MAX,
            "{name}: {}",
            found.parameters.len()
        );
        println!("{name}: {:#?}", found.remaining_errors.cause_totals);
        // Hardly anything but revolutions is left.
        let of_revolutions: f64 = found
            .remaining_errors
            .cause_totals
            .iter()
            .filter(|one| one.cause.is_revolution())
            .map(|one| one.squared_error_percent)
            .sum();
        assert!(of_revolutions > 60.0, "{name}: {of_revolutions}");
        // What was fitted is worth it.
        assert!(
            score.request_rms_ms < 0.7 * found.specified_score.request_rms_ms,
            "{name}"
        );
    }
}

#[test]
fn pauses_in_the_wrong_place_are_seen_in_the_score() {
    let Some(folder) = folder("pauses_in_the_wrong_place_are_seen_in_the_score") else {
        return;
    };
    for (name, ..) in BARS {
        let right = calibrated(&folder, name, FitOptions::default());
        let wrong = match right.think_position {
            ThinkPosition::BeforeRequest => ThinkPosition::AfterRequest,
            ThinkPosition::AfterRequest => ThinkPosition::BeforeRequest,
        };
        let options = FitOptions {
            think_position: Some(wrong),
            ..FitOptions::default()
        };
        let forced = calibrated(&folder, name, options);
        let lost =
            right.fitted_score.within_half_ms_percent - forced.fitted_score.within_half_ms_percent;
        println!("{name}: {lost:.1} points lost with the pauses {wrong:?}");
        assert!(lost > 30.0, "{name}: {lost}");
    }
}

#[test]
fn a_fifth_of_a_trace_is_nearly_enough() {
    let Some(folder) = folder("a_fifth_of_a_trace_is_nearly_enough") else {
        return;
    };
    for (name, ..) in BARS {
        let half = calibrated(&folder, name, FitOptions::default());
        let options = FitOptions {
            fitted_share: 0.2,
            ..FitOptions::default()
        };
        let fifth = calibrated(&folder, name, options);
        let lost =
            half.fitted_score.within_half_ms_percent - fifth.fitted_score.within_half_ms_percent;
        println!(
            "{name}: {lost:.2} points lost, {:?} {:?}",
            fifth.fitted_score, fifth.phase
        );
        assert!(lost <= 3.0, "{name}: {lost}");
    }
}
