//! Buckets at extreme rates, sizes and costs, against exact arithmetic.

use super::*;
use diskperf_device::volume::bucket::{BucketSize, PICOTOKENS, TokenBucket};
use diskperf_device::volume::charge::Charge;
use diskperf_device::volume::limit::Pacing;
use diskperf_sim::{RandomStream, RandomStreams};

/// Number of any length up to 64 bits, and at least 1.
fn draw_long(draws: &mut RandomStream) -> u64 {
    let bits = draws.draw_below(64);
    (1 << bits) | draws.draw_below(1 << bits)
}

/// Drawn size of a bucket that starts empty, and a cost.
fn draw_case(draws: &mut RandomStream) -> (BucketSize, u128) {
    let size = BucketSize {
        rate_milli: draw_long(draws),
        capacity: u128::from(draw_long(draws)) * PICOTOKENS,
        window_ns: draw_long(draws) >> draws.draw_below(63),
    };
    let size = BucketSize {
        window_ns: size.window_ns.max(1),
        ..size
    };
    (size, u128::from(draw_long(draws)) * PICOTOKENS)
}

/// Windows until an empty bucket has these tokens, as a time of any length.
fn exact_ns(size: BucketSize, tokens: u128) -> u128 {
    let of_window = u128::from(size.rate_milli) * u128::from(size.window_ns);
    tokens.div_ceil(of_window) * u128::from(size.window_ns)
}

#[test]
fn no_request_passes_before_the_exact_time_at_extreme_rates_and_sizes() {
    let draws = &mut RandomStreams::new(11).named_stream("extremes");
    let mut beyond = 0;
    for _ in 0..20_000 {
        let (size, cost) = draw_case(draws);
        let mut bucket = TokenBucket::new(size, 0);
        let exact = exact_ns(size, cost.min(size.capacity));
        let expected = u64::try_from(exact).unwrap_or(u64::MAX);
        assert_eq!(bucket.ready_at(0, cost), expected, "{size:?} {cost}");
        // The next request waits for the debt as well.
        bucket.take(0, cost);
        let exact = exact_ns(size, cost + cost.min(size.capacity));
        let expected = u64::try_from(exact).unwrap_or(u64::MAX);
        assert_eq!(bucket.ready_at(0, cost), expected, "{size:?} {cost} twice");
        beyond += u64::from(exact > u128::from(u64::MAX));
    }
    assert!(beyond > 1000, "only {beyond} waits are beyond all times");
}

#[test]
fn a_cost_that_cannot_be_counted_is_never_paid_off() {
    let slow_reads = LimitSpecification {
        kind: VolumeLimit::VolumeBytes,
        base: DirectionRates {
            read_milli: 1,
            write_milli: u64::MAX,
        },
        burst: None,
    };
    let pacing = Pacing {
        window_ns: 0,
        slack_ns: u64::MAX,
    };
    let mut limit = slow_reads.buckets(pacing).remove(0);
    let charge = Charge {
        operations: 1,
        bytes: u64::MAX,
    };
    let cost = limit.cost(charge, false);
    assert_eq!(cost, u128::MAX);
    limit.bucket.take(0, cost);
    for now in [0, 1, SECOND, u64::MAX - 1] {
        assert_eq!(limit.bucket.ready_at(now, 1), u64::MAX, "{now}");
    }
    assert!(limit.bucket.level_at(u64::MAX) < 0);
}
