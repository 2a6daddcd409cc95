//! Checks on the measures of workers with several requests in flight.

use super::{CheckedSums, ImpossibleValue, LATENCY_NS_MAX, require_at_most};
use crate::cap_probe::CapProbe;
use crate::histogram::Histogram;
use crate::load::{LoadMeasure, SeriesPoint};
use crate::verified::VerifiedBlocks;

/// Maximum number of points in a time series; more than a day in intervals of 10 ms has.
const SERIES_POINTS_MAX: u64 = 10_000_000;

pub(super) fn check_load(
    load: &LoadMeasure,
    sums: &mut CheckedSums,
) -> Result<(), ImpossibleValue> {
    for (name, operation) in load.named_operations() {
        let within = |wrong: ImpossibleValue| wrong.within_field(name);
        sums.add_checked("bytes", operation.bytes).map_err(within)?;
        check_histogram("response", &operation.response_times, sums).map_err(within)?;
        sums.add_checked("span", operation.elapsed_span.0)
            .map_err(within)?;
        check_histogram("submit", &operation.submit_call_times, sums).map_err(within)?;
        check_histogram("completion", &operation.completion_times, sums).map_err(within)?;
    }
    if let Some(lag) = &load.arrival_lag {
        check_histogram("lag", lag, sums)?;
    }
    sums.add_checked("unfinished", load.unfinished_count)?;
    sums.add_checked("errors", load.ignored_error_count)?;
    sums.add_checked("first_error", load.first_ignored_errno)?;
    sums.add_checked("held_up", load.slot_wait_count)?;
    sums.add_checked("deepest", load.in_flight_max)?;
    sums.add_checked("interval", load.series_interval.0)?;
    if let Some(verified) = &load.verified_blocks {
        check_verified(verified, sums)?;
    }
    if let Some(probe) = &load.cap_probe {
        check_cap_probe(probe, sums).map_err(|wrong| wrong.within_field("cap_probe"))?;
    }
    let points = load.time_series.len() as u64;
    require_at_most(
        "series",
        points,
        ("the maximum of a series", SERIES_POINTS_MAX),
    )?;
    if points > 0 && load.series_interval.0 == 0 {
        return Err(ImpossibleValue::new(
            "interval",
            format!("is 0, but the series has {points} intervals"),
        ));
    }
    for (number, one) in load.time_series.iter().enumerate() {
        check_series_point(one, sums)
            .map_err(|wrong| wrong.within_field(&format!("series[{number}]")))?;
    }
    Ok(())
}

/// Checks the counts of blocks that a worker read back and compared.
pub(super) fn check_verified(
    verified: &VerifiedBlocks,
    sums: &mut CheckedSums,
) -> Result<(), ImpossibleValue> {
    sums.add_checked("verified_written_bytes", verified.written_bytes)?;
    sums.add_checked("verified_blocks", verified.block_count)?;
    sums.add_checked("verified_bytes", verified.verified_bytes)?;
    sums.add_checked("unread_blocks", verified.unread_block_count)?;
    sums.add_checked("mismatches", verified.mismatch_count)
}

fn check_cap_probe(probe: &CapProbe, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    for window in &probe.windows {
        sums.add_checked("duration", window.duration.0)?;
        sums.add_checked("requests", window.work.requests)?;
        sums.add_checked("bytes", window.work.bytes)?;
    }
    // What came before a window grows from one to the next.
    if let Some(window) = probe.windows.iter().max_by_key(|one| one.start) {
        sums.add_checked("start", window.start.0)?;
        sums.add_checked("requests_before", window.work_before.requests)?;
        sums.add_checked("bytes_before", window.work_before.bytes)?;
    }
    check_histogram("unloaded", &probe.unloaded, sums)
}

fn check_series_point(one: &SeriesPoint, sums: &mut CheckedSums) -> Result<(), ImpossibleValue> {
    sums.add_checked("reads", one.read_count)?;
    sums.add_checked("read_bytes", one.read_bytes)?;
    sums.add_checked("writes", one.write_count)?;
    sums.add_checked("name_calls", one.name_call_count)?;
    sums.add_checked("commits", one.commit_count)?;
    sums.add_checked("written_bytes", one.written_bytes)?;
    check_histogram("series_response", &one.response_times, sums)
}

pub(super) fn check_histogram(
    name: &'static str,
    latencies: &Histogram,
    sums: &mut CheckedSums,
) -> Result<(), ImpossibleValue> {
    for (latency_ns, count) in latencies.buckets() {
        require_at_most(name, *latency_ns, ("the maximum", LATENCY_NS_MAX))?;
        sums.add_checked(name, *count)?;
    }
    Ok(())
}
