//! A drive that was made up: what its files have wrong is found from its trace.

use diskperf_calibration::entry::DriveEntry;
use diskperf_calibration::{
    CalibrationError, FitOptions, PredictionErrorCause, RequestBeyondCapacity, calibrate,
    render_layer,
};
use diskperf_catalogue::Catalogue;
use diskperf_device::DeviceSpecification;
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace::{ValidationOperation, ValidationRequest};
use diskperf_diskspecs::{SpecificationFiles, SpecifiedDrive, import};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 1998;
const SURFACES: u64 = 4;
const CYLINDERS: u64 = 600;
const SECTORS: u64 = 100;
const BLOCKS: u64 = SURFACES * CYLINDERS * SECTORS;
const REQUESTS: usize = 3000;
/// The files say 6000 a minute: 10 ms.
const PERIOD_US: f64 = 9_971.3;
/// The files have them rounded to 19 and 33 sectors.
const TRACK_SKEW: f64 = 4.0 / 21.0;
const CYLINDER_STEP: f64 = 3.0 * TRACK_SKEW + 0.331;
const CROSSING_US: f64 = 130.0;
/// The files say nothing of it.
const OVERHEAD_US: f64 = 731.0;
const SEEK_US: f64 = 2_500.0;
const HEAD_SWITCH_US: f64 = 900.0;

fn drive() -> SpecifiedDrive {
    let text = format!(
        "dm_disk MADE_UP {{ Block count = {BLOCKS}, Number of data surfaces = {SURFACES},
        Number of cylinders = {CYLINDERS},
        Mechanical Model = dm_mech_g1 {{ Access time type = trackSwitchPlusRotation,
            Seek type = constant, Constant seek time = 2.5, Head switch time = 0.9,
            Add. write settling delay = 0.0, Rotation speed (in rpms) = 6000 }},
        Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0,
            Sparing scheme used = 0, Zones = [ dm_layout_g1_zone {{
                First cylinder number = 0, Last cylinder number = {},
                Blocks per track = {SECTORS}, Offset of first block = 0.0,
                Empty space at zone front = 0, Skew for track switch = 19,
                Skew for cylinder switch = 33, Number of spares = 0,
                slips = [], defects = [] }} ] }} }}",
        CYLINDERS - 1
    );
    let files = SpecificationFiles::Memory([("made-up.model".to_owned(), text)].into());
    let import = import("made-up.model", &files).unwrap_or_else(|errors| panic!("{errors}"));
    import.drives.into_iter().next().expect("a drive")
}

/// What a host would have measured: random reads, each after a pause.
fn trace() -> Vec<ValidationRequest> {
    trace_with(|_| 0.0)
}

/// The same, where the arm comes so much later, in microseconds, for each request by its
/// number.
fn trace_with(mut late_us: impl FnMut(usize) -> f64) -> Vec<ValidationRequest> {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut below = |limit: u64| random.next_u64() % limit;
    let (mut now_us, mut at) = (0.0, (0, 0));
    let mut requests = Vec::new();
    for number in 0..REQUESTS {
        let blocks = 1 + below(8) as u32;
        let track = below(SURFACES * CYLINDERS);
        let sector = below(SECTORS - u64::from(blocks));
        let (cylinder, head) = (track / SURFACES, track % SURFACES);
        let think_us = (5_000 + below(60_000)) as f64;
        let moved_us = match at {
            same if same == (cylinder, head) => 0.0,
            (same, _) if same == cylinder => HEAD_SWITCH_US,
            _ => SEEK_US,
        };
        let issue_us: f64 = now_us + think_us;
        let arrival_us = issue_us + OVERHEAD_US + moved_us + late_us(number);
        let angle = head as f64 * TRACK_SKEW
            + cylinder as f64 * CYLINDER_STEP
            + sector as f64 / SECTORS as f64;
        let turns = (arrival_us / PERIOD_US - angle).ceil();
        let sector_us = (turns + angle) * PERIOD_US;
        now_us = sector_us + f64::from(blocks) * CROSSING_US;
        at = (cylinder, head);
        requests.push(ValidationRequest {
            operation: ValidationOperation::Read,
            first_block: track * SECTORS + sector,
            block_count: blocks,
            service_us: (now_us - issue_us).round(),
            think_us,
        });
    }
    requests
}

#[test]
fn what_the_files_have_wrong_is_found() {
    println!("seed {SEED}");
    let found = calibrate(&drive(), &trace(), FitOptions::default()).expect("all on the drive");
    println!(
        "{:?} {:?} {:?}",
        found.fitted_score, found.specified_score, found.phase
    );
    let value = |name: &str| {
        let mut parameters = found.parameters.iter();
        let one = parameters.find(|parameter| parameter.name == name);
        one.unwrap_or_else(|| panic!("no {name}")).value
    };
    assert_eq!(found.think_position, ThinkPosition::BeforeRequest);
    assert!((value("spindle.period_us") / PERIOD_US - 1.0).abs() < 5e-6);
    assert!((value("angles.track_skew_rev") - TRACK_SKEW).abs() < 5e-4);
    assert!((value("angles.cylinder_skew_rev") - CYLINDER_STEP.fract()).abs() < 5e-4);
    assert!(
        found.fitted_score.within_half_ms_percent > 97.0,
        "{:?}",
        found.fitted_score
    );
    assert!(
        found.specified_score.within_half_ms_percent < 85.0,
        "{:?}",
        found.specified_score
    );
    assert_eq!(found.buffer_read_counts, (0, 0));
    assert!(found.agreement > 0.99, "{}", found.agreement);
}

/// The second half is scored as the model's own times: what was measured there is not used.
#[test]
fn the_second_half_is_not_looked_at() {
    let requests = trace();
    let found = calibrate(&drive(), &requests, FitOptions::default()).expect("all on the drive");
    let mut slower = requests;
    for request in &mut slower[REQUESTS / 2..] {
        request.service_us += 5_000.0;
    }
    let again = calibrate(&drive(), &slower, FitOptions::default()).expect("all on the drive");
    assert_eq!(found.replayed_requests, again.replayed_requests);
    assert_eq!(found.parameters, again.parameters);
    assert!(
        again.fitted_score.within_half_ms_percent < 5.0,
        "{:?}",
        again.fitted_score
    );
}

#[test]
fn a_trace_without_phase_is_scored_all_the_same() {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut requests = trace();
    for request in &mut requests {
        request.service_us = (4_000 + random.next_u64() % 10_000) as f64;
    }
    let found = calibrate(&drive(), &requests, FitOptions::default()).expect("all on the drive");
    assert_eq!(found.phase.and_then(|phase| phase.think_position), None);
    assert_eq!(found.fitted_score.request_count, REQUESTS / 2);
    assert!(found.fitted_score.request_rms_ms.is_finite());
}

/// One seek of ten takes 3 ms longer without visible cause, and each a little more or less
/// than usual.
#[test]
fn what_is_off_by_a_revolution_has_a_cause() {
    let mut random = Pcg64Mcg::seed_from_u64(SEED + 1);
    let late_us = |number: usize| match number % 10 {
        0 => 3_000.0,
        _ => (random.next_u64() % 120) as f64,
    };
    let found = calibrate(&drive(), &trace_with(late_us), FitOptions::default());
    let found = found.expect("all on the drive");
    println!(
        "{:?} {:?}",
        found.fitted_score, found.remaining_errors.cause_totals
    );
    let of = |cause: PredictionErrorCause| {
        found
            .remaining_errors
            .mispredicted
            .iter()
            .filter(move |off| off.cause == cause)
    };
    assert!(
        of(PredictionErrorCause::SeekTime).count() >= 20,
        "{:?}",
        found.remaining_errors.cause_totals
    );
    for off in of(PredictionErrorCause::SeekTime) {
        // Requests count from 1.
        assert_eq!((off.request_index - 1) % 10, 0, "{off:?}");
        let late_us = off.arrival_error_us.expect("of a revolution");
        assert!((240.0..3_300.0).contains(&late_us), "{off:?}");
        assert!((off.error_us + PERIOD_US).abs() < 500.0, "{off:?}");
    }
    assert!(of(PredictionErrorCause::ArrivalNearSector).count() > 0);
    for off in of(PredictionErrorCause::ArrivalNearSector) {
        let off_us = off.arrival_error_us.expect("of a revolution");
        assert!(off_us.abs() <= 240.0, "{off:?}");
    }
    let counted: usize = found
        .remaining_errors
        .cause_totals
        .iter()
        .map(|one| one.request_count)
        .sum();
    assert_eq!(counted, found.remaining_errors.mispredicted.len());
    let slower: usize = found
        .remaining_errors
        .cause_totals
        .iter()
        .map(|one| one.drive_slower_count)
        .sum();
    let negative = found
        .remaining_errors
        .mispredicted
        .iter()
        .filter(|off| off.error_us < 0.0);
    assert_eq!(slower, negative.count());
    assert!(
        found
            .remaining_errors
            .mispredicted
            .iter()
            .all(|off| off.request_index > REQUESTS / 2)
    );
}

/// The layer over the entry of the files describes the disk that was scored, number by number.
#[test]
fn a_layer_reads_back_as_the_fitted_disk() {
    let drive = drive();
    let found = calibrate(&drive, &trace(), FitOptions::default()).expect("all on the drive");
    let entry = DriveEntry::new(&drive, "made-up.model").expect("an entry");
    let over = render_layer(
        (&found.specified_disk, &found.fitted_disk),
        "made-up",
        "a test",
    );
    let catalogue = Catalogue::embedded()
        .with_file("drives/made-up.toml", &entry.text)
        .with_file("drives/made-up-fitted.toml", &over);
    for (name, wanted) in [
        ("made-up", &found.specified_disk),
        ("made-up-fitted", &found.fitted_disk),
    ] {
        let read = DeviceSpecification::from_catalogue(&catalogue, name);
        let read = read.unwrap_or_else(|errors| panic!("{over}\n{errors}"));
        let mut read = read.disk().expect("a disk").clone();
        let (read_ns, wanted_ns) = (read.mechanism.period_ns, wanted.mechanism.period_ns);
        // A catalogue has revolutions per minute.
        assert!((read_ns / wanted_ns - 1.0).abs() < 1e-15, "{name}");
        read.mechanism.period_ns = wanted_ns;
        assert_eq!(&read, wanted, "{name}");
    }
    assert_ne!(found.specified_disk, found.fitted_disk);
}

#[test]
fn a_request_beyond_the_drive_is_named() {
    let mut requests = trace();
    requests[7].first_block = BLOCKS - 1;
    requests[7].block_count = 4;
    let error = calibrate(&drive(), &requests, FitOptions::default()).expect_err("beyond");
    let beyond = RequestBeyondCapacity {
        request_index: 8,
        first_block: BLOCKS - 1,
        capacity_blocks: BLOCKS,
    };
    assert_eq!(error, CalibrationError::BeyondCapacity(beyond));
    assert!(error.to_string().contains("request 8"), "{error}");
}

#[test]
fn few_requests_or_none_are_no_trouble() {
    let requests = trace();
    for count in [0, 1, 2, 3, 10, 50] {
        let found = calibrate(&drive(), &requests[..count], FitOptions::default());
        let found = found.expect("all on the drive");
        assert_eq!(found.replayed_requests.len(), count);
        assert_eq!(found.fitted_score.request_count, count - count / 2);
    }
}
