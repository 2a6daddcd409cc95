//! Requests that arrive by the clock, on a modelled device of which everything is known.

use crate::bench::{machine_of, program, run_workers, work, worker};
use diskperf_battery::{Medium, Worker};
use diskperf_machine::RunConditions;
use diskperf_system::System;

/// Between two arrivals nothing is under way: time passes until the next one.
#[test]
fn all_that_arrive_are_served() {
    for (name, spacing, depth) in [
        ("random", "constant", "1"),
        ("random", "poisson", "32"),
        ("sequential", "constant", "4"),
    ] {
        let program = program(
            name,
            &[
                ("area_bytes", "1M"),
                ("block_bytes", "4096"),
                ("depth", depth),
                ("rate_iops", "100"),
                ("arrivals", spacing),
                ("duration_ms", "10000"),
            ],
        );
        let machine = machine_of(("bare-fixed", &[]), RunConditions::default());
        let measures = run_workers(&machine, 1, async move |system: &mut System, index| {
            let worker = Worker {
                medium: Medium::Device,
                second_target: None,
                direct_io: true,
                ..worker(index)
            };
            work(system, &program, &worker).await
        });
        let load = measures[0].load_measure.as_ref().expect("it has a ring");
        let lag = load.arrival_lag.as_ref().expect("arrivals do not wait");
        let count = load.read.request_count();
        assert_eq!(lag.latency_count(), count, "{name}, {spacing}");
        match spacing {
            "constant" => assert_eq!(count, 1000, "{name}"),
            // Seed 1; five standard deviations to each side.
            _ => assert!((842..=1158).contains(&count), "{name}, {spacing}: {count}"),
        }
        assert_eq!(load.unfinished_count, 0, "{name}, {spacing}");
    }
}
