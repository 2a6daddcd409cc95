//! Goal of a search, and the figures that it optimizes.

use diskperf_timeline::Histogram;
use serde::{Deserialize, Serialize};

/// Measured figures of one program with some settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramFigures {
    /// Rate in KB/s until the last call returned, summed over the drives.
    pub kb_per_s: f64,
    /// 99th percentile of the calls' response time in ms; absent where no calls were timed.
    pub call_p99_ms: Option<f64>,
    /// Processor time in ms for each MiB moved, for all processes and the kernel.
    pub cpu_ms_per_mib: Option<f64>,
    /// Minimum and maximum KB/s of the repetitions.
    #[serde(default)]
    pub kb_per_s_range: Option<(f64, f64)>,
    /// 99.9 % interval in ms of the 99th percentile of the response time, for the population of all
    /// possible calls. No upper end for fewer than [`P99_CALLS_MIN`] calls.
    #[serde(default)]
    pub call_p99_ms_range: Option<(f64, Option<f64>)>,
    /// Share of the read bytes that were never written; only for a modelled flash drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_share: Option<f64>,
}

/// Uncertainty of the goal's value on each side, as a logarithm; `None` where it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueUncertainty {
    /// Amount by which the true value may be worse than the measured one, as a logarithm.
    pub worse_factor: Option<f64>,
    /// Amount by which the true value may be better than the measured one, as a logarithm.
    pub better_factor: Option<f64>,
}

/// Error probability of each end of a percentile's interval: both ends are right in 99.9 % of all
/// cases.
const ERROR_PROBABILITY: f64 = 0.0005;

/// Minimum number of calls for which the 99th percentile has an upper bound. Among fewer calls, the
/// longest is below it too often.
pub const P99_CALLS_MIN: u64 = 757;

/// Returns the interval in ms of the 99th percentile for the population of all possible calls.
///
/// Only the calls of one of the `repetitions` count as independent, since each repetition accesses
/// the same positions.
pub fn p99_range(calls: &Histogram, repetitions: usize) -> Option<(f64, Option<f64>)> {
    let independent = calls.latency_count() / repetitions.max(1) as u64;
    let (low, high) = rank_range(independent, 0.01, ERROR_PROBABILITY);
    // In the middle of a rank, which has as many calls as there are repetitions.
    let at = |rank: u64| {
        let share = (rank as f64 - 0.5) / independent as f64;
        calls.percentile(100.0 * share).0 as f64 / 1e6
    };
    Some((at(low?), high.map(at)))
}

/// Returns the ranks of two calls that enclose the call which a share `above` of all possible calls
/// exceeds, among this many independent calls in order. Each rank is wrong with a probability of at
/// most `wrong`. The number of calls above is binomial, so the bounds are exact.
fn rank_range(calls: u64, above: f64, wrong: f64) -> (Option<u64>, Option<u64>) {
    let n = calls as f64;
    let deviation = (n * above * (1.0 - above)).sqrt();
    // Fewer have no part in a sum of these digits.
    let first = (n * above - NEGLIGIBLE_DEVIATIONS * deviation)
        .floor()
        .max(0.0);
    let ln_choose =
        libm::lgamma(n + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(n - first + 1.0);
    let ln_first = ln_choose + first * libm::log(above) + (n - first) * libm::log1p(-above);
    let (mut chance, mut exceed, mut below) = (libm::exp(ln_first), first, 0.0);
    let (mut low, mut high) = (None, None);
    while exceed <= n {
        // `below` is the chance that fewer than these exceed it.
        if 1.0 - below <= wrong {
            low = (exceed > 0.0).then(|| calls + 1 - exceed as u64);
            break;
        }
        below += chance;
        if below <= wrong && exceed < n {
            high = Some(calls - exceed as u64);
        }
        chance *= (n - exceed) / (exceed + 1.0) * above / (1.0 - above);
        exceed += 1.0;
    }
    (low, high)
}

/// Standard deviations of a binomial count beyond which probabilities are negligible.
const NEGLIGIBLE_DEVIATIONS: f64 = 12.0;

impl ValueUncertainty {
    /// Creates an uncertainty of the goal's value that is equal on both sides.
    pub fn symmetric(doubt: f64) -> Self {
        Self {
            worse_factor: Some(doubt),
            better_factor: Some(doubt),
        }
    }

    /// Returns the larger of the known uncertainties, upwards or downwards.
    pub(super) fn larger_factor(self) -> Option<f64> {
        let known = [self.worse_factor, self.better_factor]
            .into_iter()
            .flatten();
        known.reduce(f64::max)
    }
}

impl ProgramFigures {
    /// Tests whether the figures can come from a measurement. A store may contain figures of
    /// unknown origin.
    pub fn are_possible(&self) -> bool {
        let all = [Some(self.kb_per_s), self.call_p99_ms, self.cpu_ms_per_mib];
        let of_rates = self.kb_per_s_range.map(|(low, high)| (low, Some(high)));
        let ranges = [of_rates, self.call_p99_ms_range];
        let ends = ranges.into_iter().flatten();
        let ends = ends.flat_map(|(low, high)| [Some(low), high]);
        all.into_iter()
            .chain(ends)
            .flatten()
            .all(|figure| (0.0..=1e15).contains(&figure))
    }
}

/// Goal that a tuning search optimizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TuningGoal {
    /// Highest data rate in KB/s.
    Throughput,
    /// Shortest 99th percentile of the response time.
    Latency,
    /// Least processor time for each MiB moved.
    Cpu,
}

impl TuningGoal {
    /// Returns the name of the compared quantity, with its unit.
    pub fn quantity(self) -> &'static str {
        match self {
            Self::Throughput => "KB/s",
            Self::Latency => "ms, 99 % of calls",
            Self::Cpu => "CPU ms per MiB",
        }
    }

    /// Returns the name of the goal on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Cpu => "cpu",
        }
    }

    /// Returns the unit of the goal's quantity.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "KB/s",
            Self::Latency => "ms",
            Self::Cpu => "CPU ms per MiB",
        }
    }

    fn value_of_figures(self, figures: &ProgramFigures) -> Option<f64> {
        match self {
            Self::Throughput => Some(figures.kb_per_s),
            Self::Latency => figures.call_p99_ms,
            Self::Cpu => figures.cpu_ms_per_mib,
        }
    }

    /// Returns the geometric mean over the programs, in which equal shares of all programs have
    /// equal weight. `None` where a program has no such figure.
    pub fn value_of_programs(self, programs: &[ProgramFigures]) -> Option<f64> {
        let values: Option<Vec<f64>> = programs
            .iter()
            .map(|figures| self.value_of_figures(figures))
            .collect();
        let values = values.filter(|values| {
            !values.is_empty() && values.iter().all(|value| *value > 0.0 && value.is_finite())
        })?;
        // The one value itself, to the last bit.
        if let [value] = values[..] {
            return Some(value);
        }
        let logarithms = values.iter().map(|value| libm::log(*value));
        Some(libm::exp(logarithms.sum::<f64>() / programs.len() as f64))
    }

    /// Returns the uncertainty of the logarithm of [`Self::value_of_programs`]: the spread of the repetitions,
    /// or the sampling error of a percentile.
    pub fn uncertainty_of_programs(self, programs: &[ProgramFigures]) -> ValueUncertainty {
        let of = |figures: &ProgramFigures| match self {
            Self::Throughput => {
                let range = figures.kb_per_s_range;
                let apart = range.map_or(0.0, |(least, most)| libm::log(most / least));
                ValueUncertainty::symmetric(apart)
            }
            Self::Latency => {
                let known = figures.call_p99_ms_range.zip(figures.call_p99_ms);
                known.map_or(ValueUncertainty::default(), |((low, high), p99)| {
                    ValueUncertainty {
                        worse_factor: high.map(|high| libm::log(high / p99)),
                        better_factor: Some(libm::log(p99 / low)),
                    }
                })
            }
            Self::Cpu => ValueUncertainty::symmetric(0.0),
        };
        let all: Vec<ValueUncertainty> = programs.iter().map(of).collect();
        let together = |side: fn(&ValueUncertainty) -> Option<f64>| {
            let sides: Option<Vec<f64>> = all.iter().map(side).collect();
            let squares: f64 = sides?.iter().map(|doubt| doubt * doubt).sum();
            let doubt = squares.sqrt() / programs.len().max(1) as f64;
            doubt.is_finite().then_some(doubt)
        };
        ValueUncertainty {
            worse_factor: together(|one| one.worse_factor),
            better_factor: together(|one| one.better_factor),
        }
    }

    /// Returns the gain from one value to another, as a share of the rate, or of the speed where
    /// less is better.
    pub fn gain(self, from: f64, to: f64) -> f64 {
        match self {
            Self::Throughput => to / from - 1.0,
            Self::Latency | Self::Cpu => from / to - 1.0,
        }
    }

    /// Returns the worse of two values of the goal.
    pub fn worse_value(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Throughput => left.min(right),
            Self::Latency | Self::Cpu => left.max(right),
        }
    }

    /// Returns the better of two values of the goal.
    pub fn better_value(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Throughput => left.max(right),
            Self::Latency | Self::Cpu => left.min(right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the tables of the binomial distribution, and by what a bound promises.
    #[test]
    fn ranks_of_a_percentile_are_exact() {
        assert_eq!(
            rank_range(P99_CALLS_MIN - 1, 0.01, ERROR_PROBABILITY).1,
            None
        );
        assert_eq!(
            rank_range(P99_CALLS_MIN, 0.01, ERROR_PROBABILITY).1,
            Some(P99_CALLS_MIN)
        );
        assert_eq!(rank_range(0, 0.01, ERROR_PROBABILITY), (None, None));
        // Of ten, half: one and nine are wrong in 11 of 1024 cases each.
        assert_eq!(
            rank_range(10, 0.5, 11.0 / 1024.0 + 1e-12),
            (Some(2), Some(9))
        );
        assert_eq!(rank_range(10, 0.5, 1.0 / 1024.0), (Some(1), Some(10)));
        assert_eq!(rank_range(10, 0.5, 0.5 / 1024.0), (None, None));
        // Of many, as the normal distribution has it.
        let (low, high) = rank_range(100_000_000, 0.01, ERROR_PROBABILITY);
        let off = |rank: Option<u64>| rank.expect("a bound") as f64 - 99_000_000.0;
        assert!((off(low) / -3274.0 - 1.0).abs() < 0.01, "{low:?}");
        assert!((off(high) / 3274.0 - 1.0).abs() < 0.01, "{high:?}");
    }

    /// A level that is known is one of calls: too few have no upper bound, and a lower one.
    #[test]
    fn few_calls_have_a_lower_bound_alone() {
        let of = |calls: u64| -> Histogram {
            (1..=calls)
                .map(|ms| diskperf_timeline::Nanoseconds(ms * 1_000_000))
                .collect()
        };
        assert_eq!(p99_range(&Histogram::new(), 2), None);
        let (low, high) = p99_range(&of(200), 1).expect("a bound");
        assert!(
            (180.0..198.0).contains(&low) && high.is_none(),
            "{low} {high:?}"
        );
        let (low, high) = p99_range(&of(2000), 1).expect("both");
        let high = high.expect("an upper one");
        assert!(
            low < 1980.0 && high > 1980.0 && high < 2000.0,
            "{low} {high}"
        );
        // Repetitions of the same places are not twice as many calls.
        let mut twice = of(2000);
        twice.merge(&of(2000));
        assert_eq!(p99_range(&twice, 2), Some((low, Some(high))));
    }
}
