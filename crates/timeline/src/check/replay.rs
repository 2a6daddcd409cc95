//! Checks on the trace facts that a replay stores.

use super::load::check_histogram;
use super::{Impossible, Sums};
use crate::replay::{TraceFacts, TraceReplay};

pub(super) fn check(replay: &TraceReplay) -> Result<(), Impossible> {
    let Some(facts) = &replay.held else {
        return Ok(());
    };
    check_facts(facts).map_err(|wrong| wrong.within("held"))
}

/// Checks the figures of a trace. The sums start at zero, because trace figures are never added to
/// those of the run.
fn check_facts(facts: &TraceFacts) -> Result<(), Impossible> {
    let mut sums = Sums::default();
    for (name, kind) in facts.operations() {
        let within = |wrong: Impossible| wrong.within(name);
        sums.add("requests", kind.requests).map_err(within)?;
        sums.add("bytes", kind.bytes).map_err(within)?;
        check_histogram("response", &kind.response, &mut sums).map_err(within)?;
    }
    for (name, figure) in [
        ("lasts_ns", facts.lasts_ns),
        ("highest_bytes", facts.highest_bytes),
        ("largest_bytes", facts.largest_bytes),
    ] {
        sums.add(name, figure)?;
    }
    Ok(())
}
