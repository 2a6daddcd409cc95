//! The puzzles of the paper of 1983, taken apart.

use super::{Case, means};
use diskperf_analysis::diagnosis::SuspectedComponent;
use diskperf_analysis::explanation::difference::{ContributionMethod, ProgramDifference};
use diskperf_models::explain::compare_systems;
use diskperf_timeline::{Deadline, Stage};
use std::sync::Arc;

/// Takes two apart, and makes sure that all parts sum to the difference.
fn apart(a: &Case, b: &Case) -> Vec<ProgramDifference> {
    let stop = Arc::default();
    let (one, other) = (
        a.subject().expect("a system"),
        b.subject().expect("a system"),
    );
    let found = compare_systems(&one, &other, &means(&stop, false));
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    for program in &found.programs {
        let difference = program.elapsed.1.0 as i64 - program.elapsed.0.0 as i64;
        let stages: i64 = program
            .stage_differences
            .iter()
            .map(|stage| stage.difference_ns())
            .sum();
        assert_eq!(stages, difference, "stages of {}", program.program);
        if program.method.is_some() {
            let parts: i64 = program
                .contributions
                .iter()
                .map(|part| part.contribution_ns)
                .sum();
            assert_eq!(parts, difference, "parts of {}", program.program);
        }
    }
    found.programs
}

#[test]
fn the_initial_arbitration_is_late_data() {
    let last = Case::of("read_8192", "vax780-sc780-eagle");
    let first = Case::of("read_8192", "vax780-sc780-eagle:initial-arbitration");
    let found = &apart(&last, &first)[0];
    assert!(found.elapsed.1 > found.elapsed.0);
    let diagnosis = found.diagnosis.as_ref().expect("they differ");
    assert_eq!(diagnosis.deadline, Some(Deadline::DataLate));
    assert_eq!(diagnosis.component, Some(SuspectedComponent::Controller));
    assert!(
        found.contributions[0].setting_changes[0].contains("data_late"),
        "{:?}",
        found.contributions
    );
    assert!(matches!(
        found.method,
        Some(ContributionMethod::AllOrders { .. })
    ));
}

#[test]
fn a_750_is_a_slower_processor() {
    let fast = Case::of("write_8192", "vax780-si9900-eagle");
    let slow = Case::of("write_8192", "vax750-si9900-eagle");
    let found = &apart(&fast, &slow)[0];
    assert!(found.elapsed.1 > found.elapsed.0, "{:?}", found.elapsed);
    let of_host = found
        .contributions
        .iter()
        .find(|part| part.setting_changes[0].starts_with("host"));
    assert!(
        of_host.is_some_and(|part| part.contribution_ns > 0),
        "{:?}",
        found.contributions
    );
}

#[test]
fn a_uda50_is_another_controller_with_all_that_goes_with_it() {
    let massbus = Case::of("read_8192", "vax780-sc780-eagle");
    let uda50 = Case::of("read_8192", "vax780-uda50-ra81");
    let found = &apart(&massbus, &uda50)[0];
    let swapped = found.contributions.iter().any(|part| {
        let of = |name: &str| {
            part.setting_changes
                .iter()
                .any(|change| change.starts_with(name))
        };
        of("controller") && of("driver")
    });
    assert!(
        swapped,
        "controller and driver go together: {:?}",
        found.contributions
    );
    let bus = found.contributions.iter().any(|part| {
        part.setting_changes
            .iter()
            .all(|one| one.starts_with("bus"))
    });
    assert!(
        bus,
        "the bus is a part by itself: {:?}",
        found.contributions
    );
    let diagnosis = found.diagnosis.as_ref().expect("they differ");
    assert_eq!(
        diagnosis.component,
        Some(SuspectedComponent::Drive),
        "{diagnosis:?}"
    );
    let commands = found
        .stage_differences
        .iter()
        .find(|stage| stage.stage == Stage::Command);
    assert!(commands.is_some_and(|stage| stage.difference_ns() > 0));
}

#[test]
fn two_drives_share_a_channel_and_a_processor() {
    let one = Case::of("write_8192", "vax780-sc780-eagle:initial-arbitration");
    let two = Case {
        drives: 2,
        ..one.clone()
    };
    let found = &apart(&one, &two)[0];
    assert_eq!(found.drives, (1, 2));
    assert_eq!(found.contributions.len(), 1);
    assert!(found.contributions[0].setting_changes[0].contains("1 to 2"));
    let waits = found.stage_differences.iter().filter(|stage| {
        matches!(
            stage.stage,
            Stage::CpuWait | Stage::ChannelWait | Stage::DriverQueue | Stage::MissedRevolution(_)
        )
    });
    assert!(waits.map(|stage| stage.difference_ns()).sum::<i64>() > 0);
}

#[test]
fn what_is_the_same_has_no_cause() {
    let one = Case::of("read_8192", "vax780-sc780-eagle");
    let found = &apart(&one, &one)[0];
    assert_eq!(found.diagnosis, None);
    assert!(found.contributions.is_empty());
}

#[test]
fn many_parameters_are_told_by_orders_drawn_by_chance() {
    let one = Case::of("write_8192", "vax780-sc780-eagle");
    let other = one.with(&[
        "kernel.read_write_ms=0.5",
        "kernel.block_map_ms=0.3",
        "kernel.allocate_ms=0.4",
        "host.copy_ms_per_kb=0.7",
        "host.clear_ms_per_kb=0.6",
        "driver.search_lead_sectors=8",
        "filesystem.rotdelay_ms=6",
        "bus.memory_contention_share=0.2",
    ]);
    let found = &apart(&one, &other)[0];
    assert!(matches!(
        found.method,
        Some(ContributionMethod::SampledOrders { .. })
    ));
    assert_eq!(found.contributions.len(), 8);
}

#[test]
fn different_programs_are_refused() {
    let stop = Arc::default();
    let subject = |what| {
        Case::of(what, "vax780-sc780-eagle")
            .subject()
            .expect("a system")
    };
    let refused = compare_systems(
        &subject("read_8192"),
        &subject("write_8192"),
        &means(&stop, false),
    );
    let error = refused.expect_err("they differ").to_string();
    assert!(error.contains("different programs"), "{error}");
}
