//! What all disk drivers share: requests come from the kernel, and go back to who
//! waits for them. The drivers themselves are with their hardware, in `parts`.

pub(crate) mod disksort;
pub(crate) mod giving;

pub use disksort::QueueOrder;

use super::Unix;
use super::buffers::BufferId;
use super::computer::Computer;
use super::process::{BIO, Context};
use super::raw::HeaderId;
use crate::controllers::{Controller, Kind};
use crate::hardware::{Hardware, Parts, Surroundings};
use crate::id::Id;
use crate::standstill::{HardError, Standstill};
use diskperf_device::{Request, RequestId, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Data that one map register maps.
const MAPPED_BYTES: u64 = 512;

/// The software that commands controllers of one kind: what differs from one kind to the
/// next. What all do alike is [`Driver::strategy`], and the way into their handlers.
pub(crate) trait Driver: 'static {
    /// What it commands.
    type Controller: Kind;

    /// Its controllers, each of which interrupts by itself.
    fn controllers(&self) -> Vec<Id<Self::Controller>>;

    /// What queueing a request of a drive takes, where that is a routine of its own.
    fn queueing(&self, drive: usize) -> Option<Time>;

    /// Puts a request where it belongs among those that wait for its drive.
    fn insert(&self, hardware: &Hardware, id: RequestId);

    /// Gives the controller of a drive what it may have, now that a request waits.
    async fn give(&self, kernel: &Unix, context: Context<'_>, drive: usize);

    /// Sees to what a controller interrupted for.
    async fn interrupt(&self, kernel: &Unix, controller: Id<Self::Controller>);

    /// Takes a request; returns when it is queued or on its way.
    async fn strategy(&self, kernel: &Unix, context: Context<'_>, id: RequestId) {
        let level = kernel.cpu.processor.mask(&kernel.sim, BIO);
        let drive = kernel.hardware.borrow().requests[id].device;
        if let Some(cost) = self.queueing(drive) {
            kernel.spend(context, Stage::Driver, cost).await;
        }
        kernel.mark(id, Stage::Driver);
        self.insert(&kernel.hardware.borrow(), id);
        self.give(kernel, context, drive).await;
        kernel.unmask(context, level).await;
    }

    /// Starts what serves the interrupts of its controllers, for ever.
    fn start(self: Rc<Self>, kernel: &Rc<Unix>)
    where
        Self: Sized,
    {
        for controller in self.controllers() {
            let handler = interrupts(Rc::clone(&self), Rc::clone(kernel), controller);
            kernel.serve(controller, handler);
        }
    }
}

/// Serves a controller's interrupts for ever.
async fn interrupts<D: Driver>(driver: Rc<D>, kernel: Rc<Unix>, controller: Id<D::Controller>) {
    loop {
        while !kernel.ask(controller, |controller, parts| controller.interrupts(parts)) {
            kernel.sim.wait("an interrupt of the controller").await;
        }
        kernel.cpu.processor.enter(&kernel.sim, BIO).await;
        kernel
            .spend(Context::Handler, Stage::Interrupt, kernel.costs.interrupt)
            .await;
        driver.interrupt(&kernel, controller).await;
        kernel.cpu.processor.leave(&kernel.sim);
    }
}

/// Who is told of the completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Who waits for a buffer of the cache.
    Buffer(BufferId),
    /// Who moves data past the cache, through this header.
    Raw(HeaderId),
}

impl Unix {
    /// A request of somebody's, who gives it to its driver next, and waits for it or not.
    pub(super) fn issue(&self, request: Request, owner: Owner, awaited: bool) -> RequestId {
        let id = self.hardware.borrow_mut().requests.issue(request);
        self.record_issue(id, awaited);
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
        self.records.completed(id, self.sim.now());
        let mut request = self.hardware.borrow_mut().requests.take(id);
        request.mark(Stage::Completion, moment(self.sim.now()));
        match owner {
            Owner::Buffer(buffer) => self.biodone(buffer, request),
            Owner::Raw(header) => self.raw_done(header, request),
        }
    }

    /// Takes a request; returns when it is queued or on its way.
    pub(crate) async fn strategy(&self, context: Context<'_>, id: RequestId) {
        let drive = self.hardware.borrow().requests[id].device;
        let driver = &self.drivers[self.driver_of[drive]];
        driver.strategy(self, context, id).await;
    }
}

impl Computer {
    /// Counts a request that is over, of a buffer if it is one's, for which
    /// somebody waited or nobody.
    pub(crate) fn count_request(&self, of: Option<BufferId>, request: &Request, awaited: bool) {
        let hardware = self.hardware.borrow();
        let drive = hardware.drives.get(request.device);
        let of = of.map(|BufferId(number)| number as usize);
        self.records.count(of, request, (drive, awaited));
    }

    /// A request was issued, for which somebody waits or nobody.
    pub(crate) fn record_issue(&self, id: RequestId, awaited: bool) {
        let hardware = self.hardware.borrow();
        let of = (&hardware.requests, &hardware.drives);
        self.records.issued(id, of, awaited);
    }

    /// Takes a request off its queue: so long it waited there, and so long it takes to
    /// make a command of it.
    pub(crate) async fn unqueue(&self, context: Context<'_>, id: RequestId, cost: Time) {
        self.mark(id, Stage::DriverQueue);
        self.spend(context, Stage::Driver, cost).await;
        self.mark(id, Stage::Driver);
    }

    /// Sets the map registers of a request's buffer, each at this cost.
    pub(crate) async fn map(&self, context: Context<'_>, id: RequestId, register: Time) {
        let bytes = self.hardware.borrow().bytes(id);
        // One more than the pages: a buffer may start within one.
        let registers = bytes.div_ceil(MAPPED_BYTES) + 1;
        let cost = Time(register.0 * registers);
        self.spend(context, Stage::Driver, cost).await;
        self.mark(id, Stage::Driver);
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
            processor: &self.cpu.processor,
        }
    }
}
