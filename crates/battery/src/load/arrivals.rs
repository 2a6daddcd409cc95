//! Arrival times of requests: whenever a slot is free (closed loop), or by the clock, regardless of
//! the requests in flight (open loop).

use crate::parameter::choices;
use crate::random::RandomDraws;
use diskperf_timeline::Nanoseconds;

choices! {
    /// Distribution of the gaps between arrivals of an open loop.
    Spacing {
        /// Equal gaps between arrivals.
        Constant = "constant",
        /// Independent arrivals with exponentially distributed gaps.
        Poisson = "poisson",
    }
}

/// Upcoming arrivals of an open loop.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalSchedule {
    arrival_spacing: Spacing,
    offered_rate_iops: f64,
    arrival_count: u64,
    /// Time of the next arrival since the start, in nanoseconds.
    next_arrival_ns: f64,
    start_time: Nanoseconds,
    random: RandomDraws,
}

const INTERARRIVAL_STREAM: u128 = 5;

impl ArrivalSchedule {
    /// Creates arrivals at `rate_iops` per second from `start` on, for a worker with this seed.
    pub(crate) fn new(rate_iops: u64, spacing: Spacing, (start, seed): (Nanoseconds, u64)) -> Self {
        let mut arrivals = Self {
            arrival_spacing: spacing,
            offered_rate_iops: rate_iops as f64,
            arrival_count: 0,
            next_arrival_ns: 0.0,
            start_time: start,
            random: RandomDraws::new(seed, INTERARRIVAL_STREAM),
        };
        // A Poisson process has no arrival at its start.
        if spacing == Spacing::Poisson {
            arrivals.advance_to_next();
        }
        arrivals
    }

    /// Returns the time at which the next request arrives.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Nanoseconds {
        self.start_time + Nanoseconds(self.next_arrival_ns as u64)
    }

    /// Moves on to the next arrival of the open loop.
    #[inline]
    pub(crate) fn advance_to_next(&mut self) {
        self.arrival_count += 1;
        self.next_arrival_ns = match self.arrival_spacing {
            // Of the number, so that no rounding adds up.
            Spacing::Constant => self.arrival_count as f64 * 1e9 / self.offered_rate_iops,
            Spacing::Poisson => {
                self.next_arrival_ns + self.random.draw_exponential() * 1e9 / self.offered_rate_iops
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rate_iops: u64, spacing: Spacing, count: usize) -> Vec<f64> {
        let mut arrivals = ArrivalSchedule::new(rate_iops, spacing, (Nanoseconds(0), 1983));
        let next = |_| {
            let next = arrivals.next_arrival().0 as f64;
            arrivals.advance_to_next();
            next
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn constant_gaps_do_not_drift() {
        // A third of a nanosecond is lost in every gap that is a whole number of them.
        let times = times(3, Spacing::Constant, 3_000_001);
        assert_eq!(times[3_000_000], 1e15);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_variation() {
        let times = times(500, Spacing::Poisson, 10_000);
        let span_s = times[9_999] / 1e9;
        assert!((span_s - 20.0).abs() < 0.6, "{span_s}");
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let variation = (squares / gaps.len() as f64).sqrt() / mean;
        assert!((variation - 1.0).abs() < 0.03, "{variation}");
    }
}
