//! Recording what happens, for those who want to see it.

use super::computer::Computer;
use super::process::Process;
use crate::records::Tracing;
use diskperf_device::moment;
use diskperf_sim::{Time, Usage};
use diskperf_timeline::Stage;
use diskperf_timeline::trace::{Counted, Trace, TracedBusy, TracedUse, TracedWork};
use std::cell::RefCell;

impl Computer {
    /// What was recorded since the last time this was asked.
    pub(crate) fn take_trace(&self) -> Option<Trace> {
        let mut hardware = self.hardware.borrow_mut();
        let mut taken = (self.records).take_trace(&mut hardware.drives, self.sim.now())?;
        let busy = hardware.controllers.busy(self.sim.now());
        taken.controllers = busy.iter().map(|busy| Some(busy.as_ref()?.0)).collect();
        Some(taken)
    }

    /// Memory of blocks that were made on the media, and of what is recorded.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let made = self.volumes.made_bytes();
        let recorded = self.records.bytes(&self.hardware.borrow().drives);
        let of_processes: usize = match self.records.tracing {
            Some(_) => self
                .cpus
                .processes(|all| all.iter().map(|one| one.traced_bytes()).sum()),
            None => 0,
        };
        (made, (recorded + of_processes) as u64)
    }

    /// A process has got a block that a transfer brought, in the buffer of this number.
    pub(crate) fn trace_use(&self, buffer: usize, process: &Process) {
        let Some(tracing) = &self.records.tracing else {
            return;
        };
        let got = TracedUse {
            process: process.pid as u32,
            at: moment(self.sim.now()),
        };
        tracing.borrow_mut().add_use(buffer, got);
    }

    /// A handler of an interrupt has worked up to now.
    #[inline]
    pub(crate) fn trace_handler(&self, stage: Stage, usage: Usage) {
        if let Some(tracing) = &self.records.tracing {
            self.keep_handler(tracing, stage, usage);
        }
    }

    #[cold]
    fn keep_handler(&self, tracing: &RefCell<Tracing>, stage: Stage, usage: Usage) {
        if let Some(work) = traced_work(self.sim.now(), stage, usage) {
            tracing.borrow_mut().trace.handlers.push(work);
        }
    }

    /// The clock interrupts.
    pub(crate) fn trace_tick(&self) {
        let Some(tracing) = &self.records.tracing else {
            return;
        };
        let now = moment(self.sim.now());
        tracing.borrow_mut().trace.ticks.push(now);
    }

    /// A program's timed part begins or ends.
    pub(crate) fn trace_busy(&self) {
        self.records.trace_busy(|| {
            let now = self.sim.now();
            let (processor, handlers) = self.cpus.processors.busy(&self.sim);
            let hardware = self.hardware.borrow();
            let of =
                |busy: Option<(Counted, Time)>| moment(busy.map_or(Time::ZERO, |(_, busy)| busy));
            TracedBusy {
                at: moment(now),
                processor: moment(processor),
                handlers: moment(handlers),
                bus: moment(hardware.bus.busy(now)),
                controllers: hardware.controllers.busy(now).into_iter().map(of).collect(),
                flash: hardware.drives.flash_busy(now),
            }
        });
    }

    /// A program's timed part has ended.
    pub(crate) fn trace_process(&self, process: &Process) {
        self.trace_busy();
        if self.records.tracing.is_some() {
            (self.records).trace_program(process.pid, process, process.traced_work());
        }
    }
}

/// A routine has worked up to now; none if it took no time.
pub(super) fn traced_work(now: Time, stage: Stage, usage: Usage) -> Option<TracedWork> {
    let took = usage.work + usage.interrupted + usage.slowed;
    (took > Time::ZERO).then(|| TracedWork {
        stage,
        from: moment(now - took),
        until: moment(now),
        own: moment(usage.work),
        slowed: moment(usage.slowed),
    })
}
