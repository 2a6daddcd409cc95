use super::*;
use crate::fixtures::{build_result, read_repetition, write_repetition};
use diskperf_timeline::units::MIB;

fn close(got: f64, expected: f64) {
    assert!(
        (got / expected - 1.0).abs() < 1e-6,
        "{got} is not {expected}"
    );
}

#[test]
fn a_median_takes_each_figure_by_itself_and_a_minimum_one_repetition() {
    // (KB/s, CPU %): the fastest is not the one with the median CPU share.
    let mut one = build_result(
        "read",
        0,
        [(100.0, 10.0), (400.0, 30.0), (200.0, 90.0)]
            .map(|(kb, cpu)| read_repetition(MIB, kb, cpu))
            .to_vec(),
    );
    let median = ResultSummary::from_result(&one);
    close(median.kb_per_s, 200.0);
    close(median.cpu_percent, 30.0);
    close(median.elapsed_s, 1024.0 / 200.0);
    assert!(median.speed_interval.is_some());
    one.protocol.statistic = SummaryStatistic::Minimum;
    let minimum = ResultSummary::from_result(&one);
    close(minimum.kb_per_s, 400.0);
    close(minimum.cpu_percent, 30.0);
    close(minimum.system_s + minimum.user_s, 0.3 * 1024.0 / 400.0);
    assert_eq!(minimum.speed_interval, None);
    assert_eq!((median.kept_count, minimum.kept_count), (3, 3));
}

#[test]
fn the_discarded_do_not_count() {
    let mut repetitions = vec![
        write_repetition(MIB, 10.0, 10.0),
        write_repetition(MIB, 300.0, 50.0),
    ];
    repetitions[0].is_discarded = true;
    let summary = ResultSummary::from_result(&build_result("write", 0, repetitions));
    assert_eq!(summary.kept_count, 1);
    close(summary.kb_per_s, 300.0);
    close(summary.durable_kb_per_s.unwrap(), 100.0);
    close(summary.durable_elapsed_s.unwrap(), 3.0 * summary.elapsed_s);
    assert_eq!(
        (
            summary.speed_interval,
            summary.read_latency,
            summary.device_share
        ),
        (None, None, None)
    );
    let latency = summary.write_latency.unwrap();
    assert_eq!((latency.call_count, summary.call_count), (128, 128.0));
    assert!(latency.p50_ns < latency.p99_ns && latency.p99_ns <= Some(latency.max_ns));
    // 128 calls do not tell one in a thousand.
    assert_eq!((latency.p99_9_ns, latency.p99_99_ns), (None, None));
}

#[test]
fn latencies_are_merged_over_workers_and_repetitions() {
    let mut two = read_repetition(MIB, 100.0, 1.0);
    let worker = two.workers[0].clone();
    two.workers.push(worker);
    let summary = ResultSummary::from_result(&build_result(
        "read",
        0,
        vec![two, read_repetition(MIB, 100.0, 1.0)],
    ));
    assert_eq!(summary.read_latency.unwrap().call_count, 3 * 128);
}

#[test]
fn the_generator_is_the_limit_above_one_half() {
    for (call_ns, null_call_ns, share) in [
        (1000, 400.0, None),
        (1000, 500.0, None),
        (1000, 600.0, Some(0.6)),
        (100, 600.0, Some(1.0)),
        (0, 600.0, None),
    ] {
        let worker = WorkerMeasure {
            elapsed_time: Nanoseconds(10 * call_ns),
            call_count: 10,
            ..WorkerMeasure::default()
        };
        let repetition = Repetition {
            workers: vec![worker],
            ..Repetition::default()
        };
        let summary = ResultSummary::from_result(&build_result("read", 0, vec![repetition]));
        let overhead = Overhead {
            null_call_ns,
            timing_ns: 20.0,
        };
        assert_eq!(
            generator_share_if_limiting(&summary, &overhead),
            share,
            "{call_ns} {null_call_ns}"
        );
    }
}
