//! Flash die: planes that sense pages, and an array that programs or erases, and suspends for
//! reads.

use super::specification::Suspension;
use diskperf_sim::Time;
use diskperf_spans::DieBusy;
use std::collections::VecDeque;

/// Plane of a die, with its page register.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plane {
    /// Read operation that the plane senses, or has sensed while it waits for the register.
    pub(super) sensing: Option<u32>,
    /// Read operation whose data are in the register, until they have crossed the channel.
    pub(super) held: Option<u32>,
}

/// Operation of a die's array: a program or an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Program(u32),
    Erase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The operation runs between two times.
    Runs { from: Time, ends: Time },
    /// The operation is being suspended, until this time.
    Stops { at: Time },
    /// The operation has been suspended since this time.
    Stands { since: Time },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    pub(super) work: Work,
    pub(super) cause: DieBusy,
    pub(super) progress: Progress,
    /// Remaining time of a suspended program or erase.
    left: Time,
    stopped: u32,
}

impl Array {
    pub(super) fn new(work: Work, cause: DieBusy, (from, takes): (Time, Time)) -> Self {
        Self {
            work,
            cause,
            progress: Progress::Runs {
                from,
                ends: from + takes,
            },
            left: Time::ZERO,
            stopped: 0,
        }
    }

    /// Begins to suspend the operation for a read, and returns the time at which it is suspended.
    /// Returns `None` if it does not suspend.
    pub(super) fn stop(&mut self, now: Time, rule: &Suspension) -> Option<Time> {
        let Progress::Runs { from, ends } = self.progress else {
            return None;
        };
        let takes = match self.work {
            Work::Program(_) => rule.program,
            Work::Erase => rule.erase,
        };
        let at = now.max(from) + takes;
        if self.stopped >= rule.most || at > ends {
            return None;
        }
        self.stopped += 1;
        self.left = ends - at;
        self.progress = Progress::Stops { at };
        Some(at)
    }

    pub(super) fn stand(&mut self, now: Time) {
        self.progress = Progress::Stands { since: now };
    }

    /// Resumes a suspended operation, and returns its new end.
    pub(super) fn resume(&mut self, now: Time, rule: &Suspension) -> Time {
        let from = now + rule.resume;
        let ends = from + self.left;
        self.progress = Progress::Runs { from, ends };
        ends
    }

    fn programs(&self) -> bool {
        matches!(self.work, Work::Program(_))
    }

    pub(super) fn stands(&self) -> bool {
        matches!(self.progress, Progress::Stands { .. })
    }
}

/// Kinds of work during which a die can already accept the data of the next program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// Whether program data can arrive during another program of the die.
    pub(super) of_programs: bool,
    /// Whether program data can arrive during reads of the die.
    pub(super) of_reads: bool,
}

/// Readiness of a die to accept the data of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    No,
    /// Ready while the die still works on something else.
    Ahead,
    Now,
}

/// Maximum number of past causes of waiting that a die keeps apart. Earlier time is booked to the
/// oldest one.
const WAIT_REASONS_MAX: usize = 256;

/// State of a flash die.
#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    pub(super) planes: Vec<Plane>,
    /// Host reads that wait for the die.
    pub(super) reads: VecDeque<u32>,
    /// Reads of the drive itself that wait for the die.
    pub(super) own_reads: VecDeque<u32>,
    /// Number of reads being sensed or held in registers.
    pub(super) reading: u32,
    /// Number of the drive's own reads being sensed or held in registers.
    pub(super) reading_own: u32,
    /// Number of planes that sense, or have sensed and wait for their register.
    pub(super) sensing: u32,
    /// Programs queued for the die, in order.
    pub(super) programs: VecDeque<u32>,
    /// Program whose data cross the channel to the die.
    pub(super) loading: Option<u32>,
    /// Program whose data are in the register.
    pub(super) loaded: Option<u32>,
    /// Whether the drive's own reads are next, because a program went ahead of them.
    pub(super) own_reads_next: bool,
    pub(super) array: Option<Array>,
    /// Whether the die must erase its blocks of a superblock.
    pub(super) erase_due: bool,
    pub(super) generation: u32,
    /// Work that occupied the die while host reads waited, with its end times.
    kept: VecDeque<(DieBusy, Time)>,
    keeps: Option<DieBusy>,
    since: Time,
    /// Total busy time of the die, by kind of work.
    pub(super) busy: [Time; DieBusy::ALL.len()],
}

impl Die {
    pub(super) fn new(planes: u32) -> Self {
        Self {
            planes: vec![Plane::default(); planes as usize],
            ..Self::default()
        }
    }

    /// Applies a power cut: aborts all operations, and empties all queues.
    pub(super) fn lose_power(&mut self, now: Time) {
        let idle = Self {
            generation: self.generation + 1,
            keeps: self.keeps,
            since: self.since,
            busy: self.busy,
            ..Self::new(self.planes.len() as u32)
        };
        *self = idle;
        self.note(now, |_| false);
    }

    /// Tests whether the die has work other than reads in progress.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let reads = !self.reads.is_empty() || !self.own_reads.is_empty();
        let data = self.loading.is_some() || self.loaded.is_some() || !self.programs.is_empty();
        reads || data || self.array.is_some() || self.erase_due
    }

    /// Returns whether the die can accept the data of a program. It cannot while a host read waits
    /// or runs. A die that programs or reads for the drive itself can, if `ahead` permits it.
    pub(super) fn free(&self, ahead: Ahead) -> Free {
        let waits = !self.programs.is_empty() || self.loading.is_some() || self.loaded.is_some();
        if waits || !self.reads.is_empty() || self.reading > self.reading_own {
            return Free::No;
        }
        let own = self.reading + self.own_reads.len() as u32;
        // An erase would wait for ever behind programs that come ahead, and so would its own
        // reads: one program in turn goes before them.
        let in_turn = !self.erase_due && (self.own_reads.is_empty() || !self.own_reads_next);
        match &self.array {
            None if own == 0 => Free::Now,
            None if ahead.of_reads && self.reading > 0 && in_turn => Free::Ahead,
            Some(array) if ahead.of_programs && array.programs() && in_turn => Free::Ahead,
            _ => Free::No,
        }
    }

    /// Tests whether the array may start an operation: no plane senses, and no page waits in a
    /// register. With separate cache registers (`cache_read`), pages in registers do not matter.
    pub(super) fn array_is_free(&self, cache_read: bool) -> bool {
        self.sensing == 0 && (cache_read || self.reading == 0)
    }

    /// Returns the kind of reads that keep the die busy, or the channel if their data wait for it;
    /// `None` without reads.
    pub(super) fn kept_by_reads(&self) -> Option<DieBusy> {
        (self.reading > 0).then_some(match (self.sensing, self.reading_own < self.reading) {
            (0, _) => DieBusy::Channel,
            (_, true) => DieBusy::Read,
            (_, false) => DieBusy::Collection,
        })
    }

    /// Returns the kind of work that keeps the die busy now; `None` if it is idle.
    pub(super) fn kept_by(&self, is_host: impl Fn(u32) -> bool) -> Option<DieBusy> {
        if let Some(array) = &self.array {
            match array.progress {
                Progress::Stops { .. } => return Some(DieBusy::Suspension),
                Progress::Runs { .. } => return Some(array.cause),
                Progress::Stands { .. } => {}
            }
        }
        if let Some(reads) = self.kept_by_reads() {
            return Some(reads);
        }
        let data = self.loading.or(self.loaded)?;
        Some(match is_host(data) {
            true => DieBusy::Program,
            false => DieBusy::Collection,
        })
    }

    /// Returns the kind of work that keeps the die busy, and whether a program or erase is
    /// suspended, for the recorder. A suspended operation without other work counts as suspension.
    pub(super) fn seen(&self, is_host: impl Fn(u32) -> bool) -> (Option<DieBusy>, bool) {
        let stands = self.array.as_ref().is_some_and(Array::stands);
        let alone = stands.then_some(DieBusy::Suspension);
        (self.kept_by(is_host).or(alone), stands)
    }

    /// Returns the busy time of the die up to `now`.
    pub(super) fn busy_until(&self, now: Time) -> Time {
        let current = self.keeps.map_or(Time::ZERO, |_| now - self.since);
        self.busy.iter().copied().sum::<Time>() + current
    }

    /// Notes the kind of work that keeps the die busy from now on. `is_host` tells whether a
    /// program is the host's.
    pub(super) fn note(&mut self, now: Time, is_host: impl Fn(u32) -> bool) {
        let keeps = self.kept_by(is_host);
        if keeps == self.keeps {
            return;
        }
        if let Some(kept) = self.keeps {
            self.busy[kept as usize] += now - self.since;
            match self.reads.is_empty() {
                true => self.kept.clear(),
                false => self.kept.push_back((kept, now)),
            }
            if self.kept.len() > WAIT_REASONS_MAX {
                self.kept.pop_front();
            }
        }
        (self.keeps, self.since) = (keeps, now);
    }

    /// Adds the kinds of work that made a read wait from time `from` until now, with their end
    /// times.
    pub(super) fn waited(&self, from: Time, now: Time, add: &mut Vec<(DieBusy, Time)>) {
        let mut at = from;
        let now_kept = self.keeps.unwrap_or(DieBusy::Read);
        for &(kept, until) in self.kept.iter().chain([&(now_kept, now)]) {
            if until > at {
                add.push((kept, until));
                at = until;
            }
        }
    }
}
