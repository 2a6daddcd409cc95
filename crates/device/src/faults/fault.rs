//! One fault with its state: whether it is active, and what it does to a request.

use super::sector_set::SectorSet;
use super::{
    BitFlip, FaultEffects, FaultKind, FaultLength, FaultRequest, FaultSpecification, FaultStart,
    FaultState, OperationKind, SectorRuns, SilentChange, Strike, StrikeEffect,
};
use crate::Operation;
use diskperf_sim::{RandomStream, RandomStreams, Time};
use std::ops::Range;

/// Fault with its state.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    specification: FaultSpecification,
    draws: RandomStream,
    /// Sectors of a latent sector error that were not written since, or slow sectors.
    sectors: SectorSet,
    is_on: bool,
    /// Time at which the fault was switched on.
    on_since: Time,
    started: Option<Started>,
    pub(super) strikes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Started {
    time: Time,
    /// Number of the first request.
    request: u64,
}

/// Request at its arrival, with the geometry of the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivingRequest {
    pub(super) now: Time,
    pub(super) number: u64,
    pub(super) request: FaultRequest,
    pub(super) sector_bytes: u64,
    pub(super) drive_sectors: u64,
}

impl ArrivingRequest {
    pub(super) fn strike(&self, fault: usize, effect: StrikeEffect) -> Strike {
        Strike {
            fault,
            time: self.now,
            request: self.number,
            of: self.request,
            effect,
        }
    }

    /// Returns the sectors of which the request touches a part.
    fn sectors(&self) -> Range<u64> {
        let FaultRequest { offset, bytes, .. } = self.request;
        let first = offset / self.sector_bytes;
        match (self.request.operation, bytes) {
            (Operation::Flush, _) | (_, 0) => first..first,
            _ => first..(offset + bytes).div_ceil(self.sector_bytes),
        }
    }

    /// Returns the sectors that the request covers as a whole.
    fn whole_sectors(&self) -> Range<u64> {
        let FaultRequest { offset, bytes, .. } = self.request;
        let first = offset.div_ceil(self.sector_bytes);
        first..((offset + bytes) / self.sector_bytes).max(first)
    }
}

/// Places the sectors of a latent error or of slow sectors.
fn place(runs: Option<SectorRuns>, range: &Range<u64>, draws: &mut RandomStream) -> SectorSet {
    match runs {
        Some(runs) => SectorSet::place(range, runs.count, runs.sectors, draws),
        None => {
            let mut all = SectorSet::default();
            all.insert(range.clone());
            all
        }
    }
}

impl Fault {
    pub(super) fn new(specification: &FaultSpecification) -> Self {
        let mut draws = RandomStreams::new(specification.seed).named_stream(&specification.name);
        let sectors = match specification.kind {
            FaultKind::UnreadableSectors { runs, .. } | FaultKind::SlowSectors { runs, .. } => {
                place(runs, &specification.sectors, &mut draws)
            }
            _ => SectorSet::default(),
        };
        Self {
            specification: specification.clone(),
            draws,
            sectors,
            is_on: specification.is_on,
            on_since: Time::ZERO,
            started: None,
            strikes: 0,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.specification.name
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn is_silent(&self) -> bool {
        self.specification.kind.is_silent()
    }

    pub(super) fn state(&self) -> FaultState {
        FaultState {
            name: self.specification.name.clone(),
            kind: self.specification.kind.name(),
            is_on: self.is_on,
            strikes: self.strikes,
        }
    }

    pub(super) fn switch(&mut self, is_on: bool, now: Time) {
        if is_on && !self.is_on {
            self.on_since = now;
            self.started = None;
        }
        self.is_on = is_on;
    }

    /// Returns the time from which the fault is active; `None` before the request that starts it.
    fn start_time(&self) -> Option<Time> {
        match self.specification.start {
            FaultStart::Time(time) => Some(time.max(self.on_since)),
            FaultStart::Request(_) => self.started.map(|started| started.time),
        }
    }

    /// Starts the fault if a request is the first one of it, and returns whether it is active.
    pub(super) fn start_and_check(&mut self, now: Time, request: u64) -> bool {
        if !self.is_on {
            return false;
        }
        let has_begun = match self.specification.start {
            FaultStart::Time(_) => self.start_time().is_some_and(|start| now >= start),
            FaultStart::Request(first) => request >= first,
        };
        if !has_begun {
            return false;
        }
        let time = match self.specification.start {
            FaultStart::Time(_) => self.start_time().unwrap_or(now),
            FaultStart::Request(_) => now,
        };
        let started = *self.started.get_or_insert(Started { time, request });
        match self.specification.length {
            FaultLength::Unlimited => true,
            FaultLength::Time(length) => now < started.time + length,
            FaultLength::Requests(count) => request - started.request < count,
        }
    }

    /// Returns the end of the hang of this fault at a time; `None` if it does not hang then.
    pub(super) fn holds(&self, time: Time) -> Option<Time> {
        let FaultKind::Hang { length, interval } = self.specification.kind else {
            return None;
        };
        let start = self
            .start_time()
            .filter(|start| self.is_on && time >= *start)?;
        let begin = match interval {
            Some(interval) => start + Time((time - start).0 / interval.0 * interval.0),
            None => start,
        };
        let ends_before = match self.specification.length {
            FaultLength::Time(active) => begin >= start + active,
            _ => false,
        };
        (!ends_before && time < begin + length).then_some(begin + length)
    }

    /// Whether a death has come by a time.
    pub(super) fn is_dead_at(&self, time: Time) -> bool {
        let is_death = matches!(self.specification.kind, FaultKind::Death);
        let start = self.start_time().filter(|_| is_death && self.is_on);
        start.is_some_and(|start| match self.specification.length {
            FaultLength::Time(length) => time >= start && time < start + length,
            _ => time >= start,
        })
    }

    fn draw(&mut self, probability: f64) -> bool {
        probability >= 1.0 || self.draws.draw_with_probability(probability)
    }

    /// Does to a request what the active fault does, and returns the effect if it strikes.
    pub(super) fn strike(
        &mut self,
        number: usize,
        arrival: &ArrivingRequest,
        effects: &mut FaultEffects,
    ) -> Option<StrikeEffect> {
        let operation = OperationKind::from_operation(arrival.request.operation);
        if !self.concerns(arrival, operation) {
            return None;
        }
        match self.specification.kind {
            FaultKind::UnreadableSectors {
                retry,
                reassignment,
                ..
            } => self.strike_unreadable(arrival, operation, effects, [retry, reassignment]),
            FaultKind::SlowSectors { delay, .. } => {
                let strikes = self.sectors.overlaps(&arrival.sectors());
                strikes.then(|| {
                    effects.delay += delay;
                    StrikeEffect::Slowed
                })
            }
            FaultKind::SlowDrive { factor } => {
                effects.factor *= factor;
                Some(StrikeEffect::Slowed)
            }
            // A hang concerns completions.
            FaultKind::Hang { .. } => None,
            FaultKind::Error { probability } => self.draw(probability).then(|| {
                effects.fails = true;
                StrikeEffect::Failed
            }),
            FaultKind::Death => {
                effects.is_dead = true;
                effects.fails = true;
                Some(StrikeEffect::Failed)
            }
            FaultKind::LyingFlush { probability } => {
                let demands = matches!(
                    arrival.request.operation,
                    Operation::Flush | Operation::Write { fua: true }
                );
                (demands && self.draw(probability)).then(|| {
                    effects.ignores_durability = true;
                    StrikeEffect::Ignored
                })
            }
            FaultKind::BitRot { share } => self.flip_bits(arrival, operation, effects, share),
            FaultKind::LostWrite { probability }
            | FaultKind::TornWrite { probability }
            | FaultKind::MisdirectedWrite { probability } => {
                let can_strike = operation == OperationKind::Write && effects.silent.is_none();
                if !can_strike || !self.draw(probability) {
                    return None;
                }
                let change = self.change_data(arrival)?;
                effects.silent = Some((number, change));
                Some(match change {
                    SilentChange::Lost => StrikeEffect::Lost,
                    SilentChange::Torn { .. } => StrikeEffect::Torn,
                    SilentChange::Misdirected { .. } => StrikeEffect::Misdirected,
                })
            }
        }
    }

    /// Whether a request has an operation and an address that the fault concerns.
    fn concerns(&self, arrival: &ArrivingRequest, operation: OperationKind) -> bool {
        let FaultSpecification {
            sectors,
            operations,
            kind,
            ..
        } = &self.specification;
        let has_choice = matches!(
            kind,
            FaultKind::Error { .. } | FaultKind::SlowDrive { .. } | FaultKind::SlowSectors { .. }
        );
        if has_choice && !operations.contains(&operation) {
            return false;
        }
        let touched = arrival.sectors();
        operation == OperationKind::Flush
            || matches!(kind, FaultKind::Death)
            || (touched.start < sectors.end && sectors.start < touched.end)
    }

    fn strike_unreadable(
        &mut self,
        arrival: &ArrivingRequest,
        operation: OperationKind,
        effects: &mut FaultEffects,
        [retry, reassignment]: [Time; 2],
    ) -> Option<StrikeEffect> {
        let (touched, whole) = (arrival.sectors(), arrival.whole_sectors());
        let mut fail = || {
            effects.fails = true;
            effects.delay += retry;
            Some(StrikeEffect::Failed)
        };
        match operation {
            OperationKind::Flush => None,
            OperationKind::Read if self.sectors.overlaps(&touched) => fail(),
            OperationKind::Read => None,
            // The drive has to read a sector of which a part is written.
            OperationKind::Write
                if self
                    .sectors
                    .overlaps(&(touched.start..whole.start.min(touched.end)))
                    || self
                        .sectors
                        .overlaps(&(whole.end.max(touched.start)..touched.end)) =>
            {
                fail()
            }
            _ => {
                let healed = self.sectors.remove(&whole) > 0;
                healed.then(|| {
                    effects.delay += reassignment;
                    StrikeEffect::Reassigned
                })
            }
        }
    }

    fn flip_bits(
        &self,
        arrival: &ArrivingRequest,
        operation: OperationKind,
        effects: &mut FaultEffects,
        share: f64,
    ) -> Option<StrikeEffect> {
        if operation != OperationKind::Read {
            return None;
        }
        let FaultRequest { offset, bytes, .. } = arrival.request;
        let (touched, range) = (arrival.sectors(), &self.specification.sectors);
        let before = effects.flips.len();
        for sector in touched.start.max(range.start)..touched.end.min(range.end) {
            let drawn = mix(self.specification.seed ^ mix(sector));
            // 53 bits are exact in an f64.
            if (drawn >> 11) as f64 / (1_u64 << 53) as f64 >= share {
                continue;
            }
            let bit = mix(drawn) % (8 * arrival.sector_bytes);
            let flip = BitFlip {
                offset: sector * arrival.sector_bytes + bit / 8,
                mask: 1 << (bit % 8),
            };
            if flip.offset >= offset && flip.offset < offset + bytes {
                effects.flips.push(flip);
            }
        }
        (effects.flips.len() > before).then_some(StrikeEffect::Flipped)
    }

    /// Draws the change of a write's data; `None` if the write has too few sectors, or the range
    /// too few.
    fn change_data(&mut self, arrival: &ArrivingRequest) -> Option<SilentChange> {
        let touched = arrival.sectors();
        let count = touched.end - touched.start;
        match self.specification.kind {
            FaultKind::LostWrite { .. } => Some(SilentChange::Lost),
            FaultKind::TornWrite { .. } => {
                let written = 1 + self
                    .draws
                    .draw_below(count.checked_sub(1).filter(|at| *at > 0)?);
                let end = (touched.start + written) * arrival.sector_bytes;
                let bytes = end - arrival.request.offset;
                Some(SilentChange::Torn { bytes })
            }
            _ => {
                let range = &self.specification.sectors;
                let end = range.end.min(arrival.drive_sectors);
                let places = (end - range.start).checked_sub(count)?;
                // Each place but its own; the range may not contain all of the request.
                let drawn = range.start + self.draws.draw_below(places + 1);
                let other = match drawn == touched.start {
                    true if drawn > range.start => drawn - 1,
                    true => drawn + 1,
                    false => drawn,
                };
                let is_within = other + count <= end;
                let offset = other * arrival.sector_bytes;
                is_within.then_some(SilentChange::Misdirected { offset })
            }
        }
    }
}

/// Mixes the bits of a number (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
