//! Recording of a computer's events for a trace.

use super::computer::Computer;
use super::process::Process;
use crate::records::RunTracing;
use diskperf_device::moment;
use diskperf_sim::{Time, Usage};
use diskperf_timeline::Stage;
use diskperf_timeline::trace::{CountedBusy, Trace, TracedBusy, TracedUse, TracedWork};
use std::cell::RefCell;

impl Computer {
    /// Takes the trace of all events since the previous call; `None` if tracing is off.
    pub(crate) fn take_trace(&self) -> Option<Trace> {
        let mut hardware = self.hardware.borrow_mut();
        let mut taken = (self.records).take_trace(&mut hardware.drives, self.simulation.now())?;
        let busy = hardware.controllers.busy_times(self.simulation.now());
        taken.controller_kinds = busy.iter().map(|busy| Some(busy.as_ref()?.0)).collect();
        Some(taken)
    }

    /// Returns the host memory of the media's blocks, and of all records, in bytes.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let made = self.volumes.allocated_bytes();
        let recorded = self.records.memory_bytes(&self.hardware.borrow().drives);
        let of_processes: usize = match self.records.active_tracing {
            Some(_) => self
                .cpus
                .with_processes(|all| all.iter().map(|one| one.traced_bytes()).sum()),
            None => 0,
        };
        (made, (recorded + of_processes) as u64)
    }

    /// Records that a process has obtained a block in a buffer, given the buffer's index. The use
    /// is added to the last request that filled the buffer.
    pub(crate) fn trace_buffer_use(&self, buffer: usize, process: &Process) {
        let Some(tracing) = &self.records.active_tracing else {
            return;
        };
        let got = TracedUse {
            process_number: process.pid as u32,
            use_time: moment(self.simulation.now()),
        };
        tracing.borrow_mut().add_buffer_use(buffer, got);
    }

    /// Records the work of an interrupt handler's routine that has just ended, if tracing is on.
    #[inline]
    pub(crate) fn trace_handler(&self, stage: Stage, usage: Usage) {
        if let Some(tracing) = &self.records.active_tracing {
            self.store_handler(tracing, stage, usage);
        }
    }

    #[cold]
    fn store_handler(&self, tracing: &RefCell<RunTracing>, stage: Stage, usage: Usage) {
        if let Some(work) = traced_work(self.simulation.now(), stage, usage) {
            tracing.borrow_mut().trace.handler_work.push(work);
        }
    }

    /// Records a clock interrupt.
    pub(crate) fn trace_tick(&self) {
        let Some(tracing) = &self.records.active_tracing else {
            return;
        };
        let now = moment(self.simulation.now());
        tracing.borrow_mut().trace.clock_ticks.push(now);
    }

    /// Records the busy times of processor, bus, controllers and flash at the start or end of a
    /// program's timed part.
    pub(crate) fn trace_busy_times(&self) {
        self.records.trace_busy_times(|| {
            let now = self.simulation.now();
            let (processor, handlers) = self.cpus.processors.busy_times(&self.simulation);
            let hardware = self.hardware.borrow();
            let of = |busy: Option<(CountedBusy, Time)>| {
                moment(busy.map_or(Time::ZERO, |(_, busy)| busy))
            };
            TracedBusy {
                sample_time: moment(now),
                processor_busy: moment(processor),
                handlers_busy: moment(handlers),
                bus_busy: moment(hardware.bus.busy_time(now)),
                controllers_busy: hardware
                    .controllers
                    .busy_times(now)
                    .into_iter()
                    .map(of)
                    .collect(),
                flash_busy: hardware.drives.flash_busy_times(now),
            }
        });
    }

    /// Records the end of a program's timed part, with the routines that its process has run.
    pub(crate) fn trace_process(&self, process: &Process) {
        self.trace_busy_times();
        if self.records.active_tracing.is_some() {
            (self.records).trace_program(process.pid, process, process.traced_work());
        }
    }
}

/// Returns the trace record of a routine that has just ended, or `None` if it took no time.
pub(super) fn traced_work(now: Time, stage: Stage, usage: Usage) -> Option<TracedWork> {
    let took = usage.work_time + usage.interrupted_time + usage.slowdown_time;
    (took > Time::ZERO).then(|| TracedWork {
        stage,
        work_start: moment(now - took),
        work_end: moment(now),
        own_time: moment(usage.work_time),
        slowdown_time: moment(usage.slowdown_time),
    })
}
