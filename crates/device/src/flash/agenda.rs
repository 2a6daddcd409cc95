//! Event queue of a flash drive, in order of time.

use crate::RequestId;
use diskperf_sim::Time;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Event of a flash drive at a known time. An event with an outdated generation is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The controller has processed a command.
    Decoded(RequestId),
    /// Mapping units of a write have arrived in the buffer.
    Arrived {
        /// Write request whose mapping units have arrived.
        id: RequestId,
        /// Index of the first arrived mapping unit within the write.
        first: u32,
        /// Number of mapping units that have arrived.
        units: u32,
    },
    /// A page has been sensed into its plane's register; holds the index of the read operation.
    Sensed(u32),
    /// A page has bypassed the channel's queue, under a counterfactual assumption; holds the index
    /// of the read operation.
    Crossed(u32),
    /// A program or erase of a die ends, or has suspended.
    Array {
        /// Index of the die that programs or erases.
        die: u32,
        /// Generation of the die's array operation. An older one is outdated.
        generation: u32,
    },
    /// A transfer on a channel has ended.
    Transferred {
        /// Index of the channel whose transfer has ended.
        channel: u32,
        /// Generation of the channel's transfer. An older one is outdated.
        generation: u32,
    },
    /// The host has been notified that a request is complete.
    Ended(RequestId),
    /// The drive has received no command for the idle time that starts a fold of the SLC cache.
    Idle {
        /// Number of commands received when the idle time began. A later command makes the event
        /// outdated.
        generation: u64,
    },
}

impl Event {
    /// Returns the lane for the kind of event. Array operations have widely different durations,
    /// and other kinds are rare; these have no lane and go to the heap.
    fn lane(&self) -> Option<usize> {
        match self {
            Self::Decoded(_) => Some(0),
            Self::Arrived { .. } => Some(1),
            Self::Sensed(_) => Some(2),
            Self::Transferred { .. } => Some(3),
            Self::Ended(_) => Some(4),
            Self::Crossed(_) | Self::Array { .. } | Self::Idle { .. } => None,
        }
    }
}

const LANES: usize = 5;

/// Maximum number of entries that an insertion into a lane may move past. Entries that belong
/// further ahead go to the heap.
const FURTHEST: usize = 16;

/// Sort key of an event: its time, then its sequence number (earlier insertion first), and in the
/// lowest bits its lane or the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u128);

/// Bits of the sort key for the lane.
const PLACE_BITS: u32 = 3;
const HEAP: usize = LANES;

impl Turn {
    const NEVER: Self = Self(u128::MAX);

    #[inline]
    fn new(at: Time, number: u64, place: usize) -> Self {
        let behind = number << PLACE_BITS | place as u64;
        Self(u128::from(at.0) << 64 | u128::from(behind))
    }

    #[inline]
    fn at(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    #[inline]
    fn place(self) -> usize {
        (self.0 as usize) & ((1 << PLACE_BITS) - 1)
    }

    /// Returns the same key for an entry in the heap.
    #[inline]
    fn in_heap(self) -> Self {
        let mask = (1 << PLACE_BITS) - 1;
        Self(self.0 & !mask | HEAP as u128)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    turn: Turn,
    event: Event,
}

/// Event queue in order of time; events of the same time are in order of insertion.
///
/// Events of one kind are inserted nearly in order. Each common kind therefore has a lane, sorted
/// by insertion from the back, which is cheap. A heap holds the rest.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    lanes: [VecDeque<Entry>; LANES],
    rest: BinaryHeap<Entry>,
    number: u64,
    /// Sort key of the first event of each lane, and of the heap last.
    fronts: [Turn; LANES + 1],
    /// Sort key of the earliest event in all lanes and the heap.
    first: Turn,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            lanes: Default::default(),
            rest: BinaryHeap::new(),
            number: 0,
            fronts: [Turn::NEVER; LANES + 1],
            first: Turn::NEVER,
        }
    }
}

impl Agenda {
    #[inline]
    pub(super) fn note(&mut self, at: Time, event: Event) {
        self.number += 1;
        let place = event.lane().unwrap_or(HEAP);
        let turn = self.insert(Entry {
            turn: Turn::new(at, self.number, place),
            event,
        });
        let front = &mut self.fronts[turn.place()];
        *front = turn.min(*front);
        self.first = turn.min(self.first);
    }

    /// Inserts an entry into its lane or the heap, and returns its key, which names the place.
    #[inline]
    fn insert(&mut self, entry: Entry) -> Turn {
        let Some(lane) = self.lanes.get_mut(entry.turn.place()) else {
            self.rest.push(entry);
            return entry.turn;
        };
        if lane.back().is_none_or(|last| last.turn < entry.turn) {
            lane.push_back(entry);
            return entry.turn;
        }
        let later = lane.iter().rev().take_while(|of| of.turn > entry.turn);
        let later = later.take(FURTHEST + 1).count();
        if later > FURTHEST {
            let turn = entry.turn.in_heap();
            self.rest.push(Entry { turn, ..entry });
            return turn;
        }
        lane.insert(lane.len() - later, entry);
        entry.turn
    }

    /// Returns the smallest key of all fronts, by pairwise comparison.
    #[inline]
    fn look(&self) -> Turn {
        let [a, b, c, d, e, f] = self.fronts;
        a.min(b).min(c.min(d)).min(e.min(f))
    }

    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        let turn = self.first;
        (turn < Turn::NEVER).then(|| turn.at())
    }

    /// Removes and returns the next event if it is due at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Option<(Time, Event)> {
        let turn = self.first;
        if turn == Turn::NEVER || turn.at() > now {
            return None;
        }
        let place = turn.place();
        let (entry, next) = match self.lanes.get_mut(place) {
            Some(lane) => (lane.pop_front(), lane.front()),
            None => (self.rest.pop(), self.rest.peek()),
        };
        self.fronts[place] = next.map_or(Turn::NEVER, |of| of.turn);
        self.first = self.look();
        entry.map(|entry| (turn.at(), entry.event))
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap has its greatest first.
        other.turn.cmp(&self.turn)
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
        self.turn == other.turn
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Events of any kind come in the order of their moments, and of their notes.
        #[test]
        fn events_come_in_order(notes in proptest::collection::vec((0u64..200, 0u32..4), 1..400)) {
            let mut agenda = Agenda::default();
            let mut noted = Vec::new();
            let (mut taken, mut now) = (Vec::new(), Time::ZERO);
            for (number, &(after, kind)) in notes.iter().enumerate() {
                let of = number as u32;
                let event = match kind {
                    0 => Event::Sensed(of),
                    1 => Event::Transferred { channel: of, generation: 0 },
                    2 => Event::Array { die: of, generation: 0 },
                    _ => Event::Idle { generation: u64::from(of) },
                };
                agenda.note(now + Time(after), event);
                noted.push((now + Time(after), of));
                if number % 3 == 2 {
                    now = agenda.next().expect("one was noted");
                    taken.extend(agenda.take(now).map(numbered));
                }
            }
            while let Some(next) = agenda.next() {
                taken.extend(agenda.take(next).map(numbered));
            }
            noted.sort();
            prop_assert_eq!(taken, noted);
        }
    }

    fn numbered((at, event): (Time, Event)) -> (Time, u32) {
        let number = match event {
            Event::Sensed(of) => of,
            Event::Transferred { channel, .. } => channel,
            Event::Array { die, .. } => die,
            Event::Idle { generation } => generation as u32,
            event => unreachable!("{event:?} is not noted here"),
        };
        (at, number)
    }
}
