use crate::report::{ReportFormat, render_tuning as report};
use crate::tuning::tests::tuned;
use crate::tuning::{PointVisit, SearchKind, SeedSpread, TuningGoal, VisitSamples};
use std::collections::BTreeMap;

fn shown(tuned: &crate::tuning::TuningResult) -> String {
    report(tuned, ReportFormat::Table, 100)
}

#[test]
fn one_parameter_is_a_line_of_bars_with_the_cliff() {
    let mut found = tuned(1, &[20.0, 50.0, 100.0, 96.0, 95.0, 0.0]);
    found.parameters.remove(0);
    found.points = found
        .points
        .into_iter()
        .map(|(places, outcome)| (places[1..].to_vec(), outcome))
        .collect();
    found.seed_spread = Some(SeedSpread {
        seed_count: 2,
        phase_count: 1,
        best_values: vec![100.0, 102.0],
        today_values: vec![20.0, 20.4],
        safe_values: vec![96.0, 96.0],
    });
    insta::assert_snapshot!(shown(&found), @"
    write_8192 on a test: best throughput over drive.b
           settings   KB/s      gain       2 seeds
    ──────────────────────────────────────────────
    best   drive.b=3   100  +400.0 %    100 to 102
    safe   drive.b=4  96.0  +380.0 %          96.0
    today  drive.b=1  20.0            20.0 to 20.4

    over 2 seeds, the best settings gain +400.0 % over today's and are better in 2 of 2 pairs
    ON A CLIFF: drive.b from 3 to 2 loses 50.0 %; safe is drive.b=4, which costs 4.0 %; one step off it
      gives 95.0 KB/s, not 50.0

    drive.b  KB/s
    ──────────────────────────────────────────────────────
          1  20.0  today  ██████▍
          2  50.0         ████████████████
          3   100  best   ████████████████████████████████
          4  96.0         ██████████████████████████████▊
          5  95.0         ██████████████████████████████▍
          6     -

    One step from the best:
             from  to     gain
    ───────────────────────────────────
    drive.b     3   2  -50.0 %  a cliff
    drive.b     3   4   -4.0 %

    Cliffs:
             from  to  from KB/s  to KB/s     gain  expected
    ──────────────────────────────────────────────────────────────
    drive.b     3   2        100     50.0  -50.0 %   -33.3 %  best

    all 6 combinations were tried; each program ran 3 times with 1 KiB, and the first does not count
    impossible (-): 1 of the 6 tried; the first is drive.b=6: the interleave is too large
    a cliff is a step that loses 10 % or more beyond what the steps around it lead one to expect, and
      beyond what repetitions differ by
    ");
}

#[test]
fn two_parameters_are_a_heat_table() {
    insta::assert_snapshot!(shown(&tuned(2, &[20.0, 50.0, 100.0, 0.0, 95.0, 93.5])), @"
    write_8192 on a test: best throughput over drive.a and drive.b
           settings              KB/s      gain
    ───────────────────────────────────────────
    best   drive.a=1, drive.b=3   100  +400.0 %
    safe   drive.a=2, drive.b=3  93.5  +367.5 %
    today  drive.a=1, drive.b=1  20.0

    ON A CLIFF: drive.b from 3 to 2 loses 50.0 %; safe is drive.a=2, drive.b=3, which costs 6.5 %; one
      step off it gives 93.5 KB/s, not 50.0
    drive.a=1 is at the end of the range: a better value may lie beyond
    drive.b=3 is at the end of the range: a better value may lie beyond

             drive.b
    drive.a  1 today       2       3
    ────────────────────────────────
    1 today   20.0 ▁  50.0 ▄  *100 █
          2        -  95.0 █  93.5 ▇

    KB/s: ▁ is 20.0, █ is 100, * the best

    One step from the best:
             from  to     gain
    ───────────────────────────────────
    drive.a     1   2   -6.5 %
    drive.b     3   2  -50.0 %  a cliff

    Cliffs:
             from  to  from KB/s  to KB/s     gain  expected  with
    ─────────────────────────────────────────────────────────────────────────
    drive.a     2   1       95.0     50.0  -47.4 %    +0.0 %  drive.b=2
    drive.b     3   2        100     50.0  -50.0 %   -41.5 %  drive.a=1  best

    all 6 combinations were tried; each program ran 3 times with 1 KiB, and the first does not count
    impossible (-): 1 of the 6 tried; the first is drive.a=2, drive.b=1: the interleave is too large
    a cliff is a step that loses 10 % or more beyond what the steps around it lead one to expect, and
      beyond what repetitions differ by
    ");
    // Shades alone where there are many columns.
    let many: Vec<f64> = (0..6).map(f64::from).map(|rate| rate + 1.0).collect();
    let mut wide = tuned(1, &many);
    let values = (0..30).map(|number| number.to_string()).collect();
    wide.parameters[1].values = values;
    let outcome = wide.points[&vec![0, 5]].clone();
    wide.points
        .extend((6..30).map(|column| (vec![0, column], outcome.clone())));
    let text = shown(&wide);
    assert!(
        text.contains("drive.b = 0 to 29, from left to right"),
        "{text}"
    );
    assert!(text.contains("▁▂▄▅▇*████"), "{text}");
}

/// What is run again decides whether anything is called the best: other seeds and phases of a
/// model, and rounds of real storage.
#[test]
fn an_unproven_point_is_not_the_best() {
    let spread = |phases: u32, best: &[f64]| SeedSpread {
        seed_count: best.len() as u32 / phases,
        phase_count: phases,
        best_values: best.to_vec(),
        today_values: vec![100.0; best.len()],
        safe_values: Vec::new(),
    };
    // Runs with other seeds, where today's are 100; whether they show that the point with the
    // best figure is better, and whether phases are spoken of.
    let cases: [(SeedSpread, bool, bool); 8] = [
        (spread(1, &[103.0, 92.0, 91.0, 90.0, 108.0]), false, false),
        (spread(1, &[103.0, 101.0, 104.0, 102.0, 103.0]), true, false),
        (spread(1, &[103.0; 5]), true, false),
        (spread(1, &[100.0; 5]), false, false),
        (
            spread(4, &[110.0, 90.0, 110.0, 90.0, 110.0, 90.0, 110.0, 90.0]),
            false,
            true,
        ),
        (
            spread(4, &[110.0, 112.0, 111.0, 113.0, 110.0, 112.0, 111.0, 113.0]),
            true,
            true,
        ),
        (spread(4, &[90.0; 8]), false, true),
        // A single pair is the search's own.
        (spread(1, &[103.0]), true, false),
    ];
    let keep = "nothing is shown to be better than today's settings: keep them";
    let judge = |found: &crate::tuning::TuningResult, is_better: bool| {
        let text = shown(found);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let page = crate::report::html::render_tuning(found);
        assert_eq!(flat.contains(keep), !is_better, "{text}");
        for rows in ["best drive.a=1", "the best", "\nbest "] {
            assert!(is_better || !flat.contains(rows), "{rows}: {text}");
        }
        assert_eq!(flat.contains("candidate drive.a=1"), !is_better, "{text}");
        assert!(is_better || !page.contains("\"best\""), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&report(found, ReportFormat::Json, 0)).expect("JSON");
        let (given, missing) = match is_better {
            true => ("best", "candidate"),
            false => ("candidate", "best"),
        };
        assert_eq!(json[given]["settings"]["drive.b"], "2", "{json}");
        assert!(json[missing].is_null(), "{json}");
        let csv = report(found, ReportFormat::Csv, 0);
        let (best, candidate) = (is_better, !is_better);
        let record = format!(",{best},{candidate},false,");
        assert_eq!(csv.matches(&record).count(), 1, "{csv}");
        flat
    };
    for (spread, is_better, has_phases) in cases {
        let mut found = tuned(1, &[100.0, 103.0, 80.0]);
        found.seed_spread = Some(spread);
        let flat = judge(&found, is_better);
        assert_eq!(flat.contains("phases"), has_phases, "{flat}");
    }
    let visits = |speed: &dyn Fn(u32) -> f64, place: u32| -> Vec<PointVisit> {
        let visit = |round: u32| PointVisit {
            round,
            order_in_round: (place + round) % 2,
            speed: speed(round),
        };
        (0..40).map(visit).collect()
    };
    let noisy = |low: f64| {
        move |round: u32| match round / 2 % 2 {
            0 => low,
            _ => 120.0,
        }
    };
    let measured = |figures: &[f64], speed: &dyn Fn(u32) -> f64| {
        let mut found = tuned(1, figures);
        found.parameters[1].today_value_index = None;
        found.samples = Some(VisitSamples {
            today_visits: visits(&|_| 100.0, 0),
            point_visits: BTreeMap::from([
                (vec![0, 0], visits(&|_| 60.0, 1)),
                (vec![0, 1], visits(speed, 1)),
            ]),
        });
        found
    };
    judge(&measured(&[100.0, 103.0], &noisy(90.0)), false);
    judge(&measured(&[100.0, 103.0], &|_| 120.0), true);
    // A loss, and a gain in other rounds than those of a point with a better figure, are no
    // candidates.
    for (figures, low) in [([100.0, 103.0], 60.0), ([110.0, 103.0], 90.0)] {
        let found = measured(&figures, &noisy(low));
        let text = shown(&found);
        assert!(text.contains(keep), "{text}");
        assert!(!text.contains("candidate"), "{text}");
        let json = report(&found, ReportFormat::Json, 0);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert!(
            json["best"].is_null() && json["candidate"].is_null(),
            "{json}"
        );
    }
}

#[test]
fn a_descent_says_how_much_it_left_out() {
    let mut found = tuned(2, &[20.0, 50.0, 100.0, 0.0, 95.0, 93.5]);
    found.method.kind = SearchKind::Descent {
        screened: 12,
        starts: 9,
    };
    found.method.combination_count = 40_000;
    found.method.from_store_count = 4;
    let text = shown(&found);
    for part in [
        "coordinate descent from 9 starts",
        "successive halving (12 more runs",
        "6 of 40000 combinations",
        "4 of 6 points from the store",
        "impossible (-): 1 of the 6 tried",
        "the interleave is too large",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "{part}: {text}");
    }
}

#[test]
fn other_programs_get_everything() {
    let mut found = tuned(2, &[20.0, 50.0, 100.0, 0.0, 95.0, 93.5]);
    found.goal = TuningGoal::Throughput;
    let json: serde_json::Value =
        serde_json::from_str(&report(&found, ReportFormat::Json, 0)).unwrap();
    assert_eq!(json["best"]["settings"]["drive.b"], "3");
    assert_eq!(json["best"]["value"], 100.0);
    assert_eq!(json["gain"], 4.0);
    assert_eq!(json["points"].as_array().unwrap().len(), 6);
    assert_eq!(
        json["points"][3]["impossible"],
        "the interleave is too large"
    );
    assert_eq!(json["on_cliff"], true);
    assert_eq!(json["cliff"][1]["gain"], -0.5);
    let cliff = &json["cliffs"][1];
    assert_eq!((&cliff["from"], &cliff["to"]), (&"3".into(), &"2".into()));
    assert_eq!(
        (cliff["from_value"].as_f64(), cliff["to_value"].as_f64()),
        (Some(100.0), Some(50.0))
    );
    assert_eq!(cliff["gain"], -0.5);
    assert_eq!(cliff["settings"]["drive.a"], "1");
    assert_eq!(json["safe"]["settings"]["drive.a"], "2");
    assert_eq!(json["method"]["search"], "exhaustive");
    let csv = report(&found, ReportFormat::Csv, 0);
    assert_eq!(csv.lines().count(), 7);
    assert!(
        csv.contains("drive.a=1 drive.b=3,100,10,7,true,false,false,"),
        "{csv}"
    );
    let markdown = report(&found, ReportFormat::Markdown, 0);
    assert!(markdown.contains("ON A CLIFF"), "{markdown}");
}

/// A cliff far from the best is named with its distance, and today's settings that
/// stand on one.
#[test]
fn a_cliff_anywhere_is_named() {
    let mut found = tuned(1, &[100.0, 99.0, 98.0, 97.0, 20.0, 19.0]);
    found.parameters[1].today_value_index = Some(3);
    let text = shown(&found);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "the best settings stand on no cliff; the nearest is 3 steps away: drive.b from 4 to 5 loses 79.4 %",
        "TODAY IS ON A CLIFF: drive.b from 4 to 5 loses 79.4 %",
        "drive.b 4 5 97.0 20.0 -79.4 %",
    ] {
        assert!(flat.contains(part), "{part}: {text}");
    }
    // Nothing far off is advised where everything costs as much as the fall.
    let falling = tuned(1, &[100.0, 40.0, 39.0, 38.0, 37.0, 36.0]);
    let text = shown(&falling);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("drive.b from 1 to 2 loses 60.0 %; no safe settings were tried"),
        "{text}"
    );
}

/// Of two values far apart nobody is told that the best stands on a cliff.
#[test]
fn a_fall_between_values_far_apart_is_a_step_in_words() {
    let mut found = tuned(1, &[100.0, 20.0]);
    found.parameters[1].values = vec!["1".to_owned(), "32".to_owned()];
    let text = shown(&found);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "drive.b from 1 to 32 loses 80.0 %, with nothing tried between: values between tell whether that is a cliff or a slope",
        "Steps by more than a factor of 2, with nothing tried between:",
        "drive.b 1 32 100 20.0 -80.0 %",
    ] {
        assert!(flat.contains(part), "{part}: {text}");
    }
    assert!(
        !text.contains("ON A CLIFF") && !text.contains("Cliffs:"),
        "{text}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&report(&found, ReportFormat::Json, 0)).expect("JSON");
    assert_eq!(json["wide_steps"][0]["to"], "32");
    assert_eq!(json["on_cliff"], false);
    assert_eq!(json["cliffs"], serde_json::json!([]));
}

/// What is known of chance is by the goal, and by how many repetitions count.
#[test]
fn a_cliff_is_beyond_chance_where_chance_is_known() {
    let remark = |goal: TuningGoal, repetitions: (u32, u32)| {
        let mut one = tuned(1, &[20.0, 50.0, 100.0, 96.0, 95.0]);
        one.goal = goal;
        one.method.repetition_range = repetitions;
        shown(&one).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let differ = "beyond what repetitions differ by";
    assert!(remark(TuningGoal::Throughput, (3, 1)).contains(differ));
    let once = remark(TuningGoal::Throughput, (1, 0));
    assert!(!once.contains(differ), "{once}");
    assert!(
        once.contains("what chance does to one repetition is not known"),
        "{once}"
    );
    let cpu = remark(TuningGoal::Cpu, (3, 1));
    assert!(!cpu.contains(differ), "{cpu}");
    assert!(
        cpu.contains("what chance does to the processor time is not known"),
        "{cpu}"
    );
    let latency = remark(TuningGoal::Latency, (3, 1));
    let fall = "what chance does to a p99 of as many calls (99.9 %): 10.0 % with the calls";
    assert!(latency.contains(fall), "{latency}");
}
