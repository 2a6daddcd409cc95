//! Statistics of traces whose answers are known: each within 2 %, and the miss ratios of a
//! sample within 0.02 of the exact ones.

use diskperf_blocktrace::summary::{Summarizer, Summary};
use diskperf_blocktrace::{DeviceIndex, Operation, Record};
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

fn record(issued_ns: u64, write: bool, offset_bytes: u64, length_bytes: u64) -> Record {
    Record {
        issued_ns,
        completed_ns: None,
        think_ns: None,
        operation: if write {
            Operation::Write
        } else {
            Operation::Read
        },
        fua: false,
        sync: false,
        device: DeviceIndex(0),
        offset_bytes,
        length_bytes,
        errno: 0,
    }
}

fn summary(records: impl IntoIterator<Item = Record>, blocks: usize) -> Summary {
    let mut summarizer = Summarizer::sampling(blocks);
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
        Record {
            completed_ns: Some((at + service) as u64),
            ..record(at as u64, draws.share() < 0.3, offset, 4096)
        }
    });
    let found = summary(records, 1 << 14);
    let arrivals = found.arrivals.expect("many");
    within(arrivals.gaps_ns.mean, 250_000.0, 0.02);
    within(arrivals.coefficient_of_variation, 1.0, 0.02);
    within(arrivals.gaps_ns.p99, 250_000.0 * 100f64.ln(), 0.02);
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
    within(reads.moved.requests as f64, 280_000.0, 0.02);
    let in_series: u64 = found
        .series
        .intervals
        .iter()
        .map(|of| of.reads + of.writes)
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
                records.push(Record {
                    device: DeviceIndex(device),
                    ..record(at, device == 1, offset, 8192)
                });
            }
        }
    }
    let found = summary(records, 1 << 14);
    within(found.locality.strict_share, 7.0 / 8.0, 0.02);
    within(found.locality.stream_share, 7.0 / 8.0, 0.02);
    within(found.locality.run_requests, 8.0, 0.02);
    assert_eq!(found.sizes[0].bytes, 8192);
    assert_eq!(found.aligned_4096_share, 1.0);
    assert_eq!(found.devices.len(), 2);
    within(found.reuse.footprint_blocks, 2.0 * 4000.0 * 16.0, 0.02);
    within(found.reuse.first_use_share, 1.0, 0.02);
}

/// Blocks by a Zipf distribution of exponent 1 over so many.
fn zipf(draws: &mut Draws, blocks: u64) -> u64 {
    // The inverse of the continuous one.
    let of = ((blocks as f64 + 1.0).ln() * draws.share()).exp();
    // Ranks are no places.
    (of as u64 - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 40)
}

/// Mattson's stack, one by one.
fn exact(blocks: &[u64], cache: u64) -> f64 {
    let mut last: BTreeMap<u64, usize> = BTreeMap::new();
    let mut by_time: std::collections::BTreeSet<usize> = Default::default();
    let mut misses = 0;
    for (time, block) in blocks.iter().enumerate() {
        let distance = last.insert(*block, time).map(|before| {
            by_time.remove(&before);
            by_time.range(before..).count() as u64
        });
        by_time.insert(time);
        misses += u64::from(distance.is_none_or(|distance| distance >= cache));
    }
    misses as f64 / blocks.len() as f64
}

#[test]
fn miss_ratios_of_a_sample_are_those_of_all() {
    println!("seed {SEED}");
    let mut draws = Draws(SEED);
    let blocks: Vec<u64> = (0..60_000).map(|_| zipf(&mut draws, 20_000)).collect();
    let of = |most| {
        let records = blocks
            .iter()
            .map(|block| record(0, false, block * 4096, 4096));
        summary(records, most).reuse
    };
    let all = of(1 << 15);
    assert_eq!(all.sampled_share, 1.0);
    for cache in [64u64, 512, 4096, 16_384] {
        let exact = exact(&blocks, cache);
        let at = |of: &diskperf_blocktrace::summary::ReuseSummary| {
            let point = of
                .miss_ratios
                .iter()
                .find(|point| point.cache_bytes == cache * 4096);
            point.map_or(of.first_use_share, |point| point.share)
        };
        let found = at(&all);
        assert!(
            (found - exact).abs() < 0.004,
            "{cache}: {found} and {exact}"
        );
        // A tenth of the blocks, and fewer.
        let sampled = of(1500);
        assert!(sampled.sampled_share < 0.2 && sampled.sampled_share > 0.01);
        let found = at(&sampled);
        assert!(
            (found - exact).abs() < 0.02,
            "{cache} of a sample: {found} and {exact}"
        );
        within(sampled.footprint_blocks, all.footprint_blocks, 0.04);
    }
    // Of Zipf's law with exponent 1, the hottest hundredth has ln(N/100)/ln(N) and more.
    assert!(
        all.hottest_percent_share > 0.4,
        "{}",
        all.hottest_percent_share
    );
}

#[test]
fn a_loop_is_missed_until_it_fits() {
    let records = (0..40_000u64).map(|number| record(number, true, number % 1000 * 4096, 4096));
    let found = summary(records, 4096).reuse;
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
