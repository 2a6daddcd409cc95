//! Reads that the buffers of disks answered: how many, and of what.

use super::response::waited_for;
use super::words::percent;
use diskperf_timeline::trace::{ArmWork, Purpose};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;

/// Reads of disks that have a buffer and a link of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Buffered {
    /// All of them.
    pub reads: u64,
    /// Those whose sectors the buffer had.
    pub answered: u64,
    /// Of these, those whose sectors the arm read on to within the elapsed time; it had the
    /// others of requests before.
    pub read_ahead: u64,
}

/// A smaller share of the reads is not worth a sentence.
const WORTH: f64 = 0.1;

impl Buffered {
    /// Within the elapsed time; nothing where no such disk was read.
    pub(super) fn of(trace: &Trace, window: (Nanoseconds, Nanoseconds)) -> Option<Self> {
        let mut passed: Vec<(u32, u64, u64)> = (trace.arms.iter())
            .filter(|arm| arm.work == ArmWork::ReadAhead && arm.until() > window.0)
            .map(|arm| (arm.drive, arm.sector, arm.sector + u64::from(arm.sectors)))
            .collect();
        passed.sort_unstable();
        let mut found = Self::default();
        for one in waited_for(trace, window) {
            let has_buffer = trace.drives[one.drive as usize].has_link;
            if one.purpose != Purpose::Read || !has_buffer {
                continue;
            }
            found.reads += 1;
            if one.spans.iter().any(|span| span.stage == Stage::CacheHit) {
                found.answered += 1;
                // Of the last sector: what was asked for before may end in the midst of it.
                let last = one.sector + u64::from(one.sectors) - 1;
                let before = passed.partition_point(|of| (of.0, of.1) <= (one.drive, last));
                let ahead = before.checked_sub(1).map(|place| passed[place]);
                let there = ahead.is_some_and(|(drive, _, end)| drive == one.drive && last < end);
                found.read_ahead += u64::from(there);
            }
        }
        (found.reads > 0).then_some(found)
    }

    /// That the medium had nothing to do with these, where it is worth a word.
    pub(super) fn sentence(&self) -> Option<String> {
        let share = self.answered as f64 / self.reads.max(1) as f64;
        if share < WORTH {
            return None;
        }
        let of_what = match self.answered - self.read_ahead {
            0 => "all of what it had read ahead".to_owned(),
            kept if self.read_ahead == 0 && kept == self.answered => {
                "of what it held from before: the medium has no part in their rate".to_owned()
            }
            kept => format!(
                "{} of what it had read ahead and {kept} of what it held from before",
                self.read_ahead
            ),
        };
        Some(format!(
            "The drive's cache answers {} of {} reads ({}) at the rate of its link, {of_what}.",
            self.answered,
            self.reads,
            percent(share)
        ))
    }
}
