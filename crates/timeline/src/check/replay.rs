//! Checks on the trace facts that a replay stores.

use super::load::check_histogram;
use super::{CheckedSums, ImpossibleValue};
use crate::replay::{TraceFacts, TraceReplay};

pub(super) fn check_replay(replay: &TraceReplay) -> Result<(), ImpossibleValue> {
    let Some(facts) = &replay.trace_facts else {
        return Ok(());
    };
    check_trace_facts(facts).map_err(|wrong| wrong.within_field("held"))
}

/// Checks the figures of a trace. The sums start at zero, because trace figures are never added to
/// those of the run.
fn check_trace_facts(facts: &TraceFacts) -> Result<(), ImpossibleValue> {
    let mut sums = CheckedSums::default();
    for (name, kind) in facts.named_operations() {
        let within = |wrong: ImpossibleValue| wrong.within_field(name);
        sums.add_checked("requests", kind.request_count)
            .map_err(within)?;
        sums.add_checked("bytes", kind.bytes).map_err(within)?;
        check_histogram("response", &kind.response_times, &mut sums).map_err(within)?;
    }
    for (name, figure) in [
        ("lasts_ns", facts.duration_ns),
        ("highest_bytes", facts.end_offset_bytes_max),
        ("largest_bytes", facts.transfer_bytes_max),
    ] {
        sums.add_checked(name, figure)?;
    }
    Ok(())
}
