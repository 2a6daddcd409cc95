//! Recording of a trace of requests and programs, as far as rigs (drives without a computer) and
//! computers have it in common.

use super::RunRecords;
use crate::books::StageAccount;
use crate::hardware::drives::{Drive, Drives};
use diskperf_device::{Operation, Request, moment};
use diskperf_sim::Time;
use diskperf_timeline::trace::{
    RequestPurpose, Trace, TracedBusy, TracedProcess, TracedRequest, TracedUse, TracedWork,
};
use diskperf_timeline::{Nanoseconds, Span};

/// Trace of requests and programs recorded so far.
#[derive(Default)]
pub(crate) struct RunTracing {
    pub(crate) trace: Trace,
    /// Index of the last completed request of each kernel buffer, by buffer number.
    latest_requests: Vec<Option<usize>>,
    nested_bytes: usize,
}

impl RunTracing {
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
    pub(crate) fn add_buffer_use(&mut self, buffer: usize, got: TracedUse) {
        if let Some(Some(request)) = self.latest_requests.get(buffer) {
            self.nested_bytes += size_of::<TracedUse>();
            self.trace.requests[*request].buffer_uses.push(got);
        }
    }

    /// Returns the memory of the trace, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let Trace {
            requests,
            processes,
            handler_work: handlers,
            busy_samples: busy,
            clock_ticks: ticks,
            ..
        } = &self.trace;
        let of_processes = processes.iter().map(|process| {
            size_of::<Span>() * process.spans.capacity()
                + size_of::<TracedWork>() * process.processor_work.capacity()
        });
        self.nested_bytes
            + size_of::<TracedRequest>() * requests.capacity()
            + size_of::<TracedWork>() * handlers.capacity()
            + size_of::<TracedBusy>() * busy.capacity()
            + size_of::<Nanoseconds>() * ticks.capacity()
            + of_processes.sum::<usize>()
    }
}

impl RunRecords {
    /// Returns the trace of drives and programs since the last call.
    pub(crate) fn take_trace(&self, drives: &mut Drives, now: Time) -> Option<Trace> {
        let mut taken = self.active_tracing.as_ref()?.take().trace;
        taken.flash_traces = drives.take_flash_traces(now);
        taken.arm_traces = drives.take_arm_traces(now);
        taken.drives = drives
            .iter_drives()
            .map(Drive::describe_for_trace)
            .collect();
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
        let Some(tracing) = &self.active_tracing else {
            return;
        };
        tracing.borrow_mut().add_request(
            buffer,
            TracedRequest {
                drive_index: request.device as u32,
                sector: request.sector,
                sector_count: request.sectors,
                is_fua: matches!(request.operation, Operation::Write { fua: true }),
                purpose: match (request.operation != Operation::Read, awaited) {
                    (false, true) => RequestPurpose::Read,
                    (false, false) => RequestPurpose::ReadAhead,
                    (true, true) => RequestPurpose::Write,
                    (true, false) => RequestPurpose::WriteBehind,
                },
                media_position: drive.position(request.sector),
                issued_at: request.spans.issued_at(),
                spans: request.spans.spans().to_vec(),
                buffer_uses: Vec::new(),
            },
        );
    }

    /// Records the busy times of all components at the start or end of a program's timed part.
    pub(crate) fn trace_busy_times(&self, busy: impl FnOnce() -> TracedBusy) {
        if let Some(tracing) = &self.active_tracing {
            let busy = busy();
            tracing.borrow_mut().trace.busy_samples.push(busy);
        }
    }

    /// Records a program at the end of its timed part.
    pub(crate) fn trace_program(&self, number: usize, books: &StageAccount, work: Vec<TracedWork>) {
        let Some(tracing) = &self.active_tracing else {
            return;
        };
        let opened = moment(books.account_start());
        tracing.borrow_mut().trace.processes.push(TracedProcess {
            process_number: number as u32,
            account_start: opened,
            spans: books.tiling().into_spans(opened),
            processor_work: work,
        });
    }
}
