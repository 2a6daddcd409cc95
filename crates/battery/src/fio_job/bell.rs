//! Distribution `random_distribution=normal:DEV` of fio. It is not a normal distribution: fio takes
//! the mean of twelve uniform ranks and moves it by up to half the deviation to either side.

use crate::random::RandomDraws;

/// Number of uniform ranks that are averaged for one draw.
const AVERAGED_DRAW_COUNT: u64 = 12;

/// Random source of ranks that cluster around the middle rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct BellDistribution {
    rank_count: u64,
    deviation_ranks: u64,
}

impl BellDistribution {
    /// Creates the distribution over `ranks` ranks, at least one, with a deviation in percent of
    /// that number.
    pub(super) fn new(ranks: u64, deviation_percent: f64) -> Self {
        let ranks = ranks.max(1);
        let deviation = (ranks as f64 * deviation_percent / 100.0).ceil() as u64;
        Self {
            rank_count: ranks,
            deviation_ranks: deviation.min(ranks / 2),
        }
    }

    pub(super) fn draw_rank(&self, random: &mut RandomDraws) -> u64 {
        let sum: u64 = (0..AVERAGED_DRAW_COUNT)
            .map(|_| random.draw_below(self.rank_count + 1))
            .sum();
        let mean = sum.div_ceil(AVERAGED_DRAW_COUNT) as i64;
        if self.deviation_ranks == 0 {
            return (mean as u64).min(self.rank_count - 1);
        }
        let half = (self.deviation_ranks / 2) as i64;
        let mut aside = random.draw_below(self.deviation_ranks) as i64 - half;
        // What falls outside comes half as far from the mean.
        while aside != 0 && !(0..self.rank_count as i64).contains(&(mean + aside)) {
            aside /= 2;
        }
        ((mean + aside) as u64).min(self.rank_count - 1)
    }
}
