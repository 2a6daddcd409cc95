//! Flushes: what of the buffer is programmed first, and the journal then.

use super::programs::Author;
use super::*;
use diskperf_ftl::{Journal, Writer};

/// Flushes, and the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes {
    /// Flushes that wait for the buffer, each with what it waits for.
    waiting: VecDeque<(RequestId, u64)>,
    /// Commands that wait for a journal that is not begun.
    for_journal: Vec<RequestId>,
    /// Those that the journal under way is for.
    journalling: Vec<RequestId>,
    /// A journal is to be programmed, or is.
    under_way: bool,
    /// The same, as the translation layer has it where power cuts count.
    begun: Option<Journal>,
    /// Changes of the map since the last journal began.
    changes: u64,
    /// The page of the ring that is next.
    page: u32,
    /// Commands behind a flush that drains.
    held: VecDeque<RequestId>,
    /// A flush that drains, and has not come to the controller.
    draining: Option<RequestId>,
    /// The same, until it is done.
    drains: bool,
}

impl Flushes {
    /// Whether some command waits for the buffer, or for the journal.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.for_journal.is_empty()
    }

    /// Nobody waits, and the journal goes on where it was.
    pub(super) fn lose_power(&mut self) {
        *self = Self {
            page: self.page,
            ..Self::default()
        };
    }

    /// So many entries of the map have changed.
    pub(super) fn count(&mut self, changes: usize) {
        self.changes += changes as u64;
    }
}

impl Flash {
    /// A flush of SATA waits for all before it, and all behind wait for it.
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

    /// Goes on with what a flush held up, or with the flush.
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

    /// A flush has come to the controller.
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

    /// Flushes of which all is programmed go on to the journal.
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

    /// A command is done when all changes of the map are in the journal.
    pub(super) fn join_journal(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let flushes = &mut self.flushes;
        match (flushes.changes, flushes.under_way) {
            (0, false) => self.finish(now, requests, id),
            // All of them are in the journal under way.
            (0, true) => flushes.journalling.push(id),
            (1.., _) => flushes.for_journal.push(id),
        }
    }

    /// Pages of the journal that changes of the map fill.
    fn journal_pages(&self) -> u64 {
        self.flushes.changes / u64::from(self.specification.journal.changes_per_page)
    }

    /// Whether a program of the journal is to be made: somebody waits for it, or it is full.
    pub(super) fn journal_is_due(&self) -> bool {
        let program_units = self.specification.geometry.program_units();
        let wanted = !self.flushes.for_journal.is_empty();
        wanted || self.journal_pages() >= u64::from(program_units) || self.erase_waits()
    }

    /// Whether an erase waits for the journal: a scan after a power cut would need what it
    /// erases.
    fn erase_waits(&self) -> bool {
        let waits = || self.ftl.progress() == Progress::Waiting && self.collecting.has_copied();
        self.contents.is_some() && self.ftl.unjournalled() > 0 && waits()
    }

    /// Programs pages of the journal, if they are due.
    pub(super) fn assign_journal(&mut self, now: Time) -> bool {
        let held = self.holds_host() && !self.erase_waits();
        if !self.journal_is_due() || self.flushes.under_way || held {
            return false;
        }
        let geometry = self.specification.geometry;
        let (journal, pages) = (self.specification.journal, self.journal_pages());
        // It does not wait for a die that is free.
        let turn = self.turn;
        let free = self.free_die(Writer::System);
        let fewest = || {
            let left = self.ftl.dies_left(Writer::System);
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
        let padded = self.ftl.pad_writer(Writer::System);
        let flushes = &mut self.flushes;
        flushes.under_way = true;
        flushes.begun = self.contents.is_some().then(|| self.ftl.begin_journal());
        flushes.changes = 0;
        std::mem::swap(&mut flushes.journalling, &mut flushes.for_journal);
        self.put(now, number, padded.or(last));
        true
    }

    /// The journal has been programmed.
    pub(super) fn journalled(&mut self, now: Time, requests: &mut Requests) {
        self.flushes.under_way = false;
        if let Some(journal) = self.flushes.begun.take() {
            self.ftl.journalled(journal);
        }
        let mut journalling = std::mem::take(&mut self.flushes.journalling);
        for id in journalling.drain(..) {
            book(&mut requests[id], Stage::Journal, now);
            self.finish(now, requests, id);
        }
        self.flushes.journalling = journalling;
    }
}
