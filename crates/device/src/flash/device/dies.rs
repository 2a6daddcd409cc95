//! Choice of a die's next operation, and its start.

use super::super::agenda::FlashEvent;
use super::super::channel::TransferPayload;
use super::super::die::{ArrayOperation, ArrayProgress, ArrayWork, LoadAhead};
use super::*;

impl Flash {
    /// Suspends the program or erase of a die for waiting reads, if the drive supports it.
    pub(super) fn suspend_for_reads(&mut self, now: Time, number: u32) {
        let die = &mut self.dies[number as usize];
        let (Some(rule), Some(array)) = (&self.specification.suspension, &mut die.array_operation)
        else {
            return;
        };
        if die.host_reads.is_empty()
            || self.what_if.bypassed_stage == Some(Stage::DieWait(array.cause))
        {
            return;
        }
        if let Some(stands) = array.suspend(now, rule) {
            self.suspension_count += 1;
            self.schedule_array_event(stands, number);
        }
    }

    fn schedule_array_event(&mut self, at: Time, die: u32) {
        let of = &mut self.dies[die as usize];
        of.generation += 1;
        let generation = of.generation;
        self.event_queue
            .schedule(at, FlashEvent::ArrayDone { die, generation });
    }

    /// Handles the end or suspension of a die's program or erase.
    pub(super) fn handle_array_event(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (number, generation): (u32, u32),
    ) {
        let die = &mut self.dies[number as usize];
        if die.generation != generation {
            return;
        }
        let array = die.array_operation.as_mut().expect("an array that works");
        if let ArrayProgress::Suspending { .. } = array.progress {
            array.mark_suspended(now);
        } else {
            let work = array.work;
            die.array_operation = None;
            match work {
                ArrayWork::Program(program) => self.complete_program(now, requests, program),
                ArrayWork::Erase => self.complete_erase(now),
            }
        }
        self.start_die_work(now, number);
    }

    /// Tests whether host reads bypass the current work of a die, under a counterfactual
    /// assumption.
    fn may_reads_pass(&self, number: u32) -> bool {
        let Some(Stage::DieWait(supposed)) = self.what_if.bypassed_stage else {
            return false;
        };
        let programs = &self.programs;
        let of_host = |program| programs[program].is_host_program();
        self.dies[number as usize].busy_cause(of_host) == Some(supposed)
    }

    /// Starts the next operation of a die.
    pub(super) fn start_die_work(&mut self, now: Time, number: u32) {
        self.start_more_die_work(now, number);
        let die = &mut self.dies[number as usize];
        let programs = &self.programs;
        let is_host = |program| PageProgram::is_host_program(&programs[program]);
        die.update_cause(now, is_host);
        if let Some(recorder) = &mut self.recorder {
            recorder.note_activity(now, number, die.cause_and_suspension(is_host));
        }
        self.die_readiness[number as usize] = die.load_readiness(LoadAhead {
            during_programs: self.specification.has_cache_program,
            during_reads: self.specification.has_cache_program
                && self.specification.allows_reads_during_data_in,
        });
    }

    fn start_more_die_work(&mut self, now: Time, number: u32) {
        let die = &self.dies[number as usize];
        if !die.has_work() {
            return;
        }
        let stands = die
            .array_operation
            .as_ref()
            .is_some_and(ArrayOperation::is_suspended);
        let passes = self.may_reads_pass(number);
        let die = &self.dies[number as usize];
        if die.array_operation.is_some() && !stands {
            if passes {
                self.start_reads(now, number, true);
            }
            self.load_next_program(now, number);
            return;
        }
        let has_data = die.array_operation.is_none()
            && (die.loading_program.is_some() || die.loaded_program.is_some());
        let senses = self.specification.suspends_data_in_for_reads() || !has_data || passes;
        if senses {
            self.start_reads(now, number, true);
        }
        let die = &self.dies[number as usize];
        if senses && !die.host_reads.is_empty() {
            return;
        }
        let is_free = die.is_array_free(self.specification.has_cache_read);
        if stands {
            if is_free {
                self.resume_array(now, number);
            }
        } else if die.loaded_program.is_some() {
            if is_free {
                self.start_loaded_program(now, number);
            }
        } else if die.loading_program.is_none() {
            self.start_own_reads(now, number);
        }
    }

    fn start_loaded_program(&mut self, now: Time, number: u32) {
        let die = &mut self.dies[number as usize];
        let program = die.loaded_program.take().expect("its data have come");
        die.own_reads_next = !die.own_reads.is_empty();
        self.start_program(now, number, program);
    }

    /// Starts internal work (reads, erase or program) on a die without waiting host reads.
    fn start_own_reads(&mut self, now: Time, number: u32) {
        self.start_reads(now, number, false);
        let die = &self.dies[number as usize];
        let is_free =
            die.is_array_free(self.specification.has_cache_read) && die.own_reads.is_empty();
        if die.is_erase_due && self.may_erase() {
            if is_free {
                self.start_erase(now, number);
            }
            return;
        }
        let takes_data = is_free || self.specification.allows_reads_during_data_in;
        if takes_data && !die.queued_programs.is_empty() {
            self.load_program(now, number);
        }
    }

    fn load_next_program(&mut self, now: Time, number: u32) {
        let die = &self.dies[number as usize];
        let has_room = die.loading_program.is_none() && die.loaded_program.is_none();
        if self.specification.has_cache_program && has_room && !die.queued_programs.is_empty() {
            self.load_program(now, number);
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
                true => &die.host_reads,
                false => &die.own_reads,
            };
            let Some(&op) = queue.get(place) else { return };
            let of = &self.read_operations[op];
            let plane = &die.planes[of.plane as usize];
            let plane_can = plane.sensing_read.is_none()
                && (plane.register_read.is_none() || self.specification.has_cache_read);
            let can = match (self.specification.has_independent_planes, page) {
                (true, _) => plane_can,
                // All planes sense the same page of their blocks.
                (false, Some(page)) => plane_can && page == of.page_number,
                (false, None) => die.planes.iter().all(|plane| {
                    plane.sensing_read.is_none()
                        && (plane.register_read.is_none() || self.specification.has_cache_read)
                }),
            };
            let of_page = of.page_number;
            if let Some(Stage::DieWait(supposed)) = self.what_if.bypassed_stage
                && !can
                && for_host
                && die.busy_cause_of_reads() == Some(supposed)
            {
                self.complete_passed_read(now, op);
                place += 1;
                continue;
            }
            if !can {
                if page.is_none() && !self.specification.has_independent_planes {
                    return;
                }
                place += 1;
                continue;
            }
            page = Some(of_page);
            // What waited until now is booked before the plane is another's.
            self.begin_sensing(now, op);
            let die = &mut self.dies[number as usize];
            match for_host {
                true => die.host_reads.remove(place),
                false => die.own_reads.remove(place),
            };
        }
    }

    fn resume_array(&mut self, now: Time, number: u32) {
        let rule = self.specification.suspension.expect("what stands stopped");
        let die = &mut self.dies[number as usize];
        let array = die.array_operation.as_mut().expect("an array that stands");
        let ends = array.resume(now, &rule);
        self.schedule_array_event(ends, number);
    }

    /// Starts a program or erase on a die.
    pub(super) fn start_array(
        &mut self,
        now: Time,
        number: u32,
        work: ArrayWork,
        cause: DieBusy,
        takes: Time,
    ) {
        let die = &mut self.dies[number as usize];
        assert!(
            die.array_operation.is_none() && die.is_array_free(self.specification.has_cache_read),
            "one operation of an array at a time"
        );
        die.array_operation = Some(ArrayOperation::new(work, cause, (now, takes)));
        self.schedule_array_event(now + takes, number);
        self.load_next_program(now, number);
    }

    /// Starts the next transfer of a channel.
    pub(super) fn start_channel(&mut self, now: Time, channel: u32) {
        let of = &mut self.channels[channel as usize];
        if let Some(ends) = of.start_next(now) {
            let generation = of.generation;
            self.event_queue.schedule(
                ends,
                FlashEvent::TransferEnded {
                    channel,
                    generation,
                },
            );
        }
    }

    pub(super) fn handle_transfer_end(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (channel, generation): (u32, u32),
    ) {
        let of = &mut self.channels[channel as usize];
        if of.generation != generation {
            return;
        }
        let (transfer, is_whole) = of.end_transfer();
        self.start_channel(now, channel);
        match transfer.payload {
            TransferPayload::Read(op) => {
                self.complete_read_transfer(now, requests, (op, transfer.start))
            }
            TransferPayload::Program(program) if is_whole => self.complete_load(now, program),
            TransferPayload::Program(_) => {}
        }
    }
}
