//! Statistics of arrivals: gaps between requests, and the variation of counts in time windows.

use super::histogram::{Histogram, Quantiles};
use serde::Serialize;

/// Lengths of the windows in which requests are counted, in milliseconds.
const WINDOWS_MS: [u64; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
const NS_PER_MS: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalStatistics {
    last_ns: Option<u64>,
    gap_histogram: Histogram,
    gap_count: f64,
    gap_ns_mean: f64,
    gap_squared_deviations: f64,
    windows: Vec<ArrivalWindow>,
}

#[derive(Clone, Debug)]
struct ArrivalWindow {
    window_ns: u64,
    window_index: u64,
    window_arrivals: u64,
    /// Number of completed windows. `arrivals_sum` and `arrivals_square_sum` are the sums of their counts and of the
    /// squared counts.
    completed_windows: f64,
    arrivals_sum: f64,
    squared_arrivals_sum: f64,
    arrivals_max: u64,
    empty_windows: u64,
}

impl ArrivalWindow {
    fn new(ms: u64) -> Self {
        Self {
            window_ns: ms * NS_PER_MS,
            window_index: 0,
            window_arrivals: 0,
            completed_windows: 0.0,
            arrivals_sum: 0.0,
            squared_arrivals_sum: 0.0,
            arrivals_max: 0,
            empty_windows: 0,
        }
    }

    fn add(&mut self, at_ns: u64) {
        let number = at_ns / self.window_ns;
        if number > self.window_index {
            let between = number - self.window_index - 1;
            self.close_window();
            self.completed_windows += between as f64;
            self.empty_windows += between;
            self.window_index = number;
        }
        self.window_arrivals += 1;
    }

    fn close_window(&mut self) {
        let count = std::mem::take(&mut self.window_arrivals);
        self.completed_windows += 1.0;
        self.arrivals_sum += count as f64;
        self.squared_arrivals_sum += (count * count) as f64;
        self.arrivals_max = self.arrivals_max.max(count);
        self.empty_windows += u64::from(count == 0);
    }

    /// Returns the index of dispersion of the completed windows: the variance of the counts divided
    /// by their mean. `None` for fewer than ten windows.
    fn dispersion(&self) -> Option<f64> {
        const WINDOWS_MIN: f64 = 10.0;
        let mean = self.arrivals_sum / self.completed_windows;
        (self.completed_windows >= WINDOWS_MIN && mean > 0.0)
            .then(|| (self.squared_arrivals_sum / self.completed_windows - mean * mean) / mean)
    }
}

impl ArrivalStatistics {
    pub(super) fn add(&mut self, at_ns: u64) {
        if self.windows.is_empty() {
            self.windows = WINDOWS_MS.map(ArrivalWindow::new).to_vec();
        }
        for window in &mut self.windows {
            window.add(at_ns.max(window.window_index * window.window_ns));
        }
        if let Some(last_ns) = self.last_ns {
            let gap_ns = at_ns.saturating_sub(last_ns);
            self.gap_histogram.add(gap_ns, 1.0);
            // Welford 1962.
            self.gap_count += 1.0;
            let before = gap_ns as f64 - self.gap_ns_mean;
            self.gap_ns_mean += before / self.gap_count;
            self.gap_squared_deviations += before * (gap_ns as f64 - self.gap_ns_mean);
        }
        self.last_ns = Some(at_ns.max(self.last_ns.unwrap_or(0)));
    }

    /// Returns the summary of the arrivals, with windows of at least `finest_ns`.
    pub(super) fn finish(&self, finest_ns: u64) -> Option<ArrivalSummary> {
        let gaps_ns = self.gap_histogram.quantiles()?;
        let deviation = (self.gap_squared_deviations / self.gap_count).sqrt();
        let second = self
            .windows
            .iter()
            .find(|window| window.window_ns == 1000 * NS_PER_MS)?;
        let per_window = |window: &ArrivalWindow| {
            Some(Dispersion {
                window_ms: window.window_ns / NS_PER_MS,
                index: window.dispersion()?,
            })
        };
        let seconds = second.completed_windows;
        let windows = self.windows.iter();
        let windows = windows.filter(|window| window.window_ns >= finest_ns);
        let tells_seconds = seconds >= 2.0 && second.window_ns >= finest_ns;
        Some(ArrivalSummary {
            gaps_ns: Quantiles {
                mean: self.gap_ns_mean,
                ..gaps_ns
            },
            coefficient_of_variation: deviation / self.gap_ns_mean.max(f64::MIN_POSITIVE),
            dispersion: windows.filter_map(per_window).collect(),
            peak_over_mean: tells_seconds.then(|| {
                second.arrivals_max as f64 / (second.arrivals_sum / seconds).max(f64::MIN_POSITIVE)
            }),
            idle_seconds_share: tells_seconds.then(|| second.empty_windows as f64 / seconds),
        })
    }
}

/// Summary of the arrivals of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalSummary {
    /// Quantiles of the gaps between consecutive requests, in nanoseconds.
    pub gaps_ns: Quantiles,
    /// Coefficient of variation of the gaps: 0 for a clock, 1 for a Poisson process.
    pub coefficient_of_variation: f64,
    /// Index of dispersion by window length. It is 1 at all lengths for a Poisson process, and
    /// grows with the length for bursts.
    pub dispersion: Vec<Dispersion>,
    /// Maximum number of requests in a second divided by the mean. `None` below two seconds.
    pub peak_over_mean: Option<f64>,
    /// Share of the seconds without requests. `None` below two seconds.
    pub idle_seconds_share: Option<f64>,
}

/// Variation of the request counts in windows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dispersion {
    /// Length of a window in milliseconds.
    pub window_ms: u64,
    /// Variance of the counts divided by their mean.
    pub index: f64,
}
