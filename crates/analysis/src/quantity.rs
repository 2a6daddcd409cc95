//! Which figure of a program is judged: of a comparison, of an A/B measurement, of the
//! rule that stops repeating, of the shape that repetitions have, and of whatever asks
//! which of them is in the middle.
//!
//! Programs that move a fixed number of bytes by one call after the other are judged by
//! KB/s, that is by their elapsed time. Programs that keep several requests under way may
//! run for a fixed time, of which the elapsed time says nothing: they are judged by their
//! rate of requests; their response times stand beside it. Where requests arrive by the
//! clock (open loop), that rate is given, and the response times are judged.

use diskperf_timeline::Repetition;
use serde::Serialize;

/// A figure that two results may be compared by. Each is compared with its like alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// KB/s until the last call returned.
    KbPerS,
    /// KB/s until everything was synced.
    DurableKbPerS,
    /// Requests per second.
    Iops,
    /// The time that half of the requests did not exceed, in microseconds.
    ResponseP50Us,
    /// The time that 99 in 100 requests did not exceed, in microseconds.
    ResponseP99Us,
}

impl Quantity {
    /// What a repetition is judged by first.
    pub fn primary(repetition: &Repetition) -> Self {
        if repetition.is_open_loop() {
            Self::ResponseP50Us
        } else if repetition.loads().next().is_some() {
            Self::Iops
        } else {
            Self::KbPerS
        }
    }

    /// What two results are compared by, the primary quantity first. `past_cache` is
    /// whether both went past the page cache: what several requests under way are
    /// acknowledged for is then on the drive, and a second rate would say the same again.
    pub fn of_both<'r>(
        base: impl Iterator<Item = &'r Repetition> + Clone,
        other: impl Iterator<Item = &'r Repetition> + Clone,
        past_cache: bool,
    ) -> Vec<Self> {
        let mut all = base.clone().chain(other.clone());
        let is_load = all.clone().any(|one| one.loads().next().is_some());
        let both_have = |quantity: &Self| {
            let has = |one: &Repetition| quantity.figure(one).is_some();
            base.clone().any(has) && other.clone().any(has)
        };
        let (primary, second) = if is_load && all.all(Repetition::is_open_loop) {
            (Self::ResponseP50Us, Some(Self::ResponseP99Us))
        } else if is_load {
            (
                Self::Iops,
                Some(Self::DurableKbPerS).filter(|_| !past_cache),
            )
        } else {
            (Self::KbPerS, Some(Self::DurableKbPerS))
        };
        let second = second.filter(both_have);
        std::iter::once(primary).chain(second).collect()
    }

    /// Whether it is what a result is judged by first, which it has one of.
    pub fn is_primary(self) -> bool {
        match self {
            Self::KbPerS | Self::Iops | Self::ResponseP50Us => true,
            Self::DurableKbPerS | Self::ResponseP99Us => false,
        }
    }

    /// Whether less of it is faster.
    pub fn is_time(self) -> bool {
        match self {
            Self::KbPerS | Self::DurableKbPerS | Self::Iops => false,
            Self::ResponseP50Us | Self::ResponseP99Us => true,
        }
    }

    /// The word of JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::KbPerS => "kb_per_s",
            Self::DurableKbPerS => "durable_kb_per_s",
            Self::Iops => "iops",
            Self::ResponseP50Us => "response_p50_us",
            Self::ResponseP99Us => "response_p99_us",
        }
    }

    /// That of a repetition; `None` of one that moved nothing, took no time, or has too few
    /// requests to tell.
    pub fn figure(self, repetition: &Repetition) -> Option<f64> {
        let figure = match self {
            Self::KbPerS => Some(repetition.kb_per_s()),
            Self::DurableKbPerS => repetition.durable_kb_per_s(),
            Self::Iops => repetition.iops(),
            Self::ResponseP50Us => percentile_us(repetition, 50.0),
            Self::ResponseP99Us => percentile_us(repetition, 99.0),
        };
        figure.filter(|figure| *figure > 0.0)
    }

    /// The same, so that more of it is faster: a time's inverse.
    pub fn speed(self, repetition: &Repetition) -> Option<f64> {
        self.figure(repetition).map(|figure| self.turned(figure))
    }

    /// A figure as a speed, and a speed as the figure; of nothing, nothing.
    pub fn turned(self, figure: f64) -> f64 {
        match self.is_time() && figure > 0.0 {
            true => 1.0 / figure,
            false => figure,
        }
    }
}

fn percentile_us(repetition: &Repetition, percentile: f64) -> Option<f64> {
    let responses = repetition.responses();
    let told = responses.tells(percentile) && responses.count() > 0;
    told.then(|| responses.percentile(percentile).0 as f64 / 1e3)
}

/// The seconds that a repetition is judged by: of a fixed number of bytes, what they took;
/// of several requests under way, what one took, at the rate that they had or, where they
/// arrived by the clock, at the median. One that has no such figure took no time.
pub fn judged_s(repetition: &Repetition) -> f64 {
    match Quantity::primary(repetition) {
        Quantity::KbPerS | Quantity::DurableKbPerS => repetition.elapsed().seconds(),
        Quantity::Iops => Quantity::Iops
            .figure(repetition)
            .map_or(0.0, |iops| 1.0 / iops),
        time @ (Quantity::ResponseP50Us | Quantity::ResponseP99Us) => {
            time.figure(repetition).map_or(0.0, |us| us / 1e6)
        }
    }
}

#[cfg(test)]
mod tests;
