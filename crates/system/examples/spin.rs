//! How late a thread is that does nothing but look at the clock until the next of equally
//! spaced moments: what no generator of load does better on this machine.
//!
//!     spin REQUESTS_PER_S SECONDS

use diskperf_timeline::{LatencyRecorder, Nanoseconds};
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| -> u64 {
        let number = arguments.next().and_then(|text| text.parse().ok());
        number.unwrap_or_else(|| panic!("spin REQUESTS_PER_S SECONDS: no {what}"))
    };
    let (rate, seconds) = (next("REQUESTS_PER_S"), next("SECONDS"));
    let mut lags = LatencyRecorder::default();
    let start = Instant::now();
    for number in 0..rate * seconds {
        let due = start + Duration::from_nanos(number * 1_000_000_000 / rate);
        while Instant::now() < due {}
        // As a request that is issued now has it: the moment is read once more.
        let lag = Instant::now().duration_since(due);
        lags.record_latency(Nanoseconds(lag.as_nanos() as u64));
    }
    let lags = lags.to_histogram();
    let us = |percentile: f64| lags.percentile(percentile).0 as f64 / 1e3;
    println!(
        "{{\"p50_us\": {}, \"p99_us\": {}, \"max_us\": {}}}",
        us(50.0),
        us(99.0),
        lags.latency_max().0 as f64 / 1e3
    );
}
