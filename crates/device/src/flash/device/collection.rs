//! Garbage collection beside the host: copies are read, wait in the controller's memory for
//! a die, and are programmed; then every die erases its blocks.

use super::programs::Author;
use super::reads::Reader;
use super::*;
use diskperf_ftl::{Copy, Writer};

/// The collection under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Collecting {
    /// Copies that were handed out and are not programmed.
    under_way: u32,
    /// Copies that were read.
    ready: VecDeque<Copy>,
    /// A program that is filled in part.
    open: Option<u32>,
    /// Dies that are still to erase their blocks, and those that do.
    to_erase: u32,
    erasing: u32,
    /// How long the host has been held back, and since when it is.
    held: Time,
    held_since: Option<Time>,
    /// Room for what is handed out.
    copies: Vec<Copy>,
    /// Times that something was asked of the drive.
    asked: u64,
    /// Nothing has been for so long that the cache of one bit a cell is folded.
    rests: bool,
}

impl Collecting {
    /// So many copies have been programmed.
    pub(super) fn programmed(&mut self, copies: usize) {
        self.under_way -= copies as u32;
    }

    /// Something is asked of the drive.
    pub(super) fn wake(&mut self) {
        self.asked += 1;
        self.rests = false;
    }

    /// Whether copies are under way, or the cache is to be folded.
    pub(super) fn has_work(&self) -> bool {
        self.under_way > 0 || self.rests || self.held_since.is_some()
    }

    /// Nothing has been asked of it for some time, if nothing was since `generation`.
    pub(super) fn rest(&mut self, generation: u64) {
        self.rests = self.asked == generation;
    }

    pub(super) fn generation(&self) -> u64 {
        self.asked
    }

    /// Nothing is under way, nor held back.
    pub(super) fn lose_power(&mut self, now: Time) {
        *self = Self {
            held: self.held(now),
            asked: self.asked,
            ..Self::default()
        };
    }

    /// Whether all copies are programmed.
    pub(super) fn has_copied(&self) -> bool {
        self.under_way == 0
    }

    /// How long the host has been held back so far.
    pub(super) fn held(&self, now: Time) -> Time {
        let now_held = self.held_since.map_or(Time::ZERO, |since| now - since);
        self.held + now_held
    }
}

impl Flash {
    /// Whether nothing of the host's is programmed, as too few superblocks are free.
    pub(super) fn holds_host(&self) -> bool {
        self.ftl.must_collect()
    }

    /// Whether copies that the host's writes have paid for could be made, and are more than a
    /// program of every die: the host's programs wait for them.
    pub(super) fn collection_is_behind(&self) -> bool {
        let geometry = &self.specification.geometry;
        let most = geometry.dies() * geometry.program_units();
        let copies = matches!(self.ftl.progress(), Progress::Copies | Progress::Waiting);
        copies && self.ftl.copies_due() > most
    }

    /// Goes on with a collection, or begins one, as far as it is due.
    pub(super) fn collect(&mut self, now: Time) {
        if self.what_if.no_collection {
            self.collect_at_once();
            return;
        }
        self.note_held(now);
        if self.ftl.progress() == Progress::Idle {
            if !self.begin_collection() {
                return;
            }
            // The first are free: a victim without valid units is paid by nobody.
            let first = self.specification.geometry.program_units();
            self.hand_out(now, first.min(self.room()));
        } else if self.ftl.progress() == Progress::Copies {
            self.hand_out_due(now);
        }
        self.erase_if_due(now);
    }

    /// Collects and folds in no time.
    fn collect_at_once(&mut self) {
        let mut copies = std::mem::take(&mut self.collecting.copies);
        while self.begin_collection() {
            while self.ftl.progress() == Progress::Copies {
                copies.clear();
                self.ftl.next_copies(self.most_copies(), &mut copies);
                for copy in &copies {
                    if let Some(placement) = self.ftl.place_copy(*copy) {
                        self.ftl.copied(*copy, placement);
                    }
                }
            }
            // What the next collection fills is no matter of a die's.
            self.ftl.erased();
        }
        self.collecting.copies = copies;
    }

    /// Chooses a victim if superblocks are few, or folds the cache if nothing else is to be
    /// done.
    fn begin_collection(&mut self) -> bool {
        if self.ftl.wants_collection() && self.ftl.begin_collection().is_some() {
            return true;
        }
        self.collecting.rests && self.ftl.begin_folding().is_some()
    }

    fn note_held(&mut self, now: Time) {
        let holds = self.ftl.must_collect();
        match (holds, self.collecting.held_since) {
            (true, None) => self.collecting.held_since = Some(now),
            (false, Some(since)) => {
                self.collecting.held += now - since;
                self.collecting.held_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Copies that may be under way together: for each die those of a program that is read,
    /// of one whose data come, and of one that is programmed.
    fn most_copies(&self) -> u32 {
        3 * self.dies.len() as u32 * self.specification.geometry.program_units()
    }

    /// Copies that there is room for.
    fn room(&self) -> u32 {
        self.most_copies().saturating_sub(self.collecting.under_way)
    }

    /// Hands out copies: those that the host's writes have paid for, or as many as there is
    /// room for when the host waits, or asks for nothing.
    fn hand_out_due(&mut self, now: Time) {
        let room = self.room();
        let program_units = self.specification.geometry.program_units();
        let is_free = self.ftl.must_collect() || self.under_way == 0;
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
            let in_buffer = copy.logical != Copy::ANONYMOUS && self.buffer.has(copy.logical);
            if in_buffer {
                self.collecting.ready.push_back(*copy);
                continue;
            }
            let place = self.place(copy.from);
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

    /// Copies have been read.
    pub(super) fn copies_read(&mut self, op: u32) {
        let copies = &mut self.ops[op].copies;
        self.collecting.ready.extend(copies.drain(..));
    }

    /// A program of copies, if there are enough; of what there is at a collection's end.
    pub(super) fn assign_copies(&mut self, now: Time) -> bool {
        let program_units = self.specification.geometry.program_units();
        let ready = self.collecting.ready.len() as u32;
        if self.collecting.under_way == 0 {
            return false;
        }
        let is_last = || matches!(self.ftl.progress(), Progress::Waiting);
        let enough = ready >= program_units || self.collecting.open.is_some() && ready > 0;
        if !(enough || self.no_copies_elsewhere() && is_last()) {
            return false;
        }
        let open = match self.collecting.open.take() {
            Some(open) => Some(open),
            None if ready > 0 => match self.free_die(Writer::Copies) {
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

    /// Whether all copies under way are ready, or in the program that is filled in part.
    fn no_copies_elsewhere(&self) -> bool {
        let open = self.collecting.open;
        let placed = open.map_or(0, |open| self.copies_of(open));
        self.collecting.under_way == self.collecting.ready.len() as u32 + placed
    }

    /// Puts copies into a program until it is full, or padded at the end.
    fn fill(&mut self, now: Time, program: u32) -> bool {
        while let Some(copy) = self.collecting.ready.pop_front() {
            let Some(placement) = self.ftl.place_copy(copy) else {
                self.collecting.under_way -= 1;
                continue;
            };
            self.add_copy(program, (copy, placement));
            if placement.full {
                self.put(now, program, None);
                return true;
            }
        }
        self.collecting.open = Some(program);
        let is_last = matches!(self.ftl.progress(), Progress::Waiting);
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
        let padded = self.ftl.pad_writer(Writer::Copies);
        self.put(now, program, padded);
        true
    }

    /// When all copies are programmed, or dead, every die is to erase its blocks of the
    /// victim.
    pub(super) fn erase_if_due(&mut self, now: Time) {
        let is_due = matches!(self.ftl.progress(), Progress::Erase(_));
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

    /// Whether another die may erase.
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

    /// A die has erased its blocks; after the last, the superblock is free.
    pub(super) fn die_erased(&mut self, now: Time) {
        self.collecting.erasing -= 1;
        self.collecting.to_erase -= 1;
        if self.collecting.to_erase == 0 {
            self.ftl.erased();
        }
        // Others may have waited for their turn.
        for die in 0..self.dies.len() as u32 {
            if self.dies[die as usize].erase_due {
                self.serve(now, die);
            }
        }
    }
}
