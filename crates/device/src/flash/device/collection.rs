//! Garbage collection beside host commands: copies are read, wait in the controller's memory for a
//! die, and are programmed; then every die erases its blocks.

use super::programs::ProgramOrigin;
use super::reads::ReadOrigin;
use super::*;
use diskperf_ftl::{UnitCopy, Writer};

#[derive(Clone, Debug, Default)]
pub(super) struct CollectionState {
    copies_in_progress: u32,
    /// Copies that have been read and wait for a program.
    copies_read: VecDeque<UnitCopy>,
    /// Index of a partly filled program of copies.
    open_program: Option<u32>,
    /// Number of dies that still have to erase their blocks of the victim, and of those that erase
    /// now.
    dies_to_erase: u32,
    dies_erasing: u32,
    /// Total time for which garbage collection blocked host programs, and the start of the current
    /// blockage.
    host_blocked_time: Time,
    host_blocked_since: Option<Time>,
    /// Scratch list of copies that are about to be issued.
    copy_scratch: Vec<UnitCopy>,
    commands_received: u64,
    /// Whether the drive has been idle for long enough to fold its SLC cache.
    is_idle: bool,
}

impl CollectionState {
    /// Subtracts programmed copies from those in progress.
    pub(super) fn complete_copies(&mut self, copies: usize) {
        self.copies_in_progress -= copies as u32;
    }

    /// Notes a new command, which ends the idle state.
    pub(super) fn wake(&mut self) {
        self.commands_received += 1;
        self.is_idle = false;
    }

    /// Tests whether copies are in progress, host programs are blocked, or the SLC cache is to be
    /// folded.
    pub(super) fn has_work(&self) -> bool {
        self.copies_in_progress > 0 || self.is_idle || self.host_blocked_since.is_some()
    }

    /// Begins the idle state if no command has arrived since `generation`.
    pub(super) fn begin_idle(&mut self, generation: u64) {
        self.is_idle = self.commands_received == generation;
    }

    pub(super) fn generation(&self) -> u64 {
        self.commands_received
    }

    /// Applies a power cut: forgets all copies, and ends a blockage of the host.
    pub(super) fn lose_power(&mut self, now: Time) {
        *self = Self {
            host_blocked_time: self.host_blocked_time(now),
            commands_received: self.commands_received,
            ..Self::default()
        };
    }

    /// Tests whether all issued copies are programmed.
    pub(super) fn has_copied_all(&self) -> bool {
        self.copies_in_progress == 0
    }

    /// Returns the total time for which garbage collection has blocked host programs so far.
    pub(super) fn host_blocked_time(&self, now: Time) -> Time {
        let now_held = self
            .host_blocked_since
            .map_or(Time::ZERO, |since| now - since);
        self.host_blocked_time + now_held
    }
}

impl Flash {
    /// Tests whether host programs are blocked because too few superblocks are free.
    pub(super) fn blocks_host(&self) -> bool {
        self.translation_layer.must_host_wait()
    }

    /// Tests whether garbage collection lags behind host writes by more than one program on every
    /// die. Host programs then wait for it.
    pub(super) fn collection_is_behind(&self) -> bool {
        let geometry = &self.specification.geometry;
        let most = geometry.die_count() * geometry.program_units();
        let copies = matches!(
            self.translation_layer.next_collection_step(),
            CollectionStep::CopyUnits | CollectionStep::AwaitPrograms
        );
        copies && self.translation_layer.copies_due() > most
    }

    /// Continues garbage collection, or begins one, as far as it is due.
    pub(super) fn advance_collection(&mut self, now: Time) {
        if self.what_if.no_collection {
            self.collect_instantly();
            return;
        }
        self.update_host_blocked(now);
        if self.translation_layer.next_collection_step() == CollectionStep::Idle {
            if !self.begin_collection() {
                return;
            }
            // The first are free: a victim without valid units is paid by nobody.
            let first = self.specification.geometry.program_units();
            self.issue_copies(now, first.min(self.copy_slots_free()));
        } else if self.translation_layer.next_collection_step() == CollectionStep::CopyUnits {
            self.issue_due_copies(now);
        }
        self.start_due_erases(now);
    }

    /// Performs all due garbage collection and folding in no time.
    fn collect_instantly(&mut self) {
        let mut copies = std::mem::take(&mut self.collection.copy_scratch);
        while self.begin_collection() {
            while self.translation_layer.next_collection_step() == CollectionStep::CopyUnits {
                copies.clear();
                self.translation_layer
                    .next_copies(self.copies_max(), &mut copies);
                for copy in &copies {
                    if let Some(placement) = self.translation_layer.place_copy(*copy) {
                        self.translation_layer.complete_copy(*copy, placement);
                    }
                }
            }
            // What the next collection fills is no matter of a die's.
            self.translation_layer.complete_erase();
        }
        self.collection.copy_scratch = copies;
    }

    /// Begins to collect a victim if free superblocks are few, or to fold the SLC cache if the
    /// drive is idle. Returns whether something began.
    fn begin_collection(&mut self) -> bool {
        if self.translation_layer.wants_collection()
            && self.translation_layer.begin_collection().is_some()
        {
            return true;
        }
        self.collection.is_idle && self.translation_layer.begin_folding().is_some()
    }

    fn update_host_blocked(&mut self, now: Time) {
        let holds = self.translation_layer.must_host_wait();
        match (holds, self.collection.host_blocked_since) {
            (true, None) => self.collection.host_blocked_since = Some(now),
            (false, Some(since)) => {
                self.collection.host_blocked_time += now - since;
                self.collection.host_blocked_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Returns the maximum number of copies in progress: three programs per die, of which one is
    /// read, one is loaded, and one is programmed.
    fn copies_max(&self) -> u32 {
        3 * self.dies.len() as u32 * self.specification.geometry.program_units()
    }

    /// Returns the number of copies that may still be issued.
    fn copy_slots_free(&self) -> u32 {
        self.copies_max()
            .saturating_sub(self.collection.copies_in_progress)
    }

    /// Issues the copies that are due in proportion to host writes. Issues as many as possible if
    /// the host is blocked or idle.
    fn issue_due_copies(&mut self, now: Time) {
        let room = self.copy_slots_free();
        let program_units = self.specification.geometry.program_units();
        let is_free = self.translation_layer.must_host_wait() || self.in_flight_count == 0;
        let due = match is_free {
            true => room,
            false => room.min(self.translation_layer.copies_due()),
        };
        // A few at a time are not worth the look at every event.
        if due >= program_units {
            self.issue_copies(now, due);
        }
    }

    fn issue_copies(&mut self, now: Time, most: u32) {
        let mut copies = std::mem::take(&mut self.collection.copy_scratch);
        copies.clear();
        self.translation_layer.next_copies(most, &mut copies);
        self.collection.copies_in_progress += copies.len() as u32;
        let mut last = None;
        for copy in &copies {
            // What is still in the buffer is not read.
            let in_buffer =
                copy.logical != UnitCopy::NO_LOGICAL && self.buffer.contains(copy.logical);
            if in_buffer {
                self.collection.copies_read.push_back(*copy);
                continue;
            }
            let place = self.locate_physical(copy.source_physical);
            match self.continues_page(last, place) {
                Some(op) => {
                    self.read_operations[op].unit_count += 1;
                    self.read_operations[op].copies.push(*copy);
                }
                None => {
                    let op = self.create_read(now, ReadOrigin::GarbageCollection, place);
                    self.read_operations[op].copies.push(*copy);
                    self.dies[place.die as usize].own_reads.push_back(op);
                    self.die_readiness[place.die as usize] = LoadReadiness::NotReady;
                    last = Some((op, place));
                    if !self.touched_dies.contains(&place.die) {
                        self.touched_dies.push(place.die);
                    }
                }
            }
        }
        self.collection.copy_scratch = copies;
        let touched = std::mem::take(&mut self.touched_dies);
        for die in &touched {
            self.start_die_work(now, *die);
        }
        self.touched_dies = touched;
        self.touched_dies.clear();
    }

    /// Queues the copies of a finished page read for programs.
    pub(super) fn complete_copy_read(&mut self, op: u32) {
        let copies = &mut self.read_operations[op].copies;
        self.collection.copies_read.extend(copies.drain(..));
    }

    /// Starts a program of copies if enough are ready, or of the rest at the end of a collection.
    /// Returns whether one was queued.
    pub(super) fn assign_copy_program(&mut self, now: Time) -> bool {
        let program_units = self.specification.geometry.program_units();
        let ready = self.collection.copies_read.len() as u32;
        if self.collection.copies_in_progress == 0 {
            return false;
        }
        let is_last = || {
            matches!(
                self.translation_layer.next_collection_step(),
                CollectionStep::AwaitPrograms
            )
        };
        let enough = ready >= program_units || self.collection.open_program.is_some() && ready > 0;
        if !(enough || self.has_no_copies_elsewhere() && is_last()) {
            return false;
        }
        let open = match self.collection.open_program.take() {
            Some(open) => Some(open),
            None if ready > 0 => match self.find_free_die(Writer::MovedData) {
                None => return false,
                Some(die) => {
                    self.translation_layer.prefer_die(die);
                    Some(self.new_program(ProgramOrigin::GarbageCollection, die))
                }
            },
            None => None,
        };
        let Some(program) = open else { return false };
        self.fill_copy_program(now, program)
    }

    /// Tests whether all copies in progress are ready or already in the partly filled program.
    fn has_no_copies_elsewhere(&self) -> bool {
        let open = self.collection.open_program;
        let placed = open.map_or(0, |open| self.copy_count(open));
        self.collection.copies_in_progress == self.collection.copies_read.len() as u32 + placed
    }

    /// Adds ready copies to a program until it is full, and pads it at the end of a collection.
    /// Returns whether the program is settled: queued or dropped.
    fn fill_copy_program(&mut self, now: Time, program: u32) -> bool {
        while let Some(copy) = self.collection.copies_read.pop_front() {
            let Some(placement) = self.translation_layer.place_copy(copy) else {
                self.collection.copies_in_progress -= 1;
                continue;
            };
            self.add_copy(program, (copy, placement));
            if placement.completes_program {
                self.queue_program(now, program, None);
                return true;
            }
        }
        self.collection.open_program = Some(program);
        let is_last = matches!(
            self.translation_layer.next_collection_step(),
            CollectionStep::AwaitPrograms
        );
        if self.copy_count(program) == 0 {
            // All were overwritten meanwhile.
            self.collection.open_program = None;
            self.release_program(program);
            return true;
        }
        if !is_last || !self.has_no_copies_elsewhere() {
            return false;
        }
        self.collection.open_program = None;
        let padded = self
            .translation_layer
            .pad_program_of_writer(Writer::MovedData);
        self.queue_program(now, program, padded);
        true
    }

    /// Marks an erase on every die once all copies of the victim are programmed or obsolete.
    pub(super) fn start_due_erases(&mut self, now: Time) {
        let is_due = matches!(
            self.translation_layer.next_collection_step(),
            CollectionStep::EraseVictim(_)
        );
        if !is_due || self.collection.dies_to_erase > 0 {
            return;
        }
        self.collection.dies_to_erase = self.dies.len() as u32;
        for die in &mut self.dies {
            die.is_erase_due = true;
        }
        for die in 0..self.dies.len() as u32 {
            self.start_die_work(now, die);
        }
    }

    /// Tests whether another die may erase now.
    pub(super) fn may_erase(&self) -> bool {
        self.collection.dies_erasing < self.specification.translation.dies_erasing_max
    }

    pub(super) fn start_erase(&mut self, now: Time, number: u32) {
        self.dies[number as usize].is_erase_due = false;
        self.note_erase(number);
        self.collection.dies_erasing += 1;
        let takes = self.specification.channel.command_time + self.specification.times.erase_time;
        let erase = super::super::die::ArrayWork::Erase;
        self.start_array(now, number, erase, DieBusy::Erase, takes);
    }

    /// Notes that a die has erased its blocks. After the last die, the superblock is free.
    pub(super) fn complete_erase(&mut self, now: Time) {
        self.collection.dies_erasing -= 1;
        self.collection.dies_to_erase -= 1;
        if self.collection.dies_to_erase == 0 {
            self.translation_layer.complete_erase();
        }
        // Others may have waited for their turn.
        for die in 0..self.dies.len() as u32 {
            if self.dies[die as usize].is_erase_due {
                self.start_die_work(now, die);
            }
        }
    }
}
