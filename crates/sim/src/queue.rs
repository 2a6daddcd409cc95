//! Event queue, ordered by time. At equal times, events come before sleeping tasks; within each of
//! the two, insertion order decides.

use crate::time::Time;
use std::cell::Cell;

/// Order of two events of the same [`EventRank`] at the same nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// Insertion order: the event scheduled first comes first.
    #[default]
    InsertionOrder,
    /// Reversed insertion order: the event scheduled last comes first. Only for tests: a result
    /// that changes with it depends on the order of simultaneous events.
    ReversedOrder,
}

/// Priority among entries at the same nanosecond, independent of the [`TieBreak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventRank {
    /// Hardware event, which comes before sleeping tasks.
    Event,
    /// Wake-up of a sleeping task, which comes after hardware events. Timeouts are served by the
    /// clock's interrupt, so a timeout that ends at a tick runs after the tick.
    Sleeper,
}

/// Position of an entry in the event queue: its time, and its order among entries of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePosition {
    pub(crate) event_time: Time,
    /// Order among entries of the same time: the rank in the highest bit, the insertion order in
    /// the bits below.
    order: u64,
}

impl QueuePosition {
    /// Queue position after all others.
    pub(crate) const NEVER: Self = Self {
        event_time: Time::NEVER,
        order: u64::MAX,
    };

    pub(crate) fn after_all_at(at: Time) -> Self {
        Self {
            event_time: at,
            order: u64::MAX,
        }
    }
}

pub(crate) struct QueuePositionSource {
    issued_count: Cell<u64>,
    tie_break: TieBreak,
}

impl QueuePositionSource {
    pub(crate) fn new(tie_break: TieBreak) -> Self {
        Self {
            issued_count: Cell::new(0),
            tie_break,
        }
    }

    /// Number of queue positions that were handed out.
    #[inline]
    pub(crate) fn issued_count(&self) -> u64 {
        self.issued_count.get()
    }

    #[inline]
    pub(crate) fn issue_position(&self, at: Time, rank: EventRank) -> QueuePosition {
        let number = self.issued_count.get();
        self.issued_count.set(number + 1);
        let place = match self.tie_break {
            TieBreak::InsertionOrder => number,
            TieBreak::ReversedOrder => SLEEPER_BIT - 1 - number,
        };
        let order = match rank {
            EventRank::Event => place,
            EventRank::Sleeper => place | SLEEPER_BIT,
        };
        QueuePosition {
            event_time: at,
            order,
        }
    }
}

/// Bit of [`QueuePosition::order`] that marks [`EventRank::Sleeper`].
const SLEEPER_BIT: u64 = 1 << 63;

/// Number of entries that an insertion searches linearly before it uses binary search.
const LINEAR_SEARCH_ENTRIES_MAX: usize = 8;

/// Queue of scheduled entries, sorted with the next one last. Few entries are pending at a time (a
/// clock's tick, the next step of each drive and each channel), so moving entries at an insertion
/// costs less than a heap. The contents stay in their slots; only queue positions move.
pub(crate) struct EventQueue<T> {
    entries: Vec<QueueEntry>,
    slots: Vec<Option<T>>,
    vacant_slots: Vec<u32>,
}

#[derive(Clone, Copy)]
struct QueueEntry {
    position: QueuePosition,
    slot: u32,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::with_capacity(64),
            slots: Vec::with_capacity(64),
            vacant_slots: Vec::with_capacity(64),
        }
    }

    #[inline]
    pub(crate) fn push_event(&mut self, position: QueuePosition, content: T) {
        let slot = match self.vacant_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(content);
                slot
            }
            None => {
                self.slots.push(Some(content));
                self.slots.len() as u32 - 1
            }
        };
        self.insert_entry(QueueEntry { position, slot });
    }

    fn insert_entry(&mut self, entry: QueueEntry) {
        let mut at = self.entries.len();
        let near = at.saturating_sub(LINEAR_SEARCH_ENTRIES_MAX);
        self.entries.push(entry);
        while at > near && self.entries[at - 1].position < entry.position {
            self.entries[at] = self.entries[at - 1];
            at -= 1;
        }
        self.entries[at] = entry;
        if at == near && near > 0 {
            self.insert_far(near);
        }
    }

    #[cold]
    fn insert_far(&mut self, at: usize) {
        let position = self.entries[at].position;
        let later = self.entries[..at].partition_point(|entry| entry.position > position);
        self.entries[later..=at].rotate_right(1);
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<T> {
        let slot = self.entries.pop()?.slot;
        self.vacant_slots.push(slot);
        self.slots[slot as usize].take()
    }

    /// Returns the position of the next entry; [`QueuePosition::NEVER`] if the queue is empty.
    #[inline]
    pub(crate) fn next_position(&self) -> QueuePosition {
        self.entries
            .last()
            .map_or(QueuePosition::NEVER, |entry| entry.position)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.slots.clear();
        self.vacant_slots.clear();
    }
}
