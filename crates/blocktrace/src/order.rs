//! Matching of issues with their completions, in the order of issue, with a bounded number of
//! requests in memory.

use crate::record::{DeviceIndex, TraceRecord, TracedOperation};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of requests that wait for a completion. Beyond it, the oldest is released without
/// one.
const OPEN_REQUESTS_MAX: usize = 1 << 16;

/// Maximum number of requests of one size class that are examined for a given byte. A trace with
/// more overlapping requests does not come from a device.
const SEARCHED_REQUESTS_MAX: usize = 4096;

/// Sort key of the requests that wait for a completion: device and operation, then size class, then
/// offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    device: DeviceIndex,
    operation: TracedOperation,
    /// Number of binary digits of the length. Requests of a class are shorter than 2^`size_class`,
    /// so that a request that covers a byte begins within that distance before it.
    size_class: u32,
    offset_bytes: u64,
}

impl RequestKey {
    fn new(record: &TraceRecord, length_bytes: u64) -> Self {
        Self {
            device: record.device,
            operation: record.operation,
            size_class: u64::BITS - length_bytes.leading_zeros(),
            offset_bytes: record.offset_bytes,
        }
    }
}

#[derive(Debug)]
struct OpenRequest {
    record: TraceRecord,
    /// Bytes of the request whose completion was not seen yet.
    remaining_bytes: u64,
    /// Disjoint parts of the request whose completion was seen, as ends by first byte.
    completed_parts: BTreeMap<u64, u64>,
    is_complete: bool,
    /// Completion time of the device's own flush, for a flush whose end the trace may lack.
    preflush_done_ns: Option<u64>,
}

impl OpenRequest {
    fn from_issue(record: TraceRecord) -> Self {
        Self {
            record,
            remaining_bytes: record.length_bytes,
            completed_parts: BTreeMap::new(),
            is_complete: false,
            preflush_done_ns: None,
        }
    }

    fn range_end_bytes(&self) -> u64 {
        let record = &self.record;
        record.offset_bytes.saturating_add(record.length_bytes)
    }

    /// Returns the first byte from `from` on whose completion was not seen yet.
    fn next_pending_byte(&self, from: u64) -> Option<u64> {
        let from = from.max(self.record.offset_bytes);
        let part = self.completed_parts.range(..=from).next_back();
        let pending = part.map_or(from, |(_, end)| from.max(*end));
        (pending < self.range_end_bytes()).then_some(pending)
    }

    /// Marks a part of the request as completed. Parts may overlap earlier ones.
    fn complete_range(&mut self, mut start: u64, mut end: u64) {
        let mut marked_bytes = 0;
        let touching = self.completed_parts.range(..=end);
        let touching = touching.rev().take_while(|(_, last)| **last >= start);
        let touching: Vec<(u64, u64)> = touching.map(|(first, last)| (*first, *last)).collect();
        for (first, last) in touching {
            self.completed_parts.remove(&first);
            marked_bytes += last - first;
            (start, end) = (start.min(first), end.max(last));
        }
        self.completed_parts.insert(start, end);
        self.remaining_bytes -= end - start - marked_bytes;
    }

    fn complete(&mut self, at_ns: u64, errno: u16) {
        self.record.completed_ns = Some(at_ns.max(self.record.issued_ns));
        self.record.errno = errno;
        self.is_complete = true;
    }
}

/// Requests that wait for their completions, in the order of issue.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    requests: VecDeque<OpenRequest>,
    /// Number of the first request in `requests`.
    oldest_number: u64,
    numbers_by_key: BTreeMap<RequestKey, VecDeque<u64>>,
    /// Requests that the device rejected and that were not issued again yet, with the number of
    /// rejections.
    requeue_counts: BTreeMap<RequestKey, u32>,
    /// Number of requests that were released without a completion.
    pub(crate) without_completion_count: u64,
    /// Number of completions without a matching issue.
    pub(crate) without_issue_count: u64,
}

impl OpenRequests {
    fn request_key(record: &TraceRecord) -> RequestKey {
        RequestKey::new(record, record.length_bytes)
    }

    /// Returns the key of a rejected request. It ignores the length, because the request may be
    /// longer when it is issued again.
    fn requeued_key(record: &TraceRecord) -> RequestKey {
        RequestKey::new(record, 0)
    }

    fn open_request(&self, number: u64) -> &OpenRequest {
        &self.requests[(number - self.oldest_number) as usize]
    }

    /// Adds an issued request to those that wait for a completion.
    pub(crate) fn add_issue(&mut self, record: TraceRecord) {
        let number = self.oldest_number + self.requests.len() as u64;
        self.numbers_by_key
            .entry(Self::request_key(&record))
            .or_default()
            .push_back(number);
        self.requests.push_back(OpenRequest::from_issue(record));
    }

    /// Returns the request that was issued last, if it is still held.
    pub(crate) fn last_issued(&self) -> Option<&TraceRecord> {
        self.requests.back().map(|open| &open.record)
    }

    /// Adds an issued request whose completion will name its number, in a trace in which all
    /// completions do so.
    pub(crate) fn append_issue(&mut self, record: TraceRecord) {
        self.requests.push_back(OpenRequest::from_issue(record));
    }

    /// Completes the request with a number, counted from 0. A request that was released already
    /// stays incomplete.
    ///
    /// # Errors
    ///
    /// Fails if the request was not issued or is complete already.
    pub(crate) fn complete_numbered(
        &mut self,
        number: u64,
        at_ns: u64,
        errno: u16,
    ) -> Result<(), String> {
        let Some(place) = number.checked_sub(self.oldest_number) else {
            return Ok(());
        };
        let open = usize::try_from(place)
            .ok()
            .and_then(|place| self.requests.get_mut(place));
        match open {
            Some(open) if !open.is_complete => {
                open.complete(at_ns, errno);
                Ok(())
            }
            Some(_) => Err(format!("request {number} completes twice")),
            None => Err(format!("request {number} completes without an issue")),
        }
    }

    /// Completes the parts of requests that a range covers, for requests of the same device and
    /// operation. A merged range completes several requests. A split request completes with its
    /// last part. Returns whether any request was found.
    pub(crate) fn complete_matching(&mut self, like: &TraceRecord, at_ns: u64, errno: u16) -> bool {
        let end = like.offset_bytes.saturating_add(like.length_bytes);
        let mut from = like.offset_bytes;
        let mut is_found = false;
        while let Some(number) = self.find_request(like, from, end) {
            is_found = true;
            let open = &mut self.requests[(number - self.oldest_number) as usize];
            let to = end.min(open.range_end_bytes());
            if let Some(pending) = open.next_pending_byte(from) {
                open.complete_range(pending, to);
            }
            if open.remaining_bytes == 0 {
                open.complete(at_ns, errno);
                let key = Self::request_key(&open.record);
                self.remove_from_index(&key, number);
            }
            from = to.max(from);
            if from >= end {
                break;
            }
        }
        is_found
    }

    /// Records that the device rejected a request.
    pub(crate) fn record_requeue(&mut self, like: &TraceRecord) {
        if self.requeue_counts.len() < OPEN_REQUESTS_MAX {
            *self
                .requeue_counts
                .entry(Self::requeued_key(like))
                .or_default() += 1;
        }
    }

    /// Reports whether an issued request was rejected before, and forgets one rejection.
    pub(crate) fn consume_requeue(&mut self, like: &TraceRecord) -> bool {
        let key = Self::requeued_key(like);
        let Some(count) = self.requeue_counts.get_mut(&key) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.requeue_counts.remove(&key);
        }
        true
    }

    /// Reports whether a range is part of a request in flight.
    pub(crate) fn is_in_flight(&self, like: &TraceRecord) -> bool {
        let end = like.offset_bytes.saturating_add(like.length_bytes);
        self.find_request(like, like.offset_bytes, end).is_some()
    }

    /// Marks the flushes of a device that are in flight as done by the device. Returns whether
    /// there are any.
    pub(crate) fn mark_preflush_done(&mut self, like: &TraceRecord, at_ns: u64) -> bool {
        let Some(numbers) = self.numbers_by_key.get(&Self::request_key(like)) else {
            return false;
        };
        // Those before a marked one were marked with it.
        for number in numbers.iter().rev() {
            let open = &mut self.requests[(number - self.oldest_number) as usize];
            if open.preflush_done_ns.replace(at_ns).is_some() {
                break;
            }
        }
        true
    }

    /// Returns the request to which a completion of the bytes from `from` to `end` belongs. The
    /// oldest request with exactly this range comes first. Otherwise it is the request with the
    /// lowest incomplete byte in the range; of several, one that begins at `from`, then the oldest.
    fn find_request(&self, like: &TraceRecord, from: u64, end: u64) -> Option<u64> {
        let exact = TraceRecord {
            offset_bytes: from,
            length_bytes: end.saturating_sub(from),
            ..*like
        };
        let alike = self
            .numbers_by_key
            .get(&Self::request_key(&exact))
            .into_iter()
            .flatten();
        let mut alike = alike.copied();
        let is_untouched = |number: &u64| {
            let open = self.open_request(*number);
            open.record.length_bytes == exact.length_bytes && open.completed_parts.is_empty()
        };
        if let Some(number) = alike.find(is_untouched) {
            return Some(number);
        }
        let classes = self.size_classes(like);
        let candidates = classes.flat_map(|class| self.overlapping_requests(class, from, end));
        let ranked = candidates.filter_map(|number| {
            let open = self.open_request(number);
            let pending = open.next_pending_byte(from).filter(|byte| *byte < end)?;
            Some((pending, open.record.offset_bytes != from, number))
        });
        ranked.min().map(|(.., number)| number)
    }

    /// Iterates over the size classes of a device's requests with the same operation, each as the
    /// lowest key of its class.
    fn size_classes(&self, like: &TraceRecord) -> impl Iterator<Item = RequestKey> {
        let begin = RequestKey {
            offset_bytes: 0,
            ..RequestKey::new(like, 0)
        };
        let at_or_after = move |key: RequestKey| {
            let (found, _) = self.numbers_by_key.range(key..).next()?;
            let is_alike = (found.device, found.operation) == (key.device, key.operation);
            is_alike.then_some(RequestKey {
                offset_bytes: 0,
                ..*found
            })
        };
        std::iter::successors(at_or_after(begin), move |class| {
            at_or_after(RequestKey {
                size_class: class.size_class + 1,
                ..*class
            })
        })
    }

    /// Iterates over the requests of a size class that may overlap the bytes from `from` to `end`:
    /// those that begin at `from` or before, and the first one after it.
    fn overlapping_requests(
        &self,
        class: RequestKey,
        from: u64,
        end: u64,
    ) -> impl Iterator<Item = u64> {
        let key = move |offset_bytes| RequestKey {
            offset_bytes,
            ..class
        };
        let reach_bytes = 1u64.checked_shl(class.size_class).unwrap_or(u64::MAX);
        let before = key(from.saturating_sub(reach_bytes))..=key(from);
        let after = key(from)..key(end.max(from));
        let mut after = self.numbers_by_key.range(after);
        let after = after.find(move |(found, _)| found.offset_bytes > from);
        let before = self.numbers_by_key.range(before).rev();
        let numbers = after.into_iter().chain(before);
        numbers
            .flat_map(|(_, numbers)| numbers.iter().copied())
            .take(SEARCHED_REQUESTS_MAX)
    }

    /// Removes a request from the index of those that wait for a completion.
    fn remove_from_index(&mut self, key: &RequestKey, number: u64) {
        if let Some(numbers) = self.numbers_by_key.get_mut(key) {
            if let Some(place) = numbers.iter().position(|one| *one == number) {
                numbers.remove(place);
            }
            if numbers.is_empty() {
                self.numbers_by_key.remove(key);
            }
        }
    }

    /// Returns the next request in the order of issue, if it is complete or no longer waited for.
    /// Waiting stops at the end of the trace, and when too many requests wait.
    pub(crate) fn pop_ready(&mut self, is_end: bool) -> Option<TraceRecord> {
        let front = self.requests.front()?;
        if !front.is_complete && !is_end && self.requests.len() <= OPEN_REQUESTS_MAX {
            return None;
        }
        let mut front = self.requests.pop_front()?;
        self.oldest_number += 1;
        if !front.is_complete {
            let key = Self::request_key(&front.record);
            self.remove_from_index(&key, self.oldest_number - 1);
            match front.preflush_done_ns {
                Some(at_ns) => front.complete(at_ns, 0),
                None => self.without_completion_count += 1,
            }
        }
        Some(front.record)
    }
}
