//! Accesses of the arms of disks with firmware, for requests or in the background.

use diskperf_timeline::trace::{ArmWork, DiskPosition, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use std::collections::BTreeMap;

/// Accesses of all disk arms in a run, with their positioning times.
#[derive(Default)]
pub(in super::super) struct Accesses {
    /// Positioning time of each access in nanoseconds, up to its first sector, in ascending order.
    pub(in super::super) positioning: Vec<u64>,
    /// Total positioning time of all accesses in nanoseconds, by stage.
    stages: BTreeMap<Stage, u64>,
    /// Number of accesses that destaged buffered writes.
    pub(in super::super) destages: usize,
    /// Shortest seek time in nanoseconds over each distance, for each drive.
    pub(in super::super) seeks: BTreeMap<(u32, u32), u64>,
    /// Median time of a head switch, together with any seek during it, in nanoseconds.
    pub(in super::super) head_switch_ns: Option<f64>,
    /// Shortest time in nanoseconds that an arm settles before a write.
    pub(in super::super) write_settle_ns: Option<f64>,
}

struct Access {
    drive: u32,
    end_ns: u64,
    at: DiskPosition,
    sectors: (u64, u64),
    parts: Vec<(Stage, u64)>,
    /// Background work that the access belongs to; `None` for a request.
    work: Option<ArmWork>,
}

/// Divisor of a track's length. An access up to that part of a track hardly ever continues on
/// another track.
const SHORT_TRACK_DIVISOR: u64 = 8;

fn is_positioning(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Seek
            | Stage::HeadSwitch
            | Stage::WriteSettle
            | Stage::RotationalLatency
            | Stage::MissedRevolution(_)
    )
}

impl Accesses {
    pub(in super::super) fn from_trace(
        trace: &Trace,
        requests: &[&TracedRequest],
        window: (Nanoseconds, Nanoseconds),
    ) -> Self {
        let mut all = find_accesses(trace, requests, window);
        all.sort_by_key(|one| (one.drive, one.end_ns));
        let mut found = Self::default();
        let (mut heads, mut settles) = (Vec::new(), Vec::new());
        for (number, one) in all.iter().enumerate() {
            // Bands are cleaned in an order of their own; the arm goes on from there.
            if one.work != Some(ArmWork::Cleaning) {
                found.add_access(one);
            }
            let of = |which: Stage| {
                let own = one.parts.iter().filter(|(stage, _)| *stage == which);
                own.map(|(_, ns)| ns).sum::<u64>()
            };
            let short =
                (one.sectors.1 - one.sectors.0) * SHORT_TRACK_DIVISOR <= u64::from(one.at.slots);
            let (seek, head) = (of(Stage::Seek), of(Stage::HeadSwitch));
            if short && head > 0 {
                heads.push((seek + head) as f64);
            }
            if of(Stage::WriteSettle) > 0 {
                settles.push(of(Stage::WriteSettle) as f64);
            }
            let before = number.checked_sub(1).map(|number| &all[number]);
            let Some(before) = before.filter(|before| before.drive == one.drive) else {
                continue;
            };
            // What goes on where the last one ended goes to the next cylinder, if anywhere.
            let distance = match before.sectors.1 == one.sectors.0 {
                true => 1,
                false if short => before.at.cylinder.abs_diff(one.at.cylinder),
                false => 0,
            };
            if distance > 0 && seek > 0 {
                let known = found.seeks.entry((one.drive, distance)).or_insert(seek);
                *known = seek.min(*known);
            }
        }
        found.positioning.sort_unstable();
        found.head_switch_ns = super::super::samples::median(&mut heads);
        // Who goes on to other tracks rests on each.
        found.write_settle_ns = settles.into_iter().reduce(f64::min);
        found
    }

    fn add_access(&mut self, access: &Access) {
        let of_way = access
            .parts
            .iter()
            .filter(|(stage, _)| is_positioning(*stage));
        self.positioning
            .push(of_way.clone().map(|(_, ns)| ns).sum());
        for (stage, ns) in of_way {
            *self.stages.entry(*stage).or_default() += ns;
        }
        self.destages += usize::from(access.work == Some(ArmWork::Destage));
    }

    /// Counts the accesses that the statistics include, without those that clean bands.
    pub(in super::super) fn count(&self) -> usize {
        self.positioning.len()
    }

    /// Returns the mean time that an access spends in the selected stages of positioning, in
    /// nanoseconds.
    pub(in super::super) fn mean_ns(&self, which: impl Fn(Stage) -> bool) -> f64 {
        let own = self.stages.iter().filter(|(stage, _)| which(**stage));
        own.map(|(_, ns)| *ns).sum::<u64>() as f64 / self.count().max(1) as f64
    }
}

/// Collects the accesses that moved an arm within the elapsed time. Read-ahead is left out, since
/// it continues in place.
fn find_accesses(
    trace: &Trace,
    requests: &[&TracedRequest],
    (from, until): (Nanoseconds, Nanoseconds),
) -> Vec<Access> {
    let mut found = Vec::new();
    for one in requests {
        let has_firmware = trace.drives[one.drive_index as usize].has_bus_link;
        let Some(at) = one
            .disk_position()
            .filter(|_| has_firmware && moves_arm(one))
        else {
            continue;
        };
        let passed = one
            .stage_intervals()
            .filter(|part| part.0 == Stage::MediaTransfer);
        found.push(Access {
            drive: one.drive_index,
            end_ns: passed
                .map(|part| part.2.0)
                .last()
                .unwrap_or(one.issued_at.0),
            at,
            sectors: (one.sector, one.sector + u64::from(one.sector_count)),
            parts: one
                .stage_intervals()
                .map(|(stage, a, b)| (stage, b.0 - a.0))
                .collect(),
            work: None,
        });
    }
    let arms = trace
        .arm_traces
        .iter()
        .filter(|arm| arm.arm_work != ArmWork::ReadAhead);
    for arm in arms.filter(|arm| arm.work_end() > from && arm.work_start < until) {
        found.push(Access {
            drive: arm.drive_index,
            end_ns: arm.work_end().0,
            at: arm.arm_position,
            sectors: (arm.sector, arm.sector + u64::from(arm.sector_count)),
            parts: arm
                .stage_intervals()
                .map(|(stage, a, b)| (stage, b.0 - a.0))
                .collect(),
            work: Some(arm.arm_work),
        });
    }
    found
}

/// Tests whether a request needed the arm: its sectors were neither in the buffer nor about to pass
/// the head anyway.
pub(super) fn moves_arm(request: &TracedRequest) -> bool {
    request.spans.iter().any(|span| is_positioning(span.stage))
}
