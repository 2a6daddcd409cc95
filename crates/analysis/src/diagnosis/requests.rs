//! Causes in requests outside the drive: durations, numbers and waits.

use super::causes::{
    CandidateCause, CauseRank, describe_both_values, distribution_distance, log_ratio_if_different,
    new_cause,
};
use super::{DrivePart, SuspectedComponent, measures::TraceMeasures};
use crate::explanation::words;
use diskperf_timeline::trace::RequestPurpose;
use diskperf_timeline::{Deadline, Stage};

/// Minimum share, of the requests or of the difference between two runs, that counts as a cause.
const CAUSE_SHARE_MIN: f64 = 0.25;

/// Finds the differences of the requests outside the drive.
pub(super) fn find_request_causes(a: &TraceMeasures, b: &TraceMeasures) -> Vec<CandidateCause> {
    let mut found = Vec::from_iter(find_read_ahead_cause(a, b));
    for (suspect, stage) in [
        (SuspectedComponent::Controller, Stage::Command),
        (SuspectedComponent::Controller, Stage::CacheHit),
        (SuspectedComponent::Bus, Stage::BusTransfer),
    ] {
        // Of a disk with firmware it is known what commands and crossings these are of.
        let of_disk = matches!(stage, Stage::Command | Stage::CacheHit);
        if of_disk && (a.has_firmware || b.has_firmware) {
            continue;
        }
        let pieces = |of: &TraceMeasures| {
            of.durations_by_stage
                .get(&stage)
                .cloned()
                .unwrap_or_default()
        };
        let (one, other) = (pieces(a), pieces(b));
        if let Some(size) = distribution_distance(&one, &other) {
            let mean = |of: &[u64]| of.iter().sum::<u64>() as f64 / of.len() as f64;
            let evidence = if log_ratio_if_different(Some(mean(&one)), Some(mean(&other))).is_some()
            {
                describe_both_values(
                    &words::stage_label(stage),
                    Some(mean(&one)),
                    Some(mean(&other)),
                )
            } else {
                format!("{} has a different distribution", words::stage_label(stage))
            };
            // A move over the bus lasts as its neighbours let it.
            let rank = match stage {
                Stage::BusTransfer => CauseRank::Limit,
                _ => CauseRank::Unit,
            };
            found.push(attribute_to_component(
                (suspect, DrivePart::Link),
                (a, b),
                (rank, size),
                evidence,
            ));
        }
    }
    found.extend(find_limit_causes(a, b));
    found.extend(find_queue_causes(a, b));
    found
}

/// Assigns a cause to a part of the computer, or to the same part inside a disk with firmware.
fn attribute_to_component(
    (suspect, part): (SuspectedComponent, DrivePart),
    (a, b): (&TraceMeasures, &TraceMeasures),
    weight: (CauseRank, f64),
    evidence: String,
) -> CandidateCause {
    match a.has_firmware && b.has_firmware {
        true => new_cause(SuspectedComponent::Drive, weight, evidence).with_part(part),
        false => new_cause(suspect, weight, evidence),
    }
}

fn find_read_ahead_cause(a: &TraceMeasures, b: &TraceMeasures) -> Option<CandidateCause> {
    let share = |of: &TraceMeasures| {
        let ahead = of
            .request_count_by_purpose
            .get(&RequestPurpose::ReadAhead)
            .copied()
            .unwrap_or(0.0);
        ahead / of.request_count().max(1.0)
    };
    let (one, other) = (share(a), share(b));
    ((one - other).abs() > CAUSE_SHARE_MIN && one.min(other) < 0.02).then(|| {
        let evidence = format!(
            "{} of the requests read ahead in one run and {} in the other",
            words::format_percent(one),
            words::format_percent(other)
        );
        new_cause(
            SuspectedComponent::Kernel,
            (CauseRank::Policy, 0.9),
            evidence,
        )
    })
}

/// Compares the maximum numbers of requests in flight: in total, beyond the driver, and beyond the
/// controller's queue.
fn find_limit_causes(a: &TraceMeasures, b: &TraceMeasures) -> Vec<CandidateCause> {
    let mut found = Vec::new();
    let mut limit = |suspect, (one, other): (u64, u64), what: &str| {
        if one != other {
            let size = 1.0 + (one as f64 / other.max(1) as f64).ln().abs();
            let evidence = format!("up to {one} {what} in one run and {other} in the other");
            let suspect = (suspect, DrivePart::Queue);
            found.push(attribute_to_component(
                suspect,
                (a, b),
                (CauseRank::Limit, size),
                evidence,
            ));
        }
    };
    let more = |stage| b.request_stage_ns(stage) > a.request_stage_ns(stage);
    // Who takes fewer has the others wait before it.
    let inside = (a.in_flight_past_driver_max, b.in_flight_past_driver_max);
    let served = (a.in_flight_at_drive_max, b.in_flight_at_drive_max);
    if inside.0 != inside.1 {
        if inside.0.max(inside.1) > 2 && more(Stage::DriverQueue) == (inside.1 < inside.0) {
            limit(
                SuspectedComponent::Controller,
                inside,
                match a.has_firmware {
                    true => "requests are in the drive",
                    false => "requests are in the controller",
                },
            );
        }
    } else if served.0 != served.1 {
        // Who waits for the arm of a disk with firmware has left no queue before it.
        let has_queue = !a.has_firmware && !b.has_firmware;
        if has_queue && more(Stage::ControllerQueue) == (served.1 < served.0) {
            limit(
                SuspectedComponent::Controller,
                served,
                "requests are in service",
            );
        }
    } else if a.in_flight_max.max(b.in_flight_max) > BUFFER_CACHE_DEPTH_MIN {
        let at_once = (a.in_flight_max, b.in_flight_max);
        limit(
            SuspectedComponent::Kernel,
            at_once,
            "requests are in flight",
        );
    }
    found
}

/// Number of requests in flight above which the limit is taken for the size of the kernel's buffer
/// cache.
const BUFFER_CACHE_DEPTH_MIN: u64 = 8;

/// Compares the waits that only one part of the computer causes, such as those in the controller's
/// queue.
fn find_queue_causes(a: &TraceMeasures, b: &TraceMeasures) -> Vec<CandidateCause> {
    let difference = (b.elapsed_ns - a.elapsed_ns).abs().max(1.0);
    let mut found = Vec::new();
    let late = Stage::MissedRevolution(Deadline::DataLate);
    let each = |of: &TraceMeasures| Some(of.request_stage_ns(late) / of.request_count().max(1.0));
    let worth =
        (b.request_stage_ns(late) - a.request_stage_ns(late)).abs() > CAUSE_SHARE_MIN * difference;
    if let Some(size) =
        log_ratio_if_different(each(a), each(b)).filter(|size| worth && *size > CAUSE_SHARE_MIN)
    {
        let evidence = super::causes::describe_both_values(
            "waiting after late data, per request,",
            each(a),
            each(b),
        );
        found.push(new_cause(
            SuspectedComponent::Controller,
            (CauseRank::Unit, size),
            evidence,
        ));
    }
    let own = [
        (SuspectedComponent::Controller, Stage::ControllerQueue),
        (SuspectedComponent::Controller, Stage::ChannelWait),
        (SuspectedComponent::Kernel, Stage::BufferWait),
    ];
    for (suspect, stage) in own {
        let more = (b.request_stage_ns(stage) + b.program_stage_ns(stage)
            - a.request_stage_ns(stage)
            - a.program_stage_ns(stage))
        .abs();
        if more > CAUSE_SHARE_MIN * difference {
            let evidence = format!(
                "{}: {} in one run and {} in the other",
                words::stage_label(stage),
                words::format_time_ms(a.request_stage_ns(stage)),
                words::format_time_ms(b.request_stage_ns(stage))
            );
            let suspect = (suspect, DrivePart::Queue);
            let weight = (CauseRank::Hint, more / difference);
            found.push(match suspect.0 {
                SuspectedComponent::Controller => {
                    attribute_to_component(suspect, (a, b), weight, evidence)
                }
                suspect => new_cause(suspect, weight, evidence),
            });
        }
    }
    let (one, other) = (a.request_count(), b.request_count());
    if let Some(size) =
        log_ratio_if_different(Some(one), Some(other)).filter(|size| *size > CAUSE_SHARE_MIN)
    {
        let evidence = format!("{one:.0} requests in one run and {other:.0} in the other");
        found.push(new_cause(
            SuspectedComponent::Kernel,
            (CauseRank::Hint, size),
            evidence,
        ));
    }
    found
}
