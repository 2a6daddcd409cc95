//! Causes in sector searches: the driver's decision to start one, and its distance to the sector.

use super::SuspectedComponent;
use super::causes::{CandidateCause, CauseRank, new_cause};
use super::samples::{DRIVER_STAGES, last_stage_end_ns, median};
use crate::explanation::words;
use diskperf_timeline::trace::{DiskPosition, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use std::collections::BTreeMap;

/// Numbers of decisions for and against a sector search, by the value that may determine them.
type SearchDecisions = BTreeMap<u32, (u32, u32)>;

#[derive(Default)]
pub(super) struct SearchMeasures {
    /// Median distance in slots from the end of a search to the requested sector.
    search_lead_slots: Option<f64>,
    /// Share of requests (0 to 1) that started a search.
    search_share: f64,
    /// Decisions by the slot under the head, for requests whose arm was already on the cylinder.
    decisions_by_slot: SearchDecisions,
    /// Decisions by the slots from the head to the requested sector, for the same requests.
    decisions_by_distance: SearchDecisions,
}

/// Minimum difference between two runs in the share of requests that search, to count as a cause.
const SEARCH_SHARE_DIFFERENCE_MIN: f64 = 0.25;
/// Minimum number of decisions that must be opposite in two runs to count as a cause.
const DECISION_COUNT_MIN: u32 = 2;
/// Maximum share of exceptions at which a value, such as the slot under the head, counts as
/// deciding whether to search.
const EXCEPTION_SHARE_MAX: f64 = 0.02;

impl SearchMeasures {
    pub(super) fn from_trace(trace: &Trace, requests: &[&TracedRequest]) -> Self {
        let mut searches = Self::default();
        let mut leads = Vec::new();
        for request in requests {
            let Some(DiskPosition { slot, slots, .. }) = request.disk_position() else {
                continue;
            };
            // Nobody searches for a disk with firmware: it finds its sectors itself.
            if trace.drives[request.drive_index as usize].has_bus_link {
                continue;
            }
            let under_head = |at| find_slot_under_head(trace, (request, slots), at);
            let found = search_end_time(request);
            if let Some(found) = found {
                let ahead = f64::from(slot) - under_head(found);
                leads.push(ahead.rem_euclid(f64::from(slots)).round() % f64::from(slots));
            }
            let away = request
                .stage_intervals()
                .any(|interval| interval.stage == Stage::Seek);
            if !away {
                let head = under_head(search_decision_time(trace, request)) as u32;
                let distance = (slot + slots - head) % slots;
                count_search_decision(&mut searches.decisions_by_slot, head, found.is_some());
                count_search_decision(
                    &mut searches.decisions_by_distance,
                    distance,
                    found.is_some(),
                );
            }
        }
        searches.search_share = leads.len() as f64 / requests.len().max(1) as f64;
        searches.search_lead_slots = median(&mut leads);
        searches
    }
}

fn count_search_decision(decisions: &mut SearchDecisions, value: u32, did: bool) {
    let (yes, no) = decisions.entry(value).or_default();
    *(if did { yes } else { no }) += 1;
}

/// Returns the time at which the search of a request ended, if there was one. A search is a
/// rotational wait that something other than the transfer follows.
fn search_end_time(request: &TracedRequest) -> Option<Nanoseconds> {
    let is_wait = |stage| matches!(stage, Stage::RotationalLatency | Stage::MissedRevolution(_));
    let parts: Vec<_> = request.stage_intervals().collect();
    parts.windows(2).find_map(|pair| {
        let (wait, next) = (pair[0], pair[1]);
        let ended =
            is_wait(wait.stage) && !is_wait(next.stage) && next.stage != Stage::MediaTransfer;
        ended.then_some(wait.end)
    })
}

fn find_slot_under_head(
    trace: &Trace,
    (request, slots): (&TracedRequest, u32),
    at: Nanoseconds,
) -> f64 {
    let turned = trace.drives[request.drive_index as usize].revolutions_at(at);
    turned.rem_euclid(1.0) * f64::from(slots)
}

/// Returns the time of the decision whether to search: the end of the driver's first work on the
/// request. Where the transfer followed immediately, it is the start of the driver's last work.
fn search_decision_time(trace: &Trace, request: &TracedRequest) -> Nanoseconds {
    let until = Nanoseconds(last_stage_end_ns(request, DRIVER_STAGES));
    let next = request
        .stage_intervals()
        .find(|interval| interval.start >= until);
    let waited = next.is_some_and(|interval| interval.stage == Stage::ChannelWait);
    if waited || search_end_time(request).is_some() {
        return until;
    }
    let of_handler = trace
        .handler_work
        .partition_point(|work| work.work_end < until);
    let of_programs = trace.processes.iter().map(|process| {
        let ended = process
            .processor_work
            .partition_point(|work| work.work_end < until);
        process.processor_work.get(ended)
    });
    let mut last = of_programs
        .chain([trace.handler_work.get(of_handler)])
        .flatten();
    let last = last.find(|work| work.stage == Stage::Driver && work.work_end == until);
    last.map_or(until, |work| work.work_start)
}

/// Finds the differences between two runs in their sector searches.
pub(super) fn find_search_causes(a: &SearchMeasures, b: &SearchMeasures) -> Vec<CandidateCause> {
    let mut found = Vec::new();
    if let (Some(one), Some(other)) = (a.search_lead_slots, b.search_lead_slots)
        && (one - other).abs() >= 1.0
    {
        let evidence = format!(
            "searches end {one:.0} sectors before the target in one run and {other:.0} in the other"
        );
        found.push(new_cause(
            SuspectedComponent::Driver,
            (CauseRank::Policy, 2.0),
            evidence,
        ));
    }
    let (same_slot, same_distance) = (
        count_contradictions(&a.decisions_by_slot, &b.decisions_by_slot),
        count_contradictions(&a.decisions_by_distance, &b.decisions_by_distance),
    );
    // Where it is the slot that decides, the distance tells nothing.
    let (places, what) = match same_slot {
        Some(places) => (places, "with the head over the same sector"),
        None => (
            same_distance.unwrap_or(0),
            "with the sector at the same distance",
        ),
    };
    if places > 0 {
        let evidence = format!(
            "{what} the drive gets a search command in one run and not in the other, at {places} positions"
        );
        found.push(new_cause(
            SuspectedComponent::Driver,
            (CauseRank::Limit, 3.0),
            evidence,
        ));
    }
    let more = (a.search_share - b.search_share).abs();
    if more > SEARCH_SHARE_DIFFERENCE_MIN {
        let evidence = format!(
            "{} of the requests search in one run and {} in the other",
            words::format_percent(a.search_share),
            words::format_percent(b.search_share)
        );
        found.push(new_cause(
            SuspectedComponent::Driver,
            (CauseRank::Hint, more),
            evidence,
        ));
    }
    found
}

/// Counts the values for which two runs decide oppositely whether to search; `None` unless the
/// value decides in both runs.
fn count_contradictions(a: &SearchDecisions, b: &SearchDecisions) -> Option<usize> {
    let decides = |of: &SearchDecisions| {
        let all: u32 = of.values().map(|(did, did_not)| did + did_not).sum();
        let otherwise: u32 = of.values().map(|(did, did_not)| *did.min(did_not)).sum();
        let both = of.values().any(|(did, _)| *did > 0) && of.values().any(|(_, not)| *not > 0);
        both && f64::from(otherwise) <= EXCEPTION_SHARE_MAX * f64::from(all)
    };
    if !decides(a) || !decides(b) {
        return None;
    }
    let usual = |(did, did_not): &(u32, u32)| did > did_not;
    let both = a
        .iter()
        .filter_map(|(value, one)| Some((one, b.get(value)?)));
    let opposite: Vec<_> = both
        .filter(|(one, other)| usual(one) != usual(other))
        .collect();
    let of_a: u32 = opposite.iter().map(|((did, not), _)| did.max(not)).sum();
    let of_b: u32 = opposite.iter().map(|(_, (did, not))| did.max(not)).sum();
    Some(if of_a.min(of_b) >= DECISION_COUNT_MIN {
        opposite.len()
    } else {
        0
    })
}
