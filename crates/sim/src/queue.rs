//! The event queue: by time; where times are equal, events before those who
//! sleep until then; and among the like by insertion.

use crate::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

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

pub(crate) struct Queue<T> {
    heap: BinaryHeap<Entry<T>>,
    /// The one event that may be moved or taken back.
    timer: Option<Entry<T>>,
    scheduled: u64,
    tie_break: TieBreak,
}

struct Entry<T> {
    at: Time,
    /// The rank in the highest bit, the place among the like below.
    order: u64,
    what: T,
}

/// The bit of [`Entry::order`] that says [`Rank::Sleeper`].
const SLEEPER: u64 = 1 << 63;

impl<T> Queue<T> {
    pub(crate) fn new(tie_break: TieBreak) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(64),
            timer: None,
            scheduled: 0,
            tie_break,
        }
    }

    #[inline]
    fn entry(&mut self, at: Time, rank: Rank, what: T) -> Entry<T> {
        let place = match self.tie_break {
            TieBreak::Insertion => self.scheduled,
            TieBreak::Reversed => SLEEPER - 1 - self.scheduled,
        };
        let order = match rank {
            Rank::Event => place,
            Rank::Sleeper => place | SLEEPER,
        };
        self.scheduled += 1;
        Entry { at, order, what }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Time, rank: Rank, what: T) {
        let entry = self.entry(at, rank, what);
        self.heap.push(entry);
    }

    /// Sets the timer, instead of what it was set to.
    #[inline]
    pub(crate) fn set_timer(&mut self, at: Time, what: T) {
        self.timer = Some(self.entry(at, Rank::Event, what));
    }

    #[inline]
    pub(crate) fn clear_timer(&mut self) {
        self.timer = None;
    }

    #[inline]
    pub(crate) fn has_timer(&self) -> bool {
        self.timer.is_some()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, T)> {
        let timer_first = match (&self.timer, self.heap.peek()) {
            (Some(timer), Some(entry)) => timer > entry,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let entry = if timer_first {
            self.timer.take()
        } else {
            self.heap.pop()
        };
        entry.map(|entry| (entry.at, entry.what))
    }

    /// When the next event is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        let queued = self.next_but_timer();
        self.timer
            .as_ref()
            .map_or(queued, |timer| queued.min(timer.at))
    }

    /// The same, the timer left out.
    #[inline]
    pub(crate) fn next_but_timer(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |entry| entry.at)
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.timer = None;
    }
}

// The heap gives its greatest element first; the greatest is the earliest.
impl<T> Ord for Entry<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<T> PartialOrd for Entry<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}
