//! John Bass's calculation of an interleave factor (net.unix-wizards, July 1984), with the
//! interrupts that he warns of.
//!
//! After a sector is read, the processor works for some time before it can request the next one.
//! That sector must not have passed meanwhile. With a factor f it starts f - 1 sectors later; if it
//! is missed, it returns a revolution later.
//!
//! Clock ticks and characters of terminals lengthen the work at times unrelated to the disk. Each
//! factor is therefore met with a probability, and the best factor is the one with the highest mean
//! rate.
//!
//! The calculation leaves out seeks, head switches, the bytes of a track's spare sectors, and
//! contention for memory. The modelled machine has all of these: a caller runs the case of
//! [`InterleaveInputs`] on it and adds a rate for each [`FactorResult::factor`].

mod check;
mod follow;
mod inputs;
mod terms;

pub use check::{InputError, check_calculation_steps};
pub use inputs::{
    ClockInterrupts, InterleaveInputs, SerialInput, SerialMethod, ServiceTimes, TrackFormat,
};
pub use terms::{InterruptCost, InterruptKind, InterruptionFigures};

use follow::{Lateness, ProcessorLoad, ProcessorTask, SectorSequence, TIME_ROUNDING_MS};
use serde::{Serialize, Serializer};

/// Share by which a revolution takes longer than nominal. No drive turns at exactly its nominal
/// speed; if it did, a clock with a whole number of ticks per revolution would keep its first phase
/// for ever.
pub const RATE_LOSS_SHARE_MAX: f64 = 0.001_37;

/// Rates that differ by less than this share are equal. Of two such factors the smaller one is
/// better.
const EQUAL_RATE_SHARE_MAX: f64 = 0.01;

const ROWS_SHOWN_AFTER_BEST: u32 = 3;

/// Result of the calculation of a drive's interleave factor.
#[derive(Clone, Debug, Serialize)]
pub struct InterleaveReport {
    /// Inputs from which the interleave factor was calculated.
    pub inputs: InterleaveInputs,
    /// Duration of one revolution of the drive in ms.
    pub revolution_ms: f64,
    /// Time in which a sector passes the head, in ms.
    pub sector_ms: f64,
    /// Parts of the service time, at the processor's speed.
    #[serde(rename = "parts")]
    pub service_parts: Vec<ServicePart>,
    /// Sum of the parts of the service time in ms, which is Bass's interlace time.
    pub service_ms: f64,
    /// Service time without interruptions, divided by the time of a sector.
    pub service_sectors: f64,
    /// Mean service time including interruptions, in ms.
    pub mean_service_ms: f64,
    /// Interruptions of the service, at the processor's speed.
    pub interruptions: Vec<InterruptionFigures>,
    /// Bass's factor: the service time in sectors, rounded up, plus 1. It may exceed the number of
    /// sectors on the track.
    pub uninterrupted_factor: u64,
    /// Calculated rates for each factor from 1 to three beyond the best, or further on request.
    #[serde(rename = "factors")]
    pub factor_results: Vec<FactorResult>,
    /// Result of the factor with the highest rate.
    #[serde(rename = "recommended")]
    pub recommended_factor: FactorResult,
    /// Reason why the recommended factor is the best.
    #[serde(rename = "responsible")]
    pub limiting_cost: LimitingCost,
    /// Best factor without the interruptions that are responsible for the recommended one, if these
    /// can be removed.
    #[serde(rename = "factor_without")]
    pub factor_without_cost: Option<u32>,
}

impl InterleaveReport {
    /// Adds the rates of the modelled machine to the calculated ones, one for each of
    /// [`InterleaveReport::rate_factors`].
    ///
    /// # Panics
    ///
    /// When there are more or fewer rates than factors.
    pub fn set_modelled_rates(&mut self, modelled_kb_per_s: &[f64]) {
        assert_eq!(
            self.factor_results.len(),
            modelled_kb_per_s.len(),
            "a rate a row"
        );
        for (row, rate) in self.factor_results.iter_mut().zip(modelled_kb_per_s) {
            row.modelled_kb_per_s = Some(*rate);
        }
        self.recommended_factor = *self
            .find_factor(self.recommended_factor.factor)
            .expect("the recommended factor has a row");
    }

    /// Returns the best factor of the modelled machine, where the case was run on it; of equal ones
    /// the smallest.
    pub fn best_modelled_factor(&self) -> Option<u32> {
        let mut best: Option<(u32, f64)> = None;
        for row in &self.factor_results {
            let rate = row.modelled_kb_per_s?;
            // Rates that a seed may move are equal.
            if best.is_none_or(|(_, most)| rate > most * (1.0 + EQUAL_RATE_SHARE_MAX)) {
                best = Some((row.factor, rate));
            }
        }
        best.map(|(factor, _)| factor)
    }

    /// Returns the calculated rate of a factor, if the result contains it.
    pub fn find_factor(&self, factor: u32) -> Option<&FactorResult> {
        self.factor_results.iter().find(|row| row.factor == factor)
    }
}

/// One part of the service time, such as the interrupt latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServicePart {
    /// Name of the part of the service time.
    pub name: &'static str,
    /// Duration of the part of the service time, in ms.
    #[serde(rename = "ms")]
    pub duration_ms: f64,
}

/// Calculated rate of reading a track with one interleave factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FactorResult {
    /// Interleave factor: sectors from one logical sector to the next; 1 is no interleave.
    pub factor: u32,
    /// Probability that a sector is missed (0 to 1).
    pub missed_share: f64,
    /// Mean number of revolutions lost per sector to missed sectors.
    pub lost_revolutions: f64,
    /// Mean rate in KB of 1024 bytes per second.
    pub kb_per_s: f64,
    /// Rate of the modelled machine in KB/s, if the case was run on it.
    pub modelled_kb_per_s: Option<f64>,
}

/// Reason why the recommended factor is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitingCost {
    /// The service time alone determines the best factor: without all interruptions it is the same.
    Service,
    /// One kind of interruption determines the best factor: without it another factor is the best.
    Interrupts(InterruptCost),
    /// All interruptions together determine the best factor: none of them alone changes it.
    ServiceWithInterrupts,
}

impl LimitingCost {
    /// Returns the name of the responsible interruption or service time in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service_time",
            Self::Interrupts(term) => term.name(),
            Self::ServiceWithInterrupts => "interruptions_together",
        }
    }
}

impl Serialize for LimitingCost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Calculates all factors, with rows up to `also` if that lies beyond the rows of the best one.
///
/// # Errors
///
/// [`InputError`]: an input out of its range, a factor beyond the track, or interrupts that leave
/// the processor no time.
pub fn calculate_interleave(
    inputs: &InterleaveInputs,
    also: Option<u32>,
) -> Result<InterleaveReport, InputError> {
    check::check_inputs(inputs, also)?;
    let case = InterleaveCase::with_costs(inputs, &|_| true);
    let (mut factors, best) = case.rate_factors(also.unwrap_or(1));
    let recommended = factors[best];
    let last = (recommended.factor + ROWS_SHOWN_AFTER_BEST).max(also.unwrap_or(1));
    factors.truncate(last as usize);
    let (responsible, factor_without) = find_limiting_cost(inputs, recommended.factor);
    let sector_ms = inputs.track.sector_ms();
    let service_sectors = inputs.service_ms() / sector_ms;
    let parts = inputs.service.list_parts().into_iter();
    Ok(InterleaveReport {
        revolution_ms: inputs.track.revolution_ms(),
        sector_ms,
        service_parts: parts
            .map(|(name, ms)| ServicePart {
                name,
                duration_ms: ms / inputs.cpu_speed,
            })
            .collect(),
        service_ms: inputs.service_ms(),
        service_sectors,
        mean_service_ms: case.simulate_factor(recommended.factor).service_ms,
        interruptions: inputs.list_interruptions(),
        uninterrupted_factor: (service_sectors - TIME_ROUNDING_MS / sector_ms).ceil() as u64 + 1,
        factor_results: factors,
        recommended_factor: recommended,
        limiting_cost: responsible,
        factor_without_cost: factor_without,
        inputs: inputs.clone(),
    })
}

/// Returns the kind of interruption whose removal changes the best factor the most, and the new
/// best factor.
fn find_limiting_cost(inputs: &InterleaveInputs, best: u32) -> (LimitingCost, Option<u32>) {
    let best_with = |kept: &dyn Fn(InterruptCost) -> bool| {
        let (factors, best) = InterleaveCase::with_costs(inputs, kept).rate_factors(1);
        factors[best].factor
    };
    let terms = inputs.list_interrupt_costs();
    // Of terms that move it alike, the first in the order of `InterruptCost::ALL`.
    let moved = terms
        .iter()
        .map(|term| (*term, best_with(&|other| other != *term)))
        .filter(|(_, without)| *without != best)
        .min_by_key(|(_, without)| u32::MAX - without.abs_diff(best));
    if let Some((term, without)) = moved {
        return (LimitingCost::Interrupts(term), Some(without));
    }
    let alone = best_with(&|_| false);
    if terms.len() > 1 && alone != best {
        return (LimitingCost::ServiceWithInterrupts, Some(alone));
    }
    (LimitingCost::Service, None)
}

/// Calculation with some of the interruptions switched on, and the simulated processor.
struct InterleaveCase<'i> {
    inputs: &'i InterleaveInputs,
    processor: ProcessorLoad,
}

impl<'i> InterleaveCase<'i> {
    fn with_costs(inputs: &'i InterleaveInputs, kept: &dyn Fn(InterruptCost) -> bool) -> Self {
        Self {
            inputs,
            processor: ProcessorLoad::new(
                ProcessorTask {
                    service_ms: inputs.service_ms(),
                    start_ms: inputs.service.transfer_start_ms / inputs.cpu_speed,
                },
                inputs.list_interrupt_sources(kept),
                (inputs.outstanding_reads as usize, inputs.has_read_ahead),
            ),
        }
    }

    /// Calculates the rates of factors from 1 on, as far as one may be the best or a row is wanted.
    /// Also returns the index of the best one: the smallest of equal ones.
    fn rate_factors(&self, wanted: u32) -> (Vec<FactorResult>, usize) {
        let track = &self.inputs.track;
        let mut factors: Vec<FactorResult> = Vec::new();
        let mut best = 0;
        for factor in 1..=track.sectors_per_track {
            let best_so_far = factors.get(best).copied();
            let done = best_so_far.is_some_and(|so_far| {
                let last = (so_far.factor + ROWS_SHOWN_AFTER_BEST).max(wanted);
                // Nothing is faster than its sectors come by.
                factor > last && self.transfer_rate(factor, 0.0) <= so_far.kb_per_s
            });
            if done {
                break;
            }
            let result = self.rate_factor(factor);
            if best_so_far.is_some_and(|so_far| {
                result.kb_per_s > so_far.kb_per_s * (1.0 + EQUAL_RATE_SHARE_MAX)
            }) {
                best = factors.len();
            }
            factors.push(result);
        }
        (factors, best)
    }

    fn rate_factor(&self, factor: u32) -> FactorResult {
        let lateness = self.simulate_factor(factor);
        FactorResult {
            factor,
            missed_share: lateness.missed_share,
            lost_revolutions: lateness.lost_revolutions,
            kb_per_s: self.transfer_rate(factor, lateness.lost_revolutions),
            modelled_kb_per_s: None,
        }
    }

    /// Returns the rate in KB/s of an interleave factor that loses this many revolutions per sector
    /// on average.
    fn transfer_rate(&self, factor: u32, lost_revolutions: f64) -> f64 {
        let track = &self.inputs.track;
        let slots: u32 = track.sector_spacings(factor).iter().sum();
        let slots = f64::from(slots) / f64::from(track.sectors_per_track);
        let ms = slots * track.sector_ms() + lost_revolutions * track.revolution_ms();
        f64::from(track.sector_bytes) / 1024.0 / (ms / 1e3)
    }

    fn simulate_factor(&self, factor: u32) -> Lateness {
        let track = &self.inputs.track;
        let sector_ms = track.sector_ms() * (1.0 + RATE_LOSS_SHARE_MAX);
        self.processor.simulate_all_phases(&SectorSequence {
            sector_spacings: track.sector_spacings(factor),
            sector_ms,
            revolution_ms: track.revolution_ms() * (1.0 + RATE_LOSS_SHARE_MAX),
        })
    }
}

#[cfg(test)]
mod tests;
