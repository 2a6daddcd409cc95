//! Statistics of arrivals: gaps between requests, and the variation of counts in time windows.

use super::histogram::{Counts, Quantiles};
use serde::Serialize;

/// Lengths of the windows in which requests are counted, in milliseconds.
const WINDOWS_MS: [u64; 7] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
const MS: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    last_ns: Option<u64>,
    gaps: Counts,
    count: f64,
    mean: f64,
    squares: f64,
    windows: Vec<Window>,
}

#[derive(Clone, Debug)]
struct Window {
    ns: u64,
    number: u64,
    count: u64,
    /// Number of completed windows. `sum` and `squares` are the sums of their counts and of the
    /// squared counts.
    over: f64,
    sum: f64,
    squares: f64,
    most: u64,
    empty: u64,
}

impl Window {
    fn new(ms: u64) -> Self {
        Self {
            ns: ms * MS,
            number: 0,
            count: 0,
            over: 0.0,
            sum: 0.0,
            squares: 0.0,
            most: 0,
            empty: 0,
        }
    }

    fn add(&mut self, at_ns: u64) {
        let number = at_ns / self.ns;
        if number > self.number {
            let between = number - self.number - 1;
            self.close();
            self.over += between as f64;
            self.empty += between;
            self.number = number;
        }
        self.count += 1;
    }

    fn close(&mut self) {
        let count = std::mem::take(&mut self.count);
        self.over += 1.0;
        self.sum += count as f64;
        self.squares += (count * count) as f64;
        self.most = self.most.max(count);
        self.empty += u64::from(count == 0);
    }

    /// Returns the index of dispersion of the completed windows: the variance of the counts divided
    /// by their mean. `None` for fewer than ten windows.
    fn dispersion(&self) -> Option<f64> {
        const FEWEST: f64 = 10.0;
        let mean = self.sum / self.over;
        (self.over >= FEWEST && mean > 0.0).then(|| (self.squares / self.over - mean * mean) / mean)
    }
}

impl Arrivals {
    pub(super) fn add(&mut self, at_ns: u64) {
        if self.windows.is_empty() {
            self.windows = WINDOWS_MS.map(Window::new).to_vec();
        }
        for window in &mut self.windows {
            window.add(at_ns.max(window.number * window.ns));
        }
        if let Some(last_ns) = self.last_ns {
            let gap_ns = at_ns.saturating_sub(last_ns);
            self.gaps.add(gap_ns, 1.0);
            // Welford 1962.
            self.count += 1.0;
            let before = gap_ns as f64 - self.mean;
            self.mean += before / self.count;
            self.squares += before * (gap_ns as f64 - self.mean);
        }
        self.last_ns = Some(at_ns.max(self.last_ns.unwrap_or(0)));
    }

    /// Returns the summary of the arrivals, with windows of at least `finest_ns`.
    pub(super) fn finish(&self, finest_ns: u64) -> Option<ArrivalSummary> {
        let gaps_ns = self.gaps.quantiles()?;
        let deviation = (self.squares / self.count).sqrt();
        let second = self.windows.iter().find(|window| window.ns == 1000 * MS)?;
        let per_window = |window: &Window| {
            Some(Dispersion {
                window_ms: window.ns / MS,
                index: window.dispersion()?,
            })
        };
        let seconds = second.over;
        let windows = self.windows.iter();
        let windows = windows.filter(|window| window.ns >= finest_ns);
        let tells_seconds = seconds >= 2.0 && second.ns >= finest_ns;
        Some(ArrivalSummary {
            gaps_ns: Quantiles {
                mean: self.mean,
                ..gaps_ns
            },
            coefficient_of_variation: deviation / self.mean.max(f64::MIN_POSITIVE),
            dispersion: windows.filter_map(per_window).collect(),
            peak_over_mean: tells_seconds
                .then(|| second.most as f64 / (second.sum / seconds).max(f64::MIN_POSITIVE)),
            idle_seconds_share: tells_seconds.then(|| second.empty as f64 / seconds),
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
