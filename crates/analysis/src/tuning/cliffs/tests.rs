use super::super::tests::{figures, tuned};
use super::*;
use crate::tuning::{PointOutcome, TuningGoal};

/// One key with these values, and what counts at each.
fn sweep(goal: TuningGoal, values: &[&str], of: &[f64]) -> TuningResult {
    let mut one = tuned(1, &[1.0]);
    one.goal = goal;
    one.parameters[1].values = values.iter().map(|value| (*value).to_owned()).collect();
    let speed = |value: &f64| match goal {
        TuningGoal::Throughput => *value,
        TuningGoal::Latency | TuningGoal::Cpu => 1000.0 / value,
    };
    let points = of
        .iter()
        .map(|value| PointOutcome::Measured(figures(speed(value))));
    one.points = (0..)
        .zip(points)
        .map(|(place, one)| (vec![0, place], one))
        .collect();
    one
}

fn named(tuned: &TuningResult) -> Vec<String> {
    names(tuned, tuned.find_cliffs())
}

fn names(tuned: &TuningResult, cliffs: Vec<ParameterCliff>) -> Vec<String> {
    let cliffs = cliffs.into_iter();
    let name = |cliff: ParameterCliff| {
        let values = &tuned.parameters[cliff.parameter_index].values;
        let [from, to] = [&cliff.top_point, &cliff.bottom_point]
            .map(|places| &values[places[cliff.parameter_index]]);
        format!("{from} to {to}")
    };
    cliffs.map(name).collect()
}

const ONE_TO_TEN: [&str; 10] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
const DOUBLING: [&str; 7] = ["1", "2", "4", "8", "16", "32", "64"];

fn figures_of_numbers(values: &[&str], figure_of: impl Fn(f64) -> f64) -> Vec<f64> {
    let values = values.iter().filter_map(|value| parse_number(value));
    values.map(figure_of).collect()
}

/// Response times in proportion to the depth, with a constant, and with its square;
/// a rate that grows until something is busy all the time.
#[test]
fn a_smooth_curve_has_no_cliff() {
    for values in [&ONE_TO_TEN[..], &DOUBLING] {
        let none = Vec::<String>::new();
        for latency in [|n: f64| n, |n| 12.0 + 8.0 * n, |n| 10.0 + n * n] {
            let one = sweep(
                TuningGoal::Latency,
                values,
                &figures_of_numbers(values, latency),
            );
            assert_eq!(named(&one), none);
        }
        for rate in [|n: f64| n.min(8.0), |n| 1.0 / n, |n| n / (1.0 + n), |_| 7.0] {
            let one = sweep(
                TuningGoal::Throughput,
                values,
                &figures_of_numbers(values, rate),
            );
            assert_eq!(named(&one), none);
        }
    }
    // From nothing upwards, and down.
    let from_zero = ["0", "1", "2", "3", "4", "5"];
    let growing = figures_of_numbers(&from_zero, |n| 10.0 + 10.0 * n);
    assert_eq!(
        named(&sweep(TuningGoal::Latency, &from_zero, &growing)),
        [""; 0]
    );
    let downwards = ["64K", "32K", "16K", "8K"];
    let rates = figures_of_numbers(&downwards, |n| n / 1000.0);
    assert_eq!(
        named(&sweep(TuningGoal::Throughput, &downwards, &rates)),
        [""; 0]
    );
}

/// Ten streams, of which eight have a segment: whichever way the values run, and
/// whatever is counted.
#[test]
fn a_step_between_levels_is_a_cliff_wherever_the_best_is() {
    let rates = figures_of_numbers(&ONE_TO_TEN, |n| if n > 8.0 { 20.0 } else { 100.0 + n });
    let one = sweep(TuningGoal::Throughput, &ONE_TO_TEN, &rates);
    assert_eq!(named(&one), ["8 to 9"]);
    let cliff = &one.find_cliffs()[0];
    assert!(
        (cliff.gain - (20.0 / 108.0 - 1.0)).abs() < 1e-12,
        "{cliff:?}"
    );
    assert!(cliff.expected_gain.abs() < 0.02, "{cliff:?}");
    let times = figures_of_numbers(&ONE_TO_TEN, |n| if n > 4.0 { 1000.0 } else { 10.0 * n });
    assert_eq!(
        named(&sweep(TuningGoal::Latency, &ONE_TO_TEN, &times)),
        ["4 to 5"]
    );
    let mut downwards = ONE_TO_TEN;
    downwards.reverse();
    let times = figures_of_numbers(&downwards, |n| if n > 4.0 { 1000.0 } else { 10.0 * n });
    assert_eq!(
        named(&sweep(TuningGoal::Cpu, &downwards, &times)),
        [""; 0],
        "the same processor time"
    );
    assert_eq!(
        named(&sweep(TuningGoal::Latency, &downwards, &times)),
        ["4 to 5"]
    );
}

/// A fall of several steps is a cliff at its edge, whether it ends in a level or goes on,
/// and whether it begins at one or at a peak.
#[test]
fn a_fall_of_several_steps_begins_at_its_edge() {
    let two = [
        100.0, 100.0, 100.0, 100.0, 50.0, 25.0, 25.0, 25.0, 25.0, 25.0,
    ];
    assert_eq!(
        named(&sweep(TuningGoal::Throughput, &ONE_TO_TEN, &two)),
        ["4 to 5"]
    );
    let depths = [20.0, 38.0, 117.0, 210.0, 390.0, 700.0, 1300.0];
    assert_eq!(
        named(&sweep(TuningGoal::Latency, &DOUBLING, &depths)),
        ["2 to 4"]
    );
    let streams = ["12", "14", "16", "18", "20", "22", "24"];
    let rates = [23.2, 27.1, 30.9, 34.6, 27.1, 19.9, 16.2];
    assert_eq!(
        named(&sweep(TuningGoal::Throughput, &streams, &rates)),
        ["18 to 20"]
    );
    let segments = ["4", "8", "12", "14", "16", "18", "20"];
    let rates = [9.1, 12.6, 21.6, 30.7, 30.8, 30.8, 30.8];
    assert_eq!(
        named(&sweep(TuningGoal::Throughput, &segments, &rates)),
        ["14 to 12"]
    );
}

/// Between a few chosen values anything may be: what falls there is a step from one to the
/// other. Values that double, or have none between them, tell a cliff.
#[test]
fn a_fall_between_values_far_apart_is_a_wide_step() {
    let two = sweep(TuningGoal::Latency, &["1", "32"], &[12.0, 550.0]);
    assert_eq!(named(&two), [""; 0]);
    assert_eq!(names(&two, two.find_wide_steps()), ["1 to 32"]);
    assert!(!two.is_on_cliff(&[0, 0]) && two.safe_point().is_none());
    let few = ["4K", "16K", "64K", "256K"];
    let one = sweep(TuningGoal::Throughput, &few, &[100.0, 100.0, 20.0, 20.0]);
    assert_eq!(named(&one), [""; 0]);
    assert_eq!(names(&one, one.find_wide_steps()), ["16K to 64K"]);
    // Refined there, it is one.
    let finer = ["4K", "16K", "32K", "64K", "256K"];
    let one = sweep(
        TuningGoal::Throughput,
        &finer,
        &[100.0, 100.0, 20.0, 20.0, 20.0],
    );
    assert_eq!(named(&one), ["16K to 32K"]);
    assert_eq!(one.find_wide_steps(), []);
    // No value is possible between 1 and 3.
    let mut gap = sweep(
        TuningGoal::Throughput,
        &ONE_TO_TEN[..5],
        &[100.0, 1.0, 20.0, 20.0, 20.0],
    );
    let impossible = PointOutcome::Impossible("odd".to_owned());
    gap.points.insert(vec![0, 1], impossible);
    assert_eq!(named(&gap), ["1 to 3"]);
    // The only value that was tried between is none.
    let mut far = sweep(
        TuningGoal::Latency,
        &["1", "3", "64"],
        &[12.0, 100.0, 550.0],
    );
    let impossible = PointOutcome::Impossible("odd".to_owned());
    far.points.insert(vec![0, 1], impossible);
    assert_eq!(named(&far), [""; 0]);
    assert_eq!(names(&far, far.find_wide_steps()), ["1 to 64"]);
}

/// A best in the middle of its range.
#[test]
fn a_round_top_has_no_cliff() {
    let rates = [50.0, 80.0, 100.0, 80.0, 50.0];
    assert_eq!(
        named(&sweep(TuningGoal::Throughput, &ONE_TO_TEN[..5], &rates)),
        [""; 0]
    );
    let peak = [50.0, 80.0, 100.0, 30.0, 29.0];
    assert_eq!(
        named(&sweep(TuningGoal::Throughput, &ONE_TO_TEN[..5], &peak)),
        ["3 to 4"]
    );
}

/// Where a value was not tried nobody knows what lies between; what is impossible has
/// nothing in it.
#[test]
fn points_that_were_not_tried_are_no_step() {
    let rates = figures_of_numbers(&ONE_TO_TEN, |n| if n > 5.0 { 20.0 } else { 100.0 });
    let mut one = sweep(TuningGoal::Throughput, &ONE_TO_TEN, &rates);
    let impossible = PointOutcome::Impossible("odd".to_owned());
    one.points.insert(vec![0, 5], impossible);
    assert_eq!(named(&one), ["5 to 7"]);
    one.points.remove(&vec![0, 5]);
    assert_eq!(named(&one), [""; 0]);
}

/// Each key has its own sweeps, and words have none.
#[test]
fn a_cliff_is_along_one_key_with_the_others_as_they_are() {
    let rates = [100.0, 100.0, 100.0, 100.0, 20.0, 100.0];
    let mut one = tuned(2, &rates);
    let cliffs = one.find_cliffs();
    assert_eq!(cliffs.len(), 3, "{cliffs:?}");
    assert_eq!(one.describe_other_settings(&cliffs[0]), "drive.b=2");
    one.parameters[1].is_ordered = false;
    assert_eq!(one.find_cliffs().len(), 1);
}

/// Uniform in (0, 1), from a seed.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A sweep of p99 over points that all draw their response times alike, with two repetitions
/// of as many calls each that ask for the same places, and so take as long; `scale` for each
/// point.
fn random_sweep(seed: u64, calls: u64, scale: impl Fn(f64) -> f64) -> TuningResult {
    let mut chance = RandomNumbers(seed);
    let mut one = sweep(TuningGoal::Latency, &DOUBLING, &[1.0; DOUBLING.len()]);
    for (place, value) in DOUBLING.iter().enumerate() {
        let scale = scale(parse_number(value).expect("a number"));
        let mut call = || {
            let ms = scale * (1.0 - libm::log(1.0 - chance.next()));
            diskperf_timeline::Nanoseconds((ms * 1e6) as u64)
        };
        let mut all: diskperf_timeline::Histogram = (0..calls).map(|_| call()).collect();
        all.merge(&all.clone());
        let figures = crate::tuning::ProgramFigures {
            call_p99_ms: Some(all.percentile(99.0).0 as f64 / 1e6),
            call_p99_ms_range: crate::tuning::p99_range(&all, 2),
            ..figures(1.0).remove(0)
        };
        one.points
            .insert(vec![0, place], PointOutcome::Measured(vec![figures]));
    }
    one
}

/// What the parameter has no part in has no cliff, however few calls there are and whatever
/// chance does to the one in a hundred; and one that it has is found all the same.
#[test]
fn chance_is_no_cliff() {
    let (mut false_alarms, mut found) = (0, 0);
    for seed in 0..200 {
        for calls in [100, 500, 1100, 2500] {
            let wiggles = random_sweep(seed, calls, |_| 1.0);
            if !wiggles.find_cliffs().is_empty() {
                false_alarms += 1;
                println!("seed {seed}, {calls} calls: {:?}", named(&wiggles));
            }
        }
        let edge = |n: f64| if n > 4.0 { 3.0 } else { 1.0 };
        let (few, many) = (
            random_sweep(seed, 500, edge),
            random_sweep(seed, 2500, edge),
        );
        found += usize::from(named(&many) == ["4 to 8"]);
        // Nobody can say what chance did to a p99 of 500 calls.
        assert!(named(&few).is_empty(), "seed {seed}");
        assert_eq!(
            (
                few.uncertain_parameter_count(),
                many.uncertain_parameter_count()
            ),
            (DOUBLING.len(), 0)
        );
    }
    assert_eq!(false_alarms, 0, "of 800 sweeps");
    assert!(found >= 195, "{found} of 200");
}

/// Of the foot of a step only how much better it may be counts, which fewer calls tell.
#[test]
fn few_calls_suffice_at_the_foot() {
    let edge = |n: f64| if n > 4.0 { 30.0 } else { 1.0 };
    let (mut mixed, few) = (random_sweep(3, 2500, edge), random_sweep(3, 500, edge));
    for (places, one) in &few.points {
        if places[1] > 2 {
            mixed.points.insert(places.clone(), one.clone());
        }
    }
    assert_eq!(mixed.uncertain_parameter_count(), 4);
    assert_eq!(named(&mixed), ["4 to 8"]);
    // The other way round the top may be as bad as the foot for all that is known.
    let mut mixed = random_sweep(3, 500, edge);
    for (places, one) in &random_sweep(3, 2500, edge).points {
        if places[1] > 2 {
            mixed.points.insert(places.clone(), one.clone());
        }
    }
    assert_eq!(named(&mixed), [""; 0]);
    let range = random_sweep(3, 2500, edge).cliff_loss_range();
    let range = range.expect("a fall");
    let (least, most) = (range.loss_share_min, range.loss_share_max);
    assert!(least > 0.1 && most > least && most < 0.6, "{least} {most}");
    assert_eq!(few.cliff_loss_range(), None);
}

/// Without the ranges, chance would be a cliff in a good part of them: the test can fail.
#[test]
fn without_what_chance_does_wiggles_are_cliffs() {
    let alarms = |seed: &u64| {
        let mut one = random_sweep(*seed, 500, |_| 1.0);
        for outcome in one.points.values_mut() {
            let PointOutcome::Measured(figures) = outcome else {
                continue;
            };
            figures[0].call_p99_ms_range = figures[0].call_p99_ms.map(|p99| (p99, Some(p99)));
        }
        !one.find_cliffs().is_empty()
    };
    let alarms = (0..200).filter(alarms).count();
    assert!(alarms > 20, "{alarms} of 200");
}

/// Repetitions that differ by as much as a step are no cliff either.
#[test]
fn repetitions_that_differ_are_no_cliff() {
    let rates = [100.0, 101.0, 99.0, 100.0, 80.0, 81.0, 80.0];
    let mut one = sweep(TuningGoal::Throughput, &DOUBLING, &rates);
    assert_eq!(named(&one), ["8 to 16"]);
    for (outcome, rate) in one.points.values_mut().zip(rates) {
        if let PointOutcome::Measured(figures) = outcome {
            figures[0].kb_per_s_range = Some((rate * 0.9, rate * 1.1));
        }
    }
    assert_eq!(named(&one), [""; 0]);
}
