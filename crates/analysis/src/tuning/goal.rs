//! What a search makes as good as can be.

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
}

impl Figures {
    /// Whether these can be figures of a measurement; who reads them from a store
    /// does not know who wrote them.
    pub fn is_possible(&self) -> bool {
        let all = [Some(self.kb_per_s), self.call_p99_ms, self.cpu_ms_per_mib];
        all.into_iter()
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
