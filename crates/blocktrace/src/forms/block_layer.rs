//! Events of the Linux block layer, common to blktrace, blkparse and the tracepoints. An event
//! begins a request, adds to one, or is left out.

use super::{LineMeaning, ParseContext, unexpected_field};
use crate::record::{TraceRecord, TracedOperation};

/// Step of a request through the block layer that a trace may record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockLayerStep {
    /// Q: the request was queued.
    Queue,
    /// M, F: the request was merged into another one.
    Merge,
    /// R: the device rejected the request, which will be issued again.
    Requeue,
    /// D: the request was issued to the device.
    Issue,
    /// C: the device completed the request or a part of it.
    Complete,
}

/// Kind and flags of a request, from its RWBS letters or from the bits of blktrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RwbsFlags {
    /// Operation, or `None` for a request that moves no data of the device: pass-through or zone
    /// management.
    pub(crate) operation: Option<TracedOperation>,
    /// Whether a write is durable when it completes (forced unit access).
    pub(crate) fua: bool,
    /// Whether the issuer waits for the request.
    pub(crate) sync: bool,
    /// Whether a flush of the device precedes the request.
    pub(crate) has_preflush: bool,
}

impl RwbsFlags {
    /// Parses RWBS letters such as `WS`, `FF` or `RAM` of any kernel. `WZ`, `ZR` and the like exist
    /// since 6.19. Before, writes of zeroes and zone management are both `N`.
    pub(crate) fn from_rwbs(rwbs: &[u8]) -> Result<Self, String> {
        let refused = || unexpected_field("a set of request letters such as R, WS or FF", rwbs);
        let flushes_first = rwbs.first() == Some(&b'F');
        let body = rwbs.strip_prefix(b"F").unwrap_or(rwbs);
        let (operation, flags) = match body {
            [b'W', b'Z', flags @ ..] => (Some(TracedOperation::WriteZeroes), flags),
            [b'R', flags @ ..] => (Some(TracedOperation::Read), flags),
            [b'W', flags @ ..] => (Some(TracedOperation::Write), flags),
            // A secure erase is `DE`.
            [b'D', b'E', flags @ ..] | [b'D', flags @ ..] => {
                (Some(TracedOperation::Discard), flags)
            }
            [b'N', flags @ ..] if flushes_first => (Some(TracedOperation::Flush), flags),
            [b'N', flags @ ..] => (Some(TracedOperation::WriteZeroes), flags),
            [b'Z', b'R', b'A', flags @ ..]
            | [b'Z', b'R' | b'O' | b'C' | b'F' | b'A', flags @ ..] => (None, flags),
            [b'F', flags @ ..] | flags if flushes_first => (Some(TracedOperation::Flush), flags),
            _ => return Err(refused()),
        };
        if !flags.iter().all(|flag| b"FASMBU".contains(flag)) {
            return Err(refused());
        }
        Ok(Self {
            operation,
            fua: flags.contains(&b'F') && operation != Some(TracedOperation::Flush),
            sync: flags.contains(&b'S'),
            has_preflush: flushes_first,
        })
    }
}

pub(crate) struct BlockLayerEvent {
    pub(crate) layer_step: BlockLayerStep,
    pub(crate) rwbs: RwbsFlags,
    /// Time, device and range of the request. The other fields follow from `request_kind`.
    pub(crate) record: TraceRecord,
    pub(crate) errno: u16,
}

/// Step at which the requests of a trace begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IssueStep {
    /// Queueing of a request (Q), as its issuer sees it.
    #[default]
    Queue,
    /// Issue of a request to the device (D), for a trace that has no Q events.
    Issue,
}

pub(crate) const SUMMARY_RECORD: &str = "no event: the summary of blkparse";
pub(crate) const MESSAGE_RECORD: &str =
    "text that is neither an event nor of the summary of blkparse";
pub(crate) const NO_DATA_TRANSFER: &str =
    "requests that move no data of the device: pass-through and zone management";
pub(crate) const FLUSH_OF_SEQUENCE: &str =
    "flushes that the kernel put before or behind a write, which nobody queued";
pub(crate) const SEQUENCE_COMPLETION: &str =
    "ends of flush sequences, whose parts have completions of their own";
pub(crate) const OTHER_LAYER_STEP: &str = "other steps of the block layer: plugs, splits, remaps";
pub(crate) const LATE_QUEUE: &str =
    "queued (Q), in a trace that begins without Q and is counted from D";

impl BlockLayerEvent {
    pub(crate) fn apply_event(
        mut self,
        begin: IssueStep,
        context: &mut ParseContext,
    ) -> LineMeaning {
        let is_empty = self.record.length_bytes == 0;
        let operation = match self.rwbs.operation {
            Some(TracedOperation::Flush) => TracedOperation::Flush,
            // `FW` of nothing is a flush.
            Some(TracedOperation::Write) if is_empty && self.rwbs.has_preflush => {
                TracedOperation::Flush
            }
            Some(TracedOperation::Write)
                if is_empty && self.layer_step == BlockLayerStep::Complete =>
            {
                return self.apply_sequence_end(begin, context);
            }
            Some(operation) if !is_empty => operation,
            _ => return context.ignore_line(NO_DATA_TRANSFER),
        };
        self.record.operation = operation;
        self.record.fua = self.rwbs.fua;
        self.record.sync = self.rwbs.sync;
        if operation == TracedOperation::Flush {
            (self.record.offset_bytes, self.record.length_bytes) = (0, 0);
        }
        match self.layer_step {
            BlockLayerStep::Queue if begin == IssueStep::Issue => context.ignore_line(LATE_QUEUE),
            BlockLayerStep::Queue => self.apply_issue(context),
            BlockLayerStep::Merge => LineMeaning::RequestUpdate,
            BlockLayerStep::Requeue => {
                context.open_requests.record_requeue(&self.record);
                LineMeaning::RequestUpdate
            }
            BlockLayerStep::Issue if context.open_requests.consume_requeue(&self.record) => {
                LineMeaning::RequestUpdate
            }
            BlockLayerStep::Issue if begin == IssueStep::Issue => self.apply_issue(context),
            BlockLayerStep::Issue if context.open_requests.is_in_flight(&self.record) => {
                LineMeaning::RequestUpdate
            }
            BlockLayerStep::Issue if operation == TracedOperation::Flush => {
                context.ignore_line(FLUSH_OF_SEQUENCE)
            }
            // Its Q is from before the trace began.
            BlockLayerStep::Issue => self.apply_issue(context),
            BlockLayerStep::Complete => self.apply_completion(begin, context),
        }
    }

    fn apply_issue(self, context: &mut ParseContext) -> LineMeaning {
        context.open_requests.add_issue(self.record);
        LineMeaning::RequestIssue
    }

    fn apply_completion(self, begin: IssueStep, context: &mut ParseContext) -> LineMeaning {
        let is_device_flush =
            self.rwbs.operation == Some(TracedOperation::Flush) && begin == IssueStep::Queue;
        let at_ns = self.record.issued_ns;
        if is_device_flush {
            return match context
                .open_requests
                .mark_preflush_done(&self.record, at_ns)
            {
                true => LineMeaning::RequestUpdate,
                false => context.ignore_line(FLUSH_OF_SEQUENCE),
            };
        }
        match context
            .open_requests
            .complete_matching(&self.record, at_ns, self.errno)
        {
            true => LineMeaning::RequestUpdate,
            false => context.ignore_unmatched_completion(),
        }
    }

    /// Handles the completion of an empty write: it is the actual end of a flush that was queued.
    fn apply_sequence_end(self, begin: IssueStep, context: &mut ParseContext) -> LineMeaning {
        let flush = TraceRecord {
            operation: TracedOperation::Flush,
            offset_bytes: 0,
            length_bytes: 0,
            ..self.record
        };
        // That of a durable write has the sector of the write.
        let is_found = begin == IssueStep::Queue
            && self.record.offset_bytes == 0
            && context
                .open_requests
                .complete_matching(&flush, self.record.issued_ns, self.errno);
        match is_found {
            true => LineMeaning::RequestUpdate,
            false => context.ignore_line(SEQUENCE_COMPLETION),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TracedOperation::{Discard, Flush, Read, Write, WriteZeroes};

    /// Letters of kernels from 2.6 to 6.19.
    #[test]
    fn letters_say_what_is_asked_on_every_kernel() {
        for (letters, operation, fua, sync) in [
            ("R", Some(Read), false, false),
            ("RAM", Some(Read), false, false),
            ("RSM", Some(Read), false, true),
            ("WS", Some(Write), false, true),
            ("WFS", Some(Write), true, true),
            ("FWFSM", Some(Write), true, true),
            ("FWS", Some(Write), false, true),
            ("FF", Some(Flush), false, false),
            ("FN", Some(Flush), false, false),
            ("F", Some(Flush), false, false),
            ("FS", Some(Flush), false, true),
            ("D", Some(Discard), false, false),
            ("DS", Some(Discard), false, true),
            ("DE", Some(Discard), false, false),
            ("NS", Some(WriteZeroes), false, true),
            ("WZS", Some(WriteZeroes), false, true),
            ("WZFS", Some(WriteZeroes), true, true),
            ("ZR", None, false, false),
            ("ZRAS", None, false, true),
            ("ZFS", None, false, true),
            ("ZAS", None, false, true),
        ] {
            let asked = RwbsFlags::from_rwbs(letters.as_bytes()).expect(letters);
            let found = (asked.operation, asked.fua, asked.sync);
            assert_eq!(found, (operation, fua, sync), "{letters}");
        }
        for letters in ["", "X", "S", "RX", "ZX", "8192"] {
            assert!(
                RwbsFlags::from_rwbs(letters.as_bytes()).is_err(),
                "{letters}"
            );
        }
    }
}
