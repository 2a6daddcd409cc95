//! Which rule of a buffer answers the reads that were answered from one.

use crate::cache::{Buffer, CacheRule, Extent, Look, OnWrite};
use crate::places::Placed;
use diskperf_diskspecs::trace::Operation;

/// A request as it was measured.
pub(crate) struct Measured<'p> {
    pub(crate) placed: &'p Placed,
    pub(crate) issue_us: f64,
    pub(crate) completion_us: f64,
    /// Too fast to have waited for the platter.
    pub(crate) is_fast: bool,
}

const SEGMENTS: [u32; 10] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 32];
const AHEAD_BLOCKS: [u32; 12] = [0, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024];

/// The rule with the fewest errors, and read-ahead limits that have as few.
pub(crate) fn best(
    measured: &[Measured<'_>],
    filed: CacheRule,
    revolution_us: f64,
) -> (CacheRule, (u32, u32)) {
    let errors = |rule: CacheRule| errors(measured, rule, revolution_us);
    if !measured
        .iter()
        .any(|one| one.placed.request.operation == Operation::Read && one.is_fast)
    {
        return (
            CacheRule {
                segments: 0,
                ..filed
            },
            (0, 0),
        );
    }
    let mut tried = vec![filed];
    for extent in extents(filed) {
        for choice in 0..16 {
            for on_write in [OnWrite::Overlapping, OnWrite::All] {
                tried.push(CacheRule {
                    // As many as hardly matter: the number is chosen after the rule.
                    segments: filed.segments.max(1),
                    extent,
                    keeps_behind: choice & 1 != 0,
                    on_write,
                    keeps_written: choice & 2 != 0,
                    only_contiguous: choice & 4 != 0,
                    goes_on: choice & 8 != 0,
                });
            }
        }
    }
    let mut best = least(tried.into_iter(), errors).unwrap_or(filed);
    for _ in 0..2 {
        let by_segments = SEGMENTS.map(|segments| CacheRule { segments, ..best });
        best = least([best].into_iter().chain(by_segments), errors).unwrap_or(best);
        if let Extent::Ahead(blocks) = best.extent {
            let coarse = (blocks / 32).max(1);
            let near = |step: u32| {
                let from = blocks.saturating_sub(16 * step);
                (0..=32).map(move |at| from + at * step)
            };
            let limits = near(coarse).chain(near(1)).map(|blocks| CacheRule {
                extent: Extent::Ahead(blocks),
                ..best
            });
            best = least([best].into_iter().chain(limits), errors).unwrap_or(best);
        }
    }
    let Extent::Ahead(blocks) = best.extent else {
        return (best, (0, 0));
    };
    let fewest = errors(best);
    let as_good = |blocks: &u32| {
        errors(CacheRule {
            extent: Extent::Ahead(*blocks),
            ..best
        }) <= fewest
    };
    let low = (0..blocks)
        .rev()
        .take_while(as_good)
        .last()
        .unwrap_or(blocks);
    let high = (blocks + 1..blocks + 512)
        .take_while(as_good)
        .last()
        .unwrap_or(blocks);
    (best, (low, high))
}

fn extents(filed: CacheRule) -> Vec<Extent> {
    let tracks = [false, true].map(|and_next| Extent::Tracks { and_next });
    let ahead = AHEAD_BLOCKS.map(Extent::Ahead);
    tracks
        .into_iter()
        .chain(ahead)
        .chain([filed.extent])
        .collect()
}

fn least(
    rules: impl Iterator<Item = CacheRule>,
    errors: impl Fn(CacheRule) -> usize,
) -> Option<CacheRule> {
    rules
        .map(|rule| (errors(rule), rule))
        .min_by_key(|one| one.0)
        .map(|one| one.1)
}

/// Reads that the rule answers from the medium and the drive did not, or the other way
/// round.
fn errors(measured: &[Measured<'_>], rule: CacheRule, revolution_us: f64) -> usize {
    let mut buffer = Buffer::new(rule, revolution_us);
    let mut wrong = 0;
    for one in measured {
        if one.placed.request.operation == Operation::Write {
            buffer.was_written(one.placed, one.issue_us);
            continue;
        }
        let look = buffer.look(one.placed, one.issue_us);
        // What still has to come may be slow or fast: it says nothing.
        let may_be_either = matches!(look, Look::Coming { .. });
        wrong += usize::from(!may_be_either && (look == Look::Held) != one.is_fast);
        match one.is_fast {
            true => buffer.was_held(one.placed, one.completion_us),
            false => {
                buffer.stop(one.issue_us);
                buffer.was_read(one.placed, one.completion_us);
            }
        }
    }
    wrong
}
