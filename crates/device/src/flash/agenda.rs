//! Event queue of a flash drive, in order of time.

use crate::RequestId;
use diskperf_sim::Time;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Event of a flash drive at a known time. An event with an outdated generation is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlashEvent {
    /// The controller has processed a command.
    CommandDecoded(RequestId),
    /// Mapping units of a write have arrived in the buffer.
    WriteDataArrived {
        /// Write request whose mapping units have arrived.
        id: RequestId,
        /// Index of the first arrived mapping unit within the write.
        first: u32,
        /// Number of mapping units that have arrived.
        units: u32,
    },
    /// A page has been sensed into its plane's register; holds the index of the read operation.
    PageSensed(u32),
    /// A page has bypassed the channel's queue, under a counterfactual assumption; holds the index
    /// of the read operation.
    PageCrossed(u32),
    /// A program or erase of a die ends, or has suspended.
    ArrayDone {
        /// Index of the die that programs or erases.
        die: u32,
        /// Generation of the die's array operation. An older one is outdated.
        generation: u32,
    },
    TransferEnded {
        /// Index of the channel whose transfer has ended.
        channel: u32,
        /// Generation of the channel's transfer. An older one is outdated.
        generation: u32,
    },
    /// The host has been notified that a request is complete.
    RequestEnded(RequestId),
    /// The drive has received no command for the idle time that starts a fold of the SLC cache.
    IdleTimeReached {
        /// Number of commands received when the idle time began. A later command makes the event
        /// outdated.
        generation: u64,
    },
}

impl FlashEvent {
    /// Returns the lane for the kind of event. Array operations have widely different durations,
    /// and other kinds are rare; these have no lane and go to the heap.
    fn lane(&self) -> Option<usize> {
        match self {
            Self::CommandDecoded(_) => Some(0),
            Self::WriteDataArrived { .. } => Some(1),
            Self::PageSensed(_) => Some(2),
            Self::TransferEnded { .. } => Some(3),
            Self::RequestEnded(_) => Some(4),
            Self::PageCrossed(_) | Self::ArrayDone { .. } | Self::IdleTimeReached { .. } => None,
        }
    }
}

const LANE_COUNT: usize = 5;

/// Maximum number of entries that an insertion into a lane may move past. Entries that belong
/// further ahead go to the heap.
const MOVES_MAX: usize = 16;

/// Sort key of an event: its time, then its sequence number (earlier insertion first), and in the
/// lowest bits its lane or the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventKey(u128);

const LANE_BITS: u32 = 3;
const HEAP_LANE: usize = LANE_COUNT;

impl EventKey {
    const NEVER: Self = Self(u128::MAX);

    #[inline]
    fn new(at: Time, number: u64, place: usize) -> Self {
        let behind = number << LANE_BITS | place as u64;
        Self(u128::from(at.0) << 64 | u128::from(behind))
    }

    #[inline]
    fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    #[inline]
    fn lane(self) -> usize {
        (self.0 as usize) & ((1 << LANE_BITS) - 1)
    }

    #[inline]
    fn in_heap(self) -> Self {
        let mask = (1 << LANE_BITS) - 1;
        Self(self.0 & !mask | HEAP_LANE as u128)
    }
}

#[derive(Clone, Copy, Debug)]
struct AgendaEntry {
    key: EventKey,
    event: FlashEvent,
}

/// Event queue in order of time; events of the same time are in order of insertion.
///
/// Events of one kind are inserted nearly in order. Each common kind therefore has a lane, sorted
/// by insertion from the back, which is cheap. A heap holds the rest.
#[derive(Clone, Debug)]
pub(super) struct EventQueue {
    lanes: [VecDeque<AgendaEntry>; LANE_COUNT],
    heap: BinaryHeap<AgendaEntry>,
    next_number: u64,
    /// Sort key of the first event of each lane, and of the heap last.
    fronts: [EventKey; LANE_COUNT + 1],
    /// Sort key of the earliest event in all lanes and the heap.
    first_key: EventKey,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            lanes: Default::default(),
            heap: BinaryHeap::new(),
            next_number: 0,
            fronts: [EventKey::NEVER; LANE_COUNT + 1],
            first_key: EventKey::NEVER,
        }
    }
}

impl EventQueue {
    #[inline]
    pub(super) fn schedule(&mut self, at: Time, event: FlashEvent) {
        self.next_number += 1;
        let place = event.lane().unwrap_or(HEAP_LANE);
        let turn = self.insert_entry(AgendaEntry {
            key: EventKey::new(at, self.next_number, place),
            event,
        });
        let front = &mut self.fronts[turn.lane()];
        *front = turn.min(*front);
        self.first_key = turn.min(self.first_key);
    }

    /// Inserts an entry into its lane or the heap, and returns its key, which names the place.
    #[inline]
    fn insert_entry(&mut self, entry: AgendaEntry) -> EventKey {
        let Some(lane) = self.lanes.get_mut(entry.key.lane()) else {
            self.heap.push(entry);
            return entry.key;
        };
        if lane.back().is_none_or(|last| last.key < entry.key) {
            lane.push_back(entry);
            return entry.key;
        }
        let later = lane.iter().rev().take_while(|of| of.key > entry.key);
        let later = later.take(MOVES_MAX + 1).count();
        if later > MOVES_MAX {
            let turn = entry.key.in_heap();
            self.heap.push(AgendaEntry { key: turn, ..entry });
            return turn;
        }
        lane.insert(lane.len() - later, entry);
        entry.key
    }

    /// Returns the smallest key of all fronts, by pairwise comparison.
    #[inline]
    fn find_first_key(&self) -> EventKey {
        let [a, b, c, d, e, f] = self.fronts;
        a.min(b).min(c.min(d)).min(e.min(f))
    }

    #[inline]
    pub(super) fn next_time(&self) -> Option<Time> {
        let turn = self.first_key;
        (turn < EventKey::NEVER).then(|| turn.time())
    }

    /// Removes and returns the next event if it is due at `now`.
    #[inline]
    pub(super) fn take_due(&mut self, now: Time) -> Option<(Time, FlashEvent)> {
        let turn = self.first_key;
        if turn == EventKey::NEVER || turn.time() > now {
            return None;
        }
        let place = turn.lane();
        let (entry, next) = match self.lanes.get_mut(place) {
            Some(lane) => (lane.pop_front(), lane.front()),
            None => (self.heap.pop(), self.heap.peek()),
        };
        self.fronts[place] = next.map_or(EventKey::NEVER, |of| of.key);
        self.first_key = self.find_first_key();
        entry.map(|entry| (turn.time(), entry.event))
    }
}

impl Ord for AgendaEntry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap has its greatest first.
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for AgendaEntry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AgendaEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for AgendaEntry {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order(notes in proptest::collection::vec((0u64..200, 0u32..4), 1..400)) {
            let mut agenda = EventQueue::default();
            let mut noted = Vec::new();
            let (mut taken, mut now) = (Vec::new(), Time::ZERO);
            for (number, &(after, kind)) in notes.iter().enumerate() {
                let of = number as u32;
                let event = match kind {
                    0 => FlashEvent::PageSensed(of),
                    1 => FlashEvent::TransferEnded { channel: of, generation: 0 },
                    2 => FlashEvent::ArrayDone { die: of, generation: 0 },
                    _ => FlashEvent::IdleTimeReached { generation: u64::from(of) },
                };
                agenda.schedule(now + Time(after), event);
                noted.push((now + Time(after), of));
                if number % 3 == 2 {
                    now = agenda.next_time().expect("one was noted");
                    taken.extend(agenda.take_due(now).map(numbered));
                }
            }
            while let Some(next) = agenda.next_time() {
                taken.extend(agenda.take_due(next).map(numbered));
            }
            noted.sort();
            prop_assert_eq!(taken, noted);
        }
    }

    fn numbered((at, event): (Time, FlashEvent)) -> (Time, u32) {
        let number = match event {
            FlashEvent::PageSensed(of) => of,
            FlashEvent::TransferEnded { channel, .. } => channel,
            FlashEvent::ArrayDone { die, .. } => die,
            FlashEvent::IdleTimeReached { generation } => generation as u32,
            event => unreachable!("{event:?} is not noted here"),
        };
        (at, number)
    }
}
