//! Alternative drive states for the parts of the state that a trace does not show.

use crate::places::LocatedRequest;
use crate::replay::SteppedReplay;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_diskspecs::trace::ValidationOperation;
use diskperf_sim::Time;

/// Part of the drive's state that a trace does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenState {
    /// Contents of the buffer and progress of read-ahead.
    BufferContents,
    /// Destage of an early-completed write: its place and time.
    PendingDestage,
}

#[derive(Clone, Copy)]
struct SupposedState {
    arm_position: (u32, u32),
    has_empty_buffer: bool,
    /// Actuator time spent before the request.
    busy_until: Time,
}

/// Returns the service times of a request for devices that differ in one part of their state.
/// `earlier` is the preceding request.
pub(super) fn explain_by_hidden_state(
    disk: &DiskSpecification,
    earlier: &LocatedRequest,
    placed: &LocatedRequest,
    before: SteppedReplay,
) -> Vec<(HiddenState, f64)> {
    let mut all = Vec::new();
    let mut suppose = |unseen: HiddenState, supposed: SupposedState| {
        let service_us = serve(before.clone(), placed, &supposed);
        all.push((unseen, service_us));
    };
    let layout = before.disk.mechanism().layout();
    let locate = |block: u64| {
        let place = layout.position_of(block);
        (place.cylinder, place.head)
    };
    let last = locate(earlier.end_block() - 1);
    let own = locate(placed.request.first_block);
    let at = |arm, has_empty_buffer| SupposedState {
        arm_position: arm,
        has_empty_buffer,
        busy_until: Time::ZERO,
    };
    match earlier.request.operation {
        ValidationOperation::Read => {
            let range = (earlier.request.first_block, earlier.end_block());
            let ahead = disk.read_cache.read_ahead_end(layout, range, range.0);
            let ahead = locate(ahead - 1);
            // The drive had not begun to read ahead, or was at its end; none of the request was
            // held that the device had.
            for arm in [last, ahead] {
                suppose(HiddenState::BufferContents, at(arm, false));
                suppose(HiddenState::BufferContents, at(arm, true));
            }
            // Reading ahead had brought the head to the request's own track.
            let passed = last.0.min(ahead.0)..=last.0.max(ahead.0);
            if passed.contains(&own.0) {
                suppose(HiddenState::BufferContents, at(own, true));
            }
        }
        ValidationOperation::Write => {
            let mechanism = before.disk.mechanism();
            let here = (mechanism.arm_cylinder(), mechanism.arm_head());
            // Not begun; over before the request came; its own sector was missed once.
            suppose(HiddenState::PendingDestage, at(here, false));
            suppose(HiddenState::PendingDestage, at(last, false));
            let busy = mechanism.spindle().revolution_time();
            let late = SupposedState {
                busy_until: busy,
                ..at(last, false)
            };
            suppose(HiddenState::PendingDestage, late);
        }
    }
    all
}

fn serve(mut device: SteppedReplay, placed: &LocatedRequest, supposed: &SupposedState) -> f64 {
    let issue = device.now;
    device.disk.suppose_idle_at(issue, supposed.arm_position);
    if supposed.has_empty_buffer {
        device.disk.suppose_empty_read_cache();
    }
    let served = device.serve(issue + supposed.busy_until, &placed.request);
    served.service_us + supposed.busy_until.0 as f64 / 1e3
}
