//! Time accounting of a program: each span of time is booked to a stage, and the booked times add
//! up to the elapsed time.

use diskperf_device::moment;
use diskperf_sim::Time;
use diskperf_timeline::trace::StageTiling;
use diskperf_timeline::{Ledger, RequestTimeline, Stage};
use std::cell::{Cell, RefCell};

/// Time accounts of one program since the accounts were opened.
pub struct StageAccount {
    booked: [Cell<u64>; Stage::COUNT],
    account_start: Cell<Time>,
    storage_read_bytes: Cell<u64>,
    is_traced: Cell<bool>,
    tiling: RefCell<StageTiling>,
}

impl StageAccount {
    /// Returns empty time accounts of a program, opened at time zero.
    pub(crate) fn new() -> Self {
        Self {
            booked: [const { Cell::new(0) }; Stage::COUNT],
            account_start: Cell::new(Time::ZERO),
            storage_read_bytes: Cell::new(0),
            is_traced: Cell::new(false),
            tiling: RefCell::default(),
        }
    }

    /// Sets the start time of a program and whether its spans are recorded.
    pub(crate) fn begin_timed_part(&self, now: Time, is_traced: bool) {
        self.account_start.set(now);
        self.is_traced.set(is_traced);
    }

    /// Reports whether the program's spans are recorded.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.is_traced.get()
    }

    /// Resets all time accounts to zero and opens them at time `now`.
    pub(crate) fn start_account(&self, now: Time) {
        for booked in &self.booked {
            booked.set(0);
        }
        self.account_start.set(now);
        self.storage_read_bytes.set(0);
        self.tiling.take();
    }

    /// Time at which the program's accounts were opened.
    pub(crate) fn account_start(&self) -> Time {
        self.account_start.get()
    }

    /// Books a span of time that ended at `until` to a stage.
    #[inline]
    pub(crate) fn book_stage(&self, stage: Stage, until: Time, span: Time) {
        let booked = &self.booked[stage.index()];
        booked.set(booked.get() + span.0);
        if self.is_traced.get() {
            self.append_tile(stage, until, span);
        }
    }

    /// Records a span of a program for its trace. Kept out of line, because few runs record spans.
    #[cold]
    fn append_tile(&self, stage: Stage, until: Time, span: Time) {
        let mut tiling = self.tiling.borrow_mut();
        tiling.add_tile(stage, moment(until), span.0);
    }

    /// Books the time `[from, to]` of a wait to the stages in which the awaited request spent it.
    pub(crate) fn book_request(&self, request: &RequestTimeline, from: Time, to: Time) {
        let (from, to) = (moment(from), moment(to));
        if request.issued_at() <= from && request.marked_until() >= to {
            let mut at = Time(from.0);
            request.for_each_stage_between(from, to, |stage, ns| {
                at += Time(ns);
                self.book_stage(stage, at, Time(ns));
            });
        } else {
            // The buffer was not under way but in use by somebody.
            self.book_stage(Stage::BufferWait, Time(to.0), Time(to.0 - from.0));
        }
    }

    pub(crate) fn stage_time(&self, stage: Stage) -> Time {
        Time(self.booked[stage.index()].get())
    }

    /// Returns the time booked to each stage since the accounts were opened.
    ///
    /// # Panics
    ///
    /// If the stages do not add up to the elapsed time.
    pub(crate) fn ledger_until(&self, now: Time) -> Ledger {
        let ledger = Ledger::from_table(&self.booked.each_ref().map(Cell::get));
        let elapsed = now - self.account_start.get();
        assert!(
            ledger.total_duration().0 == elapsed.0,
            "the ledger sums to {} of {} ns: {ledger:?}",
            ledger.total_duration().0,
            elapsed.0
        );
        ledger
    }

    /// Counts bytes that a drive is commanded to read for the program.
    pub(crate) fn count_storage_read(&self, bytes: u64) {
        self.storage_read_bytes
            .set(self.storage_read_bytes.get() + bytes);
    }

    /// Bytes that drives were commanded to read for the program since the accounts were opened.
    pub(crate) fn storage_read_bytes(&self) -> u64 {
        self.storage_read_bytes.get()
    }

    /// Returns the spans that were booked since the accounts were opened, if they are recorded.
    pub(crate) fn tiling(&self) -> StageTiling {
        self.tiling.borrow().clone()
    }

    /// Memory of the recorded spans, in bytes.
    pub(crate) fn tiling_bytes(&self) -> usize {
        self.tiling.borrow().memory_bytes()
    }
}

/// Returns the stage in which several programs have spent the most time since their accounts were
/// opened. Waits for work of other programs (CPU, buffer, driver queue, think time) do not count.
/// None if nothing is booked.
pub(crate) fn longest_stage_of_accounts<'a>(
    all: impl Iterator<Item = &'a StageAccount> + Clone,
) -> Option<Stage> {
    let of_others = [
        Stage::CpuWait,
        Stage::BufferWait,
        Stage::DriverQueue,
        Stage::Think,
    ];
    let booked = |stage: Stage| {
        let of_all = all.clone().map(|books| books.stage_time(stage).0);
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
