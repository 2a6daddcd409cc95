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
    is_over: bool,
}

/// Issues whose completions may come, by their order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    open: VecDeque<Open>,
    /// The number of the first in `open`.
    first: u64,
    by_key: BTreeMap<Key, VecDeque<u64>>,
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
        let is_over = false;
        self.open.push_back(Open { record, is_over });
    }

    /// A request is issued that completes by its number: all of them are told so.
    pub(crate) fn push(&mut self, record: Record) {
        let is_over = false;
        self.open.push_back(Open { record, is_over });
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
                open.record.completed_ns = Some(at_ns.max(open.record.issued_ns));
                open.record.errno = errno;
                open.is_over = true;
                Ok(())
            }
            Some(_) => Err(format!("request {number} completes twice")),
            None => Err(format!("request {number} completes, and was not issued")),
        }
    }

    /// A request like this one is complete: the oldest of them.
    pub(crate) fn complete(&mut self, like: &Record, at_ns: u64, errno: u16) {
        let key = Self::key(like);
        let Some(numbers) = self.by_key.get_mut(&key) else {
            self.without_issue += 1;
            return;
        };
        let number = numbers.pop_front().expect("a key has a request");
        if numbers.is_empty() {
            self.by_key.remove(&key);
        }
        let open = &mut self.open[(number - self.first) as usize];
        open.record.completed_ns = Some(at_ns.max(open.record.issued_ns));
        open.record.errno = errno;
        open.is_over = true;
    }

    /// The next request in the order of issue, if it is complete, or if it is not waited for
    /// any more: at the end, or when too many wait.
    pub(crate) fn next(&mut self, is_end: bool) -> Option<Record> {
        let front = self.open.front()?;
        if !front.is_over && !is_end && self.open.len() <= MOST_OPEN {
            return None;
        }
        let front = self.open.pop_front()?;
        self.first += 1;
        if !front.is_over {
            self.without_completion += 1;
            let key = Self::key(&front.record);
            if let Some(numbers) = self.by_key.get_mut(&key) {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
        Some(front.record)
    }
}
