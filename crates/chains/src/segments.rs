//! Stages of a request, from the arrival of its first bio to its last completion.

use crate::history::History;
use crate::requests::RequestIndex;
use diskperf_spans::{Nanoseconds, Stage};

/// Stage of a request. It starts at the end of the stage before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestSegment {
    /// Start of the stage.
    pub(crate) start: Nanoseconds,
    /// End of the stage.
    pub(crate) end: Nanoseconds,
    /// Stage of the request.
    pub(crate) stage: Stage,
    /// Request that the device serves: this one or a flush for it; `None` outside the device.
    pub(crate) served: Option<RequestIndex>,
}

/// Collector of stages that follow each other.
struct SegmentList {
    at: Nanoseconds,
    segments: Vec<RequestSegment>,
}

impl SegmentList {
    fn add(&mut self, end: Nanoseconds, stage: Stage, served: Option<RequestIndex>) {
        if end > self.at {
            self.segments.push(RequestSegment {
                start: self.at,
                end,
                stage,
                served,
            });
            self.at = end;
        }
    }
}

/// Returns the stages of a request without gaps.
pub(crate) fn list_segments(history: &History, index: RequestIndex) -> Vec<RequestSegment> {
    let request = &history.requests[index.0];
    let first_bio = request.bios.first().map(|bio| &history.bios[*bio]);
    let starts = [
        first_bio.map(|bio| bio.queued_at),
        request.inserted_at,
        request.issued_at.first().copied(),
        request.completed_at.first().copied(),
    ];
    let Some(start) = starts.into_iter().flatten().next() else {
        return Vec::new();
    };
    let mut list = SegmentList {
        at: start,
        segments: Vec::new(),
    };
    if let Some(allocated) = first_bio.and_then(|bio| bio.allocated_at) {
        list.add(allocated, Stage::TagWait, None);
    }
    let asks_flush = first_bio.is_some_and(|bio| bio.flags.is_preflush || bio.flags.is_fua);
    match asks_flush || request.flags.is_in_flush_sequence {
        true => add_flush_sequence(history, index, &mut list),
        false => add_service(history, index, &mut list),
    }
    list.segments
}

/// Adds the stages of a request without flushes.
fn add_service(history: &History, index: RequestIndex, list: &mut SegmentList) {
    let request = &history.requests[index.0];
    if let Some(inserted) = request.inserted_at {
        list.add(inserted, Stage::PlugWait, None);
    }
    if let Some(issued) = request.issued_at.last() {
        list.add(*issued, Stage::DriverQueue, None);
    }
    if let Some(completed) = request.last_completion() {
        list.add(completed, Stage::Device, Some(index));
    }
}

/// Adds the stages of a request with flushes before or after it: those flushes of the disk that
/// are issued after it came and complete before it ends, and its own data between them.
fn add_flush_sequence(history: &History, index: RequestIndex, list: &mut SegmentList) {
    let request = &history.requests[index.0];
    let Some(last) = request.last_completion() else {
        return;
    };
    let flushes = history.flushes.get(&request.extent.device);
    let mut served: Vec<RequestSegment> = Vec::new();
    let flushes = flushes.map_or(&[][..], Vec::as_slice);
    let issued_at = |index: &RequestIndex| history.requests[index.0].issued_at[0];
    let first = flushes.partition_point(|flush| issued_at(flush) < list.at);
    for flush_index in &flushes[first..] {
        if issued_at(flush_index) > last {
            break;
        }
        let flush = &history.requests[flush_index.0];
        let (issued, completed) = (flush.issued_at[0], flush.last_completion());
        if let Some(completed) = completed.filter(|time| *time <= last) {
            served.push(RequestSegment {
                start: issued,
                end: completed,
                stage: Stage::Flush,
                served: Some(*flush_index),
            });
        }
    }
    if let (Some(issued), Some(completed)) =
        (request.issued_at.last(), request.completed_at.first())
    {
        served.push(RequestSegment {
            start: *issued,
            end: *completed,
            stage: Stage::Device,
            served: Some(index),
        });
    }
    served.sort_by_key(|one| one.start);
    for one in served {
        let waiting = match one.stage {
            Stage::Device => Stage::DriverQueue,
            _ => Stage::FlushWait,
        };
        list.add(one.start, waiting, None);
        list.add(one.end, one.stage, one.served);
    }
}
