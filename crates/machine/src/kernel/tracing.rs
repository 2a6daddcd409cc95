//! Recording of a computer's events for a trace.

use super::computer::Computer;
use super::process::Process;
use crate::records::Tracing;
use diskperf_device::moment;
use diskperf_sim::{Time, Usage};
use diskperf_timeline::Stage;
use diskperf_timeline::trace::{Counted, Trace, TracedBusy, TracedUse, TracedWork};
use std::cell::RefCell;

impl Computer {
    /// Takes the trace of all events since the previous call; `None` if tracing is off.
    pub(crate) fn take_trace(&self) -> Option<Trace> {
        let mut hardware = self.hardware.borrow_mut();
        let mut taken = (self.records).take_trace(&mut hardware.drives, self.sim.now())?;
        let busy = hardware.controllers.busy(self.sim.now());
        taken.controllers = busy.iter().map(|busy| Some(busy.as_ref()?.0)).collect();
        Some(taken)
    }

    /// Returns the host memory of the media's blocks, and of all records, in bytes.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let made = self.volumes.made_bytes();
        let recorded = self.records.memory_bytes(&self.hardware.borrow().drives);
        let of_processes: usize = match self.records.tracing {
            Some(_) => self
                .cpus
                .with_processes(|all| all.iter().map(|one| one.traced_bytes()).sum()),
            None => 0,
        };
        (made, (recorded + of_processes) as u64)
    }

    /// Records that a process has obtained a block in a buffer, given the buffer's index. The use
    /// is added to the last request that filled the buffer.
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

    /// Records the work of an interrupt handler's routine that has just ended, if tracing is on.
    #[inline]
    pub(crate) fn trace_handler(&self, stage: Stage, usage: Usage) {
        if let Some(tracing) = &self.records.tracing {
            self.store_handler(tracing, stage, usage);
        }
    }

    #[cold]
    fn store_handler(&self, tracing: &RefCell<Tracing>, stage: Stage, usage: Usage) {
        if let Some(work) = traced_work(self.sim.now(), stage, usage) {
            tracing.borrow_mut().trace.handlers.push(work);
        }
    }

    /// Records a clock interrupt.
    pub(crate) fn trace_tick(&self) {
        let Some(tracing) = &self.records.tracing else {
            return;
        };
        let now = moment(self.sim.now());
        tracing.borrow_mut().trace.ticks.push(now);
    }

    /// Records the busy times of processor, bus, controllers and flash at the start or end of a
    /// program's timed part.
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

    /// Records the end of a program's timed part, with the routines that its process has run.
    pub(crate) fn trace_process(&self, process: &Process) {
        self.trace_busy();
        if self.records.tracing.is_some() {
            (self.records).trace_program(process.pid, process, process.traced_work());
        }
    }
}

/// Returns the trace record of a routine that has just ended, or `None` if it took no time.
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
