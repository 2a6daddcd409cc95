//! What all disk drivers share: requests come from the kernel, and go back to who
//! waits for them. The drivers themselves are with their hardware, in `parts`.

pub(crate) mod disksort;

pub use disksort::QueueOrder;

use super::Kernel;
use super::buffers::BufferId;
use super::process::Context;
use crate::hardware::{Parts, Request, RequestId, Surroundings, moment};
use crate::parts::{Id, Kind};
use crate::standstill::{HardError, Standstill};
use diskperf_timeline::Stage;

/// Who is told of the completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Who waits for a buffer of the cache.
    Buffer(BufferId),
    /// Who moves data of this volume past the cache.
    Raw(u32),
}

impl Kernel {
    /// A request of somebody's, who gives it to its driver next.
    pub(super) fn issue(&self, request: Request, owner: Owner) -> RequestId {
        let id = self.hardware.borrow_mut().requests.issue(request);
        let mut owners = self.owners.borrow_mut();
        if owners.len() <= id.place() {
            owners.resize(id.place() + 1, owner);
        }
        owners[id.place()] = owner;
        id
    }

    /// A driver has seen a request's end: the request is over, and its owner is
    /// told.
    pub(crate) fn completed(&self, id: RequestId) {
        let owner = self.owners.borrow()[id.place()];
        let mut request = self.hardware.borrow_mut().requests.take(id);
        request.mark(Stage::Completion, moment(self.sim.now()));
        match owner {
            Owner::Buffer(buffer) => self.biodone(buffer, request),
            Owner::Raw(volume) => self.raw_done(volume, request),
        }
    }

    /// Counts a request that is over, of a buffer if it is one's, for which
    /// somebody waited or nobody.
    pub(crate) fn count_request(&self, of: Option<BufferId>, request: &Request, awaited: bool) {
        self.statistics.borrow_mut().count(request);
        let hardware = self.hardware.borrow();
        let drive = hardware.drives.get(request.device);
        self.trace_request(of, request, drive, awaited);
    }

    /// Takes a request; returns when it is queued or on its way.
    pub(crate) async fn strategy(&self, context: Context<'_>, id: RequestId) {
        let drive = self.hardware.borrow().requests[id].device;
        let driver = &self.drivers[self.driver_of[drive]];
        driver.strategy(self, context, id).await;
    }

    /// What has passed of a request's time since its last mark went to `stage`.
    pub(crate) fn mark(&self, id: RequestId, stage: Stage) {
        let now = moment(self.sim.now());
        self.hardware.borrow_mut().requests[id].mark(stage, now);
    }

    /// Does something with a controller.
    pub(crate) fn ask<C: Kind, T>(
        &self,
        controller: Id<C>,
        ask: impl FnOnce(&mut C, &mut Parts<'_>) -> T,
    ) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(controller);
        ask(controller, &mut parts)
    }

    /// Has a handler serve the interrupts of a controller.
    pub(crate) fn serve<C: Kind>(
        &self,
        controller: Id<C>,
        handler: impl Future<Output = ()> + 'static,
    ) {
        let controllers = &mut self.hardware.borrow_mut().controllers;
        let name = format!(
            "interrupts of controller {}",
            controllers.number(controller)
        );
        let task = self.sim.spawn(name, false, handler);
        controllers.get(controller).connect(task);
    }

    /// A driver gives a request up. Nothing that happens after a hard error is the
    /// programs' work.
    pub(crate) fn give_up(&self, id: RequestId, tries: u32) {
        let hardware = self.hardware.borrow();
        let request = &hardware.requests[id];
        self.halt(Standstill::HardError(HardError {
            at: self.sim.now(),
            drive: request.device,
            sector: request.sector,
            tries,
        }));
    }

    /// What hardware may touch besides itself.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            sim: &self.sim,
            processor: &self.processor,
        }
    }
}
