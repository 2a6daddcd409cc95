//! Driver of the up controller (up.c of 4.1c and 4.2BSD).
//!
//! With one drive configured, the controller receives a request immediately. With more drives, the
//! driver first commands a search for a sector some sectors ahead, unless that sector is about to
//! pass. A search during a data transfer would confuse the controller, so the driver remembers such
//! a drive and starts it at the next interrupt.

use super::hardware::{Up, UpCompletion};
use crate::driver::disksort::{self, RequestQueue};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::id::ComponentId;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Search parameters of a drive: the lead of the search, and the distance that needs no search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpSearchLead {
    /// Sectors between the searched sector and the wanted one (sdist).
    pub lead_sectors: u32,
    /// Distance below which the driver does not search, in sectors from the head to the searched
    /// sector (rdist).
    pub window_sectors: u32,
}

/// Constants and costs of the up driver for a drive.
#[derive(Clone, Debug, Default)]
pub struct UpDriverConfig {
    /// Search parameters; see [`UpSearchLead`].
    pub search_lead: UpSearchLead,
    /// Processor time to queue a request.
    pub strategy_cost: Time,
    /// Processor time to decide how to start a request, and to command the drive.
    pub start_cost: Time,
    /// Processor time to set one map register of the UNIBUS adapter, which maps 512 bytes.
    pub map_register_cost: Time,
    /// Processor time to handle the end of a transfer.
    pub complete_cost: Time,
}

/// Driver of an up controller, with the state of its drives.
pub(crate) struct UpDriver {
    queue_order: QueueOrder,
    drive_configs: Vec<UpDriverConfig>,
    controller: ComponentId<Up>,
    state: RefCell<UpDriverState>,
}

struct UpDriverState {
    drive_states: Vec<UpDriveState>,
    awaiting_controller: VecDeque<usize>,
    is_repeat: bool,
    /// Drives that wait for a search command because data were moving (upsoftas).
    deferred_searches: Vec<usize>,
}

#[derive(Clone, Default)]
struct UpDriveState {
    queue: RequestQueue,
    /// Whether the first request of the queue has been started.
    is_active: bool,
    /// Time at which the drive found the searched sector. None before that.
    sector_found_at: Option<Time>,
    error_count: u32,
}

/// Maximum number of failures of a transfer before the driver gives up.
const TRANSFER_ERRORS_MAX: u32 = 28;

impl Driver for UpDriver {
    type Controller = Up;

    fn controllers(&self) -> Vec<ComponentId<Up>> {
        vec![self.controller]
    }

    fn queueing_cost(&self, drive: usize) -> Option<Time> {
        Some(self.drive_configs[drive].strategy_cost)
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
        let unit =
            &mut self.state.borrow_mut().drive_states[hardware.submitted_requests[id].device];
        disksort::enqueue_request(self.queue_order, &mut unit.queue, hardware, id);
    }

    async fn submit_queued(&self, host: &impl DriverHost, drive: usize) {
        if !self.state.borrow().drive_states[drive].is_active {
            self.start_drive(host, drive).await;
            self.start_next_transfer(host).await;
        }
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, controller: ComponentId<Up>) {
        if let Some(done) = host.with_controller_parts(controller, |up, _| up.take_completion()) {
            self.complete_transfer(host, done).await;
        }
        let deferred_searches = std::mem::take(&mut self.state.borrow_mut().deferred_searches);
        for drive in deferred_searches {
            self.start_drive(host, drive).await;
        }
        while let Some(drive) = host.with_controller_parts(controller, |up, _| up.take_attention())
        {
            self.record_found_sector(host, drive);
            self.start_drive(host, drive).await;
        }
        self.start_next_transfer(host).await;
    }
}

impl UpDriver {
    /// Returns the driver of an up controller. `configs` holds the constants and costs for each
    /// drive of the computer.
    pub(crate) fn new(
        order: QueueOrder,
        configs: Vec<UpDriverConfig>,
        controller: ComponentId<Up>,
    ) -> Self {
        let state = UpDriverState {
            drive_states: vec![UpDriveState::default(); configs.len()],
            awaiting_controller: VecDeque::new(),
            is_repeat: false,
            deferred_searches: Vec::new(),
        };
        Self {
            queue_order: order,
            drive_configs: configs,
            controller,
            state: RefCell::new(state),
        }
    }

    /// Starts the first request of a drive (upustart): queues it for the controller, commands the
    /// drive to search, or remembers to do so later.
    async fn start_drive(&self, host: &impl DriverHost, drive: usize) {
        let (first, found) = {
            let unit = &mut self.state.borrow_mut().drive_states[drive];
            unit.is_active = !unit.queue.is_empty();
            let Some(first) = unit.queue.first() else {
                return;
            };
            (first.request, unit.sector_found_at.is_some())
        };
        let start = self.drive_configs[drive].start_cost;
        host.start_queued_request(first, start).await;
        let (configured, idle) = host.with_controller_parts(self.controller, |up, _| {
            (up.drives().mechanism_count(), up.is_idle())
        });
        let mut state = self.state.borrow_mut();
        if found || configured == 1 {
            state.awaiting_controller.push_back(drive);
        } else if !idle {
            state.deferred_searches.push(drive);
        } else if let Some(slot) = self.search_slot(host, first) {
            let context = host.surroundings();
            host.with_controller_parts(self.controller, |up, parts| {
                up.start_search(&context, parts, first, slot);
            });
        } else {
            state.awaiting_controller.push_back(drive);
        }
    }

    /// Returns the slot to search for, or None if the transfer may start without a search.
    fn search_slot(&self, host: &impl DriverHost, first: RequestId) -> Option<u32> {
        let mut hardware = host.hardware().borrow_mut();
        let (up, parts) = hardware.controller_with_parts(self.controller);
        let request = &parts.submitted_requests[first];
        let drive = &parts.drives[up.drives().mechanism_id_for_request(request)];
        let place = drive.geometry().locate_sector(request.sector);
        let slots = place.sectors_per_track;
        let lead = &self.drive_configs[request.device].search_lead;
        let target = (place.sector + slots - lead.lead_sectors % slots) % slots;
        if place.cylinder != drive.cylinder() {
            return Some(target);
        }
        let ahead = target + 2 * slots - drive.slot_under_head(host.surroundings().now());
        // csn > nsect - rdist, with csn counted back from the sector searched.
        let counted_back = slots - 1 - (ahead % slots);
        (counted_back <= slots - lead.window_sectors).then_some(target)
    }

    async fn start_next_transfer(&self, host: &impl DriverHost) {
        if !host.with_controller_parts(self.controller, |up, _| up.is_idle()) {
            return;
        }
        let (drive, first, found, is_repeat) = {
            let mut state = self.state.borrow_mut();
            let Some(drive) = state.awaiting_controller.pop_front() else {
                return;
            };
            let is_repeat = std::mem::take(&mut state.is_repeat);
            let unit = &state.drive_states[drive];
            (
                drive,
                unit.queue[0].request,
                unit.sector_found_at,
                is_repeat,
            )
        };
        host.mark_stage(first, Stage::ChannelWait);
        let register = self.drive_configs[drive].map_register_cost;
        host.spend_map_register_setup(first, register).await;
        let context = host.surroundings();
        host.with_controller_parts(self.controller, |up, parts| {
            up.start_transfer(&context, parts, first, found, is_repeat);
        });
    }

    fn record_found_sector(&self, host: &impl DriverHost, drive: usize) {
        let unit = &mut self.state.borrow_mut().drive_states[drive];
        let request = &host.hardware().borrow().submitted_requests[unit.queue[0].request];
        unit.sector_found_at = Some(Time(request.spans.marked_until().0));
    }

    async fn complete_transfer(&self, host: &impl DriverHost, done: UpCompletion) {
        let drive = host.hardware().borrow().submitted_requests[done.request].device;
        let cost = self.drive_configs[drive].complete_cost;
        host.spend_processor_time(Stage::Driver, cost).await;
        if done.is_data_late {
            let state = &mut *self.state.borrow_mut();
            let unit = &mut state.drive_states[drive];
            unit.error_count += 1;
            if unit.error_count > TRANSFER_ERRORS_MAX {
                host.fail_request(done.request, unit.error_count);
                return;
            }
            // The whole transfer is done again, before any other.
            state.awaiting_controller.push_front(drive);
            state.is_repeat = true;
            return;
        }
        {
            let unit = &mut self.state.borrow_mut().drive_states[drive];
            let first = unit.queue.remove(0);
            assert!(
                first.request == done.request,
                "the first of the queue was transferred"
            );
            unit.sector_found_at = None;
            unit.error_count = 0;
        }
        host.complete_request(done.request);
        self.start_drive(host, drive).await;
    }
}
