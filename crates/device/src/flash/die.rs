//! Flash die: planes that sense pages, and an array that programs or erases, and suspends for
//! reads.

use super::specification::SuspensionSpecification;
use diskperf_sim::Time;
use diskperf_spans::DieBusy;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiePlane {
    /// Read operation that the plane senses, or has sensed while it waits for the register.
    pub(super) sensing_read: Option<u32>,
    /// Read operation whose data are in the register, until they have crossed the channel.
    pub(super) register_read: Option<u32>,
}

/// Operation of a die's array: a program or an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayWork {
    Program(u32),
    Erase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayProgress {
    /// The operation runs between two times.
    Running { from: Time, ends: Time },
    /// The operation is being suspended, until this time.
    Suspending { at: Time },
    /// The operation has been suspended since this time.
    Suspended { since: Time },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ArrayOperation {
    pub(super) work: ArrayWork,
    pub(super) cause: DieBusy,
    pub(super) progress: ArrayProgress,
    /// Remaining time of a suspended program or erase.
    time_left: Time,
    suspension_count: u32,
}

impl ArrayOperation {
    pub(super) fn new(work: ArrayWork, cause: DieBusy, (from, takes): (Time, Time)) -> Self {
        Self {
            work,
            cause,
            progress: ArrayProgress::Running {
                from,
                ends: from + takes,
            },
            time_left: Time::ZERO,
            suspension_count: 0,
        }
    }

    /// Begins to suspend the operation for a read, and returns the time at which it is suspended.
    /// Returns `None` if it does not suspend.
    pub(super) fn suspend(&mut self, now: Time, rule: &SuspensionSpecification) -> Option<Time> {
        let ArrayProgress::Running { from, ends } = self.progress else {
            return None;
        };
        let takes = match self.work {
            ArrayWork::Program(_) => rule.program_suspend_time,
            ArrayWork::Erase => rule.erase_suspend_time,
        };
        let at = now.max(from) + takes;
        if self.suspension_count >= rule.suspensions_max || at > ends {
            return None;
        }
        self.suspension_count += 1;
        self.time_left = ends - at;
        self.progress = ArrayProgress::Suspending { at };
        Some(at)
    }

    pub(super) fn mark_suspended(&mut self, now: Time) {
        self.progress = ArrayProgress::Suspended { since: now };
    }

    pub(super) fn resume(&mut self, now: Time, rule: &SuspensionSpecification) -> Time {
        let from = now + rule.resume_time;
        let ends = from + self.time_left;
        self.progress = ArrayProgress::Running { from, ends };
        ends
    }

    fn is_program(&self) -> bool {
        matches!(self.work, ArrayWork::Program(_))
    }

    pub(super) fn is_suspended(&self) -> bool {
        matches!(self.progress, ArrayProgress::Suspended { .. })
    }
}

/// Kinds of work during which a die can already accept the data of the next program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoadAhead {
    pub(super) during_programs: bool,
    /// Whether program data can arrive during reads of the die.
    pub(super) during_reads: bool,
}

/// Readiness of a die to accept the data of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadReadiness {
    NotReady,
    /// Ready while the die still works on something else.
    ReadyWhileBusy,
    ReadyNow,
}

/// Maximum number of past causes of waiting that a die keeps apart. Earlier time is booked to the
/// oldest one.
const WAIT_REASONS_MAX: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct FlashDie {
    pub(super) planes: Vec<DiePlane>,
    pub(super) host_reads: VecDeque<u32>,
    /// Reads of the drive itself that wait for the die.
    pub(super) own_reads: VecDeque<u32>,
    /// Number of reads being sensed or held in registers.
    pub(super) reads_in_progress: u32,
    /// Number of the drive's own reads being sensed or held in registers.
    pub(super) own_reads_in_progress: u32,
    /// Number of planes that sense, or have sensed and wait for their register.
    pub(super) sensing_planes: u32,
    pub(super) queued_programs: VecDeque<u32>,
    /// Program whose data cross the channel to the die.
    pub(super) loading_program: Option<u32>,
    /// Program whose data are in the register.
    pub(super) loaded_program: Option<u32>,
    /// Whether the drive's own reads are next, because a program went ahead of them.
    pub(super) own_reads_next: bool,
    pub(super) array_operation: Option<ArrayOperation>,
    /// Whether the die must erase its blocks of a superblock.
    pub(super) is_erase_due: bool,
    pub(super) generation: u32,
    /// Work that occupied the die while host reads waited, with its end times.
    wait_causes: VecDeque<(DieBusy, Time)>,
    current_cause: Option<DieBusy>,
    cause_since: Time,
    /// Total busy time of the die, by kind of work.
    pub(super) busy: [Time; DieBusy::ALL.len()],
}

impl FlashDie {
    pub(super) fn new(planes: u32) -> Self {
        Self {
            planes: vec![DiePlane::default(); planes as usize],
            ..Self::default()
        }
    }

    /// Applies a power cut: aborts all operations, and empties all queues.
    pub(super) fn lose_power(&mut self, now: Time) {
        let idle = Self {
            generation: self.generation + 1,
            current_cause: self.current_cause,
            cause_since: self.cause_since,
            busy: self.busy,
            ..Self::new(self.planes.len() as u32)
        };
        *self = idle;
        self.update_cause(now, |_| false);
    }

    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let reads = !self.host_reads.is_empty() || !self.own_reads.is_empty();
        let data = self.loading_program.is_some()
            || self.loaded_program.is_some()
            || !self.queued_programs.is_empty();
        reads || data || self.array_operation.is_some() || self.is_erase_due
    }

    /// Returns whether the die can accept the data of a program. It cannot while a host read waits
    /// or runs. A die that programs or reads for the drive itself can, if `ahead` permits it.
    pub(super) fn load_readiness(&self, ahead: LoadAhead) -> LoadReadiness {
        let waits = !self.queued_programs.is_empty()
            || self.loading_program.is_some()
            || self.loaded_program.is_some();
        if waits
            || !self.host_reads.is_empty()
            || self.reads_in_progress > self.own_reads_in_progress
        {
            return LoadReadiness::NotReady;
        }
        let own = self.reads_in_progress + self.own_reads.len() as u32;
        // An erase would wait for ever behind programs that come ahead, and so would its own
        // reads: one program in turn goes before them.
        let in_turn = !self.is_erase_due && (self.own_reads.is_empty() || !self.own_reads_next);
        match &self.array_operation {
            None if own == 0 => LoadReadiness::ReadyNow,
            None if ahead.during_reads && self.reads_in_progress > 0 && in_turn => {
                LoadReadiness::ReadyWhileBusy
            }
            Some(array) if ahead.during_programs && array.is_program() && in_turn => {
                LoadReadiness::ReadyWhileBusy
            }
            _ => LoadReadiness::NotReady,
        }
    }

    /// Tests whether the array may start an operation: no plane senses, and no page waits in a
    /// register. With separate cache registers (`cache_read`), pages in registers do not matter.
    pub(super) fn is_array_free(&self, cache_read: bool) -> bool {
        self.sensing_planes == 0 && (cache_read || self.reads_in_progress == 0)
    }

    /// Returns the kind of reads that keep the die busy, or the channel if their data wait for it;
    /// `None` without reads.
    pub(super) fn busy_cause_of_reads(&self) -> Option<DieBusy> {
        (self.reads_in_progress > 0).then_some(
            match (
                self.sensing_planes,
                self.own_reads_in_progress < self.reads_in_progress,
            ) {
                (0, _) => DieBusy::Channel,
                (_, true) => DieBusy::Read,
                (_, false) => DieBusy::Collection,
            },
        )
    }

    /// Returns the kind of work that keeps the die busy now; `None` if it is idle.
    pub(super) fn busy_cause(&self, is_host: impl Fn(u32) -> bool) -> Option<DieBusy> {
        if let Some(array) = &self.array_operation {
            match array.progress {
                ArrayProgress::Suspending { .. } => return Some(DieBusy::Suspension),
                ArrayProgress::Running { .. } => return Some(array.cause),
                ArrayProgress::Suspended { .. } => {}
            }
        }
        if let Some(reads) = self.busy_cause_of_reads() {
            return Some(reads);
        }
        let data = self.loading_program.or(self.loaded_program)?;
        Some(match is_host(data) {
            true => DieBusy::Program,
            false => DieBusy::Collection,
        })
    }

    /// Returns the kind of work that keeps the die busy, and whether a program or erase is
    /// suspended, for the recorder. A suspended operation without other work counts as suspension.
    pub(super) fn cause_and_suspension(
        &self,
        is_host: impl Fn(u32) -> bool,
    ) -> (Option<DieBusy>, bool) {
        let stands = self
            .array_operation
            .as_ref()
            .is_some_and(ArrayOperation::is_suspended);
        let alone = stands.then_some(DieBusy::Suspension);
        (self.busy_cause(is_host).or(alone), stands)
    }

    /// Returns the busy time of the die up to `now`.
    pub(super) fn own_work_end(&self, now: Time) -> Time {
        let current = self
            .current_cause
            .map_or(Time::ZERO, |_| now - self.cause_since);
        self.busy.iter().copied().sum::<Time>() + current
    }

    /// Notes the kind of work that keeps the die busy from now on. `is_host` tells whether a
    /// program is the host's.
    pub(super) fn update_cause(&mut self, now: Time, is_host: impl Fn(u32) -> bool) {
        let keeps = self.busy_cause(is_host);
        if keeps == self.current_cause {
            return;
        }
        if let Some(kept) = self.current_cause {
            self.busy[kept as usize] += now - self.cause_since;
            match self.host_reads.is_empty() {
                true => self.wait_causes.clear(),
                false => self.wait_causes.push_back((kept, now)),
            }
            if self.wait_causes.len() > WAIT_REASONS_MAX {
                self.wait_causes.pop_front();
            }
        }
        (self.current_cause, self.cause_since) = (keeps, now);
    }

    /// Adds the kinds of work that made a read wait from time `from` until now, with their end
    /// times.
    pub(super) fn add_wait_causes(&self, from: Time, now: Time, add: &mut Vec<(DieBusy, Time)>) {
        let mut at = from;
        let now_kept = self.current_cause.unwrap_or(DieBusy::Read);
        for &(kept, until) in self.wait_causes.iter().chain([&(now_kept, now)]) {
            if until > at {
                add.push((kept, until));
                at = until;
            }
        }
    }
}
