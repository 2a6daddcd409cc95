//! Issues and their completions, in the order of issue, with so many held at the most.

use crate::record::{DeviceIndex, Operation, Record};
use std::collections::{BTreeMap, VecDeque};

/// The most requests that wait for a completion before the oldest is given up.
const MOST_OPEN: usize = 1 << 16;

/// What an issue and its completion have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    device: DeviceIndex,
    operation: Operation,
    offset_bytes: u64,
}

#[derive(Debug)]
struct Open {
    record: Record,
    /// Bytes whose completion was not seen yet.
    remaining_bytes: u64,
    is_over: bool,
    /// Completion of the device's own flush, of a flush whose end the trace may lack.
    device_done_ns: Option<u64>,
}

impl Open {
    fn new(record: Record) -> Self {
        Self {
            record,
            remaining_bytes: record.length_bytes,
            is_over: false,
            device_done_ns: None,
        }
    }

    fn end_bytes(&self) -> u64 {
        let record = &self.record;
        record.offset_bytes.saturating_add(record.length_bytes)
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
        Key {
            device: record.device,
            operation: record.operation,
            offset_bytes: record.offset_bytes,
        }
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
            let from_here = from.max(open.record.offset_bytes);
            let to = end.min(open.end_bytes());
            open.remaining_bytes = open
                .remaining_bytes
                .saturating_sub(to.saturating_sub(from_here));
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
            *self.requeued.entry(Self::key(like)).or_default() += 1;
        }
    }

    /// Whether the device gets a request that it gave back before.
    pub(crate) fn is_again(&mut self, like: &Record) -> bool {
        let key = Self::key(like);
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

    /// The oldest request that begins at `from`; else one that reaches over it; else the
    /// first that begins before `end`.
    fn holder(&self, like: &Record, from: u64, end: u64) -> Option<u64> {
        let key = |offset_bytes| Key {
            offset_bytes,
            ..Self::key(like)
        };
        let oldest = |numbers: &VecDeque<u64>| numbers.front().copied();
        if let Some(numbers) = self.by_key.get(&key(from)) {
            return oldest(numbers);
        }
        let before = self.by_key.range(key(0)..key(from)).next_back();
        let reaching = before.and_then(|(_, numbers)| oldest(numbers));
        let reaching =
            reaching.filter(|number| self.open[(number - self.first) as usize].end_bytes() > from);
        reaching.or_else(|| {
            let mut after = self.by_key.range(key(from)..key(end.max(from)));
            after.next().and_then(|(_, numbers)| oldest(numbers))
        })
    }

    /// Takes a request off those whose completions are waited for.
    fn forget(&mut self, key: &Key, number: u64) {
        if let Some(numbers) = self.by_key.get_mut(key) {
            // Only the oldest of a key completes, or is given up.
            if numbers.front() == Some(&number) {
                numbers.pop_front();
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
