//! Driver of an ACSI disk. It submits one command at a time to the controller.

use super::hardware::Acsi;
use crate::driver::{Driver, DriverHost};
use crate::hardware::Hardware;
use crate::id::Id;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use std::cell::Cell;

/// Costs and read-ahead of Minix's disk task.
#[derive(Clone, Debug)]
pub struct DiskTaskConfig {
    /// Processor time of a physical request: setup of the DMA chip, transfer of the command byte by
    /// byte, and fetch of the status at the end.
    pub request_cost: Time,
    /// Minimum size of a read, in bytes. The surplus is kept for later requests. 0 means no
    /// read-ahead.
    pub read_ahead_bytes: u32,
}

/// Driver of an ACSI disk, with its one request in flight.
pub(crate) struct DiskTaskDriver {
    config: DiskTaskConfig,
    controller: Id<Acsi>,
    in_flight: Cell<Option<RequestId>>,
}

impl DiskTaskDriver {
    /// Returns the driver of an ACSI controller.
    pub(crate) fn new(config: DiskTaskConfig, controller: Id<Acsi>) -> Self {
        Self {
            config,
            controller,
            in_flight: Cell::new(None),
        }
    }
}

impl Driver for DiskTaskDriver {
    type Controller = Acsi;

    fn controllers(&self) -> Vec<Id<Acsi>> {
        vec![self.controller]
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        Some(self.config.request_cost)
    }

    fn read_ahead_bytes(&self) -> u32 {
        self.config.read_ahead_bytes
    }

    fn enqueue(&self, _hardware: &Hardware, id: RequestId) {
        let before = self.in_flight.replace(Some(id));
        assert!(before.is_none(), "one request at a time");
    }

    async fn submit_queued(&self, host: &impl DriverHost, _drive: usize) {
        let id = self.in_flight.get().expect("a request was queued");
        let context = host.surroundings();
        host.ask(self.controller, |acsi, parts| {
            acsi.command(&context, parts, id);
        });
    }

    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Acsi>) {
        host.ask(controller, |acsi, _| acsi.acknowledge());
        host.completed(self.in_flight.take().expect("a command was given"));
    }
}
