//! Driver of MASSBUS disks (hp.c and mba.c of July 1983).
//!
//! With one drive configured on its adaptor, the drive receives a request immediately and seeks on
//! its own. With two or more drives, the driver first commands a search for a sector ahead of the
//! wanted one, so that the channel stays free for the other drives. When the drive reports that it
//! is there, the transfer follows. This leads to two deadlines: the search command must arrive
//! before its sector passes, and the transfer command before the wanted sector passes.

use super::hardware::{Massbus, MassbusCompletion};
use crate::driver::disksort::{self, RequestQueue};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::hardware::mechanism::Mechanism;
use crate::id::ComponentId;
use diskperf_device::{Request, RequestId};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Test whether a sector on the current cylinder is near enough to transfer without a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionTest {
    /// Test of hp.c 4.18 (March 1981) to 6.2: the head is in the last sectors of the track,
    /// independent of the wanted sector.
    #[default]
    WithinLastSectors,
    /// Test of hp.c 6.3 (March 1984): the distance is above the maximum or below the minimum.
    OutsideWindow,
    /// Test of hp.c 7.6 (October 1987): the distance is between the minimum and the maximum.
    InsideWindow,
}

/// Search parameters of a drive: the lead of the search, and the distances that need no search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchLead {
    /// Sectors between the searched sector and the wanted one.
    pub lead_sectors: u32,
    /// Number of last sectors of the track in which [`PositionTest::WithinLastSectors`] skips the search.
    pub window_sectors: u32,
    /// Minimum distance, in sectors, for [`PositionTest::OutsideWindow`] and
    /// [`PositionTest::InsideWindow`].
    pub distance_sectors_min: u32,
    /// Maximum distance, in sectors, for [`PositionTest::OutsideWindow`] and
    /// [`PositionTest::InsideWindow`].
    pub distance_sectors_max: u32,
}

/// Constants and costs of the hp driver for a drive.
#[derive(Clone, Debug, Default)]
pub struct HpDriverConfig {
    /// Test whether a transfer needs no search; see [`PositionTest`].
    pub position_test: PositionTest,
    /// Search parameters; see [`SearchLead`].
    pub search_lead: SearchLead,
    /// Processor time to queue a request.
    pub strategy_cost: Time,
    /// Processor time to decide how to start a request, and to command the drive.
    pub start_cost: Time,
    /// Processor time to set one map register, which maps 512 bytes.
    pub map_register_cost: Time,
    /// Processor time to handle the end of a transfer.
    pub complete_cost: Time,
}

/// Driver of MASSBUS disks.
pub(crate) struct HpDriver {
    queue_order: QueueOrder,
    drive_configs: Vec<HpDriverConfig>,
    drive_states: RefCell<Vec<MassbusDriveState>>,
    controllers: Vec<ComponentId<Massbus>>,
    adaptors: RefCell<Vec<AdaptorState>>,
}

struct MassbusDriveState {
    adaptor: usize,
    queue: RequestQueue,
    drive_phase: MassbusDrivePhase,
    /// Time at which the drive found the searched sector. None before that.
    sector_found_at: Option<Time>,
    error_count: u32,
}

/// Maximum number of failures of a transfer before the driver gives up (hp.c, hpdtint: `b_errcnt >
/// 27`).
const TRANSFER_ERRORS_MAX: u32 = 27;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MassbusDrivePhase {
    /// Idle drive: its queue is empty, or its first request has not been started.
    Idle,
    /// Searching drive: it moves to the sector ahead of the first request of its queue.
    Positioning,
    /// Transferring drive: it waits for the channel, or has it.
    Transferring,
}

#[derive(Default)]
struct AdaptorState {
    awaiting_channel: VecDeque<usize>,
    is_repeat: bool,
}

impl HpDriver {
    /// Returns the driver of the given adaptors and their drives. `configs` holds the constants and
    /// costs for each drive of the computer.
    pub(crate) fn new(
        order: QueueOrder,
        configs: Vec<HpDriverConfig>,
        adaptors: Vec<(ComponentId<Massbus>, Vec<usize>)>,
    ) -> Self {
        let unit = |drive: usize| MassbusDriveState {
            // A drive of another driver's hangs on none of them, and is never asked for.
            adaptor: adaptors
                .iter()
                .position(|(_, of)| of.contains(&drive))
                .unwrap_or_default(),
            queue: RequestQueue::new(),
            drive_phase: MassbusDrivePhase::Idle,
            sector_found_at: None,
            error_count: 0,
        };
        Self {
            queue_order: order,
            drive_states: RefCell::new((0..configs.len()).map(unit).collect()),
            drive_configs: configs,
            controllers: adaptors.iter().map(|(id, _)| *id).collect(),
            adaptors: RefCell::new(adaptors.iter().map(|_| AdaptorState::default()).collect()),
        }
    }
}

impl Driver for HpDriver {
    type Controller = Massbus;

    fn controllers(&self) -> Vec<ComponentId<Massbus>> {
        self.controllers.clone()
    }

    fn queueing_cost(&self, drive: usize) -> Option<Time> {
        Some(self.drive_configs[drive].strategy_cost)
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
        let unit = &mut self.drive_states.borrow_mut()[hardware.submitted_requests[id].device];
        disksort::enqueue_request(self.queue_order, &mut unit.queue, hardware, id);
    }

    async fn submit_queued(&self, host: &impl DriverHost, drive: usize) {
        let (idle, adaptor) = {
            let unit = &self.drive_states.borrow()[drive];
            (unit.drive_phase == MassbusDrivePhase::Idle, unit.adaptor)
        };
        if idle {
            self.start_drive(host, drive).await;
            self.start_next_transfer(host, adaptor).await;
        }
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, controller: ComponentId<Massbus>) {
        let mut adaptors = self.controllers.iter();
        let adaptor = adaptors.position(|id| *id == controller);
        let adaptor = adaptor.expect("the adaptor is one of this driver's");
        let done = host.with_controller_parts(controller, |massbus, _| massbus.take_completion());
        if let Some(done) = done {
            self.complete_transfer(host, adaptor, done).await;
        }
        while let Some(place) =
            host.with_controller_parts(controller, |massbus, _| massbus.take_attention())
        {
            let drive = host.with_controller_parts(controller, |massbus, _| {
                massbus.drives().drive_index(place)
            });
            self.record_found_sector(host, drive);
            self.start_drive(host, drive).await;
        }
        self.start_next_transfer(host, adaptor).await;
    }
}

impl HpDriver {
    async fn start_drive(&self, host: &impl DriverHost, drive: usize) {
        let first = {
            let mut units = self.drive_states.borrow_mut();
            let unit = &mut units[drive];
            let Some(first) = unit.queue.first().map(|queued| queued.request) else {
                unit.drive_phase = MassbusDrivePhase::Idle;
                return;
            };
            // Whoever comes in while this takes its time must not start the
            // drive as well.
            if unit.drive_phase == MassbusDrivePhase::Idle {
                unit.drive_phase = MassbusDrivePhase::Positioning;
                unit.sector_found_at = None;
            }
            first
        };
        let config = &self.drive_configs[drive];
        host.start_queued_request(first, config.start_cost).await;
        let mut hardware = host.hardware().borrow_mut();
        let adaptor = self.drive_states.borrow()[drive].adaptor;
        let found = self.drive_states.borrow()[drive].sector_found_at.is_some();
        let id = self.controllers[adaptor];
        let (massbus, mut parts) = hardware.controller_with_parts(id);
        let searches = massbus.drives().mechanism_count() > 1 && !found;
        let slot = searches.then(|| {
            let request = &parts.submitted_requests[first];
            let mechanism = &parts.drives[massbus.drives().mechanism_id_for_request(request)];
            search_slot(mechanism, request, config)
        });
        match slot.flatten() {
            Some(slot) => {
                massbus.start_search(&host.surroundings(), &mut parts, first, slot);
            }
            None => {
                self.drive_states.borrow_mut()[drive].drive_phase = MassbusDrivePhase::Transferring;
                self.adaptors.borrow_mut()[adaptor]
                    .awaiting_channel
                    .push_back(drive);
            }
        }
    }

    async fn start_next_transfer(&self, host: &impl DriverHost, adaptor: usize) {
        let (drive, is_repeat) = {
            let mut hardware = host.hardware().borrow_mut();
            let mut adaptors = self.adaptors.borrow_mut();
            let state = &mut adaptors[adaptor];
            let massbus = hardware
                .controllers
                .controller_mut(self.controllers[adaptor]);
            if !massbus.is_idle() {
                return;
            }
            let Some(drive) = state.awaiting_channel.pop_front() else {
                return;
            };
            (drive, std::mem::take(&mut state.is_repeat))
        };
        let (first, found) = {
            let units = self.drive_states.borrow();
            (units[drive].queue[0].request, units[drive].sector_found_at)
        };
        host.mark_stage(first, Stage::ChannelWait);
        let register = self.drive_configs[drive].map_register_cost;
        host.spend_map_register_setup(first, register).await;
        let context = host.surroundings();
        host.with_controller_parts(self.controllers[adaptor], |massbus, parts| {
            massbus.start_transfer(&context, parts, first, found, is_repeat);
        });
    }
}

/// Returns the slot to search for, or None if the transfer may start without a search.
fn search_slot(mechanism: &Mechanism, request: &Request, config: &HpDriverConfig) -> Option<u32> {
    let place = mechanism.geometry().locate_sector(request.sector);
    let slots = place.sectors_per_track;
    let lead = &config.search_lead;
    let target = (place.sector + slots - lead.lead_sectors % slots) % slots;
    if place.cylinder != mechanism.cylinder() {
        return Some(target);
    }
    let under_head = mechanism.slot_under_head(last_mark_time(request));
    let distance = (target + 2 * slots - under_head - 1) % slots;
    let near = match config.position_test {
        PositionTest::WithinLastSectors => under_head + 1 > slots - lead.window_sectors,
        PositionTest::OutsideWindow => {
            distance > lead.distance_sectors_max || distance < lead.distance_sectors_min
        }
        PositionTest::InsideWindow => {
            (lead.distance_sectors_min..=lead.distance_sectors_max).contains(&distance)
        }
    };
    (!near).then_some(target)
}

/// Returns the time of a request's last mark. It is the current time for a driver that has just
/// spent time on the request.
fn last_mark_time(request: &Request) -> Time {
    Time(request.spans.marked_until().0)
}

impl HpDriver {
    fn record_found_sector(&self, host: &impl DriverHost, drive: usize) {
        let mut units = self.drive_states.borrow_mut();
        let unit = &mut units[drive];
        let first = unit.queue[0].request;
        let found = host.hardware().borrow().submitted_requests[first]
            .spans
            .marked_until();
        unit.sector_found_at = Some(Time(found.0));
    }

    async fn complete_transfer(
        &self,
        host: &impl DriverHost,
        adaptor: usize,
        done: MassbusCompletion,
    ) {
        let drive = host.hardware().borrow().submitted_requests[done.request_id].device;
        let cost = self.drive_configs[drive].complete_cost;
        host.spend_processor_time(Stage::Driver, cost).await;
        if done.is_data_late {
            let errors = {
                let errors = &mut self.drive_states.borrow_mut()[drive].error_count;
                *errors += 1;
                *errors
            };
            if errors > TRANSFER_ERRORS_MAX {
                host.fail_request(done.request_id, errors);
                return;
            }
            // The driver has the whole transfer done again, before any other.
            let mut adaptors = self.adaptors.borrow_mut();
            adaptors[adaptor].awaiting_channel.push_front(drive);
            adaptors[adaptor].is_repeat = true;
            return;
        }
        let id = {
            let mut units = self.drive_states.borrow_mut();
            let unit = &mut units[drive];
            unit.drive_phase = MassbusDrivePhase::Idle;
            unit.sector_found_at = None;
            unit.error_count = 0;
            unit.queue.remove(0).request
        };
        assert!(
            id == done.request_id,
            "the first of the queue was transferred"
        );
        host.complete_request(id);
        self.start_drive(host, drive).await;
    }
}
