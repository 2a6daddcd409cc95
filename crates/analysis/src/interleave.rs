//! John Bass's calculation of an interleave factor (net.unix-wizards, July
//! 1984), with the interrupts that he warns of.
//!
//! After a sector is read, the processor works for some time before it can ask
//! for the next. The sector that is asked for next must not have come by
//! meanwhile: with a factor f it starts f - 1 sectors later, and if it is
//! missed, it comes again a revolution later. Clock ticks and characters of
//! terminals make the work longer at times that have nothing to do with the
//! disk, so each factor is met with a probability, and the best factor is the
//! one with the highest mean rate.
//!
//! What is *not* in it: seeks, head switches, the bytes of a track's spare
//! sectors, and contention for memory. The same case on the modelled machine
//! has all of these; whoever adds it takes [`Inputs`] (which is the case) and
//! gives a rate for each [`FactorResult::factor`] (which is the row).

mod check;
mod follow;
mod inputs;
mod terms;

pub use check::{InputError, check_work};
pub use inputs::{Clock, Inputs, Serial, SerialMethod, Service, Track};
pub use terms::{Interrupt, Interruption, Term};

use follow::{Course, Lateness, Processor, ROUNDING_MS, Work};
use serde::{Serialize, Serializer};

/// No drive turns at just its nominal speed. Were it to, a clock of as many
/// ticks as revolutions would stand to it for ever as it did at first. This
/// much longer a revolution takes.
pub const SLOWER_SHARE: f64 = 0.001_37;

/// Rates that differ by less than this share are the same: of two such factors
/// the smaller is the better.
const EQUAL_SHARE: f64 = 0.01;

/// Rows that stand after the best one, so that it can be seen to be the best.
const ROWS_AFTER_BEST: u32 = 3;

/// The calculation's answer.
#[derive(Clone, Debug, Serialize)]
pub struct Interleave {
    /// What it was calculated from.
    pub inputs: Inputs,
    /// The time of one revolution.
    pub revolution_ms: f64,
    /// The time in which a sector passes.
    pub sector_ms: f64,
    /// The parts of the service time, at the processor's speed.
    pub parts: Vec<ServicePart>,
    /// Their sum, which is Bass's interlace time.
    pub service_ms: f64,
    /// The service time in sectors.
    pub service_sectors: f64,
    /// The mean time of a service with its interruptions.
    pub mean_service_ms: f64,
    /// What interrupts, at the processor's speed.
    pub interruptions: Vec<Interruption>,
    /// Bass's factor: the service time in sectors, a fraction counting as a
    /// whole one, and 1. It may be beyond the track.
    pub uninterrupted_factor: u64,
    /// Each factor from 1 to three beyond the best, or further if asked.
    pub factors: Vec<FactorResult>,
    /// The one with the highest rate.
    pub recommended: FactorResult,
    /// Why it is that one.
    pub responsible: Responsible,
    /// The best factor without what is responsible, if that can be removed.
    pub factor_without: Option<u32>,
}

impl Interleave {
    /// Puts the rates of the modelled machine beside the calculated ones, one
    /// for each of [`Interleave::factors`].
    ///
    /// # Panics
    ///
    /// When there are more or fewer.
    pub fn compare(&mut self, modelled_kb_per_s: &[f64]) {
        assert_eq!(self.factors.len(), modelled_kb_per_s.len(), "a rate a row");
        for (row, rate) in self.factors.iter_mut().zip(modelled_kb_per_s) {
            row.modelled_kb_per_s = Some(*rate);
        }
        self.recommended = *self
            .factor(self.recommended.factor)
            .expect("the recommended factor has a row");
    }

    /// The best factor of the modelled machine, where the case was run on it;
    /// of equal ones the smallest.
    pub fn modelled_best(&self) -> Option<u32> {
        let mut best: Option<(u32, f64)> = None;
        for row in &self.factors {
            let rate = row.modelled_kb_per_s?;
            // Rates that a seed may move are equal.
            if best.is_none_or(|(_, most)| rate > most * (1.0 + EQUAL_SHARE)) {
                best = Some((row.factor, rate));
            }
        }
        best.map(|(factor, _)| factor)
    }

    /// The row of a factor, if it has one.
    pub fn factor(&self, factor: u32) -> Option<&FactorResult> {
        self.factors.iter().find(|row| row.factor == factor)
    }
}

/// A part of the service time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServicePart {
    /// What it is.
    pub name: &'static str,
    /// How long it takes.
    pub ms: f64,
}

/// What a factor does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FactorResult {
    /// Sectors from a logical sector to the next; 1 is no interleave.
    pub factor: u32,
    /// The probability that a sector is missed.
    pub missed_share: f64,
    /// Revolutions lost, on average over all sectors.
    pub lost_revolutions: f64,
    /// The mean rate in units of 1024 bytes.
    pub kb_per_s: f64,
    /// KB/s of the modelled machine, if the case was run on it.
    pub modelled_kb_per_s: Option<f64>,
}

/// Why the recommended factor is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responsible {
    /// Nothing that interrupts: without all of it the factor is the same.
    Service,
    /// This term: without it another factor is the best.
    Term(Term),
    /// All interruptions: none of them alone moves the factor.
    Together,
}

impl Responsible {
    /// Its name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service_time",
            Self::Term(term) => term.name(),
            Self::Together => "interruptions_together",
        }
    }
}

impl Serialize for Responsible {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Calculates all factors, with rows up to `also` if that is further than the
/// best one's.
///
/// # Errors
///
/// [`InputError`]: an input out of its range, a factor beyond the track, or
/// interrupts that leave nothing of the processor.
pub fn calculate(inputs: &Inputs, also: Option<u32>) -> Result<Interleave, InputError> {
    check::check(inputs, also)?;
    let case = Case::new(inputs, &|_| true);
    let (mut factors, best) = case.factors(also.unwrap_or(1));
    let recommended = factors[best];
    let last = (recommended.factor + ROWS_AFTER_BEST).max(also.unwrap_or(1));
    factors.truncate(last as usize);
    let (responsible, factor_without) = responsible(inputs, recommended.factor);
    let sector_ms = inputs.track.sector_ms();
    let service_sectors = inputs.service_ms() / sector_ms;
    let parts = inputs.service.parts().into_iter();
    Ok(Interleave {
        revolution_ms: inputs.track.revolution_ms(),
        sector_ms,
        parts: parts
            .map(|(name, ms)| ServicePart {
                name,
                ms: ms / inputs.cpu_speed,
            })
            .collect(),
        service_ms: inputs.service_ms(),
        service_sectors,
        mean_service_ms: case.lateness(recommended.factor).service_ms,
        interruptions: inputs.interruptions(),
        uninterrupted_factor: (service_sectors - ROUNDING_MS / sector_ms).ceil() as u64 + 1,
        factors,
        recommended,
        responsible,
        factor_without,
        inputs: inputs.clone(),
    })
}

/// The term whose removal moves the best factor furthest, and where to.
fn responsible(inputs: &Inputs, best: u32) -> (Responsible, Option<u32>) {
    let best_with = |kept: &dyn Fn(Term) -> bool| {
        let (factors, best) = Case::new(inputs, kept).factors(1);
        factors[best].factor
    };
    let terms = inputs.terms();
    // Of terms that move it alike, the first in the order of `Term::ALL`.
    let moved = terms
        .iter()
        .map(|term| (*term, best_with(&|other| other != *term)))
        .filter(|(_, without)| *without != best)
        .min_by_key(|(_, without)| u32::MAX - without.abs_diff(best));
    if let Some((term, without)) = moved {
        return (Responsible::Term(term), Some(without));
    }
    let alone = best_with(&|_| false);
    if terms.len() > 1 && alone != best {
        return (Responsible::Together, Some(alone));
    }
    (Responsible::Service, None)
}

/// The inputs with some of their terms, and what follows.
struct Case<'i> {
    inputs: &'i Inputs,
    processor: Processor,
}

impl<'i> Case<'i> {
    fn new(inputs: &'i Inputs, kept: &dyn Fn(Term) -> bool) -> Self {
        Self {
            inputs,
            processor: Processor::new(
                Work {
                    service_ms: inputs.service_ms(),
                    start_ms: inputs.service.transfer_start_ms / inputs.cpu_speed,
                },
                inputs.sources(kept),
                (inputs.outstanding as usize, inputs.read_ahead),
            ),
        }
    }

    /// The factors from 1 on, as far as any can be the best and as far as rows
    /// are wanted, and which of them is the best: the least of equal ones.
    fn factors(&self, wanted: u32) -> (Vec<FactorResult>, usize) {
        let track = &self.inputs.track;
        let mut factors: Vec<FactorResult> = Vec::new();
        let mut best = 0;
        for factor in 1..=track.sectors_per_track {
            let best_so_far = factors.get(best).copied();
            let done = best_so_far.is_some_and(|so_far| {
                let last = (so_far.factor + ROWS_AFTER_BEST).max(wanted);
                // Nothing is faster than its sectors come by.
                factor > last && self.rate(factor, 0.0) <= so_far.kb_per_s
            });
            if done {
                break;
            }
            let result = self.factor(factor);
            if best_so_far
                .is_some_and(|so_far| result.kb_per_s > so_far.kb_per_s * (1.0 + EQUAL_SHARE))
            {
                best = factors.len();
            }
            factors.push(result);
        }
        (factors, best)
    }

    fn factor(&self, factor: u32) -> FactorResult {
        let lateness = self.lateness(factor);
        FactorResult {
            factor,
            missed_share: lateness.missed_share,
            lost_revolutions: lateness.lost_revolutions,
            kb_per_s: self.rate(factor, lateness.lost_revolutions),
            modelled_kb_per_s: None,
        }
    }

    /// KB/s when this much is lost for each sector.
    fn rate(&self, factor: u32, lost_revolutions: f64) -> f64 {
        let track = &self.inputs.track;
        let slots: u32 = track.spacings(factor).iter().sum();
        let slots = f64::from(slots) / f64::from(track.sectors_per_track);
        let ms = slots * track.sector_ms() + lost_revolutions * track.revolution_ms();
        f64::from(track.sector_bytes) / 1024.0 / (ms / 1e3)
    }

    fn lateness(&self, factor: u32) -> Lateness {
        let track = &self.inputs.track;
        let sector_ms = track.sector_ms() * (1.0 + SLOWER_SHARE);
        self.processor.follow(&Course {
            spacings: track.spacings(factor),
            sector_ms,
            revolution_ms: track.revolution_ms() * (1.0 + SLOWER_SHARE),
        })
    }
}

#[cfg(test)]
mod tests;
