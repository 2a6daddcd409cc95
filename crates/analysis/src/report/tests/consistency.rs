//! Whatever was measured: the ratio that is printed is that of the two figures
//! beside it, lies within its interval, and no verdict contradicts either.

use super::*;
use crate::quantity::Quantity;
use crate::summary::ResultSummary;
use diskperf_timeline::{
    ComparisonVariant, InterleavedBlock, InterleavedRun, LoadMeasure, WorkerMeasure,
};
use proptest::prelude::*;

/// The speeds of a run's repetitions: about a level of its own, with two modes, or
/// a drift, or as wild as can be.
fn speeds() -> impl Strategy<Value = Vec<f64>> {
    let noise = || prop::collection::vec(0.0..1.0_f64, 0..40);
    (noise(), 1.0..1e7_f64, 0..4_u8, 0.0..0.6_f64).prop_map(|(noise, level, kind, size)| {
        let speed = |(number, noise): (usize, f64)| match kind {
            0 => level * (1.0 + 0.02 * noise),
            1 => {
                level
                    * if noise < 0.3 {
                        1.0 - size
                    } else {
                        1.0 + 0.01 * noise
                    }
            }
            2 => level * (1.0 + 0.01 * noise) * (1.0 - size).powf(number as f64 / 20.0),
            _ => level * (1.0 + 10.0 * noise * noise),
        };
        noise.into_iter().enumerate().map(speed).collect()
    })
}

fn of(id: &str, programs: &[Vec<f64>]) -> Run {
    let program = |(speeds, row): (&Vec<f64>, u32)| {
        let repetitions = speeds
            .iter()
            .map(|speed| read_repetition(MIB, *speed, 50.0));
        build_result(&format!("program{row}"), row, repetitions.collect())
    };
    let results = programs.iter().zip(0..).map(program).collect();
    build_run(id, "suite", id, results)
}

/// Programs with several requests under way that have these rates, for one second each;
/// in open loop, that respond so much the faster.
fn loads(id: &str, programs: &[Vec<f64>], open_loop: bool) -> Run {
    let repetition = |speed: &f64| {
        let response_ns = (1e11 / speed) as u64;
        let requests = match open_loop {
            true => 1000,
            false => *speed as u64,
        };
        let mut load = LoadMeasure::default();
        load.read.response_times =
            vec![(response_ns, requests), (9 * response_ns, requests / 50)].into();
        load.arrival_lag = open_loop.then(|| vec![(100, requests)].into());
        Repetition {
            workers: vec![WorkerMeasure {
                elapsed_time: Nanoseconds(1_000_000_000),
                payload_bytes: requests * 4096,
                load_measure: Some(load),
                ..WorkerMeasure::default()
            }],
            ..Repetition::default()
        }
    };
    let program = |(speeds, row): (&Vec<f64>, u32)| {
        let repetitions = speeds.iter().map(repetition);
        build_result(&format!("program{row}"), row, repetitions.collect())
    };
    let results = programs.iter().zip(0..).map(program).collect();
    build_run(id, "suite", id, results)
}

/// The same as one arm, block by block.
fn arm(mut run: Run, arm: ComparisonVariant, partner: &str, coins: &[bool]) -> Run {
    for result in &mut run.results {
        for (repetition, number) in result.repetitions.iter_mut().zip(0_u32..) {
            let coin = coins[number as usize % coins.len()];
            let second = coin == (arm == ComparisonVariant::B);
            repetition.interleaved_block = Some(InterleavedBlock {
                block_number: number,
                is_second_run: second,
                is_after_verdict: false,
            });
        }
    }
    run.interleaved = Some(InterleavedRun {
        partner_run_id: partner.to_owned(),
        variant: arm,
        seed: 1983,
        targets_differ: false,
        effect_min: None,
        ordered_after: None,
    });
    run
}

/// What one row says in a form for machines.
#[derive(Debug)]
struct Row {
    quantity: String,
    base: f64,
    other: f64,
    ratio: Option<f64>,
    interval: Option<(f64, f64)>,
    verdict: String,
}

impl Row {
    fn check(&self) {
        let Some(ratio) = self.ratio else {
            assert_eq!(self.interval, None, "{self:?}");
            assert!(!self.is_firm(), "{self:?}");
            return;
        };
        let quotient = self.other / self.base;
        assert!((ratio / quotient - 1.0).abs() < 1e-9, "{self:?}");
        if let Some((low, high)) = self.interval {
            assert!(low <= ratio && ratio <= high, "{self:?}");
        }
        if self.is_firm() {
            let (low, high) = self.interval.expect("a firm verdict has an interval");
            let is_more = self.verdict.ends_with("faster") != self.is_time();
            assert!(if is_more { low > 1.0 } else { high < 1.0 }, "{self:?}");
        }
    }

    /// Whether less is faster.
    fn is_time(&self) -> bool {
        self.quantity.starts_with("response")
    }

    /// The place of its table among those that are printed. Without a repetition, a program
    /// counts as one that makes one call after the other.
    fn table(&self) -> usize {
        match &*self.quantity {
            "kb_per_s" => 0,
            "iops" => 1,
            _ if self.is_time() => 2,
            other => panic!("{other} of a load that reads"),
        }
    }

    fn is_firm(&self) -> bool {
        ["faster", "slower", "suggests faster", "suggests slower"].contains(&self.verdict.as_str())
    }
}

fn rows_of_json(text: &str) -> Vec<Row> {
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let pairs = json["comparison"]["pairs"].as_array().unwrap().iter();
    let row = |pair: &serde_json::Value| Row {
        quantity: pair["quantity"].as_str().unwrap().to_owned(),
        base: pair["base"]["figure"].as_f64().unwrap(),
        other: pair["other"]["figure"].as_f64().unwrap(),
        ratio: pair["ratio"].as_f64(),
        interval: pair["interval"]["low"]
            .as_f64()
            .zip(pair["interval"]["high"].as_f64()),
        verdict: pair["verdict_text"].as_str().unwrap().to_owned(),
    };
    pairs.map(row).collect()
}

fn rows_of_csv(text: &str) -> Vec<Row> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = lines.next().unwrap();
    let at = |line: &[&str], name: &str| {
        let place = heading.iter().position(|one| *one == name).unwrap();
        line[place].to_owned()
    };
    // Where all rows are of KB/s, these are the figures.
    let (base, other) = match heading.contains(&"base_figure") {
        true => ("base_figure", "figure"),
        false => ("base_kb_per_s", "kb_per_s"),
    };
    let row = |line: Vec<&str>| Row {
        quantity: at(&line, "quantity"),
        base: at(&line, base).parse().unwrap(),
        other: at(&line, other).parse().unwrap(),
        ratio: at(&line, "ratio").parse().ok(),
        interval: at(&line, "interval_low")
            .parse()
            .ok()
            .zip(at(&line, "interval_high").parse().ok()),
        verdict: at(&line, "verdict"),
    };
    lines.map(row).collect()
}

/// The rows of a table or of markdown, as far as they are rounded there.
fn check_printed(text: &str, rows: &[Row]) {
    let printed: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| {
            let of_program = line.starts_with("| program") && !line.starts_with("| program ");
            of_program || line.starts_with("| p99 ")
        })
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(printed.len(), rows.len(), "{text}");
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.table());
    for (cells, row) in printed.iter().zip(rows) {
        let Ok(ratio) = cells[4].parse::<f64>() else {
            assert_eq!(row.ratio, None, "{text}");
            continue;
        };
        assert!(
            (ratio - row.ratio.unwrap()).abs() <= 0.0005 + 1e-9,
            "{text}"
        );
        let verdict = cells[6].replace('\\', "");
        assert_eq!(verdict, row.verdict, "{text}");
        let Some((low, high)) = cells[5].split_once('-') else {
            assert_eq!((cells[5], row.interval), ("unknown", None), "{text}");
            continue;
        };
        let (low, high): (f64, f64) = (low.parse().unwrap(), high.parse().unwrap());
        // A ratio of three digits may round to beyond an end by half a digit.
        assert!(low <= ratio + 0.0005 && ratio - 0.0005 <= high, "{text}");
        assert!(!row.is_firm() || low > 1.0 || high < 1.0, "{text}");
    }
}

fn check(two: &[Run]) {
    let compared = compare(two);
    let rows = rows_of_json(&render_comparison(&compared, ReportFormat::Json, 0));
    rows.iter().for_each(Row::check);
    let of_csv =
        rows_of_csv(&render_comparison(&compared, ReportFormat::Csv, 0).replace("\r\n", "\n"));
    of_csv.iter().for_each(Row::check);
    assert_eq!(format!("{rows:?}"), format!("{of_csv:?}"));
    check_printed(
        &render_comparison(&compared, ReportFormat::Markdown, 0),
        &rows,
    );
}

/// What stands beside a ratio is what the runs' own tables say.
fn check_figures(two: &[Run]) {
    let compared = compare(two);
    for pair in &compared.result_pairs {
        for (run, side) in [(&two[0], &pair.base), (&two[1], &pair.other)] {
            let mut results = run.results.iter();
            let result = results
                .find(|one| one.display_title() == pair.title)
                .unwrap();
            let Some(load) = ResultSummary::from_result(result).load else {
                continue;
            };
            let response = load.response.as_ref();
            let own = match pair.quantity {
                Quantity::Iops => Some(load.iops),
                Quantity::ResponseP50Us => response.and_then(|one| one.p50_us),
                Quantity::ResponseP99Us => response.and_then(|one| one.p99_us),
                Quantity::KbPerS | Quantity::DurableKbPerS => unreachable!("of a load that reads"),
            };
            let own = own.unwrap_or(0.0);
            assert!(
                (side.figure - own).abs() <= 1e-9 * own,
                "{} {own}",
                side.figure
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn separate_runs(base in prop::collection::vec(speeds(), 1..4), other in prop::collection::vec(speeds(), 1..4)) {
        check(&[of("a", &base), of("b", &other)]);
    }

    #[test]
    fn arms(base in speeds(), other in speeds(), coins in prop::collection::vec(any::<bool>(), 40)) {
        check(&[
            arm(of("a", &[base]), ComparisonVariant::A, "b", &coins),
            arm(of("b", &[other]), ComparisonVariant::B, "a", &coins),
        ]);
    }

    #[test]
    fn arms_that_hardly_differ(
        base in speeds(),
        shift in 0.9..1.1_f64,
        coins in prop::collection::vec(any::<bool>(), 40),
    ) {
        let other = base.iter().map(|speed| speed * shift).collect();
        check(&[
            arm(of("a", &[base]), ComparisonVariant::A, "b", &coins),
            arm(of("b", &[other]), ComparisonVariant::B, "a", &coins),
        ]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn separate_runs_of_several_requests_under_way(
        base in prop::collection::vec(speeds(), 1..4),
        other in prop::collection::vec(speeds(), 1..4),
        open_loop in any::<bool>(),
    ) {
        let two = [loads("a", &base, open_loop), loads("b", &other, open_loop)];
        check(&two);
        check_figures(&two);
    }

    #[test]
    fn arms_of_several_requests_under_way(
        base in speeds(),
        shift in 0.5..2.0_f64,
        coins in prop::collection::vec(any::<bool>(), 40),
        open_loop in any::<bool>(),
    ) {
        let other = base.iter().map(|speed| speed * shift).collect();
        check(&[
            arm(loads("a", &[base], open_loop), ComparisonVariant::A, "b", &coins),
            arm(loads("b", &[other], open_loop), ComparisonVariant::B, "a", &coins),
        ]);
    }
}

/// A program that was interrupted before its first repetition, behind loads that were measured.
#[test]
fn a_program_without_repetitions_behind_loads() {
    let speeds = [vec![1000.0; 3], Vec::new(), vec![2000.0]];
    for open_loop in [false, true] {
        let two = [
            loads("a", &speeds, open_loop),
            loads("b", &speeds, open_loop),
        ];
        check(&two);
        check_figures(&two);
    }
}
