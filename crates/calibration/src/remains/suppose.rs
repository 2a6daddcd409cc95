//! What a trace does not show of a drive, and may have been otherwise.

use crate::cache::Look;
use crate::model::{Prepared, State};
use crate::places::{Place, Placed};
use diskperf_diskspecs::trace::Operation;

/// What is not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// What the buffer held, and how far the drive had read ahead.
    Buffer,
    /// Where and when a write went that was reported early.
    Destage,
}

/// A request that came to the drive with one thing otherwise than the model has it.
pub(super) fn suppositions(
    state: &State<'_>,
    placed: &Placed,
    issue_us: f64,
) -> Vec<(Unseen, Prepared)> {
    let mut all = Vec::new();
    let as_modelled = state.prepare(placed, issue_us);
    let start_us = as_modelled.start_us;
    let mut suppose = |unseen: Unseen, look: Look, start_us: f64, arm: Place| {
        all.push((unseen, state.prepare_from(placed, look, start_us, arm)));
    };
    if placed.request.operation == Operation::Read
        && let Some((read, ahead)) = state.read_last()
    {
        // The drive had not begun to read ahead, or was at its end.
        for arm in [Some(read), ahead].into_iter().flatten() {
            suppose(Unseen::Buffer, as_modelled.look, start_us, arm);
            // None of it was held that the model had begun with.
            suppose(Unseen::Buffer, Look::Missing, start_us, arm);
        }
        // Reading ahead had brought the head to the request's own track.
        if reaches(placed, &read, ahead.as_ref()) {
            suppose(Unseen::Buffer, Look::Missing, start_us, *placed.first());
        }
    }
    if let Some(write) = state.destaged {
        let look = as_modelled.look;
        // Not begun; done before this came; begun and finished by now, wherever the model
        // has it.
        suppose(Unseen::Destage, look, issue_us, write.from);
        suppose(Unseen::Destage, look, issue_us, write.to);
        suppose(Unseen::Destage, look, start_us, write.from);
        suppose(Unseen::Destage, look, start_us, write.to);
        // Its own sector was missed once.
        let later_us = issue_us.max(state.busy_until_us + state.period_us());
        suppose(Unseen::Destage, look, later_us, write.to);
    }
    all
}

/// Whether reading ahead passes a request's first track.
fn reaches(placed: &Placed, read: &Place, ahead: Option<&Place>) -> bool {
    let cylinder = placed.first().cylinder;
    let end = ahead.map_or(read.cylinder, |ahead| ahead.cylinder);
    let range = read.cylinder.min(end)..=read.cylinder.max(end);
    range.contains(&cylinder)
}
