//! The connection of a device: it has the device's events come up, and interrupts when a
//! request is done.

use crate::controllers::Controller;
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::Device;
use diskperf_device::RequestId;
use diskperf_sim::{TaskId, Time};

/// A device's connection.
pub struct Direct {
    id: Id<Direct>,
    device: Id<Device>,
    /// When the device is seen to next.
    due: Option<Time>,
    interrupt: Option<TaskId>,
}

/// What a connection schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum DirectEvent {
    /// Something happens in the device.
    Due,
}

impl Controller for Direct {
    type Event = DirectEvent;

    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, _: Self::Event) {
        let now = around.now();
        self.due = self.due.filter(|due| *due > now);
        if parts.drives[self.device].advance(now, parts.requests) {
            let task = self.interrupt.expect("its interrupt is connected");
            around.sim.wake(task);
        }
        self.see_to_next(around, parts);
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, parts: &Parts<'_>) -> bool {
        parts.drives[self.device].has_done()
    }
}

impl Direct {
    /// The connection of this device.
    pub fn new(id: Id<Self>, device: Id<Device>) -> Self {
        Self {
            id,
            device,
            due: None,
            interrupt: None,
        }
    }

    /// Whether the device takes another request.
    pub fn takes_requests(&self, parts: &Parts<'_>) -> bool {
        parts.drives[self.device].takes_requests()
    }

    /// Gives the device a request.
    ///
    /// # Panics
    ///
    /// When it takes none now.
    pub fn take(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        parts.drives[self.device].take(around.now(), parts.requests, id);
        self.see_to_next(around, parts);
    }

    /// The next request that is done, once.
    pub fn take_done(&mut self, parts: &mut Parts<'_>) -> Option<RequestId> {
        parts.drives[self.device].take_done()
    }

    /// Sees to the device when something happens in it next.
    fn see_to_next(&mut self, around: &Surroundings<'_>, parts: &Parts<'_>) {
        let next = parts.drives[self.device].next_event();
        let sooner = next.filter(|next| self.due.is_none_or(|due| *next < due));
        if let Some(next) = sooner {
            self.due = sooner;
            self.id.schedule(around, next, DirectEvent::Due);
        }
    }
}
