//! Request generators, which choose the block of the area that the next request addresses.

use super::LoadRequest;
use super::distribution::{AccessDistribution, BlockDraws};
use super::permutation::Permutation;
use crate::parameter::SizeMix;
use crate::random::RandomDraws;

const REQUEST_STREAM: u128 = 4;

#[derive(Clone, Debug)]
pub(crate) struct RandomRequests<'a> {
    size_mix: &'a SizeMix,
    size_weight_total: u64,
    write_share: f64,
    align_bytes: u64,
    area_start_bytes: u64,
    offset_order: OffsetOrder,
    random: RandomDraws,
}

#[derive(Clone, Debug)]
enum OffsetOrder {
    RandomDraws(BlockDraws),
    /// Offsets that cover each block once before any block repeats, in another order in every
    /// round.
    EachBlockOnce {
        order: Permutation,
        blocks: u64,
        next: u64,
        seed: u64,
    },
}

/// Parameters of the choice of random offsets.
pub(crate) struct RandomOffsetOptions<'a> {
    pub(crate) access_distribution: &'a AccessDistribution,
    pub(crate) each_block_once: bool,
    pub(crate) align_bytes: u64,
}

impl<'a> RandomRequests<'a> {
    /// Creates a generator of requests of the given sizes in the area of `area_bytes` that begins
    /// at `first_bytes`.
    pub(crate) fn new(
        (sizes, write_share): (&'a SizeMix, f64),
        choice: &RandomOffsetOptions<'_>,
        (first_bytes, area_bytes): (u64, u64),
        seed: u64,
    ) -> Self {
        let room_bytes = area_bytes.saturating_sub(sizes.size_bytes_max());
        let blocks = room_bytes / choice.align_bytes + 1;
        let places = match choice.each_block_once {
            false => OffsetOrder::RandomDraws(BlockDraws::new(choice.access_distribution, blocks)),
            true => OffsetOrder::EachBlockOnce {
                order: Permutation::new(blocks, seed),
                blocks,
                next: 0,
                seed,
            },
        };
        Self {
            size_mix: sizes,
            size_weight_total: sizes.weight_total(),
            write_share,
            align_bytes: choice.align_bytes,
            area_start_bytes: first_bytes,
            offset_order: places,
            random: RandomDraws::new(seed, REQUEST_STREAM),
        }
    }

    #[inline]
    pub(crate) fn draw_request(&mut self) -> LoadRequest {
        let bytes = draw_size(self.size_mix, self.size_weight_total, &mut self.random);
        let write = draw_is_write(self.write_share, &mut self.random);
        let block = match &mut self.offset_order {
            OffsetOrder::RandomDraws(blocks) => blocks.draw_block(&mut self.random),
            OffsetOrder::EachBlockOnce {
                order,
                blocks,
                next,
                seed,
            } => {
                if *next == *blocks {
                    *next = 0;
                    *seed = seed.wrapping_add(1);
                    *order = Permutation::new(*blocks, *seed);
                }
                *next += 1;
                order.permuted_number(*next - 1)
            }
        };
        LoadRequest {
            is_write: write,
            offset_bytes: self.area_start_bytes + block * self.align_bytes,
            bytes,
        }
    }
}

/// Generator of sequential requests. Reads and writes each walk through the area from its start,
/// and wrap around at its end.
#[derive(Clone, Debug)]
pub(crate) struct SequentialRequests<'a> {
    size_mix: &'a SizeMix,
    size_weight_total: u64,
    write_share: f64,
    skip_bytes: u64,
    area_start_bytes: u64,
    area_end_bytes: u64,
    /// Next offset of the reads, and of the writes, in bytes.
    next_bytes: [u64; 2],
    random: RandomDraws,
}

impl<'a> SequentialRequests<'a> {
    /// Creates a generator of sequential requests of the given sizes that leaves a gap of
    /// `skip_bytes` after each request.
    pub(crate) fn new(
        (sizes, write_share): (&'a SizeMix, f64),
        skip_bytes: u64,
        (first_bytes, area_bytes): (u64, u64),
        seed: u64,
    ) -> Self {
        Self {
            size_mix: sizes,
            size_weight_total: sizes.weight_total(),
            write_share,
            skip_bytes,
            area_start_bytes: first_bytes,
            area_end_bytes: first_bytes + area_bytes,
            next_bytes: [first_bytes; 2],
            random: RandomDraws::new(seed, REQUEST_STREAM),
        }
    }

    #[inline]
    pub(crate) fn draw_request(&mut self) -> LoadRequest {
        let bytes = draw_size(self.size_mix, self.size_weight_total, &mut self.random);
        let write = draw_is_write(self.write_share, &mut self.random);
        let next_bytes = &mut self.next_bytes[usize::from(write)];
        if *next_bytes + u64::from(bytes) > self.area_end_bytes {
            *next_bytes = self.area_start_bytes;
        }
        let offset_bytes = *next_bytes;
        *next_bytes += u64::from(bytes) + self.skip_bytes;
        LoadRequest {
            is_write: write,
            offset_bytes,
            bytes,
        }
    }
}

#[inline]
fn draw_size(sizes: &SizeMix, total_weight: u64, random: &mut RandomDraws) -> u32 {
    let bytes = match sizes.only_size() {
        Some(bytes) => bytes,
        None => sizes.size_bytes_at_weight(random.draw_below(total_weight)),
    };
    bytes as u32
}

#[inline]
fn draw_is_write(share: f64, random: &mut RandomDraws) -> bool {
    share > 0.0 && (share >= 1.0 || random.draw_with_probability(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 1983;

    fn random(sizes: &SizeMix, each_once: bool, area_bytes: u64) -> RandomRequests<'_> {
        let choice = RandomOffsetOptions {
            access_distribution: &AccessDistribution::Uniform,
            each_block_once: each_once,
            align_bytes: 4096,
        };
        RandomRequests::new((sizes, 0.3), &choice, (8192, area_bytes), SEED)
    }

    #[test]
    fn random_requests_stay_in_the_area_and_keep_to_the_mix() {
        let sizes = SizeMix::new(&[(4096, 3), (16384, 1)]);
        let mut requests = random(&sizes, false, 1 << 20);
        let drawn: Vec<_> = (0..20_000).map(|_| requests.draw_request()).collect();
        for request in &drawn {
            assert!(request.offset_bytes >= 8192, "{request:?}");
            let end = request.offset_bytes + u64::from(request.bytes);
            assert!(end <= 8192 + (1 << 20), "{request:?}");
            assert_eq!(request.offset_bytes % 4096, 0);
        }
        let share =
            |keep: fn(&&LoadRequest) -> bool| drawn.iter().filter(keep).count() as f64 / 2e4;
        assert!((share(|request| request.is_write) - 0.3).abs() < 0.02);
        assert!((share(|request| request.bytes == 4096) - 0.75).abs() < 0.02);
    }

    #[test]
    fn each_once_is_a_new_order_every_pass() {
        let sizes = SizeMix::new(&[(4096, 1)]);
        let mut requests = random(&sizes, true, 256 * 4096);
        let mut pass = || -> Vec<u64> {
            (0..256)
                .map(|_| requests.draw_request().offset_bytes)
                .collect()
        };
        let (first, second) = (pass(), pass());
        assert_ne!(first, second);
        for mut offsets in [first, second] {
            offsets.sort_unstable();
            let all: Vec<u64> = (0..256).map(|block| 8192 + block * 4096).collect();
            assert_eq!(offsets, all);
        }
    }

    #[test]
    fn drawing_with_repeats_leaves_out_a_share_of_1_over_e() {
        let sizes = SizeMix::new(&[(4096, 1)]);
        let mut requests = random(&sizes, false, 256 * 4096);
        let drawn = (0..256).map(|_| requests.draw_request().offset_bytes);
        let distinct = drawn.collect::<std::collections::BTreeSet<_>>().len();
        // 256 * (1 - 1/e) = 161.8, with a standard deviation of about 5.
        assert!((142..182).contains(&distinct), "{distinct}");
    }

    #[test]
    fn reads_and_writes_walk_apart_and_begin_again() {
        let sizes = SizeMix::new(&[(8192, 1)]);
        let mut requests = SequentialRequests::new((&sizes, 0.5), 4096, (0, 32768), SEED);
        let drawn: Vec<_> = (0..100).map(|_| requests.draw_request()).collect();
        for write in [false, true] {
            let offsets = drawn.iter().filter(|request| request.is_write == write);
            let offsets: Vec<u64> = offsets.map(|request| request.offset_bytes).collect();
            assert_eq!(offsets[..4], [0, 12288, 24576, 0], "write: {write}");
        }
    }
}
