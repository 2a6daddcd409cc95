//! What happens in a drive next.

use crate::hardware::RequestId;
use diskperf_sim::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that happens at its moment. One whose generation is over happens not at all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The controller is through with a command.
    Decoded(RequestId),
    /// Units of a write are in the buffer.
    Arrived {
        /// The write.
        id: RequestId,
        /// The first of the units.
        first: u32,
        /// How many.
        units: u32,
    },
    /// A page is in its plane's register.
    Sensed(u32),
    /// A die's program or erase ends, or stops.
    Array {
        /// The die.
        die: u32,
        /// Of the die's array.
        generation: u32,
    },
    /// A channel is free.
    Transferred {
        /// The channel.
        channel: u32,
        /// Of the channel's transfers.
        generation: u32,
    },
    /// The host knows that a request is done.
    Ended(RequestId),
    /// Nothing has been asked of the drive for some time.
    Idle {
        /// Of what was asked of it.
        generation: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    number: u64,
    event: Event,
}

/// Events in the order of time; of the same moment, in the order in which they were noted.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Entry>,
    number: u64,
}

impl Agenda {
    #[inline]
    pub(super) fn note(&mut self, at: Time, event: Event) {
        self.number += 1;
        let number = self.number;
        self.entries.push(Entry { at, number, event });
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        self.entries.peek().map(|entry| entry.at)
    }

    /// The next event, if it is due.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Option<(Time, Event)> {
        if self.next()? > now {
            return None;
        }
        self.entries.pop().map(|entry| (entry.at, entry.event))
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap has its greatest first.
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
