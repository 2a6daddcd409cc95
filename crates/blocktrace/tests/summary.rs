//! Statistics of traces whose answers are known: each within 2 %, and the miss ratios of a
//! sample within 0.02 of the exact ones.

use diskperf_blocktrace::summary::{ReuseSummary, Summarizer, TraceSummary};
use diskperf_blocktrace::{DeviceIndex, TraceRecord, TracedOperation};
use std::collections::BTreeMap;

const SEED: u64 = 2007;

/// Numbers that look random: xorshift64*, for a trace that is the same everywhere.
struct Draws(u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.share() * bound as f64) as u64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }
}

fn record(issued_ns: u64, write: bool, offset_bytes: u64, length_bytes: u64) -> TraceRecord {
    TraceRecord {
        issued_ns,
        completed_ns: None,
        think_ns: None,
        operation: if write {
            TracedOperation::Write
        } else {
            TracedOperation::Read
        },
        fua: false,
        sync: false,
        device: DeviceIndex(0),
        offset_bytes,
        length_bytes,
        errno: 0,
    }
}

fn summary(records: impl IntoIterator<Item = TraceRecord>, blocks: usize) -> TraceSummary {
    let mut summarizer = Summarizer::with_sampled_blocks(blocks);
    records
        .into_iter()
        .for_each(|record| summarizer.add(&record));
    summarizer.finish(&["sda".to_owned()])
}

#[track_caller]
fn within(found: f64, wanted: f64, share: f64) {
    let off = (found - wanted).abs();
    assert!(
        off <= share * wanted.abs(),
        "{found} is not {wanted} to within {share}"
    );
}

#[test]
fn a_poisson_process_is_one_of_all_windows() {
    println!("seed {SEED}");
    let mut draws = Draws(SEED);
    let mut at = 0.0;
    let records = (0..400_000).map(|_| {
        at += draws.exponential(250_000.0);
        let service = draws.exponential(100_000.0);
        let offset = draws.below(1 << 30) * 4096;
        TraceRecord {
            completed_ns: Some((at + service) as u64),
            ..record(at as u64, draws.share() < 0.3, offset, 4096)
        }
    });
    let found = summary(records, 1 << 14);
    let arrivals = found.arrivals.expect("many");
    within(arrivals.gaps_ns.mean, 250_000.0, 0.02);
    within(arrivals.coefficient_of_variation, 1.0, 0.02);
    within(
        arrivals.gaps_ns.p99.expect("many gaps"),
        250_000.0 * 100f64.ln(),
        0.02,
    );
    for window in &arrivals.dispersion {
        // 100 windows of a second tell it to within a seventh.
        let share = if window.window_ms >= 1000 { 0.5 } else { 0.1 };
        within(window.index, 1.0, share);
    }
    // Little: the rate times the mean response.
    let depth = found.depth.expect("completions");
    within(depth.mean, 0.4, 0.02);
    let reads = &found.operations[0];
    within(reads.response_ns.expect("reads").mean, 100_000.0, 0.02);
    within(reads.totals.requests as f64, 280_000.0, 0.02);
    let in_series: u64 = found
        .series
        .intervals
        .iter()
        .map(|of| of.read_requests + of.write_requests)
        .sum();
    assert_eq!(in_series, 400_000);
}

#[test]
fn bursts_and_a_clock_are_told_from_it() {
    let clock = (0..100_000).map(|number| record(number * 1_000_000, false, 0, 512));
    let found = summary(clock, 64).arrivals.expect("many");
    assert!(found.coefficient_of_variation < 0.01);
    assert!(
        found.dispersion.iter().all(|window| window.index < 0.02),
        "{found:?}"
    );
    within(found.peak_over_mean.expect("seconds"), 1.0, 0.02);
    // On for a second at 2000 a second, off for three.
    let bursts = (0..100u64).flat_map(|burst| {
        (0..2000).map(move |number| record(burst * 4_000_000_000 + number * 500_000, false, 0, 512))
    });
    let found = summary(bursts, 64).arrivals.expect("many");
    within(found.idle_seconds_share.expect("seconds"), 0.75, 0.02);
    within(found.peak_over_mean.expect("seconds"), 4.0, 0.02);
    let of_a_second = found
        .dispersion
        .iter()
        .find(|window| window.window_ms == 1000);
    // The mean is 500 a second, the variance 3/16 of 2000 squared.
    within(of_a_second.expect("many").index, 1500.0, 0.02);
}

#[test]
fn runs_and_streams_and_sizes_are_counted() {
    let mut at = 0;
    let mut records = Vec::new();
    // Runs of 8 requests each at a place of its own, of two devices in turn.
    for run in 0..4000u64 {
        for number in 0..8 {
            for device in 0..2 {
                at += 1000;
                let offset = run * (1 << 30) + number * 8192;
                records.push(TraceRecord {
                    device: DeviceIndex(device),
                    ..record(at, device == 1, offset, 8192)
                });
            }
        }
    }
    let found = summary(records, 1 << 14);
    within(found.locality.strictly_sequential_share, 7.0 / 8.0, 0.02);
    within(found.locality.stream_sequential_share, 7.0 / 8.0, 0.02);
    within(found.locality.run_length_mean, 8.0, 0.02);
    assert_eq!(found.sizes[0].bytes, 8192);
    assert_eq!(found.aligned_4096_share, 1.0);
    assert_eq!(found.devices.len(), 2);
    let reuse = found.reuse.expect("blocks are followed");
    within(reuse.footprint_blocks, 2.0 * 4000.0 * 16.0, 0.02);
    within(reuse.first_use_share, 1.0, 0.02);
}

/// Blocks by a Zipf distribution of exponent 1 over so many.
fn zipf(draws: &mut Draws, blocks: u64) -> u64 {
    // The inverse of the continuous one.
    let of = ((blocks as f64 + 1.0).ln() * draws.share()).exp();
    // Ranks are no places.
    (of as u64 - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 40)
}

/// Of all uses of blocks, how many have each distance, and how many are the first: the stack of
/// Mattson, with a tree over the times of all uses.
fn stack_distances(blocks: &[u64]) -> (BTreeMap<u64, u64>, u64) {
    let mut last: BTreeMap<u64, usize> = BTreeMap::new();
    let mut tree = vec![0i64; blocks.len() + 1];
    let change = |tree: &mut Vec<i64>, time: usize, by: i64| {
        let mut at = time + 1;
        while at < tree.len() {
            tree[at] += by;
            at += at & at.wrapping_neg();
        }
    };
    let up_to = |tree: &[i64], time: usize| {
        let (mut at, mut sum) = (time + 1, 0);
        while at > 0 {
            sum += tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    };
    let (mut distances, mut first) = (BTreeMap::new(), 0);
    for (time, block) in blocks.iter().enumerate() {
        match last.insert(*block, time) {
            Some(before) => {
                let distance = last.len() as i64 - up_to(&tree, before);
                *distances.entry(distance as u64).or_default() += 1;
                change(&mut tree, before, -1);
            }
            None => first += 1,
        }
        change(&mut tree, time, 1);
    }
    (distances, first)
}

/// The greatest error of a curve, at any size of a cache.
fn greatest_error(found: &ReuseSummary, blocks: &[u64]) -> f64 {
    let (distances, first) = stack_distances(blocks);
    let errors = found.miss_ratios.iter().map(|point| {
        let cache = point.cache_bytes / 4096;
        let far: u64 = distances.range(cache..).map(|(_, count)| count).sum();
        let exact = (far + first) as f64 / blocks.len() as f64;
        (point.share - exact).abs()
    });
    errors.fold(0.0, f64::max)
}

fn reuse_of(blocks: &[u64], most: usize) -> ReuseSummary {
    let of = |block: &u64| record(0, false, block * 4096, 4096);
    summary(blocks.iter().map(of), most)
        .reuse
        .expect("blocks are followed")
}

/// A sample of as many blocks as is usual, from a hundredth of all on: fewer tell no footprint to
/// within 2 %, and with it no size of a cache.
#[track_caller]
fn sample_is_like_all(blocks: &[u64]) {
    const SAMPLED: usize = 8192;
    let all = reuse_of(blocks, 1 << 19);
    assert_eq!(all.sampled_share, 1.0);
    let error = greatest_error(&all, blocks);
    assert!(error < 0.004, "of all blocks: {error}");
    let found = reuse_of(blocks, SAMPLED);
    let share = found.sampled_share;
    assert!((0.01..0.1).contains(&share), "{share}");
    let error = greatest_error(&found, blocks);
    assert!(error < 0.02, "of a share of {share}: {error}");
    within(found.footprint_blocks, all.footprint_blocks, 0.03);
    let (hot, exact) = (found.hottest_percent_share, all.hottest_percent_share);
    assert!((hot - exact).abs() < 0.02, "{hot} is not {exact}");
}

#[test]
fn miss_ratios_of_a_sample_are_those_of_all() {
    println!("seed {SEED}");
    let mut draws = Draws(SEED);
    let skewed: Vec<u64> = (0..800_000).map(|_| zipf(&mut draws, 1_000_000)).collect();
    sample_is_like_all(&skewed);
    let flat: Vec<u64> = (0..800_000).map(|_| draws.below(500_000)).collect();
    sample_is_like_all(&flat);
}

#[test]
fn the_hottest_blocks_are_those_of_zipf() {
    println!("seed {SEED}");
    let mut draws = Draws(SEED);
    let blocks: Vec<u64> = (0..800_000).map(|_| zipf(&mut draws, 20_000)).collect();
    // Exponent 1: the first of so many blocks have a share that grows with the logarithm.
    let wanted = 201f64.ln() / 20_001f64.ln();
    within(
        reuse_of(&blocks, 1 << 15).hottest_percent_share,
        wanted,
        0.02,
    );
}

#[test]
fn requests_that_go_on_are_told_from_those_that_jump() {
    println!("seed {SEED}");
    let mut draws = Draws(SEED);
    let mut next = 0;
    let mixed = (0..100_000).map(|number| {
        let goes_on = draws.share() < 0.6;
        let offset = if goes_on {
            next
        } else {
            draws.below(1 << 28) * 4096
        };
        next = offset + 8192;
        record(number * 1000, false, offset, 8192)
    });
    let found = summary(mixed, 64).locality;
    within(found.strictly_sequential_share, 0.6, 0.02);
    within(found.run_length_mean, 2.5, 0.02);
    // As many streams as are followed, in turn; and one more.
    for (streams, wanted) in [(32, 1.0), (33, 0.0)] {
        let in_turn = (0..100_000u64).map(|number| {
            let offset = ((number % streams) << 36) + number / streams * 8192;
            record(number * 1000, false, offset, 8192)
        });
        let found = summary(in_turn, 64).locality;
        assert_eq!(found.strictly_sequential_share, 0.0);
        assert!(
            (found.stream_sequential_share - wanted).abs() < 0.01,
            "{found:?}"
        );
    }
}

#[test]
fn a_loop_is_missed_until_it_fits() {
    let records = (0..40_000u64).map(|number| record(number, true, number % 1000 * 4096, 4096));
    let found = summary(records, 4096).reuse.expect("blocks are followed");
    let share = |blocks: u64| {
        let point = found
            .miss_ratios
            .iter()
            .find(|of| of.cache_bytes == blocks * 4096);
        point.expect("that size").share
    };
    assert_eq!(found.footprint_blocks, 1000.0);
    assert_eq!((share(512), share(896)), (1.0, 1.0));
    within(share(1024), 0.025, 0.02);
    assert_eq!((found.read_blocks, found.written_blocks), (0.0, 1000.0));
}
