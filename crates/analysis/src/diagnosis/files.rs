//! Causes in the layout of files: the positions and lengths of their blocks.

use super::causes::{CandidateCause, CauseRank, new_cause};
use super::{RunEnding, SuspectedComponent, measures::TraceMeasures};
use diskperf_timeline::units::format_size;

/// Minimum share of addresses requested by only one of two runs that counts as another file layout.
/// A few requests are writes that the kernel issues at arbitrary times.
const NEW_ADDRESS_SHARE_MIN: f64 = 0.04;
/// Minimum share of common distances between consecutive requests at which files count as moved as
/// a whole, without a new layout.
const EQUAL_STEP_SHARE_MIN: f64 = 0.97;

pub(super) fn find_layout_cause(
    a: &TraceMeasures,
    b: &TraceMeasures,
    ending: RunEnding,
) -> Option<CandidateCause> {
    let common = a
        .request_addresses
        .intersection(&b.request_addresses)
        .count() as f64;
    let (of_a, of_b) = (a.request_addresses.len(), b.request_addresses.len());
    let all = match ending {
        RunEnding::WorkDone => of_a.max(of_b),
        // The slower one does not come to all that the faster one asks for.
        RunEnding::TimeElapsed => of_a.min(of_b),
    };
    let all = all.max(1) as f64;
    let elsewhere = 1.0 - common / all;
    if elsewhere < NEW_ADDRESS_SHARE_MIN {
        return None;
    }
    let counted = |of: &TraceMeasures| of.request_steps.values().sum::<u64>().max(1) as f64;
    let (of_a, of_b) = (counted(a), counted(b));
    let shares = a.request_steps.iter().map(|(step, count)| {
        let other = b.request_steps.get(step).copied().unwrap_or(0);
        (*count as f64 / of_a).min(other as f64 / of_b)
    });
    let same: f64 = shares.sum();
    if common == 0.0 && same > EQUAL_STEP_SHARE_MIN {
        let evidence =
            "the same blocks, equally spaced, are at another position on the drive".to_owned();
        return Some(new_cause(
            SuspectedComponent::Drive,
            (CauseRank::Layout, 1.0),
            evidence,
        ));
    }
    let usual = |of: &TraceMeasures| {
        let most = of.request_steps.iter().max_by_key(|(_, count)| **count);
        most.map_or_else(String::new, |((step, bytes), _)| {
            let sign = if *step < 0 { "-" } else { "" };
            format!(
                "{}, {sign}{} after the one before",
                format_size(*bytes),
                format_size(step.unsigned_abs())
            )
        })
    };
    let evidence = if usual(a) == usual(b) {
        format!(
            "the files are laid out differently: {:.0} of {all:.0} blocks are at other positions",
            elsewhere * all
        )
    } else {
        format!(
            "the files are laid out differently: most blocks are of {} in one run, and of {} in the other",
            usual(a),
            usual(b)
        )
    };
    Some(new_cause(
        SuspectedComponent::Filesystem,
        (CauseRank::Layout, 1.0 + elsewhere),
        evidence,
    ))
}
