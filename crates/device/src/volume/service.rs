//! Distribution of the service time of a volume, by points between which it is linear.

use diskperf_sim::{RandomStream, Time};

/// Distribution of a service time, as times at shares of all requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceQuantiles {
    /// Shares of requests in millionths, from 0 to 1,000,000, in ascending order.
    pub shares_ppm: Vec<u64>,
    /// Service time at each share, in ascending order.
    pub times: Vec<Time>,
}

impl ServiceQuantiles {
    /// Returns a constant service time.
    pub fn constant(time: Time) -> Self {
        Self {
            shares_ppm: vec![0, 1_000_000],
            times: vec![time, time],
        }
    }

    /// Draws a service time.
    pub fn draw(&self, random: &mut RandomStream) -> Time {
        self.quantile_ppm(random.draw_below(1_000_001))
    }

    /// Returns the service time at a share of all requests, in millionths.
    pub fn quantile_ppm(&self, ppm: u64) -> Time {
        let above = self.shares_ppm.partition_point(|share| *share < ppm);
        if above == 0 {
            return self.times[0];
        }
        let above = above.min(self.times.len() - 1);
        let (from, until) = (self.shares_ppm[above - 1], self.shares_ppm[above]);
        let (low, high) = (self.times[above - 1].0, self.times[above].0);
        let rise = u128::from(high - low) * u128::from(ppm.min(until) - from);
        Time(low + (rise / u128::from((until - from).max(1))) as u64)
    }

    /// Returns the mean service time.
    pub fn mean(&self) -> Time {
        let shares = self.shares_ppm.windows(2).zip(self.times.windows(2));
        let area = |(share, time): (&[u64], &[Time])| {
            u128::from(share[1] - share[0]) * u128::from(time[0].0 + time[1].0)
        };
        Time((shares.map(area).sum::<u128>() / 2_000_000) as u64)
    }
}
