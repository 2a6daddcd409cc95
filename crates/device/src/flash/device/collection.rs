//! Garbage collection beside host commands: copies are read, wait in the controller's memory for a
//! die, and are programmed; then every die erases its blocks.

use super::programs::Author;
use super::reads::Reader;
use super::*;
use diskperf_ftl::{UnitCopy, Writer};

/// State of the current garbage collection.
#[derive(Clone, Debug, Default)]
pub(super) struct Collecting {
    /// Number of copies issued and not yet programmed.
    under_way: u32,
    /// Copies that have been read and wait for a program.
    ready: VecDeque<UnitCopy>,
    /// Index of a partly filled program of copies.
    open: Option<u32>,
    /// Number of dies that still have to erase their blocks of the victim, and of those that erase
    /// now.
    to_erase: u32,
    erasing: u32,
    /// Total time for which garbage collection blocked host programs, and the start of the current
    /// blockage.
    held: Time,
    held_since: Option<Time>,
    /// Scratch list of copies that are about to be issued.
    copies: Vec<UnitCopy>,
    /// Number of commands that the drive has received.
    asked: u64,
    /// Whether the drive has been idle for long enough to fold its SLC cache.
    rests: bool,
}

impl Collecting {
    /// Subtracts programmed copies from those in progress.
    pub(super) fn programmed(&mut self, copies: usize) {
        self.under_way -= copies as u32;
    }

    /// Notes a new command, which ends the idle state.
    pub(super) fn wake(&mut self) {
        self.asked += 1;
        self.rests = false;
    }

    /// Tests whether copies are in progress, host programs are blocked, or the SLC cache is to be
    /// folded.
    pub(super) fn has_work(&self) -> bool {
        self.under_way > 0 || self.rests || self.held_since.is_some()
    }

    /// Begins the idle state if no command has arrived since `generation`.
    pub(super) fn rest(&mut self, generation: u64) {
        self.rests = self.asked == generation;
    }

    pub(super) fn generation(&self) -> u64 {
        self.asked
    }

    /// Applies a power cut: forgets all copies, and ends a blockage of the host.
    pub(super) fn lose_power(&mut self, now: Time) {
        *self = Self {
            held: self.held(now),
            asked: self.asked,
            ..Self::default()
        };
    }

    /// Tests whether all issued copies are programmed.
    pub(super) fn has_copied(&self) -> bool {
        self.under_way == 0
    }

    /// Returns the total time for which garbage collection has blocked host programs so far.
    pub(super) fn held(&self, now: Time) -> Time {
        let now_held = self.held_since.map_or(Time::ZERO, |since| now - since);
        self.held + now_held
    }
}

impl Flash {
    /// Tests whether host programs are blocked because too few superblocks are free.
    pub(super) fn holds_host(&self) -> bool {
        self.ftl.must_host_wait()
    }

    /// Tests whether garbage collection lags behind host writes by more than one program on every
    /// die. Host programs then wait for it.
    pub(super) fn collection_is_behind(&self) -> bool {
        let geometry = &self.specification.geometry;
        let most = geometry.dies() * geometry.program_units();
        let copies = matches!(
            self.ftl.next_collection_step(),
            CollectionStep::CopyUnits | CollectionStep::AwaitPrograms
        );
        copies && self.ftl.copies_due() > most
    }

    /// Continues garbage collection, or begins one, as far as it is due.
    pub(super) fn collect(&mut self, now: Time) {
        if self.what_if.no_collection {
            self.collect_at_once();
            return;
        }
        self.note_held(now);
        if self.ftl.next_collection_step() == CollectionStep::Idle {
            if !self.begin_collection() {
                return;
            }
            // The first are free: a victim without valid units is paid by nobody.
            let first = self.specification.geometry.program_units();
            self.hand_out(now, first.min(self.room()));
        } else if self.ftl.next_collection_step() == CollectionStep::CopyUnits {
            self.hand_out_due(now);
        }
        self.erase_if_due(now);
    }

    /// Performs all due garbage collection and folding in no time.
    fn collect_at_once(&mut self) {
        let mut copies = std::mem::take(&mut self.collecting.copies);
        while self.begin_collection() {
            while self.ftl.next_collection_step() == CollectionStep::CopyUnits {
                copies.clear();
                self.ftl.next_copies(self.most_copies(), &mut copies);
                for copy in &copies {
                    if let Some(placement) = self.ftl.place_copy(*copy) {
                        self.ftl.complete_copy(*copy, placement);
                    }
                }
            }
            // What the next collection fills is no matter of a die's.
            self.ftl.complete_erase();
        }
        self.collecting.copies = copies;
    }

    /// Begins to collect a victim if free superblocks are few, or to fold the SLC cache if the
    /// drive is idle. Returns whether something began.
    fn begin_collection(&mut self) -> bool {
        if self.ftl.wants_collection() && self.ftl.begin_collection().is_some() {
            return true;
        }
        self.collecting.rests && self.ftl.begin_folding().is_some()
    }

    fn note_held(&mut self, now: Time) {
        let holds = self.ftl.must_host_wait();
        match (holds, self.collecting.held_since) {
            (true, None) => self.collecting.held_since = Some(now),
            (false, Some(since)) => {
                self.collecting.held += now - since;
                self.collecting.held_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Returns the maximum number of copies in progress: three programs per die, of which one is
    /// read, one is loaded, and one is programmed.
    fn most_copies(&self) -> u32 {
        3 * self.dies.len() as u32 * self.specification.geometry.program_units()
    }

    /// Returns the number of copies that may still be issued.
    fn room(&self) -> u32 {
        self.most_copies().saturating_sub(self.collecting.under_way)
    }

    /// Issues the copies that are due in proportion to host writes. Issues as many as possible if
    /// the host is blocked or idle.
    fn hand_out_due(&mut self, now: Time) {
        let room = self.room();
        let program_units = self.specification.geometry.program_units();
        let is_free = self.ftl.must_host_wait() || self.under_way == 0;
        let due = match is_free {
            true => room,
            false => room.min(self.ftl.copies_due()),
        };
        // A few at a time are not worth the look at every event.
        if due >= program_units {
            self.hand_out(now, due);
        }
    }

    fn hand_out(&mut self, now: Time, most: u32) {
        let mut copies = std::mem::take(&mut self.collecting.copies);
        copies.clear();
        self.ftl.next_copies(most, &mut copies);
        self.collecting.under_way += copies.len() as u32;
        let mut last = None;
        for copy in &copies {
            // What is still in the buffer is not read.
            let in_buffer = copy.logical != UnitCopy::NO_LOGICAL && self.buffer.has(copy.logical);
            if in_buffer {
                self.collecting.ready.push_back(*copy);
                continue;
            }
            let place = self.place(copy.source_physical);
            match self.same_page(last, place) {
                Some(op) => {
                    self.ops[op].units += 1;
                    self.ops[op].copies.push(*copy);
                }
                None => {
                    let op = self.new_read(now, Reader::Collection, place);
                    self.ops[op].copies.push(*copy);
                    self.dies[place.die as usize].own_reads.push_back(op);
                    self.free[place.die as usize] = Free::No;
                    last = Some((op, place));
                    if !self.touched.contains(&place.die) {
                        self.touched.push(place.die);
                    }
                }
            }
        }
        self.collecting.copies = copies;
        let touched = std::mem::take(&mut self.touched);
        for die in &touched {
            self.serve(now, *die);
        }
        self.touched = touched;
        self.touched.clear();
    }

    /// Queues the copies of a finished page read for programs.
    pub(super) fn copies_read(&mut self, op: u32) {
        let copies = &mut self.ops[op].copies;
        self.collecting.ready.extend(copies.drain(..));
    }

    /// Starts a program of copies if enough are ready, or of the rest at the end of a collection.
    /// Returns whether one was queued.
    pub(super) fn assign_copies(&mut self, now: Time) -> bool {
        let program_units = self.specification.geometry.program_units();
        let ready = self.collecting.ready.len() as u32;
        if self.collecting.under_way == 0 {
            return false;
        }
        let is_last = || {
            matches!(
                self.ftl.next_collection_step(),
                CollectionStep::AwaitPrograms
            )
        };
        let enough = ready >= program_units || self.collecting.open.is_some() && ready > 0;
        if !(enough || self.no_copies_elsewhere() && is_last()) {
            return false;
        }
        let open = match self.collecting.open.take() {
            Some(open) => Some(open),
            None if ready > 0 => match self.free_die(Writer::MovedData) {
                None => return false,
                Some(die) => {
                    self.ftl.prefer_die(die);
                    Some(self.new_program(Author::Collection, die))
                }
            },
            None => None,
        };
        let Some(program) = open else { return false };
        self.fill(now, program)
    }

    /// Tests whether all copies in progress are ready or already in the partly filled program.
    fn no_copies_elsewhere(&self) -> bool {
        let open = self.collecting.open;
        let placed = open.map_or(0, |open| self.copies_of(open));
        self.collecting.under_way == self.collecting.ready.len() as u32 + placed
    }

    /// Adds ready copies to a program until it is full, and pads it at the end of a collection.
    /// Returns whether the program is settled: queued or dropped.
    fn fill(&mut self, now: Time, program: u32) -> bool {
        while let Some(copy) = self.collecting.ready.pop_front() {
            let Some(placement) = self.ftl.place_copy(copy) else {
                self.collecting.under_way -= 1;
                continue;
            };
            self.add_copy(program, (copy, placement));
            if placement.completes_program {
                self.put(now, program, None);
                return true;
            }
        }
        self.collecting.open = Some(program);
        let is_last = matches!(
            self.ftl.next_collection_step(),
            CollectionStep::AwaitPrograms
        );
        if self.copies_of(program) == 0 {
            // All were overwritten meanwhile.
            self.collecting.open = None;
            self.forget_program(program);
            return true;
        }
        if !is_last || !self.no_copies_elsewhere() {
            return false;
        }
        self.collecting.open = None;
        let padded = self.ftl.pad_program_of_writer(Writer::MovedData);
        self.put(now, program, padded);
        true
    }

    /// Marks an erase on every die once all copies of the victim are programmed or obsolete.
    pub(super) fn erase_if_due(&mut self, now: Time) {
        let is_due = matches!(
            self.ftl.next_collection_step(),
            CollectionStep::EraseVictim(_)
        );
        if !is_due || self.collecting.to_erase > 0 {
            return;
        }
        self.collecting.to_erase = self.dies.len() as u32;
        for die in &mut self.dies {
            die.erase_due = true;
        }
        for die in 0..self.dies.len() as u32 {
            self.serve(now, die);
        }
    }

    /// Tests whether another die may erase now.
    pub(super) fn may_erase(&self) -> bool {
        self.collecting.erasing < self.specification.layer.dies_erasing
    }

    pub(super) fn start_erase(&mut self, now: Time, number: u32) {
        self.dies[number as usize].erase_due = false;
        self.note_erase(number);
        self.collecting.erasing += 1;
        let takes = self.specification.channel.command + self.specification.times.erase;
        let erase = super::super::die::Work::Erase;
        self.start_array(now, number, (erase, DieBusy::Erase, takes));
    }

    /// Notes that a die has erased its blocks. After the last die, the superblock is free.
    pub(super) fn die_erased(&mut self, now: Time) {
        self.collecting.erasing -= 1;
        self.collecting.to_erase -= 1;
        if self.collecting.to_erase == 0 {
            self.ftl.complete_erase();
        }
        // Others may have waited for their turn.
        for die in 0..self.dies.len() as u32 {
            if self.dies[die as usize].erase_due {
                self.serve(now, die);
            }
        }
    }
}
