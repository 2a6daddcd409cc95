//! Checks on the measures of workers with several requests in flight.

use super::{Impossible, LATENCY_NS_MAX, Sums, require_at_most};
use crate::histogram::Histogram;
use crate::load::{LoadMeasure, SeriesPoint};
use crate::verified::Verified;

/// Maximum number of points in a time series; more than a day in intervals of 10 ms has.
const SERIES_POINTS_MAX: u64 = 10_000_000;

pub(super) fn check(load: &LoadMeasure, sums: &mut Sums) -> Result<(), Impossible> {
    for (name, operation) in load.operations() {
        let within = |wrong: Impossible| wrong.within(name);
        sums.add("bytes", operation.bytes).map_err(within)?;
        check_histogram("response", &operation.response, sums).map_err(within)?;
        sums.add("span", operation.span.0).map_err(within)?;
        check_histogram("submit", &operation.submit, sums).map_err(within)?;
        check_histogram("completion", &operation.completion, sums).map_err(within)?;
    }
    if let Some(lag) = &load.lag {
        check_histogram("lag", lag, sums)?;
    }
    sums.add("unfinished", load.unfinished)?;
    sums.add("errors", load.errors)?;
    sums.add("first_error", load.first_error)?;
    sums.add("held_up", load.held_up)?;
    sums.add("deepest", load.deepest)?;
    sums.add("interval", load.interval.0)?;
    if let Some(verified) = &load.verified {
        check_verified(verified, sums)?;
    }
    let points = load.series.len() as u64;
    require_at_most(
        "series",
        points,
        ("the maximum of a series", SERIES_POINTS_MAX),
    )?;
    if points > 0 && load.interval.0 == 0 {
        return Err(Impossible::new(
            "interval",
            format!("is 0, but the series has {points} intervals"),
        ));
    }
    for (number, one) in load.series.iter().enumerate() {
        check_point(one, sums).map_err(|wrong| wrong.within(&format!("series[{number}]")))?;
    }
    Ok(())
}

/// Checks the counts of blocks that a worker read back and compared.
pub(super) fn check_verified(verified: &Verified, sums: &mut Sums) -> Result<(), Impossible> {
    sums.add("verified_written_bytes", verified.written_bytes)?;
    sums.add("verified_blocks", verified.blocks)?;
    sums.add("verified_bytes", verified.bytes)?;
    sums.add("unread_blocks", verified.unread_blocks)?;
    sums.add("mismatches", verified.mismatches)
}

fn check_point(one: &SeriesPoint, sums: &mut Sums) -> Result<(), Impossible> {
    sums.add("reads", one.reads)?;
    sums.add("read_bytes", one.read_bytes)?;
    sums.add("writes", one.writes)?;
    sums.add("name_calls", one.name_calls)?;
    sums.add("commits", one.commits)?;
    sums.add("written_bytes", one.written_bytes)?;
    check_histogram("series_response", &one.response, sums)
}

pub(super) fn check_histogram(
    name: &'static str,
    latencies: &Histogram,
    sums: &mut Sums,
) -> Result<(), Impossible> {
    for (latency_ns, count) in latencies.buckets() {
        require_at_most(name, *latency_ns, ("the maximum", LATENCY_NS_MAX))?;
        sums.add(name, *count)?;
    }
    Ok(())
}
