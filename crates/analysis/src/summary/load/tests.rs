use super::*;
use crate::fixtures::RandomNoise;
use crate::fixtures::build_result;
use crate::fixtures::load::{LoadFixture, READ_LOAD};
use crate::summary::ResultSummary;
use diskperf_timeline::{SeriesPoint, WorkerMeasure};

fn of(repetitions: Vec<Repetition>) -> LoadSummary {
    ResultSummary::from_result(&build_result("random", 0, repetitions))
        .load
        .unwrap()
}

fn at_rate(iops: f64, response_us: f64) -> Repetition {
    let load = LoadFixture {
        iops,
        response_us,
        ..READ_LOAD
    };
    load.build_repetition(&mut RandomNoise::new(7))
}

#[test]
fn rates_and_percentiles_are_medians_and_the_tail_is_of_all_requests() {
    let three = vec![
        at_rate(1000.0, 300.0),
        at_rate(4000.0, 100.0),
        at_rate(2000.0, 200.0),
    ];
    let each: Vec<LoadSummary> = three.iter().map(|one| of(vec![one.clone()])).collect();
    let all = of(three);
    assert_eq!(all.iops, 2000.0);
    assert!(all.iops_interval.unwrap().contains(2000.0));
    let [slow, _, middle] = &each[..] else {
        unreachable!("there are three")
    };
    let p99 = |one: &LoadSummary| one.response.as_ref().unwrap().p99_us;
    let p99_9 = |one: &LoadSummary| one.response.as_ref().unwrap().p99_9_us;
    assert_eq!(p99(&all), p99(middle));
    assert_eq!(
        p99_9(&all).is_some(),
        all.response.as_ref().unwrap().request_count >= 1000
    );
    let longest = |one: &LoadSummary| one.response.as_ref().unwrap().max_us;
    assert_eq!(longest(&all), longest(slow));
    assert_eq!((all.series_repetition, all.series.len()), (2, 3));
    assert_eq!(all.series[1].iops, 2000.0);
    assert_eq!(all.read_share, Some(1.0));
}

#[test]
fn the_middle_of_two_times_is_that_of_their_rates() {
    assert_eq!(median_of_times(&[3.0, 1.0, 2.0]), Some(2.0));
    let two = median_of_times(&[1.0, 3.0]).unwrap();
    let rate = median(&[1.0, 1.0 / 3.0]).unwrap();
    assert!((two * rate - 1.0).abs() < 1e-12);
    assert_eq!(median_of_times(&[]), None);
}

#[test]
fn percentiles_of_too_few_requests_are_absent() {
    let mut load = LoadMeasure::default();
    load.sync.response_times = vec![(1_000, 60)].into();
    let one = || Repetition {
        workers: vec![WorkerMeasure {
            elapsed_time: Nanoseconds::from_millis(2000),
            load_measure: Some(load.clone()),
            ..WorkerMeasure::default()
        }],
        ..Repetition::default()
    };
    let alone = of(vec![one()]);
    // Syncs alone are what counts of a program that does nothing else.
    assert_eq!(alone.iops, 30.0);
    let response = alone.response.unwrap();
    assert_eq!((response.p50_us, response.p99_us), (Some(1.0), None));
    // None of them tells by itself, and both together do.
    let both = of(vec![one(), one()]).response.unwrap();
    assert_eq!((both.p99_us, both.p99_interval), (Some(1.0), None));
    assert_eq!((both.p99_9_us, both.request_count), (None, 120));
    assert_eq!(alone.read_share, None);
}

/// Workers' intervals are added, each at its own length, but for the last short ones.
#[test]
fn a_series_is_that_of_all_workers() {
    let worker = |elapsed_ms: u64, reads: &[u64]| WorkerMeasure {
        elapsed_time: Nanoseconds::from_millis(elapsed_ms),
        load_measure: Some(LoadMeasure {
            series_interval: Nanoseconds::from_millis(100),
            time_series: reads
                .iter()
                .map(|reads| SeriesPoint {
                    read_count: *reads,
                    read_bytes: reads * 1_000,
                    response_times: vec![(5_000, *reads)].into(),
                    ..SeriesPoint::default()
                })
                .collect(),
            ..LoadMeasure::default()
        }),
        ..WorkerMeasure::default()
    };
    let repetition = Repetition {
        workers: vec![worker(260, &[10, 20, 6]), worker(330, &[100, 90, 80, 1])],
        ..Repetition::default()
    };
    let series = build_series(&repetition);
    let rates: Vec<(f64, f64)> = series.iter().map(|one| (one.start_s, one.iops)).collect();
    assert_eq!(rates, [(0.0, 1100.0), (0.1, 1100.0), (0.2, 900.0)]);
    assert_eq!(series[0].mb_per_s, 1.1);
    let p99s: Vec<Option<f64>> = series.iter().map(|one| one.p99_us).collect();
    assert_eq!(p99s, [Some(5.0), Some(5.0), None]);
}

/// A worker whose intervals became longer has the same moments in them.
#[test]
fn a_course_has_the_longest_intervals_of_its_workers() {
    let worker = |interval_ms: u64, points: usize| WorkerMeasure {
        elapsed_time: Nanoseconds::from_millis(800),
        load_measure: Some(LoadMeasure {
            series_interval: Nanoseconds::from_millis(interval_ms),
            time_series: vec![
                SeriesPoint {
                    read_count: interval_ms,
                    response_times: vec![(interval_ms * 1_000, 100)].into(),
                    ..SeriesPoint::default()
                };
                points
            ],
            ..LoadMeasure::default()
        }),
        ..WorkerMeasure::default()
    };
    let repetition = Repetition {
        workers: vec![worker(100, 8), worker(200, 4)],
        ..Repetition::default()
    };
    let figures = |most| {
        let course = build_rate_series(&repetition, most);
        let of = |one: &SeriesFigures| (one.start_s, one.iops.round(), one.p99_us);
        let figures: Vec<_> = course.series.iter().map(of).collect();
        (course.interval_s, figures)
    };
    let p99 = Some(200.0);
    let at = |at_s: f64| (at_s, 2000.0, p99);
    assert_eq!(
        figures(usize::MAX),
        (0.2, [0.0, 0.2, 0.4, 0.6].map(at).to_vec())
    );
    assert_eq!(figures(3), (0.4, [0.0, 0.4].map(at).to_vec()));
    assert_eq!(figures(1), (0.8, vec![at(0.0)]));
}
