//! Accesses of the arms of disks with firmware, for requests or in the background.

use diskperf_timeline::trace::{ArmWork, DiskPosition, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use std::collections::BTreeMap;

/// Accesses of all disk arms in a run, with their positioning times.
#[derive(Default)]
pub(in super::super) struct AccessMeasures {
    /// Positioning time of each access in nanoseconds, up to its first sector, in ascending order.
    pub(in super::super) positioning_ns: Vec<u64>,
    ns_by_stage: BTreeMap<Stage, u64>,
    pub(in super::super) destage_count: usize,
    pub(in super::super) seek_ns_by_drive_and_distance: BTreeMap<(u32, u32), u64>,
    /// Median time of a head switch, together with any seek during it, in nanoseconds.
    pub(in super::super) head_switch_ns: Option<f64>,
    /// Shortest time in nanoseconds that an arm settles before a write.
    pub(in super::super) write_settle_ns: Option<f64>,
}

struct DiskAccess {
    drive: u32,
    end_ns: u64,
    position: DiskPosition,
    sector_range: (u64, u64),
    stage_ns: Vec<(Stage, u64)>,
    /// Background work that the access belongs to; `None` for a request.
    arm_work: Option<ArmWork>,
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

impl AccessMeasures {
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
            if one.arm_work != Some(ArmWork::Cleaning) {
                found.add_access(one);
            }
            let of = |which: Stage| {
                let own = one.stage_ns.iter().filter(|(stage, _)| *stage == which);
                own.map(|(_, ns)| ns).sum::<u64>()
            };
            let short = (one.sector_range.1 - one.sector_range.0) * SHORT_TRACK_DIVISOR
                <= u64::from(one.position.slots);
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
            let distance = match before.sector_range.1 == one.sector_range.0 {
                true => 1,
                false if short => before.position.cylinder.abs_diff(one.position.cylinder),
                false => 0,
            };
            if distance > 0 && seek > 0 {
                let known = found
                    .seek_ns_by_drive_and_distance
                    .entry((one.drive, distance))
                    .or_insert(seek);
                *known = seek.min(*known);
            }
        }
        found.positioning_ns.sort_unstable();
        found.head_switch_ns = super::super::samples::median(&mut heads);
        // Who goes on to other tracks rests on each.
        found.write_settle_ns = settles.into_iter().reduce(f64::min);
        found
    }

    fn add_access(&mut self, access: &DiskAccess) {
        let of_way = access
            .stage_ns
            .iter()
            .filter(|(stage, _)| is_positioning(*stage));
        self.positioning_ns
            .push(of_way.clone().map(|(_, ns)| ns).sum());
        for (stage, ns) in of_way {
            *self.ns_by_stage.entry(*stage).or_default() += ns;
        }
        self.destage_count += usize::from(access.arm_work == Some(ArmWork::Destage));
    }

    /// Counts the accesses that the statistics include, without those that clean bands.
    pub(in super::super) fn count(&self) -> usize {
        self.positioning_ns.len()
    }

    /// Returns the mean time that an access spends in the selected stages of positioning, in
    /// nanoseconds.
    pub(in super::super) fn mean_ns(&self, which: impl Fn(Stage) -> bool) -> f64 {
        let own = self.ns_by_stage.iter().filter(|(stage, _)| which(**stage));
        own.map(|(_, ns)| *ns).sum::<u64>() as f64 / self.count().max(1) as f64
    }
}

/// Collects the accesses that moved an arm within the elapsed time. Read-ahead is left out, since
/// it continues in place.
fn find_accesses(
    trace: &Trace,
    requests: &[&TracedRequest],
    (from, until): (Nanoseconds, Nanoseconds),
) -> Vec<DiskAccess> {
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
            .filter(|part| part.stage == Stage::MediaTransfer);
        found.push(DiskAccess {
            drive: one.drive_index,
            end_ns: passed
                .map(|part| part.end.0)
                .last()
                .unwrap_or(one.issued_at.0),
            position: at,
            sector_range: (one.sector, one.sector + u64::from(one.sector_count)),
            stage_ns: one
                .stage_intervals()
                .map(|interval| (interval.stage, interval.duration().0))
                .collect(),
            arm_work: None,
        });
    }
    let arms = trace
        .arm_traces
        .iter()
        .filter(|arm| arm.arm_work != ArmWork::ReadAhead);
    for arm in arms.filter(|arm| arm.work_end() > from && arm.work_start < until) {
        found.push(DiskAccess {
            drive: arm.drive_index,
            end_ns: arm.work_end().0,
            position: arm.arm_position,
            sector_range: (arm.sector, arm.sector + u64::from(arm.sector_count)),
            stage_ns: arm
                .stage_intervals()
                .map(|interval| (interval.stage, interval.duration().0))
                .collect(),
            arm_work: Some(arm.arm_work),
        });
    }
    found
}

/// Tests whether a request needed the arm: its sectors were neither in the buffer nor about to pass
/// the head anyway.
pub(super) fn moves_arm(request: &TracedRequest) -> bool {
    request.spans.iter().any(|span| is_positioning(span.stage))
}
