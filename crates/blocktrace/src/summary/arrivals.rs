//! When requests come: gaps, and how counts in windows vary.

use super::histogram::{Counts, Quantiles};
use serde::Serialize;

/// Windows in which requests are counted, in ms.
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

/// Counts in windows of one length.
#[derive(Clone, Debug)]
struct Window {
    ns: u64,
    number: u64,
    count: u64,
    /// Windows that are over; the sum of their counts, and of the squares of these.
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

    /// The index of dispersion: the variance of the counts over their mean. The last window
    /// is not over.
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

    /// The summary, with windows of `finest_ns` at least.
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

/// When requests come.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalSummary {
    /// From one request to the next, in ns.
    pub gaps_ns: Quantiles,
    /// Of these gaps: 0 of a clock, 1 of a Poisson process.
    pub coefficient_of_variation: f64,
    /// By the length of the window: 1 for all of a Poisson process, growing of bursts.
    pub dispersion: Vec<Dispersion>,
    /// The most requests of a second over the mean; of two seconds and more.
    pub peak_over_mean: Option<f64>,
    /// The share of the seconds that have no request; of two seconds and more.
    pub idle_seconds_share: Option<f64>,
}

/// How counts in windows vary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Dispersion {
    /// The length of a window.
    pub window_ms: u64,
    /// The variance of the counts over their mean.
    pub index: f64,
}
