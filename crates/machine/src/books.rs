//! Where the time of a program goes: each span is booked to a stage, and what is booked
//! sums to the time that has passed.

use diskperf_device::moment;
use diskperf_sim::Time;
use diskperf_timeline::trace::Tiling;
use diskperf_timeline::{Ledger, Request, Stage};
use std::cell::{Cell, RefCell};

/// The books of one program, from the moment at which they were opened.
pub struct Books {
    /// Nanoseconds booked, by [`Stage::index`].
    booked: [Cell<u64>; Stage::COUNT],
    opened: Cell<Time>,
    /// Bytes that drives were told to read for the program since then.
    storage_read: Cell<u64>,
    /// Whether each booked span is kept in the tiling.
    is_traced: Cell<bool>,
    /// Spans booked since the books were opened.
    tiling: RefCell<Tiling>,
}

impl Books {
    /// Empty books, opened at time zero.
    pub(crate) fn new() -> Self {
        Self {
            booked: [const { Cell::new(0) }; Stage::COUNT],
            opened: Cell::new(Time::ZERO),
            storage_read: Cell::new(0),
            is_traced: Cell::new(false),
            tiling: RefCell::default(),
        }
    }

    /// Says when a program begins, and whether its spans are kept.
    pub(crate) fn begin(&self, now: Time, is_traced: bool) {
        self.opened.set(now);
        self.is_traced.set(is_traced);
    }

    /// Whether spans are kept.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.is_traced.get()
    }

    /// Sets all books to zero and opens them at a moment.
    pub(crate) fn open(&self, now: Time) {
        for booked in &self.booked {
            booked.set(0);
        }
        self.opened.set(now);
        self.storage_read.set(0);
        self.tiling.take();
    }

    /// The moment at which the books were opened.
    pub(crate) fn opened(&self) -> Time {
        self.opened.get()
    }

    /// Books a span that ended at `until`.
    #[inline]
    pub(crate) fn book(&self, stage: Stage, until: Time, span: Time) {
        let booked = &self.booked[stage.index()];
        booked.set(booked.get() + span.0);
        if self.is_traced.get() {
            self.tile(stage, until, span);
        }
    }

    /// Keeps a span that was booked, which few ask for.
    #[cold]
    fn tile(&self, stage: Stage, until: Time, span: Time) {
        let mut tiling = self.tiling.borrow_mut();
        tiling.add(stage, moment(until), span.0);
    }

    /// Books `[from, to]` as the request that was waited for spent it.
    pub(crate) fn book_request(&self, request: &Request, from: Time, to: Time) {
        let (from, to) = (moment(from), moment(to));
        if request.issued() <= from && request.marked() >= to {
            let mut at = Time(from.0);
            request.between(from, to, |stage, ns| {
                at += Time(ns);
                self.book(stage, at, Time(ns));
            });
        } else {
            // The buffer was not under way but in use by somebody.
            self.book(Stage::BufferWait, Time(to.0), Time(to.0 - from.0));
        }
    }

    /// Time booked to a stage so far.
    pub(crate) fn booked(&self, stage: Stage) -> Time {
        Time(self.booked[stage.index()].get())
    }

    /// Time booked to each stage since the books were opened.
    ///
    /// # Panics
    ///
    /// When the stages do not sum to the time that has passed.
    pub(crate) fn ledger(&self, now: Time) -> Ledger {
        let ledger = Ledger::from_table(&self.booked.each_ref().map(Cell::get));
        let elapsed = now - self.opened.get();
        assert!(
            ledger.total().0 == elapsed.0,
            "the ledger sums to {} of {} ns: {ledger:?}",
            ledger.total().0,
            elapsed.0
        );
        ledger
    }

    /// Counts what a drive is told to read.
    pub(crate) fn count_storage_read(&self, bytes: u64) {
        self.storage_read.set(self.storage_read.get() + bytes);
    }

    /// Bytes that drives were told to read since they were opened.
    pub(crate) fn storage_read(&self) -> u64 {
        self.storage_read.get()
    }

    /// Spans that were booked since they were opened, where they are kept.
    pub(crate) fn tiling(&self) -> Tiling {
        self.tiling.borrow().clone()
    }

    /// Memory of the spans that are kept.
    pub(crate) fn tiling_bytes(&self) -> usize {
        self.tiling.borrow().bytes()
    }
}

/// The stage that several programs have been at for longest since their books were opened,
/// but for waiting until another has done what it is at.
pub(crate) fn longest_stage<'a>(all: impl Iterator<Item = &'a Books> + Clone) -> Option<Stage> {
    let of_others = [
        Stage::CpuWait,
        Stage::BufferWait,
        Stage::DriverQueue,
        Stage::Think,
    ];
    let booked = |stage: Stage| {
        let of_all = all.clone().map(|books| books.booked(stage).0);
        (of_all.sum::<u64>(), stage)
    };
    // Of the like, the first.
    let stages = Stage::ALL.into_iter().rev();
    let own = stages.filter(|stage| !of_others.contains(stage));
    let longest = own.map(booked).filter(|(time, _)| *time > 0);
    longest
        .max_by_key(|(time, _)| *time)
        .map(|(_, stage)| stage)
}
