//! A die: planes that sense, and an array that programs or erases, and stops for reads.

use super::specification::Suspension;
use diskperf_sim::Time;
use diskperf_spans::DieBusy;
use std::collections::VecDeque;

/// A plane's register, and what it senses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plane {
    /// What is being sensed, or was and waits for the register.
    pub(super) sensing: Option<u32>,
    /// Whose data wait in the register, or cross the channel.
    pub(super) held: Option<u32>,
}

/// What an array works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Program(u32),
    Erase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It works, from and until.
    Runs { from: Time, ends: Time },
    /// It works until it stands still at this moment.
    Stops { at: Time },
    /// It has stood still since.
    Stands { since: Time },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Array {
    pub(super) work: Work,
    pub(super) cause: DieBusy,
    pub(super) progress: Progress,
    /// What is left of it when it stands still.
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

    /// A read has come: the array stops, if it does that for it; when it stands still.
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

    /// It stands still.
    pub(super) fn stand(&mut self, now: Time) {
        self.progress = Progress::Stands { since: now };
    }

    /// It goes on; when it ends.
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

/// When a die takes the data of a program before it is through with something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// With a program.
    pub(super) of_programs: bool,
    /// With reads.
    pub(super) of_reads: bool,
}

/// Whether a die takes the data of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    No,
    /// While it works on another program.
    Ahead,
    Now,
}

/// Reasons for waiting that are told apart, back from now: what is before them is booked
/// to the first.
const MOST_KEPT: usize = 256;

/// A die.
#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    pub(super) planes: Vec<Plane>,
    /// Reads for the host that wait.
    pub(super) reads: VecDeque<u32>,
    /// Reads of the drive itself that wait.
    pub(super) own_reads: VecDeque<u32>,
    /// Reads being sensed, or in registers.
    pub(super) reading: u32,
    /// Of these, the drive's own.
    pub(super) reading_own: u32,
    /// Planes that sense, or have and wait for their register.
    pub(super) sensing: u32,
    /// Programs that are placed here, in order.
    pub(super) programs: VecDeque<u32>,
    /// The program whose data cross the channel.
    pub(super) loading: Option<u32>,
    /// The program whose data are in the register.
    pub(super) loaded: Option<u32>,
    /// A program was begun while its own reads waited: these are next.
    pub(super) own_reads_next: bool,
    pub(super) array: Option<Array>,
    /// A block of it is to be erased.
    pub(super) erase_due: bool,
    pub(super) generation: u32,
    /// What kept it, and until when, while reads waited.
    kept: VecDeque<(DieBusy, Time)>,
    keeps: Option<DieBusy>,
    since: Time,
    /// How long it was kept by each.
    pub(super) busy: [Time; DieBusy::ALL.len()],
}

impl Die {
    pub(super) fn new(planes: u32) -> Self {
        Self {
            planes: vec![Plane::default(); planes as usize],
            ..Self::default()
        }
    }

    /// The power fails: it does nothing, and nothing waits for it.
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

    /// Whether it has anything to do but for reads that are under way.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let reads = !self.reads.is_empty() || !self.own_reads.is_empty();
        let data = self.loading.is_some() || self.loaded.is_some() || !self.programs.is_empty();
        reads || data || self.array.is_some() || self.erase_due
    }

    /// Whether it takes the data of a program: nothing for the host waits for it, and it
    /// does nothing, or, where that can be (`ahead`), programs, or reads for itself.
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

    /// Whether the array may begin with something: no plane senses, and, without registers
    /// (`cache_read`) beside those of the array, no data of reads wait.
    pub(super) fn array_is_free(&self, cache_read: bool) -> bool {
        self.sensing == 0 && (cache_read || self.reading == 0)
    }

    /// Whose reads keep it, if some do, or the channel that their data wait for.
    pub(super) fn kept_by_reads(&self) -> Option<DieBusy> {
        (self.reading > 0).then_some(match (self.sensing, self.reading_own < self.reading) {
            (0, _) => DieBusy::Channel,
            (_, true) => DieBusy::Read,
            (_, false) => DieBusy::Collection,
        })
    }

    /// What keeps it now.
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

    /// What keeps it now, and whether a program or an erase stands still, for those who look
    /// on: one that stands and nothing else is *suspension*.
    pub(super) fn seen(&self, is_host: impl Fn(u32) -> bool) -> (Option<DieBusy>, bool) {
        let stands = self.array.as_ref().is_some_and(Array::stands);
        let alone = stands.then_some(DieBusy::Suspension);
        (self.kept_by(is_host).or(alone), stands)
    }

    /// Time for which something has kept it up to `now`.
    pub(super) fn busy_until(&self, now: Time) -> Time {
        let current = self.keeps.map_or(Time::ZERO, |_| now - self.since);
        self.busy.iter().copied().sum::<Time>() + current
    }

    /// Notes what keeps it from now on; `is_host` tells whose a program is.
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
            if self.kept.len() > MOST_KEPT {
                self.kept.pop_front();
            }
        }
        (self.keeps, self.since) = (keeps, now);
    }

    /// Adds what kept a read waiting from a moment until now.
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
