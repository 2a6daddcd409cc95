//! Faults of a drive, as a state machine beside it: errors, slowness, hangs, silently wrong data,
//! and flushes that make nothing durable.
//!
//! [`Faults`] knows no drive, clock, thread or file. The caller reports each arrival
//! ([`Faults::arrive`]) and each completion of the model ([`Faults::complete`]), and does what the
//! returned effects say. True data stay with the caller, and [`FaultOverlay`] has what faults show
//! in their place: a fault that is switched off takes its data with it.
//!
//! The same faults, seeds and arrivals give the same strikes.

mod fault;
mod overlay;
mod pace;
mod sector_set;
mod specification;

pub use overlay::FaultOverlay;
pub use specification::{
    FaultKind, FaultLength, FaultSpecification, FaultStart, OperationKind, SectorRuns,
};

use crate::Operation;
use diskperf_sim::Time;
use fault::{ArrivingRequest, Fault};
use pace::Pace;

/// Maximum number of faults of a drive: the bits of the set of faults that are on.
pub const FAULTS_MAX: usize = 64;

/// Maximum number of strikes that wait for [`Faults::take_strikes`]. Further ones are counted.
const STRIKES_MAX: usize = 1 << 20;

/// Request as it arrives at a drive with faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRequest {
    /// Operation of the request.
    pub operation: Operation,
    /// First byte of the request.
    pub offset: u64,
    /// Length of the request in bytes.
    pub bytes: u64,
}

/// Bit of a drive that is read wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitFlip {
    /// Address of the byte.
    pub offset: u64,
    /// Bit of the byte that is wrong.
    pub mask: u8,
}

/// Change of a completed write's data that nobody is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilentChange {
    /// All sectors keep the data that they had.
    Lost,
    /// The first bytes are written, up to the end of a sector. The other sectors keep their data.
    Torn {
        /// Bytes that are written.
        bytes: u64,
    },
    /// The data replace those of other whole sectors.
    Misdirected {
        /// Address of the other sectors.
        offset: u64,
    },
}

/// Effects of faults on a request.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultEffects {
    /// Whether the request fails with an I/O error. A write that fails changes nothing.
    pub fails: bool,
    /// Whether the drive does nothing for the request, because it is dead.
    pub is_dead: bool,
    /// Whether a flush, or the force unit access of a write, is completed without effect.
    pub ignores_durability: bool,
    /// Factor of the service time.
    pub factor: f64,
    /// Additional time after the service time.
    pub delay: Time,
    /// Change of the data of a write, with the number of the fault.
    pub silent: Option<(usize, SilentChange)>,
    /// Bits that a read returns wrongly.
    pub flips: Vec<BitFlip>,
    /// Set of the faults that are on, of which bit `n` stands for fault `n`.
    pub faults_on: u64,
    /// Number of the request, from 1; 0 if there are no faults.
    pub request: u64,
}

impl Default for FaultEffects {
    fn default() -> Self {
        Self {
            fails: false,
            is_dead: false,
            ignores_durability: false,
            factor: 1.0,
            delay: Time::ZERO,
            silent: None,
            flips: Vec::new(),
            faults_on: 0,
            request: 0,
        }
    }
}

/// Completion of a request as faults leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultCompletion {
    /// Time of the completion, without hangs ([`Faults::release`]).
    pub due: Time,
    /// Whether the request fails with an I/O error.
    pub fails: bool,
}

/// Effect of a strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrikeEffect {
    /// The request failed with an I/O error.
    Failed,
    /// The request took longer.
    Slowed,
    /// The write healed sectors, and took longer.
    Reassigned,
    /// The completion came at the end of a hang.
    Held,
    /// The write left the old data.
    Lost,
    /// The write reached a part of its sectors.
    Torn,
    /// The write reached other sectors.
    Misdirected,
    /// The read returned wrong bits.
    Flipped,
    /// The flush or force unit access made nothing durable.
    Ignored,
}

impl StrikeEffect {
    /// Returns the name of the effect in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Slowed => "slowed",
            Self::Reassigned => "reassigned",
            Self::Held => "held",
            Self::Lost => "lost",
            Self::Torn => "torn",
            Self::Misdirected => "misdirected",
            Self::Flipped => "flipped",
            Self::Ignored => "ignored",
        }
    }
}

/// Request that a fault struck.
#[derive(Clone, Debug, PartialEq)]
pub struct Strike {
    /// Number of the fault, in the order of their specifications.
    pub fault: usize,
    /// Virtual time of the strike: the arrival of the request, or the completion that a hang or a
    /// death changed.
    pub time: Time,
    /// Number of the request, from 1.
    pub request: u64,
    /// Request that was struck.
    pub of: FaultRequest,
    /// Effect on the request.
    pub effect: StrikeEffect,
}

/// State of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultState {
    /// Name of the fault.
    pub name: String,
    /// Name of the fault's kind.
    pub kind: &'static str,
    /// Whether the fault is switched on. It strikes between its start and its end only.
    pub is_on: bool,
    /// Number of requests that the fault struck.
    pub strikes: u64,
}

/// Faults of a drive.
#[derive(Clone, Debug)]
pub struct Faults {
    faults: Vec<Fault>,
    sector_bytes: u64,
    sectors: u64,
    requests: u64,
    pace: Pace,
    log: StrikeLog,
}

/// Strikes that nobody has taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct StrikeLog {
    strikes: Vec<Strike>,
    left_out: u64,
}

impl StrikeLog {
    pub(crate) fn push(&mut self, strike: Strike) {
        match self.strikes.len() < STRIKES_MAX {
            true => self.strikes.push(strike),
            false => self.left_out += 1,
        }
    }
}

/// Strikes since they were last taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TakenStrikes {
    /// Strikes in the order of their arrivals and completions.
    pub strikes: Vec<Strike>,
    /// Number of later strikes that were counted and not kept.
    pub left_out: u64,
}

impl Faults {
    /// Creates the faults of a drive with a number of sectors.
    ///
    /// # Panics
    ///
    /// When there are more than [`FAULTS_MAX`] faults, or when the range of one is empty or ends
    /// beyond the drive.
    pub fn new(specifications: &[FaultSpecification], sectors: u64, sector_bytes: u32) -> Self {
        assert!(specifications.len() <= FAULTS_MAX, "too many faults");
        for fault in specifications {
            let is_within = !fault.sectors.is_empty() && fault.sectors.end <= sectors;
            assert!(is_within, "fault {}: {:?}", fault.name, fault.sectors);
        }
        let faults = specifications.iter().map(Fault::new);
        Self {
            faults: faults.collect(),
            sector_bytes: sector_bytes.into(),
            sectors,
            requests: 0,
            pace: Pace::default(),
            log: StrikeLog::default(),
        }
    }

    /// Whether the drive has no faults, neither on nor off.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Takes a request that arrives, and returns what faults do to it.
    pub fn arrive(&mut self, now: Time, request: FaultRequest) -> FaultEffects {
        let mut effects = FaultEffects::default();
        if self.is_empty() {
            return effects;
        }
        self.requests += 1;
        effects.request = self.requests;
        let arrival = ArrivingRequest {
            now,
            number: self.requests,
            request,
            sector_bytes: self.sector_bytes,
            drive_sectors: self.sectors,
        };
        let mut are_active = 0_u64;
        for (number, fault) in self.faults.iter_mut().enumerate() {
            effects.faults_on |= u64::from(fault.is_on()) << number;
            are_active |= u64::from(fault.start_and_check(now, self.requests)) << number;
        }
        // A write that fails changes no data: errors come first.
        for is_silent in [false, true] {
            for (number, fault) in self.faults.iter_mut().enumerate() {
                if fault.is_silent() != is_silent || are_active & (1 << number) == 0 {
                    continue;
                }
                if is_silent && effects.fails {
                    continue;
                }
                if let Some(effect) = fault.strike(number, &arrival, &mut effects) {
                    fault.strikes += 1;
                    self.log.push(arrival.strike(number, effect));
                }
            }
        }
        effects
    }

    /// Takes a request that the model completes at `due`, and returns its completion with faults.
    /// Calls have the order of these times.
    pub fn complete(
        &mut self,
        request: FaultRequest,
        effects: &FaultEffects,
        arrived: Time,
        due: Time,
    ) -> FaultCompletion {
        let mut fails = effects.fails;
        if self.is_empty() {
            return FaultCompletion { due, fails };
        }
        let due = self
            .pace
            .complete(arrived, due, effects.factor, effects.delay);
        for (number, fault) in self.faults.iter_mut().enumerate() {
            let effect = match fault.holds(due) {
                Some(_) => StrikeEffect::Held,
                None if fault.is_dead_at(due) && !fails => {
                    fails = true;
                    StrikeEffect::Failed
                }
                None => continue,
            };
            fault.strikes += 1;
            self.log.push(Strike {
                fault: number,
                time: due,
                request: effects.request,
                of: request,
                effect,
            });
        }
        FaultCompletion { due, fails }
    }

    /// Returns the time at which a request that is due is released: the end of the hang at that
    /// time, or the time itself. It may be earlier when a fault has been switched off meanwhile.
    pub fn release(&self, due: Time) -> Time {
        let mut release = due;
        // The end of one hang may lie within another one.
        for _ in 0..=self.faults.len() {
            let held = self.faults.iter().filter_map(|fault| fault.holds(release));
            match held.max() {
                Some(end) => release = end,
                None => break,
            }
        }
        release
    }

    /// Switches a fault on or off by its name. A fault that is switched on starts then, or at its
    /// own start if that is later. Returns whether there is such a fault.
    pub fn switch(&mut self, name: &str, is_on: bool, now: Time) -> bool {
        let fault = self.faults.iter_mut().find(|fault| fault.name() == name);
        fault.map(|fault| fault.switch(is_on, now)).is_some()
    }

    /// Returns the state of each fault, in the order of their specifications.
    pub fn states(&self) -> Vec<FaultState> {
        self.faults.iter().map(Fault::state).collect()
    }

    /// Removes and returns the strikes since the last call.
    pub fn take_strikes(&mut self) -> TakenStrikes {
        let StrikeLog { strikes, left_out } = std::mem::take(&mut self.log);
        TakenStrikes { strikes, left_out }
    }
}

#[cfg(test)]
mod tests;
