//! Checks on the trace facts that a replay stores.

use super::load::latencies;
use super::{Impossible, Sums};
use crate::replay::{TraceFacts, TraceReplay};

pub(super) fn check(replay: &TraceReplay) -> Result<(), Impossible> {
    let Some(held) = &replay.held else {
        return Ok(());
    };
    facts(held).map_err(|wrong| wrong.within("held"))
}

/// Checks the figures of a trace. The sums start at zero, because trace figures are never added to
/// those of the run.
fn facts(held: &TraceFacts) -> Result<(), Impossible> {
    let mut sums = Sums::default();
    for (name, kind) in held.operations() {
        let within = |wrong: Impossible| wrong.within(name);
        sums.add("requests", kind.requests).map_err(within)?;
        sums.add("bytes", kind.bytes).map_err(within)?;
        latencies("response", &kind.response, &mut sums).map_err(within)?;
    }
    for (name, figure) in [
        ("lasts_ns", held.lasts_ns),
        ("highest_bytes", held.highest_bytes),
        ("largest_bytes", held.largest_bytes),
    ] {
        sums.add(name, figure)?;
    }
    Ok(())
}
