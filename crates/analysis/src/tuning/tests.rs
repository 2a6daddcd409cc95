use super::*;

pub(crate) fn figures(kb_per_s: f64) -> Vec<ProgramFigures> {
    vec![ProgramFigures {
        kb_per_s,
        call_p99_ms: Some(1000.0 / kb_per_s),
        cpu_ms_per_mib: Some(7.0),
        kb_per_s_range: None,
        call_p99_ms_range: Some((1000.0 / kb_per_s, Some(1000.0 / kb_per_s))),
        unwritten_share: None,
    }]
}

fn key(path: &str, values: &[&str], ordered: bool) -> TunedParameter {
    TunedParameter {
        path: path.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        is_ordered: ordered,
        today_value: Some(values[0].to_owned()),
        today_value_index: Some(0),
    }
}

/// Two keys of these numbers of values; a rate of 0 is impossible.
pub(crate) fn tuned(rows: usize, kb_per_s: &[f64]) -> TuningResult {
    const NAMES: [&str; 6] = ["1", "2", "3", "4", "5", "6"];
    let columns = kb_per_s.len() / rows;
    let point = |(number, rate): (usize, &f64)| {
        let outcome = match *rate == 0.0 {
            true => PointOutcome::Impossible("the interleave is too large".to_owned()),
            false => PointOutcome::Measured(figures(*rate)),
        };
        (vec![number / columns, number % columns], outcome)
    };
    TuningResult {
        suite: "write_8192".to_owned(),
        target: "a test".to_owned(),
        goal: TuningGoal::Throughput,
        programs: vec!["write_8192".to_owned()],
        parameters: vec![
            key("drive.a", &NAMES[..rows], true),
            key("drive.b", &NAMES[..columns], true),
        ],
        points: kb_per_s.iter().enumerate().map(point).collect(),
        today_figures: figures(kb_per_s[0].max(1.0)),
        method: SearchMethod {
            kind: SearchKind::Exhaustive,
            combination_count: kb_per_s.len() as u64,
            tried_count: kb_per_s.len() as u64,
            impossible_count: kb_per_s.iter().filter(|rate| **rate == 0.0).count() as u64,
            neighbour_count: 0,
            from_store_count: 0,
            run_budget: 100,
            size_bytes: vec![1024],
            repetition_range: (3, 1),
            seed: 1,
        },
        seed_spread: None,
        samples: None,
        notes: Vec::new(),
    }
}

#[test]
fn the_best_is_found_with_the_steps_around_it() {
    let tuned = tuned(2, &[1.0, 2.0, 3.0, 4.0, 100.0, 50.0]);
    let best = tuned.best_point().unwrap();
    assert_eq!(*best, [1, 1]);
    assert_eq!(tuned.describe_settings(best), "drive.a=2, drive.b=2");
    let steps: Vec<_> = tuned
        .list_steps(best)
        .into_iter()
        .map(|step| (step.path, step.to_value, step.gain, step.is_cliff))
        .collect();
    assert_eq!(
        steps,
        [
            ("drive.a".to_owned(), "1".to_owned(), Some(-0.98), true),
            ("drive.b".to_owned(), "1".to_owned(), Some(-0.96), true),
            ("drive.b".to_owned(), "3".to_owned(), Some(-0.5), true),
        ]
    );
    let at_end = RangeEndValue {
        path: "drive.a",
        value: "2",
    };
    assert_eq!(tuned.parameters_at_range_end(), [at_end]);
}

#[test]
fn the_first_of_equal_points_is_the_best() {
    let one = tuned(2, &[5.0, 5.004, 5.0, 1.0, 1.0, 1.0]);
    assert_eq!(*one.best_point().unwrap(), [0, 0]);
    // And not the first of a chain of small steps.
    let creeping = tuned(1, &[5.0, 5.004, 5.008, 5.012]);
    assert_eq!(*creeping.best_point().unwrap(), [0, 2]);
}

/// The best loses half where it is one tighter; two looser is 5 % slower, and
/// loses nothing much in either direction.
#[test]
fn the_safe_one_is_the_best_when_it_is_missed_by_a_step() {
    let one = tuned(1, &[20.0, 50.0, 100.0, 96.0, 95.0, 90.0]);
    assert_eq!(*one.best_point().unwrap(), [0, 2]);
    assert!(one.is_on_cliff(&[0, 2]));
    assert_eq!(*one.safe_point().unwrap(), [0, 3]);
    // Nothing is safe that has a neighbour that nobody knows.
    let mut sparse = one.clone();
    sparse.points.remove(&vec![0, 4]);
    assert_eq!(sparse.safe_point(), None);
    // Of a curve that falls everywhere, not the flattest place.
    let hyperbola = tuned(1, &[10.0, 100.0, 67.0, 50.0, 40.0, 33.0]);
    assert_eq!(*hyperbola.safe_point().unwrap(), [0, 2]);
    assert_eq!(hyperbola.worst_neighbour_gain(&[0, 2]), Some(50.0));
    // The best is safe by itself.
    assert_eq!(tuned(1, &[95.0, 100.0, 95.0]).safe_point(), None);
    // Nobody gives up all to be safe from losing all.
    assert_eq!(tuned(1, &[1.0, 100.0, 1.0]).safe_point(), None);
}

#[test]
fn the_way_from_several_cliffs_is_one_step_from_each() {
    // Loses above and to the left.
    let rates = [1.0, 1.0, 1.0, 1.0, 100.0, 99.0, 1.0, 98.0, 97.0];
    let one = tuned(3, &rates);
    assert_eq!(one.step_away_from_cliffs(&[1, 1]), Some(vec![2, 2]));
    // On both sides of both, there is no way; on none, no need.
    assert_eq!(
        tuned(1, &[1.0, 100.0, 1.0]).step_away_from_cliffs(&[0, 1]),
        None
    );
    assert_eq!(
        tuned(1, &[99.0, 100.0]).step_away_from_cliffs(&[0, 1]),
        None
    );
}

/// What is impossible is no cliff: nobody gets there by a small slip.
#[test]
fn impossible_points_are_counted_and_are_no_cliff() {
    let one = tuned(1, &[0.0, 100.0, 95.0]);
    assert_eq!(*one.best_point().unwrap(), [0, 1]);
    assert!(!one.is_on_cliff(&[0, 1]));
    let gains: Vec<_> = one
        .list_steps(&[0, 1])
        .iter()
        .map(|step| step.gain)
        .collect();
    assert_eq!(gains[0], None);
    // The next that is possible is beside it.
    let apart = tuned(1, &[50.0, 0.0, 100.0, 0.0, 0.0, 95.0]);
    let steps: Vec<_> = apart
        .list_steps(&[0, 2])
        .iter()
        .map(|step| (step.to_value.clone(), step.is_cliff))
        .collect();
    assert_eq!(steps, [("1".to_owned(), true), ("6".to_owned(), false)]);
    assert_eq!(tuned(1, &[0.0, 0.0]).best_point(), None);
}

#[test]
fn less_is_better_for_latency() {
    let mut one = tuned(1, &[10.0, 40.0, 20.0]);
    one.goal = TuningGoal::Latency;
    assert_eq!(*one.best_point().unwrap(), [0, 1]);
    let steps = one.list_steps(&[0, 1]);
    // Four times as long is three quarters of the speed lost.
    assert_eq!(steps[0].gain, Some(-0.75));
    one.goal = TuningGoal::Cpu;
    assert_eq!(*one.best_point().unwrap(), [0, 0], "all are the same");
}

/// On real storage a step that may be noise is no cliff.
#[test]
fn a_cliff_of_noise_is_none() {
    let mut one = tuned(1, &[50.0, 100.0]);
    assert!(one.is_on_cliff(&[0, 1]));
    let visits = |speeds: &[f64], place: u32| -> Vec<PointVisit> {
        let rounds = (0..).zip(speeds);
        let visit = |(round, speed): (u32, &f64)| PointVisit {
            round,
            order_in_round: (place + round) % 3,
            speed: *speed,
        };
        rounds.map(visit).collect()
    };
    let eight = [20.0, 120.0, 50.0, 99.0, 30.0, 110.0, 145.0, 101.0];
    let noisy: Vec<f64> = eight.iter().cycle().take(20).copied().collect();
    let samples = |low: &[f64]| VisitSamples {
        today_visits: visits(&[50.0; 20], 0),
        point_visits: BTreeMap::from([
            (vec![0, 0], visits(low, 1)),
            (vec![0, 1], visits(&[100.0; 20], 2)),
        ]),
    };
    one.samples = Some(samples(&noisy));
    assert!(!one.is_on_cliff(&[0, 1]));
    one.samples = Some(samples(&[50.0; 20]));
    assert!(one.is_on_cliff(&[0, 1]));
    let judged = one.samples.as_ref().unwrap().compare_with_today(&[0, 1]);
    assert_eq!(judged.unwrap().verdict, crate::comparison::Verdict::Faster);
    // The gain is what the verdict is of, whatever the figures are.
    let gain = one.gain_over_today(&[0, 1]).unwrap();
    assert!((gain - 1.0).abs() < 1e-9, "{gain}");
}

/// A drift that is in all points of a round alike is no gain, and nothing gains over
/// itself.
#[test]
fn today_is_judged_by_no_other_measurement_of_it() {
    let drifting = |factor: f64, rounds: u32, place| -> Vec<PointVisit> {
        let visit = |round: u32| PointVisit {
            round,
            order_in_round: (place + round) % 2,
            speed: factor * (100.0 + 10.0 * f64::from(round)),
        };
        (0..rounds).map(visit).collect()
    };
    let mut one = tuned(1, &[100.0, 90.0]);
    let today = drifting(1.0, 40, 0);
    one.samples = Some(VisitSamples {
        today_visits: today.clone(),
        // It left early, when all was slow.
        point_visits: BTreeMap::from([(vec![0, 0], today), (vec![0, 1], drifting(1.2, 14, 1))]),
    });
    let samples = one.samples.as_ref().unwrap();
    assert_eq!(samples.compare_with_today(&[0, 0]), None);
    assert_eq!(one.gain_over_today(&[0, 0]), Some(0.0));
    let judged = samples.compare_with_today(&[0, 1]).unwrap();
    assert_eq!(judged.verdict, crate::comparison::Verdict::Faster);
    assert!((judged.ratio.unwrap() - 1.2).abs() < 1e-9);
    assert_eq!(one.best_point(), Some(&vec![0, 1]));
}

#[test]
fn words_are_beside_nothing() {
    let mut one = tuned(1, &[1.0, 100.0, 1.0]);
    one.parameters[1].is_ordered = false;
    assert_eq!(one.list_steps(&[0, 1]), []);
    assert!(!one.is_on_cliff(&[0, 1]));
}

#[test]
fn a_key_that_changes_nothing_is_named() {
    let one = tuned(2, &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(one.parameters_without_effect(), ["drive.a"]);
    assert_eq!(tuned(1, &[1.0, 2.0]).parameters_without_effect(), [""; 0]);
}

/// A program that is ten times as fast does not outweigh one that is not.
#[test]
fn several_programs_count_by_their_geometric_mean() {
    let both = [figures(10.0), figures(1000.0)].concat();
    let mean = TuningGoal::Throughput.value_of_programs(&both).unwrap();
    assert!((mean - 100.0).abs() < 1e-9, "{mean}");
    assert_eq!(TuningGoal::Throughput.value_of_programs(&[]), None);
    let mut untimed = both;
    untimed[0].call_p99_ms = None;
    assert_eq!(TuningGoal::Latency.value_of_programs(&untimed), None);
}
