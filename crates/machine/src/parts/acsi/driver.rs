//! What Minix's disk task has of its controller: the task itself is a process of
//! Minix's, and takes messages.

use super::hardware::Acsi;
use crate::controllers::Controller;
use crate::id::Id;
use crate::kernel::minix::Minix;
use crate::kernel::minix::message::Endpoint;
use crate::kernel::process::{BIO, Context};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::rc::Rc;

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

/// A controller that the disk task commands, and the drives that hang on it.
pub(crate) struct Disk {
    pub(crate) config: DiskTaskConfig,
    pub(crate) controller: Id<Acsi>,
    pub(crate) drives: Vec<usize>,
}

impl Disk {
    /// Starts what serves the controller's interrupts, for ever.
    pub(crate) fn start(self: Rc<Self>, kernel: &Rc<Minix>) {
        let handler = Rc::clone(&self).interrupts(Rc::clone(kernel));
        kernel.serve(self.controller, handler);
    }

    /// Makes the controller's interrupts messages to the disk task, for ever.
    async fn interrupts(self: Rc<Self>, kernel: Rc<Minix>) {
        loop {
            while !kernel.ask(self.controller, |acsi, parts| acsi.interrupts(parts)) {
                kernel.sim.wait("an interrupt of the controller").await;
            }
            kernel.cpu.processor.enter(&kernel.sim, BIO).await;
            // An interrupt is a message too.
            let cost: Time = kernel.config.message;
            kernel.spend(Context::Handler, Stage::Interrupt, cost).await;
            kernel.ask(self.controller, |acsi, _| acsi.acknowledge());
            kernel.interrupt_task(Endpoint::Disk);
            kernel.cpu.processor.leave(&kernel.sim);
        }
    }
}
