//! Causes in disks with firmware, a buffer and a link of their own: their order of service, buffer
//! hits, link and firmware durations, and arm movements, for requests or in the background.

use super::causes::{
    CandidateCause, CauseRank, SAMPLE_COUNT_MIN, describe_both_values, distribution_distance,
    log_ratio_if_different, new_cause,
};
use super::{DrivePart, SuspectedComponent};
use crate::explanation::words;
use diskperf_timeline::Stage;

mod accesses;
mod buffers;
mod cleaning;
mod order;

pub(super) use accesses::AccessMeasures;
pub(super) use buffers::BufferMeasures;
use buffers::CommandClass;
pub(super) use cleaning::CleaningMeasures;
pub(super) use order::ServiceOrder;

/// Measures of the disks with firmware in one run: accesses, buffers, order of service and
/// cleaning.
#[derive(Default)]
pub(super) struct DiskMeasures {
    pub(super) accesses: AccessMeasures,
    pub(super) buffers: BufferMeasures,
    pub(super) service_order: ServiceOrder,
    pub(super) cleaning: CleaningMeasures,
}

/// Tolerance in nanoseconds within which two firmware durations count as equal. The host may notice
/// a completion only after other work.
const TIME_ROUNDING_NS: u64 = 1000;
/// Maximum absolute logarithm of the ratio at which two random quantities count as equal.
const RANDOM_LOG_RATIO_MAX: f64 = 0.05;
/// Minimum difference between two runs in the share of older waiting requests that are passed over,
/// to count as another order of service.
const PASSED_SHARE_DIFFERENCE_MIN: f64 = 0.1;
/// Minimum mean number of waiting requests at which the order of service matters.
const WAITING_COUNT_MEAN_MIN: f64 = 0.5;
/// Maximum absolute logarithm of the ratio at which two queues count as equally long.
const QUEUE_LOG_RATIO_MAX: f64 = 0.25;
/// Minimum difference of two shares, in standard deviations, that counts as no chance.
const SHARE_DEVIATIONS_MIN: f64 = 4.0;
/// Minimum share of writes that wait for buffer space at which the buffer counts as full.
const FULL_WAIT_SHARE_MIN: f64 = 0.5;
/// Minimum difference of two shares that counts as another policy of the drive, rather than a
/// consequence of arrival times.
const POLICY_SHARE_DIFFERENCE_MIN: f64 = 0.25;

/// Finds the causes of a difference in the disks. `same_shape` says that construction and sector
/// positions are the same. `waits` says that requests wait for the cleaning of bands.
pub(super) fn find_disk_causes(
    a: &DiskMeasures,
    b: &DiskMeasures,
    (same_shape, waits): (bool, bool),
) -> Vec<CandidateCause> {
    let mut found = find_firmware_causes(a, b);
    found.extend(find_link_cause(&a.buffers, &b.buffers));
    let answered = find_buffer_causes(a, b);
    // Who has something else to serve serves it in another order.
    if same_shape && answered.is_empty() {
        found.extend(find_order_cause(a, b));
    }
    found.extend(answered);
    if waits {
        found.extend(find_cleaning_cause(a, b));
    }
    found
}

fn new_disk_cause(part: DrivePart, weight: (CauseRank, f64), evidence: String) -> CandidateCause {
    new_cause(SuspectedComponent::Drive, weight, evidence).with_part(part)
}

/// Compares the durations of commands, by direction and by whether the arm moves, and the durations
/// of reporting completion to the host.
fn find_firmware_causes(a: &DiskMeasures, b: &DiskMeasures) -> Vec<CandidateCause> {
    let kinds = [
        ("a read that needs the arm", false, true),
        ("a read served from the buffer", false, false),
        ("a write that needs the arm", true, true),
        ("a write accepted by the buffer", true, false),
    ];
    let kind = |(what, writes, needs_arm): (&str, bool, bool)| {
        let kind = CommandClass {
            is_write: writes,
            needs_arm,
        };
        let of = |of: &DiskMeasures| of.buffers.command_durations_ns(kind).to_vec();
        let (one, other) = (of(a), of(b));
        let mean = |all: &[u64]| {
            (!all.is_empty()).then(|| all.iter().sum::<u64>() as f64 / all.len() as f64)
        };
        let size = distribution_distance(&one, &other)?;
        log_ratio_if_different(mean(&one), mean(&other))?;
        let evidence =
            describe_both_values(&format!("the command of {what}"), mean(&one), mean(&other));
        Some(new_disk_cause(
            DrivePart::Firmware,
            (CauseRank::Unit, size),
            evidence,
        ))
    };
    let told = |(what, writes): (&str, bool)| {
        let one = a.buffers.interrupt_delay_ns(writes)?;
        let other = b.buffers.interrupt_delay_ns(writes)?;
        let (ns, there) = (Some(one as f64), Some(other as f64));
        let size =
            log_ratio_if_different(ns, there).filter(|_| one.abs_diff(other) > TIME_ROUNDING_NS)?;
        let evidence =
            describe_both_values(&format!("reporting the completion of a {what}"), ns, there);
        let weight = (CauseRank::Unit, size.min(1.0));
        Some(new_disk_cause(DrivePart::Firmware, weight, evidence))
    };
    let commands = kinds.into_iter().filter_map(kind);
    let ends = [("read", false), ("write", true)]
        .into_iter()
        .filter_map(told);
    commands.chain(ends).collect()
}

fn find_link_cause(one: &BufferMeasures, other: &BufferMeasures) -> Option<CandidateCause> {
    let both = one.link_transfer_ns.iter().filter_map(|(of, ns)| {
        let (ns, there) = (*ns as f64, *other.link_transfer_ns.get(of)? as f64);
        Some((log_ratio_if_different(Some(ns), Some(there))?, ns, there))
    });
    let (size, ns, there) = both.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let evidence = describe_both_values("the same data over the link", Some(ns), Some(there));
    Some(new_disk_cause(
        DrivePart::Link,
        (CauseRank::Unit, size),
        evidence,
    ))
}

/// Compares the shares of requests that the buffers serve, and their capacity.
fn find_buffer_causes(a: &DiskMeasures, b: &DiskMeasures) -> Vec<CandidateCause> {
    let (one, other) = (&a.buffers, &b.buffers);
    let mut found = Vec::new();
    let shares = [
        (
            "the buffer serves",
            "of the reads",
            one.buffered_reads,
            other.buffered_reads,
        ),
        (
            "the buffer accepts",
            "of the writes",
            one.buffered_writes,
            other.buffered_writes,
        ),
        (
            "the buffer holds all data on arrival for",
            "of the reads",
            one.full_hits,
            other.full_hits,
        ),
    ];
    for (number, (does, what, one, other)) in shares.into_iter().enumerate() {
        let Some(more) = one.difference_if_significant(other, SHARE_DEVIATIONS_MIN) else {
            continue;
        };
        let evidence = format!(
            "{does} {} {what} in one run and {} in the other",
            words::format_percent(one.share()),
            words::format_percent(other.share())
        );
        // What the arm is about to pass is there a little later, for many reasons.
        let weight = match (number, more > POLICY_SHARE_DIFFERENCE_MIN) {
            (2, _) => (CauseRank::Limit, more),
            (_, true) => (CauseRank::Policy, 1.0 + more),
            (_, false) => (CauseRank::Unit, 1.0 + more),
        };
        found.push(new_disk_cause(DrivePart::Buffer, weight, evidence));
    }
    found.extend(find_capacity_causes(one, other));
    found
}

fn have_full_buffers(one: &BufferMeasures, other: &BufferMeasures) -> bool {
    one.writes_awaiting_buffer
        .share()
        .min(other.writes_awaiting_buffer.share())
        >= FULL_WAIT_SHARE_MIN
}

/// Compares the bytes that buffers hold and destage in one access, where both buffers are full.
/// Only a full buffer shows its capacity.
fn find_capacity_causes(one: &BufferMeasures, other: &BufferMeasures) -> Vec<CandidateCause> {
    if !have_full_buffers(one, other) {
        return Vec::new();
    }
    let (held, there) = (one.held_bytes_max as f64, other.held_bytes_max as f64);
    let (most, most_there) = (
        one.destaged_bytes_max as f64,
        other.destaged_bytes_max as f64,
    );
    let sizes = [
        ("wait in the full buffer", held, there),
        (
            "are destaged from it in one access, at most,",
            most,
            most_there,
        ),
    ];
    let size = |(what, one, other): (&str, f64, f64)| {
        let size = log_ratio_if_different(Some(one), Some(other))
            .filter(|size| *size > QUEUE_LOG_RATIO_MAX);
        let size = size.filter(|_| one.min(other) > 0.0)?;
        let told = |bytes: f64| format!("{:.0} KB", bytes / 1024.0);
        let evidence = format!(
            "{} {what} in one run and {} in the other",
            told(one),
            told(other)
        );
        Some(new_disk_cause(
            DrivePart::Buffer,
            (CauseRank::Unit, size),
            evidence,
        ))
    };
    sizes.into_iter().filter_map(size).collect()
}

/// Compares the bytes that shingled disks clean for each written byte, where requests wait for
/// cleaning. A larger media cache cleans less.
fn find_cleaning_cause(a: &DiskMeasures, b: &DiskMeasures) -> Option<CandidateCause> {
    let (one, other) = (a.cleaning, b.cleaning);
    // Where one of them writes nothing, it cleans what was written before: bytes are compared.
    let both_write = one
        .moved_per_written_byte()
        .zip(other.moved_per_written_byte());
    let moved = (one.moved_bytes as f64, other.moved_bytes as f64);
    let (of_one, of_other) = both_write.unwrap_or(moved);
    let size = (of_one - of_other).abs() / of_one.max(of_other).max(f64::MIN_POSITIVE);
    let told = |of: CleaningMeasures| {
        let mb = of.moved_bytes as f64 / 1e6;
        match of.moved_per_written_byte() {
            _ if of.moved_bytes == 0 => "nothing".to_owned(),
            Some(each) => format!("{mb:.0} MB, {each:.0} bytes for each byte written,"),
            None => format!("{mb:.0} MB"),
        }
    };
    (size > POLICY_SHARE_DIFFERENCE_MIN).then(|| {
        let evidence = format!(
            "band cleaning moves {} in one run and {} in the other",
            told(one),
            told(other)
        );
        new_disk_cause(DrivePart::MediaCache, (CauseRank::Limit, size), evidence)
    })
}

/// Compares the order of service of requests and destages by the positioning times of accesses, for
/// disks of the same construction with equally long queues.
fn find_order_cause(a: &DiskMeasures, b: &DiskMeasures) -> Option<CandidateCause> {
    let (one, other) = (&a.service_order, &b.service_order);
    let (of_a, of_b) = (&a.accesses, &b.accesses);
    if of_a.count().min(of_b.count()) < SAMPLE_COUNT_MIN {
        return None;
    }
    let positioning = |of: &AccessMeasures| Some(of.mean_ns(|_| true));
    let by_time = distribution_distance(&of_a.positioning_ns, &of_b.positioning_ns)
        .and(log_ratio_if_different(positioning(of_a), positioning(of_b)))
        .filter(|size| *size > RANDOM_LOG_RATIO_MAX);
    let by_turn = (one.passed_over_share() - other.passed_over_share()).abs();
    let waits = |of: &ServiceOrder| Some(1.0 + of.waiting_count_mean());
    let as_long = log_ratio_if_different(waits(one), waits(other))
        .is_none_or(|size| size < QUEUE_LOG_RATIO_MAX);
    let waits_long =
        one.waiting_count_mean().min(other.waiting_count_mean()) > WAITING_COUNT_MEAN_MIN;
    // The buffer's own queue is not seen, but it is as long where it is full.
    let destages = of_a.destage_count.min(of_b.destage_count) > SAMPLE_COUNT_MIN;
    let queues = waits_long || destages && have_full_buffers(&a.buffers, &b.buffers);
    if !queues || !as_long || (by_time.is_none() && by_turn < PASSED_SHARE_DIFFERENCE_MIN) {
        return None;
    }
    let parts = |of: &AccessMeasures| {
        let seek = of.mean_ns(|stage| matches!(stage, Stage::Seek | Stage::HeadSwitch));
        let latency = of.mean_ns(|stage| !matches!(stage, Stage::Seek | Stage::HeadSwitch));
        let (seek, latency) = (words::format_time_ms(seek), words::format_time_ms(latency));
        format!("{seek} of seek and {latency} of rotational latency")
    };
    let turns = match waits_long {
        true => format!(
            ", and overtakes {} and {} of the older requests",
            words::format_percent(one.passed_over_share()),
            words::format_percent(other.passed_over_share())
        ),
        false => String::new(),
    };
    let evidence = format!(
        "the order of service differs: an access takes {} in one run and {} in the other{turns}",
        parts(of_a),
        parts(of_b)
    );
    let size = by_time.unwrap_or(0.0).max(by_turn);
    // Where those that wait are passed by as before, a way that takes longer is as likely of
    // the arm. Who waits in the buffer is not seen.
    let rank = match waits_long && by_turn < PASSED_SHARE_DIFFERENCE_MIN {
        true => CauseRank::Hint,
        false => CauseRank::Policy,
    };
    Some(new_disk_cause(DrivePart::Queue, (rank, size), evidence))
}
