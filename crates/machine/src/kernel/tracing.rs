//! Recording what happens, for those who want to see it.

use super::buffers::BufferId;
use super::computer::Computer;
use super::process::Process;
use crate::hardware::drives::Drive;
use crate::hardware::{Operation, Request, moment};
use diskperf_sim::{Time, Usage};
use diskperf_timeline::trace::{
    Counted, Purpose, Trace, TracedBusy, TracedProcess, TracedRequest, TracedUse, TracedWork,
};
use diskperf_timeline::{Nanoseconds, Span, Stage};
use std::cell::RefCell;

/// What was recorded so far.
#[derive(Default)]
pub(crate) struct Tracing {
    trace: Trace,
    /// Of each buffer, the last request that completed for it.
    latest: Vec<Option<usize>>,
    /// Bytes of what requests have for themselves.
    nested_bytes: usize,
}

impl Tracing {
    fn add(&mut self, buffer: Option<BufferId>, request: TracedRequest) {
        if let Some(BufferId(number)) = buffer {
            let number = number as usize;
            if self.latest.len() <= number {
                self.latest.resize(number + 1, None);
            }
            self.latest[number] = Some(self.trace.requests.len());
        }
        self.nested_bytes += size_of_val(&request.spans[..]);
        self.trace.requests.push(request);
    }

    /// Memory that the record takes.
    fn bytes(&self) -> usize {
        let Trace {
            requests,
            processes,
            handlers,
            busy,
            ticks,
            ..
        } = &self.trace;
        let of_processes = processes.iter().map(|process| {
            size_of::<Span>() * process.spans.capacity()
                + size_of::<TracedWork>() * process.work.capacity()
        });
        self.nested_bytes
            + size_of::<TracedRequest>() * requests.capacity()
            + size_of::<TracedWork>() * handlers.capacity()
            + size_of::<TracedBusy>() * busy.capacity()
            + size_of::<Nanoseconds>() * ticks.capacity()
            + of_processes.sum::<usize>()
    }
}

impl Computer {
    /// What was recorded since the last time this was asked.
    pub(crate) fn take_trace(&self) -> Option<Trace> {
        let mut taken = self.tracing.as_ref()?.take().trace;
        let mut hardware = self.hardware.borrow_mut();
        taken.flash = hardware.drives.take_flash(self.sim.now());
        taken.arms = hardware.drives.take_arms(self.sim.now());
        taken.drives = hardware.drives.iter().map(Drive::traced).collect();
        let busy = hardware.controllers.busy(self.sim.now());
        taken.controllers = busy.iter().map(|busy| Some(busy.as_ref()?.0)).collect();
        Some(taken)
    }

    /// Memory of blocks that were made on the media, and of what is recorded.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let made = self.volumes.made_bytes();
        let recording = self.recording.as_ref();
        let events = recording.map_or(0, |recording| recording.borrow().bytes() as u64);
        let Some(tracing) = &self.tracing else {
            return (made, events);
        };
        let of_drives = self.hardware.borrow().drives.recorded_bytes();
        let of_processes: usize = self
            .cpu
            .processes(|all| all.iter().map(|one| one.traced_bytes()).sum());
        (
            made,
            events + (tracing.borrow().bytes() + of_processes + of_drives) as u64,
        )
    }

    /// A request completed, of a buffer if it is one's.
    pub(crate) fn trace_request(
        &self,
        buffer: Option<BufferId>,
        request: &Request,
        drive: Drive<'_>,
        awaited: bool,
    ) {
        let Some(tracing) = &self.tracing else { return };
        tracing.borrow_mut().add(
            buffer,
            TracedRequest {
                drive: request.device as u32,
                sector: request.sector,
                sectors: request.sectors,
                forced: matches!(request.operation, Operation::Write { fua: true }),
                purpose: match (request.operation != Operation::Read, awaited) {
                    (false, true) => Purpose::Read,
                    (false, false) => Purpose::ReadAhead,
                    (true, true) => Purpose::Write,
                    (true, false) => Purpose::WriteBehind,
                },
                position: drive.position(request.sector),
                issued: request.spans.issued(),
                spans: request.spans.spans().to_vec(),
                uses: Vec::new(),
            },
        );
    }

    /// A process has got a block that a transfer brought.
    pub(crate) fn trace_use(&self, id: BufferId, process: &Process) {
        let Some(tracing) = &self.tracing else { return };
        let Tracing {
            trace,
            latest,
            nested_bytes,
        } = &mut *tracing.borrow_mut();
        if let Some(Some(request)) = latest.get(id.0 as usize) {
            *nested_bytes += size_of::<TracedUse>();
            trace.requests[*request].uses.push(TracedUse {
                process: process.pid as u32,
                at: moment(self.sim.now()),
            });
        }
    }

    /// A handler of an interrupt has worked up to now.
    #[inline]
    pub(crate) fn trace_handler(&self, stage: Stage, usage: Usage) {
        if let Some(tracing) = &self.tracing {
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
        let Some(tracing) = &self.tracing else { return };
        let now = moment(self.sim.now());
        tracing.borrow_mut().trace.ticks.push(now);
    }

    /// A program's timed part begins or ends.
    pub(crate) fn trace_busy(&self) {
        let Some(tracing) = &self.tracing else { return };
        let now = self.sim.now();
        let (processor, handlers) = self.cpu.processor.busy(&self.sim);
        let hardware = self.hardware.borrow();
        let of = |busy: Option<(Counted, Time)>| moment(busy.map_or(Time::ZERO, |(_, busy)| busy));
        tracing.borrow_mut().trace.busy.push(TracedBusy {
            at: moment(now),
            processor: moment(processor),
            handlers: moment(handlers),
            bus: moment(hardware.bus.busy(now)),
            controllers: hardware.controllers.busy(now).into_iter().map(of).collect(),
            flash: hardware.drives.flash_busy(now),
        });
    }

    /// A program's timed part has ended.
    pub(crate) fn trace_process(&self, process: &Process) {
        self.trace_busy();
        let Some(tracing) = &self.tracing else { return };
        let (opened, tiling, work) = process.traced();
        tracing.borrow_mut().trace.processes.push(TracedProcess {
            number: process.pid as u32,
            opened: moment(opened),
            spans: tiling.tiled(moment(opened)),
            work,
        });
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
