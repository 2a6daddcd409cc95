//! Reads that disks served from their buffers, divided by the origin of the buffered data.

use super::response::find_awaited_requests;
use super::words::format_percent;
use diskperf_timeline::trace::{ArmWork, RequestPurpose, TracedArm};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// Reads of disks that have a buffer and a link of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BufferHits {
    /// Number of reads of disks with a buffer.
    #[serde(rename = "reads")]
    pub read_count: u64,
    /// Number of reads whose sectors were in the buffer.
    #[serde(rename = "answered")]
    pub buffer_hit_count: u64,
    /// Number of buffer hits on sectors that read-ahead fetched within the elapsed time. The other
    /// hits are on data of earlier requests.
    #[serde(rename = "read_ahead")]
    pub read_ahead_hit_count: u64,
}

/// Minimum share of buffer hits among the reads that the explanation mentions.
const MENTION_SHARE_MIN: f64 = 0.1;

/// Disjoint extents of sectors that read-ahead fetched: the end of each by drive and first sector.
#[derive(Default)]
struct ReadAheadExtents(BTreeMap<(u32, u64), u64>);

impl ReadAheadExtents {
    fn add_arm_work(&mut self, arm: &TracedArm) {
        let (mut first, mut end) = (arm.sector, arm.sector + u64::from(arm.sector_count));
        // What it meets becomes one with it.
        let drive = arm.drive_index;
        while let Some((at, other)) = self.0.range((drive, 0)..=(drive, end)).next_back() {
            let (at, other) = (*at, *other);
            if other < first {
                break;
            }
            (first, end) = (first.min(at.1), end.max(other));
            self.0.remove(&at);
        }
        self.0.insert((drive, first), end);
    }

    fn contains(&self, drive: u32, sector: u64) -> bool {
        let below = self.0.range((drive, 0)..=(drive, sector)).next_back();
        below.is_some_and(|(_, end)| sector < *end)
    }
}

impl BufferHits {
    /// Counts the buffered reads within the elapsed time; `None` where no disk with a buffer was
    /// read.
    pub(super) fn from_trace(trace: &Trace, window: (Nanoseconds, Nanoseconds)) -> Option<Self> {
        let reads_ahead = |arm: &&TracedArm| arm.arm_work == ArmWork::ReadAhead;
        let mut ahead: Vec<&TracedArm> = (trace.arm_traces.iter())
            .filter(reads_ahead)
            .filter(|arm| arm.work_end() > window.0)
            .collect();
        ahead.sort_unstable_by_key(|arm| arm.work_start);
        let mut ahead = ahead.into_iter().peekable();
        let mut passed = ReadAheadExtents::default();
        let mut requests = find_awaited_requests(trace, window);
        requests.sort_by_key(|one| one.completed_at());
        let mut found = Self::default();
        for one in requests {
            // What is read on to afterwards did not answer this one.
            while let Some(arm) = ahead.next_if(|arm| arm.work_start < one.completed_at()) {
                passed.add_arm_work(arm);
            }
            let has_buffer = trace.drives[one.drive_index as usize].has_bus_link;
            if one.purpose != RequestPurpose::Read || !has_buffer {
                continue;
            }
            found.read_count += 1;
            if one.spans.iter().any(|span| span.stage == Stage::CacheHit) {
                found.buffer_hit_count += 1;
                // Of the last sector: what was asked for before may end in the midst of it.
                let last = one.sector + u64::from(one.sector_count) - 1;
                found.read_ahead_hit_count += u64::from(passed.contains(one.drive_index, last));
            }
        }
        (found.read_count > 0).then_some(found)
    }

    /// Describes the reads served from the buffer, where their share is worth a sentence.
    pub(super) fn describe_hits(&self) -> Option<String> {
        let share = self.buffer_hit_count as f64 / self.read_count.max(1) as f64;
        if share < MENTION_SHARE_MIN {
            return None;
        }
        let of_what = match self.buffer_hit_count - self.read_ahead_hit_count {
            0 => "all from read-ahead".to_owned(),
            kept if self.read_ahead_hit_count == 0 && kept == self.buffer_hit_count => {
                "from data cached earlier: the media do not limit their rate".to_owned()
            }
            kept => format!(
                "{} from read-ahead and {kept} from data cached earlier",
                self.read_ahead_hit_count
            ),
        };
        Some(format!(
            "The drive's cache answers {} of {} reads ({}) at the rate of its link, {of_what}.",
            self.buffer_hit_count,
            self.read_count,
            format_percent(share)
        ))
    }
}
