//! What happens in a drive next.

use crate::RequestId;
use diskperf_sim::Time;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

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
    /// A page has crossed beside what its channel carries, as is supposed of it.
    Crossed(u32),
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

impl Event {
    /// The lane of its kind. What an array does takes any time, and has none, as what is rare.
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

/// How far back an event goes in its lane; one that would go further goes into the heap.
const FURTHEST: usize = 16;

/// When an event happens, behind that its number (what is noted first happens first), and
/// in the lowest bits where it is: its lane, or the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u128);

/// Bits for a place.
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

    /// The same, of an entry that goes into the heap.
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

/// Events in the order of time; of the same moment, in the order in which they were noted.
///
/// Events of one kind are noted nearly in order: each kind has a lane that is sorted from
/// behind, which takes no time. A heap has the rest.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    lanes: [VecDeque<Entry>; LANES],
    rest: BinaryHeap<Entry>,
    number: u64,
    /// The first of each lane, and behind them the heap's.
    fronts: [Turn; LANES + 1],
    /// The first of them all.
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

    /// Puts an entry where it belongs; gives its turn, which says where that is.
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

    /// The first of all fronts: pairs of them side by side.
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

    /// The next event, if it is due.
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
