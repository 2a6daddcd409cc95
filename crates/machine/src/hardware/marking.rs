//! Where the time of a request goes on a mechanism: what all controllers share that
//! drive one.

use super::mechanism::{Mechanism, Move, Passage, was_missed};
use diskperf_device::{Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::{Deadline, Stage};

/// Books the arm's way.
pub(crate) fn mark_move(transfer: &mut Request, from: Time, arm: Move) {
    let mut at = from;
    for (stage, span) in arm.stages() {
        at += span;
        transfer.mark(stage, moment(at));
    }
}

/// Books what a transfer has done from its first sector on up to a moment: its
/// sectors passing, and the ways from one track to the next.
pub(crate) fn mark_passing(transfer: &mut Request, drive: &mut Mechanism, until: Time) {
    let spans = &mut transfer.spans;
    let from = Time(spans.marked().0);
    drive.tell_stages(from, |stage, ends| {
        let ends = moment(ends.min(until));
        if ends > spans.marked() {
            spans.mark(stage, ends);
        }
    });
    spans.mark(Stage::MediaTransfer, moment(until));
}

/// Has a drive transfer sectors of a request from `at` on, with nothing between the arm's
/// way and the first of them; books both. `late` is what a missed revolution was missed
/// for. When the first sector comes by, and how the whole goes.
pub(crate) fn go_for(
    (transfer, drive): (&mut Request, &mut Mechanism),
    at: Time,
    (sector, sectors): (u64, u32),
    late: Deadline,
) -> (Time, Passage) {
    let since = drive.last_transfer();
    let passage = drive.transfer(at, sector, sectors, transfer.is_write());
    mark_move(transfer, at, passage.to_track);
    let first = at + passage.to_first_sector();
    let period = drive.spindle().period();
    let stage = late_stage(transfer, since, period, first, passage.to_track, late);
    transfer.mark(stage, moment(first));
    (first, passage)
}

/// What waiting for a sector that comes by at `comes` is: a missed revolution,
/// if the sector came by before, since `since` (the drive's last transfer, or
/// its finding the sector) with the arm where it is; otherwise the ordinary
/// rotational latency.
pub(crate) fn late_stage(
    transfer: &Request,
    since: Option<Time>,
    period: Time,
    comes: Time,
    arm: Move,
    deadline: Deadline,
) -> Stage {
    if !was_missed(since, period, comes, arm) {
        return Stage::RotationalLatency;
    }
    if transfer.spans.issued().0 > comes.0 - period.0 {
        Stage::MissedRevolution(Deadline::ReadAhead)
    } else {
        Stage::MissedRevolution(deadline)
    }
}
