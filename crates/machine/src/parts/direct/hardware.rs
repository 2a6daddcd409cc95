//! Connection of a device to the computer. It schedules the device's events, and interrupts when a
//! request is complete.

use crate::controllers::Controller;
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::Device;
use diskperf_device::RequestId;
use diskperf_sim::{TaskId, Time};

/// Connection of one device.
pub struct Direct {
    id: ComponentId<Direct>,
    device: ComponentId<Device>,
    /// Time of the next scheduled event of the device. None if no event is scheduled.
    next_event_at: Option<Time>,
    interrupt_handler: Option<TaskId>,
}

/// Event that a device connection schedules.
#[derive(Clone, Copy, Debug)]
pub enum DirectEvent {
    /// Time of the device's next event.
    DeviceEvent,
}

impl Controller for Direct {
    type ControllerEvent = DirectEvent;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        _: Self::ControllerEvent,
    ) {
        let now = context.now();
        self.next_event_at = self
            .next_event_at
            .filter(|next_event_at| *next_event_at > now);
        if parts.drives[self.device].advance(now, parts.submitted_requests) {
            let task = self.interrupt_handler.expect("its interrupt is connected");
            context.sim.wake_task(task);
        }
        self.schedule_next_event(context, parts);
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, parts: &HardwareParts<'_>) -> bool {
        parts.drives[self.device].has_completed_requests()
    }
}

impl Direct {
    /// Returns the connection of a device.
    pub fn new(id: ComponentId<Self>, device: ComponentId<Device>) -> Self {
        Self {
            id,
            device,
            next_event_at: None,
            interrupt_handler: None,
        }
    }

    /// Reports whether the device accepts another request.
    pub fn accepts_requests(&self, parts: &HardwareParts<'_>) -> bool {
        parts.drives[self.device].can_accept_request()
    }

    /// Submits a request to the device.
    ///
    /// # Panics
    ///
    /// If the device does not accept a request now.
    pub fn submit_request(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        parts.drives[self.device].accept_request(context.now(), parts.submitted_requests, id);
        self.schedule_next_event(context, parts);
    }

    /// Reaps the next completed request of the device, if any.
    pub fn take_completion(&mut self, parts: &mut HardwareParts<'_>) -> Option<RequestId> {
        parts.drives[self.device].take_completed_request()
    }

    fn schedule_next_event(&mut self, context: &SimulationContext<'_>, parts: &HardwareParts<'_>) {
        let next = parts.drives[self.device].next_event();
        let sooner = next.filter(|next| {
            self.next_event_at
                .is_none_or(|next_event_at| *next < next_event_at)
        });
        if let Some(next) = sooner {
            self.next_event_at = sooner;
            self.id
                .schedule_event(context, next, DirectEvent::DeviceEvent);
        }
    }
}
