//! The driver of an ACSI disk. It gives the controller one command at a time.

use super::hardware::Acsi;
use crate::driver::{Driver, DriverHost};
use crate::hardware::Hardware;
use crate::id::Id;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use std::cell::Cell;

/// The disk task's costs and its read-ahead.
#[derive(Clone, Debug)]
pub struct DiskTaskConfig {
    /// A physical request: setting the DMA chip up, handing the command over
    /// byte by byte, and fetching the status at its end.
    pub request: Time,
    /// Bytes that are read where fewer are asked for: what is too much is kept
    /// for later requests. None: 0.
    pub read_ahead_bytes: u32,
}

/// The driver.
pub(crate) struct Disk {
    config: DiskTaskConfig,
    controller: Id<Acsi>,
    in_flight: Cell<Option<RequestId>>,
}

impl Disk {
    /// The driver of this controller.
    pub(crate) fn new(config: DiskTaskConfig, controller: Id<Acsi>) -> Self {
        Self {
            config,
            controller,
            in_flight: Cell::new(None),
        }
    }
}

impl Driver for Disk {
    type Controller = Acsi;

    fn controllers(&self) -> Vec<Id<Acsi>> {
        vec![self.controller]
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        Some(self.config.request)
    }

    fn read_ahead_bytes(&self) -> u32 {
        self.config.read_ahead_bytes
    }

    fn insert(&self, _hardware: &Hardware, id: RequestId) {
        let before = self.in_flight.replace(Some(id));
        assert!(before.is_none(), "one request at a time");
    }

    async fn give(&self, host: &impl DriverHost, _drive: usize) {
        let id = self.in_flight.get().expect("a request was queued");
        let around = host.surroundings();
        host.ask(self.controller, |acsi, parts| {
            acsi.command(&around, parts, id);
        });
    }

    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Acsi>) {
        host.ask(controller, |acsi, _| acsi.acknowledge());
        host.completed(self.in_flight.take().expect("a command was given"));
    }
}
