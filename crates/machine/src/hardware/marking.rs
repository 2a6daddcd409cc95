//! Time accounting of requests on a mechanism, shared by all controllers that command one.

use super::mechanism::{ArmMove, Mechanism, TransferTimes, is_missed_revolution};
use diskperf_device::{Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::{Deadline, Stage};

/// Books the phases of an arm movement to a request: seek, settle and head switch.
pub(crate) fn mark_arm_move(transfer: &mut Request, from: Time, arm: ArmMove) {
    let mut at = from;
    for (stage, span) in arm.stage_times() {
        at += span;
        transfer.book_stage(stage, moment(at));
    }
}

/// Books a transfer from its first sector up to a given time: media transfer, and the switches
/// between tracks.
pub(crate) fn mark_media_transfer(transfer: &mut Request, drive: &mut Mechanism, until: Time) {
    let spans = &mut transfer.spans;
    let from = Time(spans.marked_until().0);
    drive.for_each_transfer_stage(from, |stage, ends_at| {
        let ends_at = moment(ends_at.min(until));
        if ends_at > spans.marked_until() {
            spans.mark_stage(stage, ends_at);
        }
    });
    spans.mark_stage(Stage::MediaTransfer, moment(until));
}

/// Starts a drive's transfer of a request's sectors at time `at`, directly after the arm movement,
/// and books the time up to the first sector. A missed revolution is booked to `deadline`. Returns
/// the time when the first sector passes, and the times of the transfer.
pub(crate) fn transfer_and_mark(
    transfer: &mut Request,
    drive: &mut Mechanism,
    at: Time,
    (sector, sectors): (u64, u32),
    deadline: Deadline,
) -> (Time, TransferTimes) {
    let ready_since = drive.last_transfer_end();
    let passage = drive.transfer_sectors(at, sector, sectors, transfer.is_write());
    mark_arm_move(transfer, at, passage.move_to_track);
    let first = at + passage.time_to_first_sector();
    let period = drive.spindle().revolution_time();
    let stage = rotational_wait_stage(
        transfer,
        ready_since,
        period,
        first,
        passage.move_to_track,
        deadline,
    );
    transfer.book_stage(stage, moment(first));
    (first, passage)
}

/// Returns the stage of the wait for a sector that passes at `passes_at`. The stage is a missed
/// revolution if the sector already passed after `ready_since` with the arm in position, where
/// `ready_since` is the end of the drive's last transfer or the time when the drive found the
/// sector. Otherwise, it is the ordinary rotational latency.
pub(crate) fn rotational_wait_stage(
    transfer: &Request,
    ready_since: Option<Time>,
    period: Time,
    passes_at: Time,
    arm: ArmMove,
    deadline: Deadline,
) -> Stage {
    if !is_missed_revolution(ready_since, period, passes_at, arm) {
        return Stage::RotationalLatency;
    }
    if transfer.spans.issued_at().0 > passes_at.0 - period.0 {
        Stage::MissedRevolution(Deadline::ReadAhead)
    } else {
        Stage::MissedRevolution(deadline)
    }
}
