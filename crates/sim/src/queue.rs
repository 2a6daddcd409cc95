//! The event queue: by time; where times are equal, events before those who
//! sleep until then; and among the like by insertion.

use crate::time::Time;
use std::cell::Cell;

/// Which of two events of one [`Rank`] at the same nanosecond comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TieBreak {
    /// The one that was scheduled first.
    #[default]
    Insertion,
    /// The one that was scheduled last. Only tests want this: a result that
    /// it moves hangs on the order of things that happen at once.
    Reversed,
}

/// What comes first at the same nanosecond, whatever the [`TieBreak`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// What hardware does.
    Event,
    /// A task's sleep is over. Timeouts are served by the clock's interrupt:
    /// one that ends at a tick ends because of it, not before it.
    Sleeper,
}

/// When something is due, and its place among what is due then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    pub(crate) at: Time,
    /// The rank in the highest bit, the place among the like below.
    order: u64,
}

impl Turn {
    /// No turn comes after it.
    pub(crate) const NEVER: Self = Self {
        at: Time::NEVER,
        order: u64::MAX,
    };

    /// All that is due at this moment comes before it.
    pub(crate) fn last_of(at: Time) -> Self {
        Self {
            at,
            order: u64::MAX,
        }
    }
}

/// Hands out turns.
pub(crate) struct Turns {
    given: Cell<u64>,
    tie_break: TieBreak,
}

impl Turns {
    pub(crate) fn new(tie_break: TieBreak) -> Self {
        Self {
            given: Cell::new(0),
            tie_break,
        }
    }

    /// How many were handed out.
    #[inline]
    pub(crate) fn given(&self) -> u64 {
        self.given.get()
    }

    #[inline]
    pub(crate) fn give(&self, at: Time, rank: Rank) -> Turn {
        let given = self.given.get();
        self.given.set(given + 1);
        let place = match self.tie_break {
            TieBreak::Insertion => given,
            TieBreak::Reversed => SLEEPER - 1 - given,
        };
        let order = match rank {
            Rank::Event => place,
            Rank::Sleeper => place | SLEEPER,
        };
        Turn { at, order }
    }
}

/// The bit of [`Turn::order`] that says [`Rank::Sleeper`].
const SLEEPER: u64 = 1 << 63;

/// Entries that are looked at one after the other.
const NEAR: usize = 8;

/// What is due, the last first. Few things are due at a time (a clock's tick,
/// what each drive and each channel does next): to move those that come before
/// a new one takes less than to keep a heap. What is due stays where it is: only
/// turns move.
pub(crate) struct Queue<T> {
    entries: Vec<Entry>,
    /// What is due, by [`Entry::slot`].
    slots: Vec<Option<T>>,
    vacant: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Entry {
    turn: Turn,
    slot: u32,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::with_capacity(64),
            slots: Vec::with_capacity(64),
            vacant: Vec::with_capacity(64),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, turn: Turn, what: T) {
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(what);
                slot
            }
            None => {
                self.slots.push(Some(what));
                self.slots.len() as u32 - 1
            }
        };
        self.place(Entry { turn, slot });
    }

    fn place(&mut self, entry: Entry) {
        let mut at = self.entries.len();
        let near = at.saturating_sub(NEAR);
        self.entries.push(entry);
        while at > near && self.entries[at - 1].turn < entry.turn {
            self.entries[at] = self.entries[at - 1];
            at -= 1;
        }
        self.entries[at] = entry;
        if at == near && near > 0 {
            self.place_far(near);
        }
    }

    /// Moves an entry on before which many things are due.
    #[cold]
    fn place_far(&mut self, at: usize) {
        let turn = self.entries[at].turn;
        let later = self.entries[..at].partition_point(|entry| entry.turn > turn);
        self.entries[later..=at].rotate_right(1);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let slot = self.entries.pop()?.slot;
        self.vacant.push(slot);
        self.slots[slot as usize].take()
    }

    /// The first turn; [`Turn::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Turn {
        self.entries.last().map_or(Turn::NEVER, |entry| entry.turn)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.slots.clear();
        self.vacant.clear();
    }
}
