//! Issues and their completions, in the order of issue, with so many held at the most.

use crate::record::{DeviceIndex, Operation, Record};
use std::collections::{BTreeMap, VecDeque};

/// The most requests that wait for a completion before the oldest is given up.
const MOST_OPEN: usize = 1 << 16;

/// Requests of one size class that are looked at for a byte that they may cover: a trace in
/// which more requests than this overlap is no trace of a device.
const LOOKS_MAX: usize = 4096;

/// Order of the requests that wait for a completion: by device and operation, by size, by
/// offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    device: DeviceIndex,
    operation: Operation,
    /// Binary digits of the length. Requests of a class are shorter than 2^`size_class`, so
    /// those that reach over a byte begin within that distance before it.
    size_class: u32,
    offset_bytes: u64,
}

impl Key {
    fn new(record: &Record, length_bytes: u64) -> Self {
        Self {
            device: record.device,
            operation: record.operation,
            size_class: u64::BITS - length_bytes.leading_zeros(),
            offset_bytes: record.offset_bytes,
        }
    }
}

#[derive(Debug)]
struct Open {
    record: Record,
    /// Bytes whose completion was not seen yet.
    remaining_bytes: u64,
    /// Parts whose completion was seen, by their first byte: apart, with their ends.
    completed_parts: BTreeMap<u64, u64>,
    is_over: bool,
    /// Completion of the device's own flush, of a flush whose end the trace may lack.
    device_done_ns: Option<u64>,
}

impl Open {
    fn new(record: Record) -> Self {
        Self {
            record,
            remaining_bytes: record.length_bytes,
            completed_parts: BTreeMap::new(),
            is_over: false,
            device_done_ns: None,
        }
    }

    fn end_bytes(&self) -> u64 {
        let record = &self.record;
        record.offset_bytes.saturating_add(record.length_bytes)
    }

    /// Returns the first byte from `from` on whose completion was not seen yet.
    fn pending_from(&self, from: u64) -> Option<u64> {
        let from = from.max(self.record.offset_bytes);
        let part = self.completed_parts.range(..=from).next_back();
        let pending = part.map_or(from, |(_, end)| from.max(*end));
        (pending < self.end_bytes()).then_some(pending)
    }

    /// Marks a part as completed, whose bytes may have been marked before.
    fn complete_part(&mut self, mut start: u64, mut end: u64) {
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
        self.is_over = true;
    }
}

/// Issues whose completions may come, by their order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    open: VecDeque<Open>,
    /// The number of the first in `open`.
    first: u64,
    by_key: BTreeMap<Key, VecDeque<u64>>,
    /// Requests that their device gave back, by how often, until it gets them again.
    requeued: BTreeMap<Key, u32>,
    /// Requests that were given up without a completion.
    pub(crate) without_completion: u64,
    /// Completions of what was never issued.
    pub(crate) without_issue: u64,
}

impl Order {
    fn key(record: &Record) -> Key {
        Key::new(record, record.length_bytes)
    }

    /// Key of a request that its device gives back: it may be longer when it comes again.
    fn requeued_key(record: &Record) -> Key {
        Key::new(record, 0)
    }

    fn open(&self, number: u64) -> &Open {
        &self.open[(number - self.first) as usize]
    }

    /// A request is issued.
    pub(crate) fn issue(&mut self, record: Record) {
        let number = self.first + self.open.len() as u64;
        self.by_key
            .entry(Self::key(&record))
            .or_default()
            .push_back(number);
        self.open.push_back(Open::new(record));
    }

    /// The request that was issued last, if it is not handed on.
    pub(crate) fn newest(&self) -> Option<&Record> {
        self.open.back().map(|open| &open.record)
    }

    /// A request is issued that completes by its number: all of them are told so.
    pub(crate) fn push(&mut self, record: Record) {
        self.open.push_back(Open::new(record));
    }

    /// The request of a number, counted from 0, is complete. One that was given up stays so.
    ///
    /// # Errors
    ///
    /// One that was not issued, or is complete.
    pub(crate) fn end(&mut self, number: u64, at_ns: u64, errno: u16) -> Result<(), String> {
        let Some(place) = number.checked_sub(self.first) else {
            return Ok(());
        };
        let open = usize::try_from(place)
            .ok()
            .and_then(|place| self.open.get_mut(place));
        match open {
            Some(open) if !open.is_over => {
                open.complete(at_ns, errno);
                Ok(())
            }
            Some(_) => Err(format!("request {number} completes twice")),
            None => Err(format!("request {number} completes, and was not issued")),
        }
    }

    /// Completes what this range covers of the requests that ask the same of the device:
    /// one that was merged of several completes all of them, and one that was split
    /// completes with its last part. Returns whether any was found.
    pub(crate) fn complete(&mut self, like: &Record, at_ns: u64, errno: u16) -> bool {
        let end = like.offset_bytes.saturating_add(like.length_bytes);
        let mut from = like.offset_bytes;
        let mut is_found = false;
        while let Some(number) = self.holder(like, from, end) {
            is_found = true;
            let open = &mut self.open[(number - self.first) as usize];
            let to = end.min(open.end_bytes());
            if let Some(pending) = open.pending_from(from) {
                open.complete_part(pending, to);
            }
            if open.remaining_bytes == 0 {
                open.complete(at_ns, errno);
                let key = Self::key(&open.record);
                self.forget(&key, number);
            }
            from = to.max(from);
            if from >= end {
                break;
            }
        }
        is_found
    }

    /// The device gave a request back.
    pub(crate) fn requeue(&mut self, like: &Record) {
        if self.requeued.len() < MOST_OPEN {
            *self.requeued.entry(Self::requeued_key(like)).or_default() += 1;
        }
    }

    /// Whether the device gets a request that it gave back before.
    pub(crate) fn is_again(&mut self, like: &Record) -> bool {
        let key = Self::requeued_key(like);
        let Some(count) = self.requeued.get_mut(&key) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.requeued.remove(&key);
        }
        true
    }

    /// Whether a request is under way that this range is a part of.
    pub(crate) fn covers(&self, like: &Record) -> bool {
        let end = like.offset_bytes.saturating_add(like.length_bytes);
        self.holder(like, like.offset_bytes, end).is_some()
    }

    /// Marks the flushes of a device that are under way as done by the device itself.
    /// Returns whether there are any.
    pub(crate) fn device_flushed(&mut self, like: &Record, at_ns: u64) -> bool {
        let Some(numbers) = self.by_key.get(&Self::key(like)) else {
            return false;
        };
        // Those before a marked one were marked with it.
        for number in numbers.iter().rev() {
            let open = &mut self.open[(number - self.first) as usize];
            if open.device_done_ns.replace(at_ns).is_some() {
                break;
            }
        }
        true
    }

    /// The request that a completion of the bytes from `from` to `end` is of: the oldest of
    /// exactly this range; else, of those with bytes in it whose completion was not seen, the
    /// one with the first such byte; of several, one that begins there, and the oldest.
    fn holder(&self, like: &Record, from: u64, end: u64) -> Option<u64> {
        let exact = Record {
            offset_bytes: from,
            length_bytes: end.saturating_sub(from),
            ..*like
        };
        let alike = self.by_key.get(&Self::key(&exact)).into_iter().flatten();
        let mut alike = alike.copied();
        let is_untouched = |number: &u64| {
            let open = self.open(*number);
            open.record.length_bytes == exact.length_bytes && open.completed_parts.is_empty()
        };
        if let Some(number) = alike.find(is_untouched) {
            return Some(number);
        }
        let classes = self.size_classes(like);
        let candidates = classes.flat_map(|class| self.overlapping(class, from, end));
        let ranked = candidates.filter_map(|number| {
            let open = self.open(number);
            let pending = open.pending_from(from).filter(|byte| *byte < end)?;
            Some((pending, open.record.offset_bytes != from, number))
        });
        ranked.min().map(|(.., number)| number)
    }

    /// Size classes of the requests of a device that ask the same; each key is the least of
    /// its class.
    fn size_classes(&self, like: &Record) -> impl Iterator<Item = Key> {
        let begin = Key {
            offset_bytes: 0,
            ..Key::new(like, 0)
        };
        let at_or_after = move |key: Key| {
            let (found, _) = self.by_key.range(key..).next()?;
            let is_alike = (found.device, found.operation) == (key.device, key.operation);
            is_alike.then_some(Key {
                offset_bytes: 0,
                ..*found
            })
        };
        std::iter::successors(at_or_after(begin), move |class| {
            at_or_after(Key {
                size_class: class.size_class + 1,
                ..*class
            })
        })
    }

    /// Requests of a size class that may have bytes from `from` to `end`: those that begin
    /// at `from` or before it, and the first behind it.
    fn overlapping(&self, class: Key, from: u64, end: u64) -> impl Iterator<Item = u64> {
        let key = move |offset_bytes| Key {
            offset_bytes,
            ..class
        };
        let reach_bytes = 1u64.checked_shl(class.size_class).unwrap_or(u64::MAX);
        let before = key(from.saturating_sub(reach_bytes))..=key(from);
        let after = key(from)..key(end.max(from));
        let mut after = self.by_key.range(after);
        let after = after.find(move |(found, _)| found.offset_bytes > from);
        let before = self.by_key.range(before).rev();
        let numbers = after.into_iter().chain(before);
        numbers
            .flat_map(|(_, numbers)| numbers.iter().copied())
            .take(LOOKS_MAX)
    }

    /// Takes a request off those whose completions are waited for.
    fn forget(&mut self, key: &Key, number: u64) {
        if let Some(numbers) = self.by_key.get_mut(key) {
            if let Some(place) = numbers.iter().position(|one| *one == number) {
                numbers.remove(place);
            }
            if numbers.is_empty() {
                self.by_key.remove(key);
            }
        }
    }

    /// The next request in the order of issue, if it is complete, or if it is not waited for
    /// any more: at the end, or when too many wait.
    pub(crate) fn next(&mut self, is_end: bool) -> Option<Record> {
        let front = self.open.front()?;
        if !front.is_over && !is_end && self.open.len() <= MOST_OPEN {
            return None;
        }
        let mut front = self.open.pop_front()?;
        self.first += 1;
        if !front.is_over {
            let key = Self::key(&front.record);
            self.forget(&key, self.first - 1);
            match front.device_done_ns {
                Some(at_ns) => front.complete(at_ns, 0),
                None => self.without_completion += 1,
            }
        }
        Some(front.record)
    }
}
