//! Distribution of response times: waits for limits, and the service that follows.

use diskperf_device::volume::ServiceQuantiles;

/// Cells of the histogram of waits for each doubling.
const CELLS_PER_OCTAVE: f64 = 32.0;
const CELLS: usize = 64 * CELLS_PER_OCTAVE as usize;
/// Shares at which the service time is taken for a percentile.
const SERVICE_POINTS: u64 = 256;

/// Waits of requests, in a histogram whose cells are 2 % wide, and the shares of reads.
#[derive(Clone, Debug)]
pub(super) struct ResponseTimes {
    /// Requests that do not wait.
    prompt: f64,
    cells: Vec<f64>,
    reads: f64,
    requests: f64,
    wait_max_ns: f64,
}

fn cell_index(wait_ns: f64) -> usize {
    ((wait_ns.max(1.0).log2() * CELLS_PER_OCTAVE) as usize).min(CELLS - 1)
}

fn cell_start_ns(index: usize) -> f64 {
    (index as f64 / CELLS_PER_OCTAVE).exp2()
}

/// Waits that are spread evenly between two times, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvenWaits {
    /// Wait of the first request.
    pub(super) start_ns: f64,
    /// Wait of the last request.
    pub(super) end_ns: f64,
}

impl ResponseTimes {
    pub(super) fn new() -> Self {
        Self {
            prompt: 0.0,
            cells: vec![0.0; CELLS],
            reads: 0.0,
            requests: 0.0,
            wait_max_ns: 0.0,
        }
    }

    /// Adds requests with evenly spread waits.
    pub(super) fn add(&mut self, requests: f64, read_share: f64, waits: EvenWaits) {
        self.requests += requests;
        self.reads += requests * read_share;
        let low = waits.start_ns.min(waits.end_ns);
        let high = waits.start_ns.max(waits.end_ns);
        self.wait_max_ns = self.wait_max_ns.max(high);
        if high < 1.0 {
            self.prompt += requests;
            return;
        }
        let (first, last) = (cell_index(low), cell_index(high));
        if first == last {
            self.cells[first] += requests;
            return;
        }
        for index in first..=last {
            let from = if index == first {
                low
            } else {
                cell_start_ns(index)
            };
            let until = cell_start_ns(index + 1).min(high);
            self.cells[index] += requests * (until - from).max(0.0) / (high - low);
        }
    }

    /// Returns the longest wait in nanoseconds.
    pub(super) fn wait_max_ns(&self) -> f64 {
        self.wait_max_ns
    }

    /// Returns the response time that a share of the requests does not exceed, in nanoseconds.
    /// Services are independent of waits.
    pub(super) fn quantile_ns(
        &self,
        share: f64,
        reads: &ServiceQuantiles,
        writes: &ServiceQuantiles,
    ) -> f64 {
        let mut waits_below = Vec::with_capacity(CELLS + 1);
        let mut sum = self.prompt;
        waits_below.push(sum);
        for count in &self.cells {
            sum += count;
            waits_below.push(sum);
        }
        let wait_share = |wait_ns: f64| match wait_ns {
            below if below < 0.0 => 0.0,
            short if short < 1.0 => waits_below[0],
            wait_ns => {
                let index = cell_index(wait_ns);
                let (from, until) = (cell_start_ns(index), cell_start_ns(index + 1));
                let inside = ((wait_ns - from) / (until - from)).clamp(0.0, 1.0);
                waits_below[index] + inside * self.cells[index]
            }
        };
        let read_share = self.reads / self.requests.max(f64::MIN_POSITIVE);
        let points = |service: &ServiceQuantiles, weight: f64| {
            let point = |number: u64| {
                let ppm = (2 * number + 1) * 1_000_000 / (2 * SERVICE_POINTS);
                (service.quantile_ppm(ppm).0 as f64, weight)
            };
            (0..SERVICE_POINTS).map(point).collect::<Vec<_>>()
        };
        let mut services = points(reads, read_share);
        services.extend(points(writes, 1.0 - read_share));
        let wanted = share * sum * SERVICE_POINTS as f64;
        let completed = |response_ns: f64| -> f64 {
            let within =
                |(service, weight): &(f64, f64)| weight * wait_share(response_ns - service);
            services.iter().map(within).sum()
        };
        let (mut low, mut high) = (0.0, 2.0 * (self.wait_max_ns + 1e9));
        while high - low > 1.0 && (high - low) > 1e-6 * high {
            let middle = (low + high) / 2.0;
            match completed(middle) >= wanted {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_sim::Time;

    #[test]
    fn quantiles_of_even_waits_are_their_shares() {
        let mut times = ResponseTimes::new();
        times.add(
            90.0,
            1.0,
            EvenWaits {
                start_ns: 0.0,
                end_ns: 0.0,
            },
        );
        times.add(
            10.0,
            1.0,
            EvenWaits {
                start_ns: 1e9,
                end_ns: 2e9,
            },
        );
        let service = ServiceQuantiles::constant(Time(1_000_000));
        let quantile = |share| times.quantile_ns(share, &service, &service) / 1e6;
        assert!((quantile(0.5) - 1.0).abs() < 0.01, "{}", quantile(0.5));
        for (share, ms) in [(0.91, 1101.0), (0.99, 1901.0)] {
            let found = quantile(share);
            assert!((found / ms - 1.0).abs() < 0.02, "{share}: {found}");
        }
        assert_eq!(times.wait_max_ns(), 2e9);
    }
}
