//! Distributions of requests over the blocks of an area.
//!
//! The skewed distributions draw a *rank*: rank 0 is the most popular block. Ranks are scattered
//! over the area, so that popular blocks are not neighbours, as fio does it.

use crate::program::greatest_common_divisor;
use crate::random::RandomDraws;

/// Distribution of requests over the blocks of an area, as a user specifies it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AccessDistribution {
    /// Uniform distribution over all blocks.
    Uniform,
    /// Zipf distribution: the block of rank k is drawn with probability proportional to
    /// 1/(k+1)^theta.
    Zipf {
        /// Exponent of the Zipf distribution, above 0 and not 1.
        theta: f64,
    },
    /// Self-similar distribution: a share 1-h of the requests goes to a share h of the blocks, and
    /// so on within these. h = 0.2 gives the 80/20 rule (fio's `pareto:h`).
    Pareto {
        /// Share of the blocks that get a share 1-h of the requests, above 0 and below 1.
        h: f64,
    },
    /// Normal distribution around the middle rank, with a deviation in percent of the area (fio's
    /// `normal:dev`).
    Normal {
        /// Standard deviation in percent of the area, from 0 to 100.
        deviation_percent: f64,
    },
    /// Distribution over consecutive zones, each with its share of the requests.
    Zoned(Vec<AccessZone>),
}

/// Zone of an area, with its share of the requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AccessZone {
    /// Share of the requests that address the zone, in percent.
    access_percent: f64,
    /// Share of the area that the zone covers, in percent.
    range_percent: f64,
}

impl AccessZone {
    /// Creates a zone of `range_percent` of the area that gets `access_percent` of the requests.
    pub(crate) fn new(access_percent: f64, range_percent: f64) -> Self {
        Self {
            access_percent,
            range_percent,
        }
    }
}

/// Description of the permitted distributions, for messages.
pub(crate) const ALLOWED_VALUES: &str =
    "uniform, zipf:1.1, pareto:0.2, normal:10, or zoned:60/10:30/20:10/70 (ACCESS%/RANGE%)";

impl AccessDistribution {
    /// Parses `uniform`, `zipf:THETA`, `pareto:H`, `normal:DEV` or `zoned:ACCESS/RANGE:...`.
    /// Returns `None` for any other text and for values out of range.
    pub(crate) fn parse_distribution(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let number = || rest.parse::<f64>().ok().filter(|value| value.is_finite());
        match name {
            "uniform" if rest.is_empty() => Some(Self::Uniform),
            "zipf" => number()
                .filter(|theta| *theta > 0.0 && *theta < 100.0 && (*theta - 1.0).abs() > 1e-9)
                .map(|theta| Self::Zipf { theta }),
            "pareto" => number()
                .filter(|h| *h > 0.0 && *h < 1.0)
                .map(|h| Self::Pareto { h }),
            "normal" => number()
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|deviation_percent| Self::Normal { deviation_percent }),
            "zoned" => parse_zones(rest).map(Self::Zoned),
            _ => None,
        }
    }

    /// Formats the distribution as text that [`Self::parse_distribution`] accepts.
    pub(crate) fn format_distribution(&self) -> String {
        match self {
            Self::Uniform => "uniform".to_owned(),
            Self::Zipf { theta } => format!("zipf:{theta}"),
            Self::Pareto { h } => format!("pareto:{h}"),
            Self::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
            Self::Zoned(zones) => {
                let zone =
                    |zone: &AccessZone| format!("{}/{}", zone.access_percent, zone.range_percent);
                format!(
                    "zoned:{}",
                    zones.iter().map(zone).collect::<Vec<_>>().join(":")
                )
            }
        }
    }
}

/// Parses zones whose shares of the requests, and whose shares of the area, each sum to 100 %.
/// Returns `None` otherwise.
fn parse_zones(text: &str) -> Option<Vec<AccessZone>> {
    let percent = |text: &str| {
        let value: f64 = text.parse().ok()?;
        (0.0..=100.0).contains(&value).then_some(value)
    };
    let zone = |text: &str| {
        let (access, range) = text.split_once('/')?;
        Some(AccessZone {
            access_percent: percent(access)?,
            range_percent: percent(range)?,
        })
    };
    let zones: Vec<AccessZone> = text.split(':').map(zone).collect::<Option<_>>()?;
    let sum = |of: fn(&AccessZone) -> f64| zones.iter().map(of).sum::<f64>();
    let whole = |sum: f64| (sum - 100.0).abs() < 1e-6;
    (whole(sum(|zone| zone.access_percent)) && whole(sum(|zone| zone.range_percent)))
        .then_some(zones)
}

/// Random source of the blocks of an area, by a distribution.
#[derive(Clone, Debug)]
pub(crate) struct BlockDraws {
    block_count: u64,
    rank_distribution: RankDistribution,
    /// Multiplier that scatters ranks over the blocks, modulo their number. It is coprime to that
    /// number and about 0.618 of it (the golden ratio), which scatters neighbours as far as
    /// possible.
    scatter_factor: u64,
}

#[derive(Clone, Debug)]
enum RankDistribution {
    Uniform,
    Zipf(ZipfRanks),
    Pareto {
        power: f64,
    },
    Normal {
        deviation_blocks: f64,
    },
    /// Zones in the order of their blocks.
    Zoned(Vec<ZoneBounds>),
}

impl BlockDraws {
    /// Creates the distribution for an area of `blocks` blocks, at least one.
    pub(crate) fn new(distribution: &AccessDistribution, blocks: u64) -> Self {
        let blocks = blocks.max(1);
        let ranks = match distribution {
            AccessDistribution::Uniform => RankDistribution::Uniform,
            AccessDistribution::Zipf { theta } => {
                RankDistribution::Zipf(ZipfRanks::new(blocks, *theta))
            }
            AccessDistribution::Pareto { h } => RankDistribution::Pareto {
                power: libm::log(*h) / libm::log(1.0 - h),
            },
            AccessDistribution::Normal { deviation_percent } => RankDistribution::Normal {
                deviation_blocks: blocks as f64 * deviation_percent / 100.0,
            },
            AccessDistribution::Zoned(zones) => RankDistribution::Zoned(zone_bounds(zones, blocks)),
        };
        Self {
            block_count: blocks,
            rank_distribution: ranks,
            scatter_factor: find_scatter_factor(blocks),
        }
    }

    /// Creates the distribution with the most popular blocks side by side, from the first block on.
    pub(crate) fn new_unscattered(distribution: &AccessDistribution, blocks: u64) -> Self {
        Self {
            scatter_factor: 1,
            ..Self::new(distribution, blocks)
        }
    }

    /// Draws the block that the next request addresses.
    #[inline]
    pub(crate) fn draw_block(&self, random: &mut RandomDraws) -> u64 {
        let rank = match &self.rank_distribution {
            RankDistribution::Uniform => return random.draw_below(self.block_count),
            RankDistribution::Zoned(zones) => {
                let point = random.draw_unit_interval();
                let zone = zones.iter().find(|zone| point <= zone.cumulative_share);
                let zone = zone.or(zones.last()).expect("there is a zone");
                return zone.first_block + random.draw_below(zone.block_count);
            }
            RankDistribution::Zipf(zipf) => zipf.draw_rank(random),
            RankDistribution::Pareto { power } => {
                ((self.block_count - 1) as f64 * libm::pow(random.draw_unit_interval(), *power))
                    as u64
            }
            RankDistribution::Normal { deviation_blocks } => loop {
                let rank = self.block_count as f64 / 2.0 + deviation_blocks * random.draw_normal();
                if (0.0..self.block_count as f64).contains(&rank) {
                    break rank as u64;
                }
            },
        };
        self.block_of_rank(rank)
    }

    #[inline]
    pub(crate) fn block_of_rank(&self, rank: u64) -> u64 {
        let scattered =
            u128::from(rank.min(self.block_count - 1)) * u128::from(self.scatter_factor);
        (scattered % u128::from(self.block_count)) as u64
    }
}

/// Returns the smallest number from 0.618 times `blocks` on that is coprime to `blocks`.
fn find_scatter_factor(blocks: u64) -> u64 {
    let golden = (blocks as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..)
        .find(|step| greatest_common_divisor(*step, blocks) == 1)
        .expect("a number that is coprime to another comes soon")
}

/// Blocks of a zone, with the share of the requests that they and the blocks before them receive.
#[derive(Clone, Copy, Debug)]
struct ZoneBounds {
    /// Share of the requests that address this zone or a zone before it, from 0 to 1.
    cumulative_share: f64,
    first_block: u64,
    block_count: u64,
}

fn zone_bounds(zones: &[AccessZone], blocks: u64) -> Vec<ZoneBounds> {
    let (mut upto, mut range_percent, mut first) = (0.0, 0.0, 0);
    let bound = |zone: &AccessZone| {
        upto += zone.access_percent / 100.0;
        range_percent += zone.range_percent;
        // A zone has a block at least.
        let end = (blocks as f64 * range_percent / 100.0).round() as u64;
        let start = first.min(blocks - 1);
        first = end.clamp(start + 1, blocks);
        ZoneBounds {
            cumulative_share: upto,
            first_block: start,
            block_count: first - start,
        }
    };
    zones.iter().map(bound).collect()
}

/// Random source of ranks with probability proportional to 1/(k+1)^theta. It uses
/// rejection-inversion (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from
/// monotone discrete distributions"), in constant time and memory for any number of ranks.
#[derive(Clone, Debug)]
struct ZipfRanks {
    rank_count: f64,
    zipf_exponent: f64,
    /// Integral of the hat function at 1.5, less the mass of the first rank.
    integral_min: f64,
    /// Integral of the hat function at `rank_count` + 0.5.
    integral_max: f64,
    /// Maximum distance of a point from its rank for immediate acceptance.
    acceptance_distance: f64,
}

impl ZipfRanks {
    fn new(ranks: u64, theta: f64) -> Self {
        let mut zipf = Self {
            rank_count: ranks as f64,
            zipf_exponent: theta,
            integral_min: 0.0,
            integral_max: 0.0,
            acceptance_distance: 0.0,
        };
        zipf.integral_min = zipf.density_integral(1.5) - 1.0;
        zipf.integral_max = zipf.density_integral(ranks as f64 + 0.5);
        zipf.acceptance_distance = 2.0
            - zipf.inverse_density_integral(zipf.density_integral(2.5) - zipf.power_density(2.0));
        zipf
    }

    fn power_density(&self, x: f64) -> f64 {
        libm::pow(x, -self.zipf_exponent)
    }

    fn density_integral(&self, x: f64) -> f64 {
        libm::pow(x, 1.0 - self.zipf_exponent) / (1.0 - self.zipf_exponent)
    }

    fn inverse_density_integral(&self, area: f64) -> f64 {
        libm::pow(
            area * (1.0 - self.zipf_exponent),
            1.0 / (1.0 - self.zipf_exponent),
        )
    }

    fn draw_rank(&self, random: &mut RandomDraws) -> u64 {
        loop {
            let area = self.integral_max
                + random.draw_unit_interval() * (self.integral_min - self.integral_max);
            let x = self.inverse_density_integral(area);
            let rank = libm::round(x).clamp(1.0, self.rank_count);
            if rank - x <= self.acceptance_distance
                || area >= self.density_integral(rank + 0.5) - self.power_density(rank)
            {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 1983;

    /// How often each block comes in so many draws, most often first.
    fn counts(text: &str, blocks: u64, draws: u64) -> Vec<u64> {
        let mut random = RandomDraws::new(SEED, 9);
        let drawn = BlockDraws::new(
            &AccessDistribution::parse_distribution(text).unwrap(),
            blocks,
        );
        let mut counts = vec![0; blocks as usize];
        for _ in 0..draws {
            counts[drawn.draw_block(&mut random) as usize] += 1;
        }
        counts
    }

    fn sorted(mut counts: Vec<u64>) -> Vec<u64> {
        counts.sort_unstable_by(|left, right| right.cmp(left));
        counts
    }

    #[test]
    fn texts_read_back_and_others_are_refused() {
        for text in [
            "uniform",
            "zipf:1.2",
            "pareto:0.2",
            "normal:10",
            "zoned:60/10:30/20:10/70",
        ] {
            assert_eq!(
                AccessDistribution::parse_distribution(text)
                    .unwrap()
                    .format_distribution(),
                text
            );
        }
        for text in [
            "",
            "zipf",
            "zipf:1",
            "zipf:-1",
            "zipf:nan",
            "pareto:1",
            "normal:101",
            "zoned:",
            "zoned:60/10:30/20",
            "zoned:60/60:40/60",
            "uniform:2",
            "Zipf:1.2",
        ] {
            assert_eq!(AccessDistribution::parse_distribution(text), None, "{text}");
        }
    }

    #[test]
    fn zipf_has_the_masses_of_its_formula() {
        for theta in [0.5, 0.99, 1.2, 2.0] {
            let (blocks, draws) = (1000, 400_000);
            let counts = sorted(counts(&format!("zipf:{theta}"), blocks, draws));
            let mass = |rank: u64| ((rank + 1) as f64).powf(-theta);
            let total: f64 = (0..blocks).map(mass).sum();
            for rank in [0, 1, 2, 5, 10] {
                let expected = draws as f64 * mass(rank) / total;
                let found = counts[rank as usize] as f64;
                // Five standard deviations, and a neighbour's rank may be swapped.
                let room = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (found - expected).abs() < room,
                    "{theta} {rank} {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn popular_blocks_are_scattered() {
        let counts = counts("zipf:1.2", 1000, 100_000);
        let mut popular: Vec<usize> = (0..1000).collect();
        popular.sort_by_key(|block| std::cmp::Reverse(counts[*block]));
        let apart = popular[0].abs_diff(popular[1]);
        assert!((300..700).contains(&apart), "{apart}");
    }

    #[test]
    fn pareto_gives_a_share_of_the_requests_to_the_rest_of_the_blocks() {
        // 80 % of the requests to 20 % of the blocks, and 64 % to 4 %.
        let counts = sorted(counts("pareto:0.2", 10_000, 400_000));
        let share = |blocks: usize| counts[..blocks].iter().sum::<u64>() as f64 / 400_000.0;
        assert!((share(2000) - 0.8).abs() < 0.02, "{}", share(2000));
        assert!((share(400) - 0.64).abs() < 0.02, "{}", share(400));
    }

    #[test]
    fn zones_get_their_shares() {
        let counts = counts("zoned:60/10:30/20:10/70", 1000, 100_000);
        let share = |from: usize, to: usize| counts[from..to].iter().sum::<u64>() as f64 / 1e5;
        assert!((share(0, 100) - 0.6).abs() < 0.01);
        assert!((share(100, 300) - 0.3).abs() < 0.01);
        assert!((share(300, 1000) - 0.1).abs() < 0.01);
    }

    #[test]
    fn a_single_block_is_all_there_is() {
        for text in [
            "uniform",
            "zipf:1.2",
            "pareto:0.2",
            "normal:10",
            "zoned:60/10:40/90",
        ] {
            assert_eq!(counts(text, 1, 100), [100], "{text}");
        }
    }
}
