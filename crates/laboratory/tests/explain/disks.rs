//! What holds up a disk with a buffer and a link has a change that names it, with what it
//! gains: on drives of the catalogue.

use super::{Case, means};
use diskperf_analysis::diagnosis::DrivePart::{self, *};
use diskperf_analysis::diagnosis::{RunEnding, SuspectedComponent, diagnose};
use diskperf_laboratory::SizeChoice;
use diskperf_models::explain::explain_system;
use diskperf_timeline::{CacheMode, Stage};
use std::sync::Arc;

/// By which share of its time a program is faster with each of these changes.
#[track_caller]
fn gains<const N: usize>(
    (what, system): (&'static str, &str),
    (bytes, settings): (u64, &[&str]),
    changes: [&str; N],
) -> [f64; N] {
    let case = Case {
        size: SizeChoice::SizeBytes(bytes),
        cache: CacheMode::Direct,
        ..Case::of(what, system)
    };
    let case = case.with(settings);
    let stop = Arc::default();
    let subject = case.subject().expect("a system");
    let (found, _) = explain_system(&subject, &means(&stop, true)).expect("it runs");
    let program = &found.programs[0];
    let all = &program.counterfactuals;
    let names: Vec<&str> = all.iter().map(|one| &*one.change).collect();
    changes.map(|change| {
        let found = all.iter().find(|one| one.change == change);
        let found = found.unwrap_or_else(|| panic!("{change} is not among {names:?}"));
        found.relative_gain(program.time_account.elapsed)
    })
}

#[test]
fn a_slow_link_is_the_lever() {
    let slow = ["drive.link_bytes_per_s=5200000", "program.depth=2"];
    let [link, twice] = gains(
        ("sequential", "bare-sas-10k"),
        (16 << 20, &slow),
        ["link infinitely fast", "link twice as fast"],
    );
    assert!(link > 0.9, "{link}");
    assert!((twice - 0.5).abs() < 0.05, "{twice}");
}

/// A link that is slow with what is written alone is faster both ways.
#[test]
fn a_link_that_is_slow_for_writes_is_the_lever() {
    let slow = [
        "drive.link_write_bytes_per_s=5200000",
        "program.write_share=1",
        "program.depth=2",
    ];
    let [link, twice] = gains(
        ("sequential", "bare-sas-10k"),
        (16 << 20, &slow),
        ["link infinitely fast", "link twice as fast"],
    );
    assert!(link > 0.8, "{link}");
    assert!((twice - 0.5).abs() < 0.1, "{twice}");
}

#[test]
fn a_buffer_that_is_full_is_the_lever() {
    let random = ["program.write_share=1", "program.area_bytes=7T"];
    let [seek, buffer] = gains(
        ("random", "bare-sata-7200"),
        (4 << 20, &random),
        ["no seek", "drive.write_cache_extents=1024"],
    );
    assert!(seek > 0.3 && buffer > 0.3, "{seek}, {buffer}");
}

#[test]
fn a_media_cache_that_is_full_is_the_lever() {
    let small = [
        "program.write_share=1",
        "program.depth=4",
        "program.area_bytes=1T",
        "drive.media_cache_extents=3000",
    ];
    let [larger] = gains(
        ("random", "bare-smr-5400"),
        (13 << 20, &small),
        ["drive.media_cache_extents=6000"],
    );
    assert!(larger > 0.9, "{larger}");
}

#[test]
fn a_missed_revolution_is_the_lever() {
    let through = [
        "program.write_share=1",
        "program.block_bytes=4096",
        "drive.write_cache=false",
    ];
    let [met, kept] = gains(
        ("sequential", "bare-sata-7200"),
        (2 << 20, &through),
        ["no missed revolution", "drive.write_cache=true"],
    );
    assert!(met > 0.9 && kept > 0.9, "{met}, {kept}");
}

const DEEP: &[&str] = &["program.depth=32", "program.area_bytes=7T"];
const ALONE: &[&str] = &["program.area_bytes=7T"];
const WRITES: &[&str] = &[
    "program.write_share=1",
    "program.depth=8",
    "program.area_bytes=7T",
];

/// From what happened alone, the part of the drive that a parameter is of.
#[track_caller]
fn blames(what: &'static str, load: &[&str], changes: &[(&str, DrivePart)]) {
    let size = match what {
        "sequential" => SizeChoice::SizeBytes(256 << 20),
        _ => SizeChoice::SizeBytes(4 << 20),
    };
    let case = Case {
        size,
        ..Case::of(what, "bare-sata-7200")
    };
    blames_of(&case.with(load), changes);
}

#[track_caller]
fn blames_of(case: &Case, changes: &[(&str, DrivePart)]) {
    let before = case.traces().expect("it runs").remove(0);
    for (change, part) in changes {
        let after = case.with(&[change]).traces().expect("it runs").remove(0);
        let found = diagnose(&before, &after, RunEnding::WorkDone);
        assert_eq!(
            (found.component, found.part),
            (Some(SuspectedComponent::Drive), Some(*part)),
            "{case:?} with {change}: {found:?}"
        );
    }
}

/// The order of service shows in how short the ways are and who is passed by, and not in the
/// changes of head that are left of shorter seeks.
#[test]
fn a_deep_queue_that_is_served_otherwise_is_blamed_on_the_queue() {
    blames(
        "random",
        DEEP,
        &[
            ("drive.queue_policy=fcfs", Queue),
            ("drive.queue_policy=c_look", Queue),
            ("drive.queue_policy=sstf", Queue),
            ("drive.age_limit_ms=100", Queue),
            ("drive.queue_depth=4", Queue),
            ("drive.spindle_rpm=5400", Mechanism),
            ("drive.seek_average_ms=12", Mechanism),
            ("drive.seek_minimum_ms=0.8", Mechanism),
            ("drive.head_switch_ms=2", Mechanism),
            ("drive.link_bytes_per_s=100000000", Link),
            ("drive.read_miss_ms=1", Firmware),
            ("drive.read_completion_ms=1", Firmware),
        ],
    );
    blames(
        "random",
        ALONE,
        &[
            ("drive.read_completion_ms=1", Firmware),
            ("drive.seek_average_ms=12", Mechanism),
            ("drive.link_overhead_ms=0.5", Link),
            ("drive.read_miss_ms=1", Firmware),
        ],
    );
}

/// What the arm does of its own accord tells as much as what it does for requests.
#[test]
fn writes_into_the_buffer_are_blamed_by_what_the_arm_does_behind_them() {
    blames(
        "random",
        WRITES,
        &[
            ("drive.queue_policy=fcfs", Queue),
            ("drive.write_cache=false", Buffer),
            ("drive.write_cache_extents=64", Buffer),
            ("drive.write_cache_bytes=512K", Buffer),
            ("drive.spindle_rpm=5400", Mechanism),
            ("drive.seek_average_ms=12", Mechanism),
            ("drive.write_settle_ms=2", Mechanism),
            ("drive.link_bytes_per_s=1000000", Link),
        ],
    );
}

#[test]
fn streams_are_blamed_on_what_is_read_ahead_and_on_the_link() {
    blames(
        "sequential",
        &[],
        &[
            ("drive.read_ahead_bytes=0", Buffer),
            ("drive.read_ahead=none", Buffer),
            ("drive.link_bytes_per_s=100000000", Link),
            ("drive.spindle_rpm=5400", Mechanism),
            ("drive.read_hit_ms=0.5", Firmware),
        ],
    );
    blames(
        "sequential",
        &["program.write_share=1"],
        &[
            ("drive.write_cache=false", Buffer),
            ("drive.link_bytes_per_s=100000000", Link),
            // A revolution is lost at each track for it, and nobody searches for sectors.
            ("drive.write_settle_ms=2", Mechanism),
            ("drive.track_skew_share=0.01", Mechanism),
        ],
    );
}

/// What requests wait in the queue is in no program's ledger; their own account has it.
#[test]
fn at_depth_requests_have_an_account_that_names_the_queue() {
    let case = Case {
        size: SizeChoice::SizeBytes(8 << 20),
        ..Case::of("random", "bare-sata-7200")
    };
    let stop = Arc::default();
    let of = |settings: &[&str]| {
        let subject = case.with(settings).subject().expect("a system");
        let (found, traces) = explain_system(&subject, &means(&stop, false)).expect("it runs");
        (found.programs[0].clone(), traces)
    };
    let (deep, traces) = of(DEEP);
    let response = deep
        .time_account
        .response_account
        .expect("32 are under way");
    let requests = &traces[0].requests;
    let took: u64 = requests
        .iter()
        .map(|one| one.completed_at().since(one.issued_at).0)
        .sum();
    assert_eq!(response.request_count, requests.len() as u64);
    assert_eq!(response.ledger.total_duration().0, took);
    let queued = response.ledger.stage_duration(Stage::ControllerQueue);
    assert!(response.share_of_response(queued) > 0.9, "{response:?}");
    assert!((30.0..=32.0).contains(&response.in_flight_mean));
    let verdict = deep.verdict_sentences.join(" ");
    assert!(verdict.contains("Queueing dominates"), "{verdict}");
    let (alone, _) = of(ALONE);
    assert_eq!(alone.time_account.response_account, None);
}

/// Who is alone is served at once, and nobody is passed by.
#[test]
fn one_write_at_a_time_has_no_queue_to_blame() {
    let case = Case::of("sequential", "bare-sata-7200");
    let case = case.with(&[
        "program.write_share=1",
        "program.block_bytes=16384",
        "drive.write_cache=false",
    ]);
    blames_of(
        &case,
        &[
            ("drive.write_ms=1", Firmware),
            ("drive.write_completion_ms=1", Firmware),
        ],
    );
    let before = case.traces().expect("it runs").remove(0);
    for change in [
        "drive.link_overhead_ms=1",
        "drive.link_bytes_per_s=10000000",
    ] {
        let after = case.with(&[change]).traces().expect("it runs").remove(0);
        let found = diagnose(&before, &after, RunEnding::WorkDone);
        assert_ne!(found.part, Some(Queue), "{change}: {found:?}");
    }
}

#[test]
fn who_comes_first_is_served_first_and_passes_nobody_by() {
    let case = Case {
        size: SizeChoice::SizeBytes(8 << 20),
        ..Case::of("random", "bare-sata-7200")
    };
    let case = case.with(DEEP);
    let before = case.traces().expect("it runs").remove(0);
    let fcfs = case.with(&["drive.queue_policy=fcfs"]);
    let found = diagnose(
        &before,
        &fcfs.traces().expect("it runs").remove(0),
        RunEnding::WorkDone,
    );
    let words = found.evidence.join(" ");
    assert!(words.contains(" and 0 % of the older requests"), "{words}");
}

/// Which zone is served first is by the order of service, and no format of tracks.
#[test]
fn another_zone_is_no_other_drive() {
    let mixed = [
        "program.depth=32",
        "program.area_bytes=7T",
        "program.write_share=0.3",
        "drive.write_cache=false",
    ];
    blames(
        "random",
        &mixed,
        &[
            ("drive.queue_policy=fcfs", Queue),
            ("drive.queue_policy=c_look", Queue),
            ("drive.read_miss_ms=1", Firmware),
            ("drive.write_completion_ms=1", Firmware),
        ],
    );
}

/// A way that takes longer is no other order where as many are passed by.
#[test]
fn a_change_of_head_is_not_blamed_on_the_queue() {
    let case = Case {
        size: SizeChoice::SizeBytes(4 << 20),
        ..Case::of("random", "bare-smr-5400")
    };
    let case = case.with(&["program.depth=32"]);
    blames_of(&case, &[("drive.head_switch_ms=2", Mechanism)]);
}

/// Where requests wait for bands to be cleaned in one run and not in the other, it is the
/// media cache; where the platters turn faster, it is not, though cleaning takes less.
#[test]
fn a_media_cache_that_is_full_is_blamed() {
    let case = Case {
        size: SizeChoice::SizeBytes(2100 * 4096),
        ..Case::of("random", "bare-smr-5400")
    };
    let case = case.with(&[
        "program.write_share=1",
        "program.depth=1",
        "program.area_bytes=7T",
        "drive.write_cache_extents=16",
        "drive.media_cache_extents=2000",
    ]);
    blames_of(&case, &[("drive.media_cache_extents=4000", MediaCache)]);
    let before = case.traces().expect("it runs").remove(0);
    let faster = case.with(&["drive.spindle_rpm=7200"]);
    let found = diagnose(
        &before,
        &faster.traces().expect("it runs").remove(0),
        RunEnding::WorkDone,
    );
    assert_eq!(found.part, Some(Mechanism), "{found:?}");
}

/// A response counts from the arrival: what it waits for a place is told beside what it takes
/// from its issue.
#[test]
fn in_open_loop_what_arrivals_wait_before_their_issue_is_told() {
    let case = Case {
        size: SizeChoice::SizeBytes(4 << 20),
        cache: CacheMode::Direct,
        ..Case::of("random", "bare-sata-7200")
    };
    let stop = Arc::default();
    let of = |settings: &[&str]| {
        let subject = case.with(settings).subject().expect("a system");
        let (found, _) = explain_system(&subject, &means(&stop, false)).expect("it runs");
        let verdict = found.programs[0].verdict_sentences.join(" ");
        let response = found.programs[0].time_account.response_account.clone();
        (response.expect("an account"), verdict)
    };
    let (response, verdict) = of(&["program.rate_iops=400", "program.depth=8", ALONE[0]]);
    let before = response.before_issue_ns.expect("it is in open loop");
    assert!(before > 3.0 * response.mean_ns(), "{response:?}");
    assert!(verdict.contains("from its arrival"), "{verdict}");
    let (alone, _) = of(&["program.rate_iops=200", "program.depth=1", ALONE[0]]);
    assert!(alone.before_issue_ns > Some(0.0), "{alone:?}");
    assert_eq!(alone.ledger.stage_duration(Stage::DriverQueue).0, 0);
}
