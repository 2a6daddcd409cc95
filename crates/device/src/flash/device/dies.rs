//! Choice of a die's next operation, and its start.

use super::super::agenda::Event;
use super::super::channel::Load;
use super::super::die::{Ahead, Array, Progress, Work};
use super::*;

impl Flash {
    /// Suspends the program or erase of a die for waiting reads, if the drive supports it.
    pub(super) fn stop_for_reads(&mut self, now: Time, number: u32) {
        let die = &mut self.dies[number as usize];
        let (Some(rule), Some(array)) = (&self.specification.suspension, &mut die.array) else {
            return;
        };
        if die.reads.is_empty() || self.what_if.passes == Some(Stage::DieWait(array.cause)) {
            return;
        }
        if let Some(stands) = array.stop(now, rule) {
            self.suspensions += 1;
            self.note_array(stands, number);
        }
    }

    fn note_array(&mut self, at: Time, die: u32) {
        let of = &mut self.dies[die as usize];
        of.generation += 1;
        let generation = of.generation;
        self.agenda.note(at, Event::Array { die, generation });
    }

    /// Handles the end or suspension of a die's program or erase.
    pub(super) fn array(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (number, generation): (u32, u32),
    ) {
        let die = &mut self.dies[number as usize];
        if die.generation != generation {
            return;
        }
        let array = die.array.as_mut().expect("an array that works");
        if let Progress::Stops { .. } = array.progress {
            array.stand(now);
        } else {
            let work = array.work;
            die.array = None;
            match work {
                Work::Program(program) => self.programmed(now, requests, program),
                Work::Erase => self.die_erased(now),
            }
        }
        self.serve(now, number);
    }

    /// Tests whether host reads bypass the current work of a die, under a counterfactual
    /// assumption.
    fn reads_pass(&self, number: u32) -> bool {
        let Some(Stage::DieWait(supposed)) = self.what_if.passes else {
            return false;
        };
        let programs = &self.programs;
        let of_host = |program| programs[program].is_of_host();
        self.dies[number as usize].kept_by(of_host) == Some(supposed)
    }

    /// Starts the next operation of a die.
    pub(super) fn serve(&mut self, now: Time, number: u32) {
        self.serve_further(now, number);
        let die = &mut self.dies[number as usize];
        let programs = &self.programs;
        let is_host = |program| Program::is_of_host(&programs[program]);
        die.note(now, is_host);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, number, die.seen(is_host));
        }
        self.free[number as usize] = die.free(Ahead {
            of_programs: self.specification.cache_program,
            of_reads: self.specification.cache_program && self.specification.reads_during_data_in,
        });
    }

    fn serve_further(&mut self, now: Time, number: u32) {
        let die = &self.dies[number as usize];
        if !die.has_work() {
            return;
        }
        let stands = die.array.as_ref().is_some_and(Array::stands);
        let passes = self.reads_pass(number);
        let die = &self.dies[number as usize];
        if die.array.is_some() && !stands {
            if passes {
                self.start_reads(now, number, true);
            }
            self.load_ahead(now, number);
            return;
        }
        let has_data = die.array.is_none() && (die.loading.is_some() || die.loaded.is_some());
        let senses = self.specification.reads_stop_data_in() || !has_data || passes;
        if senses {
            self.start_reads(now, number, true);
        }
        let die = &self.dies[number as usize];
        if senses && !die.reads.is_empty() {
            return;
        }
        let is_free = die.array_is_free(self.specification.cache_read);
        if stands {
            if is_free {
                self.resume(now, number);
            }
        } else if die.loaded.is_some() {
            if is_free {
                self.start_loaded(now, number);
            }
        } else if die.loading.is_none() {
            self.start_own(now, number);
        }
    }

    fn start_loaded(&mut self, now: Time, number: u32) {
        let die = &mut self.dies[number as usize];
        let program = die.loaded.take().expect("its data have come");
        die.own_reads_next = !die.own_reads.is_empty();
        self.start_program(now, number, program);
    }

    /// Starts internal work (reads, erase or program) on a die without waiting host reads.
    fn start_own(&mut self, now: Time, number: u32) {
        self.start_reads(now, number, false);
        let die = &self.dies[number as usize];
        let is_free = die.array_is_free(self.specification.cache_read) && die.own_reads.is_empty();
        if die.erase_due && self.may_erase() {
            if is_free {
                self.start_erase(now, number);
            }
            return;
        }
        let takes_data = is_free || self.specification.reads_during_data_in;
        if takes_data && !die.programs.is_empty() {
            self.load(now, number);
        }
    }

    fn load_ahead(&mut self, now: Time, number: u32) {
        let die = &self.dies[number as usize];
        let has_room = die.loading.is_none() && die.loaded.is_none();
        if self.specification.cache_program && has_room && !die.programs.is_empty() {
            self.load(now, number);
        }
    }

    /// Starts to sense waiting reads on free planes: those of the host, or those of the drive
    /// itself.
    fn start_reads(&mut self, now: Time, number: u32, for_host: bool) {
        let mut page = None;
        let mut place = 0;
        loop {
            let die = &self.dies[number as usize];
            let queue = match for_host {
                true => &die.reads,
                false => &die.own_reads,
            };
            let Some(&op) = queue.get(place) else { return };
            let of = &self.ops[op];
            let plane = &die.planes[of.plane as usize];
            let plane_can =
                plane.sensing.is_none() && (plane.held.is_none() || self.specification.cache_read);
            let can = match (self.specification.independent_planes, page) {
                (true, _) => plane_can,
                // All planes sense the same page of their blocks.
                (false, Some(page)) => plane_can && page == of.page,
                (false, None) => die.planes.iter().all(|plane| {
                    plane.sensing.is_none()
                        && (plane.held.is_none() || self.specification.cache_read)
                }),
            };
            let of_page = of.page;
            if let Some(Stage::DieWait(supposed)) = self.what_if.passes
                && !can
                && for_host
                && die.kept_by_reads() == Some(supposed)
            {
                self.pass(now, op);
                place += 1;
                continue;
            }
            if !can {
                if page.is_none() && !self.specification.independent_planes {
                    return;
                }
                place += 1;
                continue;
            }
            page = Some(of_page);
            // What waited until now is booked before the plane is another's.
            self.sense(now, op);
            let die = &mut self.dies[number as usize];
            match for_host {
                true => die.reads.remove(place),
                false => die.own_reads.remove(place),
            };
        }
    }

    fn resume(&mut self, now: Time, number: u32) {
        let rule = self.specification.suspension.expect("what stands stopped");
        let die = &mut self.dies[number as usize];
        let array = die.array.as_mut().expect("an array that stands");
        let ends = array.resume(now, &rule);
        self.note_array(ends, number);
    }

    /// Starts a program or erase on a die.
    pub(super) fn start_array(
        &mut self,
        now: Time,
        number: u32,
        (work, cause, takes): (Work, DieBusy, Time),
    ) {
        let die = &mut self.dies[number as usize];
        assert!(
            die.array.is_none() && die.array_is_free(self.specification.cache_read),
            "one operation of an array at a time"
        );
        die.array = Some(Array::new(work, cause, (now, takes)));
        self.note_array(now + takes, number);
        self.load_ahead(now, number);
    }

    /// Starts the next transfer of a channel.
    pub(super) fn start_channel(&mut self, now: Time, channel: u32) {
        let of = &mut self.channels[channel as usize];
        if let Some(ends) = of.start(now) {
            let generation = of.generation;
            self.agenda.note(
                ends,
                Event::Transferred {
                    channel,
                    generation,
                },
            );
        }
    }

    /// Handles the end of a transfer on a channel.
    pub(super) fn transferred(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (channel, generation): (u32, u32),
    ) {
        let of = &mut self.channels[channel as usize];
        if of.generation != generation {
            return;
        }
        let (transfer, is_whole) = of.end();
        self.start_channel(now, channel);
        match transfer.load {
            Load::Read(op) => self.read_transferred(now, requests, (op, transfer.from)),
            Load::Program(program) if is_whole => self.loaded(now, program),
            Load::Program(_) => {}
        }
    }
}
