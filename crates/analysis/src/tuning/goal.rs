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
    /// that there might have been: 99.9 %. No upper bound of fewer than [`FEWEST_CALLS`].
    #[serde(default)]
    pub call_p99_ms_range: Option<(f64, Option<f64>)>,
    /// Of a modelled flash drive, the share of what was read that was never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_share: Option<f64>,
}

/// By how much the logarithm of what counts may be off on each side; nothing where nobody
/// can say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Doubt {
    /// So much worse it may be than it was seen.
    pub worse: Option<f64>,
    /// So much better.
    pub better: Option<f64>,
}

/// How often a bound of a percentile may be wrong: both are right in 99.9 % of all cases.
const WRONG: f64 = 0.0005;

/// The fewest calls of which p99 has an upper bound: the longest of fewer is below it too
/// often.
pub const FEWEST_CALLS: u64 = 757;

/// Between what the 99th percentile of all calls that there might have been is, in ms. Of the
/// calls that were counted, those of one repetition in so many are independent: each asks
/// for the same places.
pub fn p99_range(calls: &Histogram, repetitions: usize) -> Option<(f64, Option<f64>)> {
    let independent = calls.count() / repetitions.max(1) as u64;
    let (low, high) = ranks(independent, 0.01, WRONG);
    // In the middle of a rank, which has as many calls as there are repetitions.
    let at = |rank: u64| {
        let share = (rank as f64 - 0.5) / independent as f64;
        calls.percentile(100.0 * share).0 as f64 / 1e6
    };
    Some((at(low?), high.map(at)))
}

/// Of so many independent calls in order, the ranks between which the call is that a share
/// `above` of all calls that there might have been exceeds; each is wrong at most so often.
/// How many of the calls exceed it is binomial: the bounds are exact.
fn ranks(calls: u64, above: f64, wrong: f64) -> (Option<u64>, Option<u64>) {
    let n = calls as f64;
    let deviation = (n * above * (1.0 - above)).sqrt();
    // Fewer have no part in a sum of these digits.
    let first = (n * above - FAR * deviation).floor().max(0.0);
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

/// Deviations of a binomial count, beyond which nothing is.
const FAR: f64 = 12.0;

impl Doubt {
    /// The same on both sides.
    pub fn both(doubt: f64) -> Self {
        Self {
            worse: Some(doubt),
            better: Some(doubt),
        }
    }

    /// Whichever side is further off, of what is known.
    pub(super) fn either(self) -> Option<f64> {
        let known = [self.worse, self.better].into_iter().flatten();
        known.reduce(f64::max)
    }
}

impl Figures {
    /// Whether these can be figures of a measurement; who reads them from a store
    /// does not know who wrote them.
    pub fn is_possible(&self) -> bool {
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
    /// or what chance does to a percentile of so many calls.
    pub fn doubt(self, programs: &[Figures]) -> Doubt {
        let of = |figures: &Figures| match self {
            Self::Throughput => {
                let range = figures.kb_per_s_range;
                let apart = range.map_or(0.0, |(least, most)| libm::log(most / least));
                Doubt::both(apart)
            }
            Self::Latency => {
                let known = figures.call_p99_ms_range.zip(figures.call_p99_ms);
                known.map_or(Doubt::default(), |((low, high), p99)| Doubt {
                    worse: high.map(|high| libm::log(high / p99)),
                    better: Some(libm::log(p99 / low)),
                })
            }
            Self::Cpu => Doubt::both(0.0),
        };
        let all: Vec<Doubt> = programs.iter().map(of).collect();
        let together = |side: fn(&Doubt) -> Option<f64>| {
            let sides: Option<Vec<f64>> = all.iter().map(side).collect();
            let squares: f64 = sides?.iter().map(|doubt| doubt * doubt).sum();
            let doubt = squares.sqrt() / programs.len().max(1) as f64;
            doubt.is_finite().then_some(doubt)
        };
        Doubt {
            worse: together(|one| one.worse),
            better: together(|one| one.better),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// By the tables of the binomial distribution, and by what a bound promises.
    #[test]
    fn ranks_of_a_percentile_are_exact() {
        assert_eq!(ranks(FEWEST_CALLS - 1, 0.01, WRONG).1, None);
        assert_eq!(ranks(FEWEST_CALLS, 0.01, WRONG).1, Some(FEWEST_CALLS));
        assert_eq!(ranks(0, 0.01, WRONG), (None, None));
        // Of ten, half: one and nine are wrong in 11 of 1024 cases each.
        assert_eq!(ranks(10, 0.5, 11.0 / 1024.0 + 1e-12), (Some(2), Some(9)));
        assert_eq!(ranks(10, 0.5, 1.0 / 1024.0), (Some(1), Some(10)));
        assert_eq!(ranks(10, 0.5, 0.5 / 1024.0), (None, None));
        // Of many, as the normal distribution has it.
        let (low, high) = ranks(100_000_000, 0.01, WRONG);
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
