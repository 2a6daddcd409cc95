//! Recording of a trace of requests and programs, as far as rigs (drives without a computer) and
//! computers have it in common.

use super::Records;
use crate::books::StageAccount;
use crate::hardware::drives::{Drive, Drives};
use diskperf_device::{Operation, Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::trace::{
    Purpose, Trace, TracedBusy, TracedProcess, TracedRequest, TracedUse, TracedWork,
};
use diskperf_timeline::{Nanoseconds, Span};

/// Trace of requests and programs recorded so far.
#[derive(Default)]
pub(crate) struct Tracing {
    pub(crate) trace: Trace,
    /// Index of the last completed request of each kernel buffer, by buffer number.
    latest_requests: Vec<Option<usize>>,
    nested_bytes: usize,
}

impl Tracing {
    fn add_request(&mut self, buffer: Option<usize>, request: TracedRequest) {
        if let Some(number) = buffer {
            if self.latest_requests.len() <= number {
                self.latest_requests.resize(number + 1, None);
            }
            self.latest_requests[number] = Some(self.trace.requests.len());
        }
        self.nested_bytes += size_of_val(&request.spans[..]);
        self.trace.requests.push(request);
    }

    /// Records that a program used a block that a transfer brought into this buffer.
    pub(crate) fn add_use(&mut self, buffer: usize, got: TracedUse) {
        if let Some(Some(request)) = self.latest_requests.get(buffer) {
            self.nested_bytes += size_of::<TracedUse>();
            self.trace.requests[*request].uses.push(got);
        }
    }

    /// Returns the memory of the trace, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
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

impl Records {
    /// Returns the trace of drives and programs since the last call.
    pub(crate) fn take_trace(&self, drives: &mut Drives, now: Time) -> Option<Trace> {
        let mut taken = self.tracing.as_ref()?.take().trace;
        taken.flash = drives.take_flash(now);
        taken.arms = drives.take_arms(now);
        taken.drives = drives.iter().map(Drive::traced).collect();
        Some(taken)
    }

    /// Records a completed request, with the kernel buffer that it belongs to, if any.
    pub(super) fn trace_request(
        &self,
        buffer: Option<usize>,
        request: &Request,
        drive: Drive<'_>,
        awaited: bool,
    ) {
        let Some(tracing) = &self.tracing else { return };
        tracing.borrow_mut().add_request(
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

    /// Records the busy times of all components at the start or end of a program's timed part.
    pub(crate) fn trace_busy(&self, busy: impl FnOnce() -> TracedBusy) {
        if let Some(tracing) = &self.tracing {
            let busy = busy();
            tracing.borrow_mut().trace.busy.push(busy);
        }
    }

    /// Records a program at the end of its timed part.
    pub(crate) fn trace_program(&self, number: usize, books: &StageAccount, work: Vec<TracedWork>) {
        let Some(tracing) = &self.tracing else { return };
        let opened = moment(books.opened_at());
        tracing.borrow_mut().trace.processes.push(TracedProcess {
            number: number as u32,
            opened,
            spans: books.tiling().tiled(opened),
            work,
        });
    }
}
