//! What a search makes as good as can be.

use diskperf_timeline::Histogram;
use serde::{Deserialize, Serialize};

/// What one program did with some settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// KB/s until the last call returned, the sum of the drives.
    pub kb_per_s: f64,
    /// The response time that 99 of 100 calls do not exceed; nothing where no
    /// calls were timed.
    pub call_p99_ms: Option<f64>,
    /// Processor time for each MiB moved, for whomever it was spent.
    pub cpu_ms_per_mib: Option<f64>,
    /// The least and the most of the KB/s of the repetitions.
    #[serde(default)]
    pub kb_per_s_range: Option<(f64, f64)>,
    /// Between what the response time that 99 of 100 calls do not exceed is, of all calls
    /// that there might have been: 99.9 %. Nothing of fewer calls than that takes.
    #[serde(default)]
    pub call_p99_ms_range: Option<(f64, f64)>,
}

/// Standard deviations on each side of what is between two bounds in 99.9 % of all cases.
const DEVIATIONS: f64 = 3.29;

/// The fewest calls of which p99 has an upper bound: with fewer, the rank that it may have
/// lies beyond the longest.
pub const FEWEST_CALLS: u64 = 1072;

/// Between what the 99th percentile of all calls that there might have been is, in ms. Of the
/// calls that were counted, those of one repetition in so many are independent: each asks
/// for the same places.
pub fn p99_range(calls: &Histogram, repetitions: usize) -> Option<(f64, f64)> {
    let independent = calls.count() / repetitions.max(1) as u64;
    let (low, high) = calls.percentile_within(99.0, (independent, DEVIATIONS))?;
    Some((low.0 as f64 / 1e6, high.0 as f64 / 1e6))
}

impl Figures {
    /// Whether these can be figures of a measurement; who reads them from a store
    /// does not know who wrote them.
    pub fn is_possible(&self) -> bool {
        let all = [Some(self.kb_per_s), self.call_p99_ms, self.cpu_ms_per_mib];
        let ranges = [self.kb_per_s_range, self.call_p99_ms_range];
        let ends = ranges.into_iter().flatten();
        let ends = ends.flat_map(|(low, high)| [Some(low), Some(high)]);
        all.into_iter()
            .chain(ends)
            .flatten()
            .all(|figure| (0.0..=1e15).contains(&figure))
    }
}

/// What is made as good as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The most KB/s.
    Throughput,
    /// The shortest response time of 99 of 100 calls.
    Latency,
    /// The least processor time for each MiB.
    Cpu,
}

impl Goal {
    /// What is compared, with its unit.
    pub fn quantity(self) -> &'static str {
        match self {
            Self::Throughput => "KB/s",
            Self::Latency => "ms, 99 % of calls",
            Self::Cpu => "CPU ms per MiB",
        }
    }

    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Cpu => "cpu",
        }
    }

    /// The unit alone.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "KB/s",
            Self::Latency => "ms",
            Self::Cpu => "CPU ms per MiB",
        }
    }

    fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Throughput => Some(figures.kb_per_s),
            Self::Latency => figures.call_p99_ms,
            Self::Cpu => figures.cpu_ms_per_mib,
        }
    }

    /// The geometric mean over the programs, which weighs a share of one as
    /// the same share of another. Nothing where a program has no such figure.
    pub fn value(self, programs: &[Figures]) -> Option<f64> {
        let values: Option<Vec<f64>> = programs.iter().map(|figures| self.of(figures)).collect();
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

    /// By how much the logarithm of [`Self::value`] may be off: what repetitions differ by,
    /// or what chance does to a percentile of so many calls. Nothing where nobody can say.
    pub fn doubt(self, programs: &[Figures]) -> Option<f64> {
        let of = |figures: &Figures| match self {
            Self::Throughput => {
                let range = figures.kb_per_s_range;
                Some(range.map_or(0.0, |(least, most)| libm::log(most / least)))
            }
            Self::Latency => {
                let ((low, high), p99) = figures.call_p99_ms_range.zip(figures.call_p99_ms)?;
                Some(libm::log(high / p99).max(libm::log(p99 / low)))
            }
            Self::Cpu => Some(0.0),
        };
        let all: Option<Vec<f64>> = programs.iter().map(of).collect();
        let squares: f64 = all?.iter().map(|doubt| doubt * doubt).sum();
        let doubt = squares.sqrt() / programs.len().max(1) as f64;
        doubt.is_finite().then_some(doubt)
    }

    /// What going from one value to another gains, as a share: of the KB/s, or
    /// of the speed where less is better.
    pub fn gain(self, from: f64, to: f64) -> f64 {
        match self {
            Self::Throughput => to / from - 1.0,
            Self::Latency | Self::Cpu => from / to - 1.0,
        }
    }

    /// The worse of two values.
    pub fn worse_of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Throughput => left.min(right),
            Self::Latency | Self::Cpu => left.max(right),
        }
    }

    /// The better of two values.
    pub fn better_of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Throughput => left.max(right),
            Self::Latency | Self::Cpu => left.min(right),
        }
    }
}
