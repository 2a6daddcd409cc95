//! Verdicts on windows that are made by hand.

use super::*;
use diskperf_timeline::{CompletedWork, Histogram, Nanoseconds};

const DEPTH: u32 = 32;
const BLOCK_BYTES: u64 = 4096;

/// Storage by the rate of requests that it gives a load in a window, in order.
struct Storage<R> {
    rate: R,
    rounds: usize,
    unloaded_us: u64,
}

impl<R: Fn(ProbedLoad, usize) -> f64> Storage<R> {
    /// Observes windows of a second that follow each other without a gap, after 5 s.
    fn observe(&self) -> CapProbe {
        let mut total = CompletedWork::default();
        let mut windows = Vec::new();
        for number in 0..3 * self.rounds {
            // Each round begins with another load.
            let load = ProbedLoad::ALL[(number + number / 3) % 3];
            let requests_per_s = (self.rate)(load, number);
            if number == 0 {
                total.requests = (5.0 * requests_per_s) as u64;
            }
            let requests = requests_per_s.round() as u64;
            let work = CompletedWork {
                requests,
                bytes: requests * BLOCK_BYTES * u64::from(load.size_factor()),
            };
            windows.push(ProbeWindow {
                load,
                start: Nanoseconds::from_millis(5000 + 1000 * number as u64),
                duration: Nanoseconds::from_millis(1000),
                requests_per_s,
                work,
                work_before: total,
            });
            total.requests += work.requests;
            total.bytes += work.bytes;
        }
        CapProbe {
            queue_depth: DEPTH,
            block_bytes: BLOCK_BYTES,
            write_share: 0.0,
            windows,
            unloaded: Histogram::from_iter([Nanoseconds(1000 * self.unloaded_us); 20]),
        }
    }

    fn judge(&self) -> CapVerdict {
        judge(&self.observe(), &[])
    }
}

fn judge(probe: &CapProbe, known_limits: &[KnownLimit]) -> CapVerdict {
    recognise_cap(CapObservations {
        probe,
        processor_share: None,
        known_limits,
    })
}

fn constant(rate: f64) -> Storage<impl Fn(ProbedLoad, usize) -> f64> {
    Storage {
        rate: move |_, _| rate,
        rounds: 20,
        unloaded_us: 200,
    }
}

/// Observes storage with a cap on requests.
pub(crate) fn observe_cap(requests_per_s: f64) -> CapProbe {
    constant(requests_per_s).observe()
}

fn cap(verdict: CapVerdict) -> Cap {
    match verdict {
        CapVerdict::Capped(cap) => *cap,
        other => panic!("{other:?}"),
    }
}

fn reason(verdict: CapVerdict) -> NoCapReason {
    match verdict {
        CapVerdict::NotCapped { reason } => reason,
        CapVerdict::Capped(cap) => panic!("{cap:?}"),
    }
}

/// Number that looks random, of mean 0 and variance 1: the sum of twelve uniform ones, each mixed
/// as SplitMix64 does.
fn noise(number: usize) -> f64 {
    let uniform = |index: u64| {
        let mut state = (12 * number as u64 + index).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((state ^ (state >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..12).map(uniform).sum::<f64>() - 6.0
}

#[test]
fn a_constant_rate_is_a_cap_and_a_slow_answer_makes_it_less_certain() {
    let found = cap(constant(3000.0).judge());
    assert_eq!((found.unit, found.per_s), (CappedUnit::Requests, 3000.0));
    assert!(found.is_certain);
    let slow = Storage {
        unloaded_us: 500,
        ..constant(3000.0)
    };
    assert!(!cap(slow.judge()).is_certain);
}

#[test]
fn a_cap_on_bytes_halves_the_requests_of_twice_the_size() {
    let storage = Storage {
        rate: |load: ProbedLoad, _| 2560.0 / f64::from(load.size_factor()),
        rounds: 20,
        unloaded_us: 200,
    };
    let found = cap(storage.judge());
    assert_eq!(found.unit, CappedUnit::Bytes);
    assert!((found.per_s - 2560.0 * 4096.0).abs() < 1.0, "{found:?}");
}

#[test]
fn devices_are_told_from_caps_by_their_reason() {
    let rate = |of: fn(ProbedLoad, usize) -> f64| {
        let storage = Storage {
            rate: of,
            rounds: 20,
            unloaded_us: 200,
        };
        reason(storage.judge())
    };
    let deeper = rate(|load, _| 2000.0 * f64::from(load.depth_factor()));
    assert!(matches!(deeper, NoCapReason::DepthMatters { ratio } if (ratio - 2.0).abs() < 0.01));
    let larger = rate(|load, _| 2000.0 * (1.0 - 0.2 * f64::from(load.size_factor() - 1)));
    assert!(matches!(larger, NoCapReason::SizeMatters { ratio } if (ratio - 0.8).abs() < 0.01));
    // Independent completions of a fast device: their rate varies by 0.7 %, and yet by chance.
    let chance = rate(|_, number| 20_000.0 + 20_000_f64.sqrt() * noise(number));
    assert!(
        matches!(chance, NoCapReason::Irregular { dispersion, .. } if dispersion > 0.5),
        "{chance:?}"
    );
}

/// The intervals of a sequence hold in 19 of 20 cases at least, so that a few may find a difference
/// where none is.
#[test]
fn noise_hides_a_cap_and_is_hardly_ever_taken_for_a_difference() {
    let is_noisy = |case: usize| {
        let storage = Storage {
            rate: move |_, number| 3000.0 * (1.0 + 0.1 * noise(1000 * case + number)),
            rounds: 20,
            unloaded_us: 200,
        };
        reason(storage.judge()) == NoCapReason::Noisy
    };
    let noisy = (0..100).filter(|case| is_noisy(*case)).count();
    assert!(noisy >= 88, "{noisy} of 100");
}

#[test]
fn stalls_of_the_machine_do_not_hide_a_cap() {
    let storage = Storage {
        rate: |_, number| if number % 17 == 5 { 1800.0 } else { 3000.0 },
        rounds: 30,
        unloaded_us: 200,
    };
    assert_eq!(cap(storage.judge()).per_s, 3000.0);
}

#[test]
fn nothing_is_claimed_from_less_than_half_a_minute_or_a_busy_generator() {
    let short = Storage {
        rounds: 9,
        ..constant(3000.0)
    };
    assert_eq!(
        reason(short.judge()),
        NoCapReason::TooShort { windows_s: 27.0 }
    );
    let probe = constant(3000.0).observe();
    let busy = recognise_cap(CapObservations {
        probe: &probe,
        processor_share: Some(0.4),
        known_limits: &[],
    });
    assert_eq!(
        reason(busy),
        NoCapReason::GeneratorBound {
            processor_share: 0.4
        }
    );
}

#[test]
fn a_burst_that_ends_shows_its_bucket() {
    // 2000 requests/s until 30 s from the start of the load, then 200: 54,000 credits.
    let storage = Storage {
        rate: |_, number| if number < 25 { 2000.0 } else { 200.0 },
        rounds: 20,
        unloaded_us: 200,
    };
    let found = cap(storage.judge());
    assert_eq!(found.per_s, 200.0);
    assert_eq!(found.outlook, CapOutlook::Steady);
    let ended = found.ended_burst.expect("an end");
    assert_eq!(
        (ended.burst_per_s, ended.end_s, ended.credits),
        (2000.0, 30.0, 54_000.0)
    );
    // An end in the middle of a window makes no difference.
    let within = Storage {
        rate: |_, number: usize| match number {
            25 => 1100.0,
            early if early < 25 => 2000.0,
            _ => 200.0,
        },
        rounds: 20,
        unloaded_us: 200,
    };
    let ended = cap(within.judge()).ended_burst.expect("an end");
    assert_eq!((ended.end_s, ended.credits), (30.5, 54_900.0));
}

#[test]
fn without_a_formula_only_small_buckets_are_excluded() {
    let storage = Storage {
        rounds: 19,
        ..constant(3000.0)
    };
    let probe = storage.observe();
    // 62 s at 3000 requests/s above a base of 300.
    assert_eq!(
        cap(judge(&probe, &[])).outlook,
        CapOutlook::Excluded {
            base_per_s: 300.0,
            credits_min: 62.0 * 2700.0
        }
    );
    let known = KnownLimit {
        owner: "gp2:100GiB".to_owned(),
        counts_bytes: false,
        covers_reads: true,
        covers_writes: true,
        per_s: 3000.0,
        base_per_s: Some(300.0),
        credits: Some(5.4e6),
    };
    let found = cap(judge(&probe, std::slice::from_ref(&known)));
    assert_eq!(found.owner, Some(known.clone()));
    assert_eq!(
        found.outlook,
        CapOutlook::Burst {
            full_credits_s: 2000.0,
            base_per_s: 300.0
        }
    );
    for other in [
        KnownLimit {
            per_s: 3200.0,
            base_per_s: None,
            ..known.clone()
        },
        KnownLimit {
            counts_bytes: true,
            ..known.clone()
        },
        KnownLimit {
            covers_reads: false,
            ..known
        },
    ] {
        assert_eq!(cap(judge(&probe, &[other])).owner, None);
    }
}
