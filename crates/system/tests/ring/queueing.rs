//! Open loop against what queueing theory says. These fail when a response counts from
//! another moment than the intended one, when a request waits for anything but the device,
//! and when one that arrives in a stall is left out.

use crate::open_loop::{Arrivals, offered};
use diskperf_timeline::{Histogram, Nanoseconds};

/// Deep enough that the ring is never full.
const DEEP: u32 = 400;
const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];
const MS: f64 = 1e6;

#[track_caller]
fn assert_close(what: &str, found: f64, expected: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() < 0.02, "{what}: {found} of {expected}");
}

/// Mean and percentiles of the responses, against a mean in ns and the share of responses
/// of at most so many ns.
#[track_caller]
fn assert_responses(found: &Histogram, mean: f64, at_most: impl Fn(f64) -> f64) {
    assert_close("mean", found.mean_ns(), mean);
    for percentile in PERCENTILES {
        let (mut low, mut high) = (0.0, 1000.0 * mean);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if at_most(middle) < percentile / 100.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let found = found.percentile(percentile).0 as f64;
        assert_close(&format!("p{percentile}"), found, high);
    }
}

fn apart(service_ms: f64, servers: f64, busy: f64) -> Nanoseconds {
    Nanoseconds((service_ms * MS / servers / busy) as u64)
}

/// Beyond this the terms of the sum below outgrow the digits of its result, which is 1.
const LONGEST: f64 = 25.0;

/// The share of requests that wait at most `t`, which is in services (Crommelin 1932).
fn waits_at_most(t: f64, busy: f64) -> f64 {
    if t < 0.0 {
        return 0.0;
    }
    if t > LONGEST {
        return 1.0;
    }
    let mut sum = 0.0;
    for k in 0..=t as u32 {
        let x = busy * (f64::from(k) - t);
        let factorial: f64 = (1..=k).map(f64::from).product();
        sum += x.powi(k as i32) / factorial * (-x).exp();
    }
    (1.0 - busy) * sum
}

#[test]
fn random_arrivals_at_a_constant_service_wait_as_m_d_1() {
    // The busier, the longer what happens is remembered: so many give a p99 to 0.7 %.
    for (busy, requests) in [(0.3, 200_000), (0.5, 300_000), (0.7, 1_000_000)] {
        let arrivals = Arrivals::Poisson(apart(1.0, 1.0, busy));
        let load = offered(&["drive.queue_depth=1000"], arrivals, (requests, DEEP));
        let mean = MS * (1.0 + busy / (2.0 * (1.0 - busy)));
        assert_responses(&load.read.response_times, mean, |t| {
            waits_at_most(t / MS - 1.0, busy)
        });
        assert_eq!(
            load.arrival_lag.expect("open loop").latency_max(),
            Nanoseconds::ZERO
        );
    }
}

/// The probability that all servers are busy (Erlang C), of so many at an offered load.
fn all_busy(servers: u32, load: f64) -> f64 {
    let term = |k: u32| (1..=k).map(|i| load / f64::from(i)).product::<f64>();
    let last = term(servers) * f64::from(servers) / (f64::from(servers) - load);
    last / ((0..servers).map(term).sum::<f64>() + last)
}

#[test]
fn random_arrivals_at_several_servers_wait_as_m_m_c() {
    for (servers, busy) in [(1, 0.5), (4, 0.7), (16, 0.8)] {
        let count = f64::from(servers);
        let arrivals = Arrivals::Poisson(apart(1.0, count, busy));
        let settings = [
            "drive.queue_depth=1000".to_owned(),
            "drive.service=exponential".to_owned(),
            format!("drive.servers={servers}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let load = offered(&settings, arrivals, (400_000, DEEP));
        let waits = all_busy(servers, count * busy);
        let mean = MS * (1.0 + waits / (count * (1.0 - busy)));
        // Services are in units of 1: the queue drains at `drain`.
        let drain = count * (1.0 - busy);
        assert_responses(&load.read.response_times, mean, |t| {
            let t = t / MS;
            let waited = match drain - 1.0 {
                0.0 => t * waits,
                rate => waits * (1.0 - (-rate * t).exp()) / rate,
            };
            1.0 - (-t).exp() * (1.0 + waited)
        });
    }
}

/// Arrivals at equal distances, with time to spare, do not wait at all.
#[test]
fn constant_arrivals_at_a_constant_service_do_not_wait() {
    let arrivals = Arrivals::Constant(Nanoseconds(1_250_000));
    let load = offered(&[], arrivals, (5000, 4));
    let response = load.read.response_times;
    // The recorder tells three digits apart.
    assert!(
        (999_500..=1_001_000).contains(&response.latency_min().0),
        "{response:?}"
    );
    assert_eq!(response.latency_min(), response.latency_max());
    assert_eq!(
        load.arrival_lag.expect("open loop").latency_max(),
        Nanoseconds::ZERO
    );
}

/// A device that stands still for a second: whoever arrives meanwhile waits for the rest of
/// it, whether the ring has room for them or not.
#[test]
fn a_stall_is_seen_by_all_who_arrive_in_it() {
    let seconds = 10.0;
    let settings = ["drive.service_ms=0.0001", "drive.stalls_ms=[[3000, 1000]]"];
    for depth in [1, 8, 512] {
        for arrivals in [
            Arrivals::Constant(Nanoseconds(100_000)),
            Arrivals::Poisson(Nanoseconds(100_000)),
        ] {
            let requests = (seconds * 10_000.0) as u32;
            let load = offered(&settings, arrivals, (requests, depth));
            let response = &load.read.response_times;
            for over in [0.01, 0.1, 0.25, 0.5, 0.75] {
                let longer = response.buckets().iter();
                let longer = longer.filter(|(ns, _)| *ns as f64 > over * 1e9);
                let longer: u64 = longer.map(|(_, count)| count).sum();
                let share = longer as f64 / f64::from(requests);
                let what = format!("over {over} s at depth {depth}, {arrivals:?}");
                assert_close(&what, share, (1.0 - over) / seconds);
            }
        }
    }
}
