//! Cache flushes of a flash drive: programs of the buffer first, then of the journal.

use super::programs::ProgramOrigin;
use super::*;
use diskperf_ftl::{JournalWrite, Writer};

#[derive(Clone, Debug, Default)]
pub(super) struct FlushState {
    awaiting_buffer: VecDeque<(RequestId, u64)>,
    /// Commands that wait for the next program of the journal.
    awaiting_journal: Vec<RequestId>,
    in_journal_program: Vec<RequestId>,
    has_journal_program: bool,
    /// Journal program in progress as the translation layer knows it; only if power cuts are
    /// modelled.
    begun_journal: Option<JournalWrite>,
    /// Number of map changes since the last journal program began.
    map_change_count: u64,
    next_journal_page: u32,
    blocked_by_drain: VecDeque<RequestId>,
    /// Draining flush that has not yet reached the controller.
    draining_flush: Option<RequestId>,
    is_draining: bool,
}

impl FlushState {
    /// Tests whether a command waits for the buffer or for the journal.
    pub(super) fn has_work(&self) -> bool {
        !self.awaiting_buffer.is_empty() || !self.awaiting_journal.is_empty()
    }

    /// Applies a power cut: forgets all waiting commands, and keeps the position in the journal's
    /// ring.
    pub(super) fn lose_power(&mut self) {
        *self = Self {
            next_journal_page: self.next_journal_page,
            ..Self::default()
        };
    }

    /// Adds to the number of map changes since the last journal program.
    pub(super) fn count_map_changes(&mut self, changes: usize) {
        self.map_change_count += changes as u64;
    }
}

impl Flash {
    /// Holds a command back if a draining (SATA) flush blocks it, and returns whether it did. Such
    /// a flush waits for all commands before it, and all later commands wait for it.
    pub(super) fn block_if_draining(&mut self, id: RequestId, operation: Operation) -> bool {
        if self.interface().flush_order != FlashFlushOrder::DrainsQueue {
            return false;
        }
        let flushes = &mut self.flushes;
        if flushes.is_draining || !flushes.blocked_by_drain.is_empty() {
            flushes.blocked_by_drain.push_back(id);
            return true;
        }
        if operation != Operation::Flush || self.in_flight_count == 1 {
            flushes.is_draining = operation == Operation::Flush;
            return false;
        }
        (flushes.is_draining, flushes.draining_flush) = (true, Some(id));
        true
    }

    /// Starts a draining flush that is now alone, or releases the commands that a finished flush
    /// blocked.
    pub(super) fn release_blocked(&mut self, now: Time, requests: &mut Requests) {
        if self.interface().flush_order != FlashFlushOrder::DrainsQueue {
            return;
        }
        let under_way = self.in_flight_count - self.flushes.blocked_by_drain.len() as u32;
        if under_way == 0 {
            self.flushes.is_draining = false;
        }
        if under_way == 1
            && let Some(id) = self.flushes.draining_flush.take()
        {
            requests[id].book_stage(Stage::ControllerQueue, moment(now));
            self.schedule_decoding(now, requests, id);
        }
        while !self.flushes.is_draining
            && let Some(id) = self.flushes.blocked_by_drain.pop_front()
        {
            requests[id].book_stage(Stage::ControllerQueue, moment(now));
            if requests[id].operation == Operation::Flush {
                self.flushes.is_draining = true;
                if self.in_flight_count > 1 + self.flushes.blocked_by_drain.len() as u32 {
                    self.flushes.draining_flush = Some(id);
                    return;
                }
            }
            self.schedule_decoding(now, requests, id);
        }
    }

    /// Starts a flush that the controller has processed.
    pub(super) fn begin_flush(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        match self.specification.buffer {
            Some(buffer) if buffer.is_power_protected => {
                self.schedule_completion(now, requests, id)
            }
            // Trims are all that is not durable.
            None => self.join_journal(now, requests, id),
            Some(_) => self.wait_for_buffer(id),
        }
    }

    fn wait_for_buffer(&mut self, id: RequestId) {
        let epoch = self.buffer.begin_flush();
        self.flushes.awaiting_buffer.push_back((id, epoch));
    }

    /// Moves flushes whose buffered data are all programmed on to the journal.
    pub(super) fn end_flushes(&mut self, now: Time, requests: &mut Requests) {
        while let Some((id, epoch)) = self.flushes.awaiting_buffer.front().copied() {
            if !self.buffer.is_flushed(epoch) {
                break;
            }
            self.flushes.awaiting_buffer.pop_front();
            book_stage(&mut requests[id], Stage::Destage, now);
            self.join_journal(now, requests, id);
        }
    }

    /// Makes a command wait until all map changes are in the journal, and finishes it if they
    /// already are.
    pub(super) fn join_journal(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let flushes = &mut self.flushes;
        match (flushes.map_change_count, flushes.has_journal_program) {
            (0, false) => self.schedule_completion(now, requests, id),
            // All of them are in the journal under way.
            (0, true) => flushes.in_journal_program.push(id),
            (1.., _) => flushes.awaiting_journal.push(id),
        }
    }

    fn journal_pages(&self) -> u64 {
        self.flushes.map_change_count / u64::from(self.specification.journal.changes_per_page)
    }

    /// Tests whether a program of the journal is due: a command or an erase waits for it, or its
    /// pages fill a program.
    pub(super) fn journal_is_due(&self) -> bool {
        let program_units = self.specification.geometry.program_units();
        let wanted = !self.flushes.awaiting_journal.is_empty();
        wanted || self.journal_pages() >= u64::from(program_units) || self.must_erase_wait()
    }

    /// Tests whether an erase waits for the journal, because recovery from a power cut would need
    /// the data to be erased.
    fn must_erase_wait(&self) -> bool {
        let waits = || {
            self.translation_layer.next_collection_step() == CollectionStep::AwaitPrograms
                && self.collection.has_copied_all()
        };
        self.contents.is_some() && self.translation_layer.unjournalled_unit_count() > 0 && waits()
    }

    /// Queues a program of journal pages if it is due, and returns whether it did.
    pub(super) fn assign_journal(&mut self, now: Time) -> bool {
        let held = self.blocks_host() && !self.must_erase_wait();
        if !self.journal_is_due() || self.flushes.has_journal_program || held {
            return false;
        }
        let geometry = self.specification.geometry;
        let (journal, pages) = (self.specification.journal, self.journal_pages());
        // It does not wait for a die that is free.
        let turn = self.next_die;
        let free = self.find_free_die(Writer::LayerOwn);
        let fewest = || {
            let left = self.translation_layer.dies_with_rows_left(Writer::LayerOwn);
            left.min_by_key(|die| self.dies[*die as usize].queued_programs.len())
        };
        let Some(die) = free.or_else(fewest) else {
            self.next_die = turn;
            return false;
        };
        self.translation_layer.prefer_die(die);
        let number = self.new_program(ProgramOrigin::Journal, die);
        let needed = pages.max(1).min(u64::from(geometry.program_units()));
        let mut last = None;
        for _ in 0..needed {
            let page = self.flushes.next_journal_page;
            self.flushes.next_journal_page = (page + 1) % journal.page_count;
            let placed = self.translation_layer.write_system(page);
            last = Some(placed.expect("a superblock was free for the journal"));
        }
        let padded = self
            .translation_layer
            .pad_program_of_writer(Writer::LayerOwn);
        let flushes = &mut self.flushes;
        flushes.has_journal_program = true;
        flushes.begun_journal = self
            .contents
            .is_some()
            .then(|| self.translation_layer.begin_journal());
        flushes.map_change_count = 0;
        std::mem::swap(
            &mut flushes.in_journal_program,
            &mut flushes.awaiting_journal,
        );
        self.queue_program(now, number, padded.or(last));
        true
    }

    /// Finishes the commands that waited for a journal program, which has ended.
    pub(super) fn complete_journal_program(&mut self, now: Time, requests: &mut Requests) {
        self.flushes.has_journal_program = false;
        if let Some(journal) = self.flushes.begun_journal.take() {
            self.translation_layer.complete_journal(journal);
        }
        let mut journalling = std::mem::take(&mut self.flushes.in_journal_program);
        for id in journalling.drain(..) {
            book_stage(&mut requests[id], Stage::Journal, now);
            self.schedule_completion(now, requests, id);
        }
        self.flushes.in_journal_program = journalling;
    }
}
