//! Cache flushes of a flash drive: programs of the buffer first, then of the journal.

use super::programs::Author;
use super::*;
use diskperf_ftl::{JournalWrite, Writer};

/// State of pending flushes and of the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes {
    /// Flushes that wait for the buffer, each with the buffer's epoch.
    waiting: VecDeque<(RequestId, u64)>,
    /// Commands that wait for the next program of the journal.
    for_journal: Vec<RequestId>,
    /// Commands that wait for the current program of the journal.
    journalling: Vec<RequestId>,
    /// Whether a program of the journal is queued or in progress.
    under_way: bool,
    /// Journal program in progress as the translation layer knows it; only if power cuts are
    /// modelled.
    begun: Option<JournalWrite>,
    /// Number of map changes since the last journal program began.
    changes: u64,
    /// Next page of the journal's ring to be written.
    page: u32,
    /// Commands blocked by a flush that drains the queue.
    held: VecDeque<RequestId>,
    /// Draining flush that has not yet reached the controller.
    draining: Option<RequestId>,
    /// Whether a draining flush is pending or in progress.
    drains: bool,
}

impl Flushes {
    /// Tests whether a command waits for the buffer or for the journal.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.for_journal.is_empty()
    }

    /// Applies a power cut: forgets all waiting commands, and keeps the position in the journal's
    /// ring.
    pub(super) fn lose_power(&mut self) {
        *self = Self {
            page: self.page,
            ..Self::default()
        };
    }

    /// Adds to the number of map changes since the last journal program.
    pub(super) fn count(&mut self, changes: usize) {
        self.changes += changes as u64;
    }
}

impl Flash {
    /// Holds a command back if a draining (SATA) flush blocks it, and returns whether it did. Such
    /// a flush waits for all commands before it, and all later commands wait for it.
    pub(super) fn holds_back(&mut self, id: RequestId, operation: Operation) -> bool {
        if self.interface().flush != FlushOrder::Drains {
            return false;
        }
        let flushes = &mut self.flushes;
        if flushes.drains || !flushes.held.is_empty() {
            flushes.held.push_back(id);
            return true;
        }
        if operation != Operation::Flush || self.under_way == 1 {
            flushes.drains = operation == Operation::Flush;
            return false;
        }
        (flushes.drains, flushes.draining) = (true, Some(id));
        true
    }

    /// Starts a draining flush that is now alone, or releases the commands that a finished flush
    /// blocked.
    pub(super) fn release(&mut self, now: Time, requests: &mut Requests) {
        if self.interface().flush != FlushOrder::Drains {
            return;
        }
        let under_way = self.under_way - self.flushes.held.len() as u32;
        if under_way == 0 {
            self.flushes.drains = false;
        }
        if under_way == 1
            && let Some(id) = self.flushes.draining.take()
        {
            requests[id].mark(Stage::ControllerQueue, moment(now));
            self.decode(now, requests, id);
        }
        while !self.flushes.drains
            && let Some(id) = self.flushes.held.pop_front()
        {
            requests[id].mark(Stage::ControllerQueue, moment(now));
            if requests[id].operation == Operation::Flush {
                self.flushes.drains = true;
                if self.under_way > 1 + self.flushes.held.len() as u32 {
                    self.flushes.draining = Some(id);
                    return;
                }
            }
            self.decode(now, requests, id);
        }
    }

    /// Starts a flush that the controller has processed.
    pub(super) fn begin_flush(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        match self.specification.buffer {
            Some(buffer) if buffer.protected => self.finish(now, requests, id),
            // Trims are all that is not durable.
            None => self.join_journal(now, requests, id),
            Some(_) => self.wait_for_buffer(id),
        }
    }

    fn wait_for_buffer(&mut self, id: RequestId) {
        let epoch = self.buffer.flush();
        self.flushes.waiting.push_back((id, epoch));
    }

    /// Moves flushes whose buffered data are all programmed on to the journal.
    pub(super) fn end_flushes(&mut self, now: Time, requests: &mut Requests) {
        while let Some((id, epoch)) = self.flushes.waiting.front().copied() {
            if !self.buffer.has_flushed(epoch) {
                break;
            }
            self.flushes.waiting.pop_front();
            book(&mut requests[id], Stage::Destage, now);
            self.join_journal(now, requests, id);
        }
    }

    /// Makes a command wait until all map changes are in the journal, and finishes it if they
    /// already are.
    pub(super) fn join_journal(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let flushes = &mut self.flushes;
        match (flushes.changes, flushes.under_way) {
            (0, false) => self.finish(now, requests, id),
            // All of them are in the journal under way.
            (0, true) => flushes.journalling.push(id),
            (1.., _) => flushes.for_journal.push(id),
        }
    }

    fn journal_pages(&self) -> u64 {
        self.flushes.changes / u64::from(self.specification.journal.changes_per_page)
    }

    /// Tests whether a program of the journal is due: a command or an erase waits for it, or its
    /// pages fill a program.
    pub(super) fn journal_is_due(&self) -> bool {
        let program_units = self.specification.geometry.program_units();
        let wanted = !self.flushes.for_journal.is_empty();
        wanted || self.journal_pages() >= u64::from(program_units) || self.erase_waits()
    }

    /// Tests whether an erase waits for the journal, because recovery from a power cut would need
    /// the data to be erased.
    fn erase_waits(&self) -> bool {
        let waits = || {
            self.ftl.next_collection_step() == CollectionStep::AwaitPrograms
                && self.collecting.has_copied()
        };
        self.contents.is_some() && self.ftl.unjournalled_unit_count() > 0 && waits()
    }

    /// Queues a program of journal pages if it is due, and returns whether it did.
    pub(super) fn assign_journal(&mut self, now: Time) -> bool {
        let held = self.holds_host() && !self.erase_waits();
        if !self.journal_is_due() || self.flushes.under_way || held {
            return false;
        }
        let geometry = self.specification.geometry;
        let (journal, pages) = (self.specification.journal, self.journal_pages());
        // It does not wait for a die that is free.
        let turn = self.turn;
        let free = self.free_die(Writer::LayerOwn);
        let fewest = || {
            let left = self.ftl.dies_with_rows_left(Writer::LayerOwn);
            left.min_by_key(|die| self.dies[*die as usize].programs.len())
        };
        let Some(die) = free.or_else(fewest) else {
            self.turn = turn;
            return false;
        };
        self.ftl.prefer_die(die);
        let number = self.new_program(Author::Journal, die);
        let needed = pages.max(1).min(u64::from(geometry.program_units()));
        let mut last = None;
        for _ in 0..needed {
            let page = self.flushes.page;
            self.flushes.page = (page + 1) % journal.pages;
            let placed = self.ftl.write_system(page);
            last = Some(placed.expect("a superblock was free for the journal"));
        }
        let padded = self.ftl.pad_program_of_writer(Writer::LayerOwn);
        let flushes = &mut self.flushes;
        flushes.under_way = true;
        flushes.begun = self.contents.is_some().then(|| self.ftl.begin_journal());
        flushes.changes = 0;
        std::mem::swap(&mut flushes.journalling, &mut flushes.for_journal);
        self.put(now, number, padded.or(last));
        true
    }

    /// Finishes the commands that waited for a journal program, which has ended.
    pub(super) fn journalled(&mut self, now: Time, requests: &mut Requests) {
        self.flushes.under_way = false;
        if let Some(journal) = self.flushes.begun.take() {
            self.ftl.complete_journal(journal);
        }
        let mut journalling = std::mem::take(&mut self.flushes.journalling);
        for id in journalling.drain(..) {
            book(&mut requests[id], Stage::Journal, now);
            self.finish(now, requests, id);
        }
        self.flushes.journalling = journalling;
    }
}
