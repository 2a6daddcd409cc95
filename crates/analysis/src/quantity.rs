//! Choice of the figure by which a program is judged: in a comparison, in an A/B measurement, in
//! the rule that ends repetitions, in the shape of the repetitions, and in the choice of the median
//! one.
//!
//! Programs that move a fixed number of bytes, one call after the other, are judged by KB/s, that
//! is by their elapsed time. Programs that keep several requests in flight may run for a fixed
//! time, which says nothing; they are judged by their request rate, with the response times beside
//! it. In open loop the rate is given, and the response times are judged.

use diskperf_timeline::Repetition;
use serde::Serialize;

/// Figure by which two results may be compared. Each is compared only with the same figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Rate in KB/s until the last call returned.
    KbPerS,
    /// Rate in KB/s until everything was synced.
    DurableKbPerS,
    /// Request rate in requests per second.
    Iops,
    /// Median response time in microseconds.
    ResponseP50Us,
    /// 99th percentile of the response time in microseconds.
    ResponseP99Us,
}

impl Quantity {
    /// Returns the quantity by which a repetition is judged first.
    pub fn primary_quantity(repetition: &Repetition) -> Self {
        if repetition.is_open_loop() {
            Self::ResponseP50Us
        } else if repetition.load_measures().next().is_some() {
            Self::Iops
        } else {
            Self::KbPerS
        }
    }

    /// Returns the quantities by which two results are compared, the primary one first.
    ///
    /// `past_cache` says whether both bypassed the page cache. Acknowledged requests are then on
    /// the drive, and a durable rate would repeat the first one.
    pub fn common_quantities<'r>(
        base: impl Iterator<Item = &'r Repetition> + Clone,
        other: impl Iterator<Item = &'r Repetition> + Clone,
        past_cache: bool,
    ) -> Vec<Self> {
        let mut all = base.clone().chain(other.clone());
        let is_load = all.clone().any(|one| one.load_measures().next().is_some());
        let both_have = |quantity: &Self| {
            let has = |one: &Repetition| quantity.figure_of_repetition(one).is_some();
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

    /// Tests whether the quantity is a primary one. Each result has exactly one.
    pub fn is_primary(self) -> bool {
        match self {
            Self::KbPerS | Self::Iops | Self::ResponseP50Us => true,
            Self::DurableKbPerS | Self::ResponseP99Us => false,
        }
    }

    /// Tests whether the quantity is a time, so that a smaller value is faster.
    pub fn is_duration(self) -> bool {
        match self {
            Self::KbPerS | Self::DurableKbPerS | Self::Iops => false,
            Self::ResponseP50Us | Self::ResponseP99Us => true,
        }
    }

    /// Returns the name of the quantity in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::KbPerS => "kb_per_s",
            Self::DurableKbPerS => "durable_kb_per_s",
            Self::Iops => "iops",
            Self::ResponseP50Us => "response_p50_us",
            Self::ResponseP99Us => "response_p99_us",
        }
    }

    /// Returns the quantity of a repetition; `None` where it moved nothing, took no time, or has
    /// too few requests for the percentile.
    pub fn figure_of_repetition(self, repetition: &Repetition) -> Option<f64> {
        let figure = match self {
            Self::KbPerS => Some(repetition.kb_per_s()),
            Self::DurableKbPerS => repetition.durable_kb_per_s(),
            Self::Iops => repetition.iops(),
            Self::ResponseP50Us => response_percentile_us(repetition, 50.0),
            Self::ResponseP99Us => response_percentile_us(repetition, 99.0),
        };
        figure.filter(|figure| *figure > 0.0)
    }

    /// Returns the quantity of a repetition as a speed, so that more is faster: the inverse of a
    /// time.
    pub fn speed_of_repetition(self, repetition: &Repetition) -> Option<f64> {
        self.figure_of_repetition(repetition)
            .map(|figure| self.invert_time(figure))
    }

    /// Converts a time to a speed or a speed to a time, and leaves rates as they are; 0 stays 0.
    pub fn invert_time(self, figure: f64) -> f64 {
        match self.is_duration() && figure > 0.0 {
            true => 1.0 / figure,
            false => figure,
        }
    }
}

fn response_percentile_us(repetition: &Repetition, percentile: f64) -> Option<f64> {
    let responses = repetition.response_times();
    let told = responses.can_estimate(percentile) && responses.latency_count() > 0;
    told.then(|| responses.percentile(percentile).0 as f64 / 1e3)
}

/// Returns the seconds by which a repetition is judged.
///
/// For a fixed number of bytes they are the elapsed time. With several requests in flight they are
/// the inverse of the request rate, in open loop the median response time. 0 where the repetition
/// has no such figure.
pub fn judged_duration_s(repetition: &Repetition) -> f64 {
    match Quantity::primary_quantity(repetition) {
        Quantity::KbPerS | Quantity::DurableKbPerS => repetition.elapsed_time().seconds(),
        Quantity::Iops => Quantity::Iops
            .figure_of_repetition(repetition)
            .map_or(0.0, |iops| 1.0 / iops),
        time @ (Quantity::ResponseP50Us | Quantity::ResponseP99Us) => time
            .figure_of_repetition(repetition)
            .map_or(0.0, |us| us / 1e6),
    }
}

#[cfg(test)]
mod tests;
