//! The loop that does a clone's I/Os: as many under way as the job says, with its syncs,
//! its pauses and its ends.

use super::pace::{Rates, Times, Turn};
use super::stream::{Io, Next, Stream};
use crate::blocks::pause;
use crate::load::slots::Slots;
use crate::program::ProgramError;
use crate::random::Draws;
use crate::worker::Worker;
use diskperf_fio::{Direction, Job};
use diskperf_system::{File, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// The random stream that the delay of a clone is drawn from.
const DELAY_STREAM: u128 = 15;

/// A clone at work.
pub(super) struct Course<'a> {
    system: &'a mut System,
    job: &'a Job,
    files: &'a [(File, String)],
    stream: Stream<'a>,
    rates: Rates,
    times: Times,
    slots: Slots,
    syncs: Syncs,
    /// CPU time after each I/O.
    think: Nanoseconds,
    /// I/Os since the last pause.
    since_pause: u32,
    /// Put into slots and not submitted yet.
    unsubmitted: u32,
}

/// Why no more I/Os are put into slots.
enum Halt {
    /// The slots are full.
    Full,
    /// The next one is not due before this moment.
    Until(Nanoseconds),
    /// All that is under way ends first.
    Drain,
    /// The job is over.
    Over,
}

impl<'a> Course<'a> {
    /// Waits for the clone's start, from which its rates and its ends count.
    pub(super) async fn start(
        (system, worker): (&'a mut System, &Worker),
        (job, stream): (&'a Job, Stream<'a>),
        files: &'a [(File, String)],
    ) -> Result<Self, ProgramError> {
        let delay = delay(job, worker);
        if delay > Nanoseconds::ZERO {
            let start = system.now() + delay;
            system.sleep_until(start).await?;
            system.restart_measuring()?;
        }
        let start = system.now();
        Ok(Self {
            system,
            job,
            files,
            stream,
            rates: Rates::new(job, (start, worker.seed)),
            times: Times::new(job, start),
            slots: Slots::new(u64::from(super::depth(job))),
            syncs: Syncs::default(),
            think: worker.think,
            since_pause: 0,
            unsubmitted: 0,
        })
    }

    pub(super) async fn run(&mut self) -> Result<(), ProgramError> {
        loop {
            let now = self.system.now();
            let halt = self.fill(now).await?;
            self.submit().await?;
            match halt {
                Halt::Full => self.reap_to_refill().await?,
                Halt::Until(due) => {
                    let wake = self.times.ramp.map_or(due, |ramp| ramp.min(due));
                    let wake = self.times.end.map_or(wake, |end| end.min(wake));
                    // With nothing under way too, this waits until then.
                    self.reap(1, Some(wake)).await?;
                }
                Halt::Drain => {
                    self.drain().await?;
                    self.sync_at_end().await?;
                }
                Halt::Over => {
                    self.drain().await?;
                    return self.sync_at_end().await;
                }
            }
        }
    }

    /// Fills the slots with what is to be issued now.
    async fn fill(&mut self, now: Nanoseconds) -> Result<Halt, ProgramError> {
        while !self.slots.are_full() {
            if self.times.end.is_some_and(|end| now >= end) {
                return Ok(Halt::Over);
            }
            let drawn = self.stream.draw_direction();
            let (direction, intended) = match self.rates.turn(drawn, self.job, now) {
                Turn::Issue(direction, intended) => (direction, intended),
                Turn::Wait(due) => return Ok(Halt::Until(due)),
            };
            if !self.stream.is_at_end()
                && let Some((operation, file)) = self.syncs.due(self.job)
            {
                self.put(operation, (file, 0, 0), None).await?;
                continue;
            }
            let io = match self.stream.next(direction) {
                Next::Io(io) => io,
                Next::EndOfPass => return Ok(Halt::Drain),
                Next::Nothing => return Ok(Halt::Over),
            };
            self.rates.issued(&io);
            self.syncs.count(&io);
            let place = (io.file, io.offset_bytes, io.bytes);
            self.put(operation(io.direction), place, intended).await?;
            let is_before_its_write =
                io.direction == Direction::Trim && self.job.pattern.access.does(Direction::Write);
            if is_before_its_write {
                self.drain().await?;
            }
            self.pause().await?;
        }
        Ok(Halt::Full)
    }

    /// Gives a request a slot, and submits as many at once as the job says.
    async fn put(
        &mut self,
        operation: Operation,
        (file, offset_bytes, bytes): (usize, u64, u32),
        intended: Option<Nanoseconds>,
    ) -> Result<(), ProgramError> {
        self.slots.put(Submission {
            operation,
            file: self.files[file].0,
            offset_bytes,
            bytes,
            slot: 0,
            intended,
        });
        self.unsubmitted += 1;
        if self.unsubmitted >= self.job.engine.batch {
            self.submit().await?;
        }
        Ok(())
    }

    async fn submit(&mut self) -> Result<(), ProgramError> {
        self.unsubmitted = 0;
        self.slots.submit(self.system).await
    }

    /// Waits until as many completed as the job takes at once, and until so few are under
    /// way that it fills the slots again.
    async fn reap_to_refill(&mut self) -> Result<(), ProgramError> {
        let low = self.job.engine.depth_low.unwrap_or(u32::MAX) as usize;
        loop {
            let under_way = self.slots.under_way();
            let least = (self.job.engine.complete_min as usize).clamp(1, under_way.max(1));
            self.reap(least, self.times.ramp).await?;
            let left = self.slots.under_way();
            if left == 0 || (left <= low && !self.slots.are_full()) {
                return Ok(());
            }
        }
    }

    /// Waits for all that is under way.
    async fn drain(&mut self) -> Result<(), ProgramError> {
        self.submit().await?;
        while self.slots.under_way() > 0 {
            self.reap(self.slots.under_way(), self.times.ramp).await?;
        }
        Ok(())
    }

    /// Takes what completed, and writes the rests of short writes.
    async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
    ) -> Result<(), ProgramError> {
        let now = self.slots.reap(self.system, at_least, until).await?;
        let files = self.files;
        let path = |request: &Submission| {
            let named = files.iter().find(|(file, _)| *file == request.file);
            named.map_or_else(String::new, |(_, path)| path.clone())
        };
        while self.slots.take(path)?.is_some() {
            pause(self.system, self.think).await?;
        }
        self.slots.submit(self.system).await?;
        if self.times.ramp.is_some_and(|end| now >= end) {
            self.times.ramp = None;
            self.stream.forget_amounts();
            self.system.restart_measuring()?;
        }
        Ok(())
    }

    /// Pauses when there were as many I/Os as the job says, with none under way.
    async fn pause(&mut self) -> Result<(), ProgramError> {
        let think = &self.job.think;
        if think.time_us == 0 {
            return Ok(());
        }
        self.since_pause += 1;
        if self.since_pause < think.after_ios {
            return Ok(());
        }
        self.since_pause = 0;
        self.drain().await?;
        let micro = |microseconds: u32| Nanoseconds(u64::from(microseconds) * 1000);
        let begin = self.system.now();
        let spin = think.spin_us.min(think.time_us);
        if spin > 0 {
            self.system.compute(micro(spin)).await?;
        }
        let end = begin + micro(think.time_us);
        let end = self.times.end.map_or(end, |over| over.min(end));
        Ok(self.system.sleep_until(end).await?)
    }

    /// Makes all durable at the end of a pass, which counts in its time.
    async fn sync_at_end(&mut self) -> Result<(), ProgramError> {
        let sync = &self.job.sync;
        let writes = self.job.pattern.access.does(Direction::Write);
        if writes && (sync.fsync_at_end || sync.fsync_on_close) {
            for (file, _) in self.files {
                self.system.fsync(*file).await?;
            }
        }
        Ok(())
    }
}

fn operation(direction: Direction) -> Operation {
    match direction {
        Direction::Read => Operation::Read,
        Direction::Write => Operation::Write,
        Direction::Trim => Operation::Discard,
    }
}

/// How long a clone waits before it starts.
fn delay(job: &Job, worker: &Worker) -> Nanoseconds {
    let (least_us, most_us) = job.times.start_delay_us;
    let room_us = most_us.saturating_sub(least_us);
    let mut random = Draws::new(worker.seed, DELAY_STREAM);
    let drawn_us = match room_us {
        0 => 0,
        room_us => random.below(room_us + 1),
    };
    Nanoseconds((least_us + drawn_us).saturating_mul(1000))
}

/// When a sync is due: after so many writes, and again behind a read that follows the
/// sync, as in fio.
#[derive(Clone, Copy, Debug, Default)]
struct Syncs {
    writes: u64,
    last_file: usize,
    was_last: bool,
}

impl Syncs {
    fn count(&mut self, io: &Io) {
        self.was_last = false;
        if io.direction == Direction::Write {
            self.writes += 1;
            self.last_file = io.file;
        }
    }

    /// The sync that comes before the next I/O, and of which file.
    fn due(&mut self, job: &Job) -> Option<(Operation, usize)> {
        let is_due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
        if self.writes == 0 || self.was_last {
            return None;
        }
        let operation = if is_due(job.sync.fsync_every) {
            Operation::Fsync
        } else if is_due(job.sync.fdatasync_every) {
            Operation::Fdatasync
        } else {
            return None;
        };
        self.was_last = true;
        Some((operation, self.last_file))
    }
}
