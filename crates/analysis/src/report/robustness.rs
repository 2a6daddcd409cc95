//! Tests with runs in which anything may be zero, absent or huge, for which a report must print no
//! nonsense.

use super::{ReportFormat, html, render_comparison, render_details, render_runs, render_series};
use crate::comparison::compare;
use crate::fixtures::{RandomNoise, build_result, build_run, build_seqread_result};
use diskperf_timeline::{
    CacheMode, Histogram, LoadMeasure, Nanoseconds, Overhead, ProgramResult, Repetition, Residency,
    Run, SeriesPoint, SummaryStatistic, WorkerMeasure,
};
use serde_json::Value;

const EXTREME_NUMBERS: [u64; 4] = [0, 1, 1000, 1 << 40];

struct RandomInput(RandomNoise);

impl RandomInput {
    fn pick_value<T: Clone>(&mut self, values: &[T]) -> T {
        values[(self.0.uniform() * values.len() as f64) as usize].clone()
    }

    fn random_number(&mut self) -> u64 {
        self.pick_value(&EXTREME_NUMBERS)
    }

    fn random_option(&mut self, value: u64) -> Option<u64> {
        self.pick_value(&[None, Some(value)])
    }

    fn random_worker(&mut self) -> WorkerMeasure {
        let durable = self.random_number();
        let stored = self.random_number();
        let latency: Histogram = [Nanoseconds(self.random_number())].into_iter().collect();
        WorkerMeasure {
            drive_index: self.pick_value(&[0, 1]),
            start_time: Nanoseconds(self.pick_value(&[0, 1000])),
            elapsed_time: Nanoseconds(self.random_number()),
            durable_time: self.random_option(durable).map(Nanoseconds),
            cpu_time: Nanoseconds(self.random_number()),
            system_cpu_time: Nanoseconds(self.random_number()),
            payload_bytes: self.random_number(),
            read_bytes: self.random_number(),
            call_count: self.random_number(),
            storage_read_bytes: self.random_option(stored),
            read_latency: self.pick_value(&[Histogram::new(), latency]),
            load_measure: self
                .pick_value(&[None, Some(())])
                .map(|()| self.random_load()),
            ..WorkerMeasure::default()
        }
    }

    fn random_load(&mut self) -> LoadMeasure {
        let latencies = |dice: &mut Self| -> Histogram {
            match dice.pick_value(&[0, 1, 200]) {
                0 => Histogram::new(),
                count => vec![(dice.random_number(), count)].into(),
            }
        };
        let mut load = LoadMeasure::default();
        load.read.response_times = latencies(self);
        load.write.submit_call_times = latencies(self);
        load.sync.response_times = latencies(self);
        let lag = latencies(self);
        load.arrival_lag = self.pick_value(&[None, Some(lag)]);
        load.series_interval = Nanoseconds(self.random_number());
        load.time_series = (0..self.pick_value(&[0, 1, 3]))
            .map(|_| SeriesPoint {
                read_count: self.random_number(),
                read_bytes: self.random_number(),
                response_times: latencies(self),
                ..SeriesPoint::default()
            })
            .collect();
        load
    }

    fn random_repetition(&mut self) -> Repetition {
        let residency = Residency {
            file_bytes: self.random_number(),
            resident_before_bytes: self.random_number(),
            resident_after_bytes: self.random_number(),
        };
        let workers = self.pick_value(&[0, 1, 2]);
        Repetition {
            is_discarded: self.pick_value(&[false, false, true]),
            workers: (0..workers).map(|_| self.random_worker()).collect(),
            residency: self.pick_value(&[None, Some(residency)]),
            ..Repetition::default()
        }
    }

    fn random_result(&mut self, row: u32) -> ProgramResult {
        let layers = [
            "null",
            "bnull",
            "zero",
            "cached",
            "dropped",
            "direct",
            "device",
            "device_direct",
        ];
        let of_layer = build_seqread_result(
            self.pick_value(&layers),
            self.pick_value(&[512, 1024]),
            row,
            &[],
        );
        let mut one = self.pick_value(&[build_result("read", row, Vec::new()), of_layer]);
        let repetitions = self.pick_value(&[0, 1, 2, 3, 7]);
        one.repetitions = (0..repetitions).map(|_| self.random_repetition()).collect();
        one.drive_count = self.pick_value(&[1, 2]);
        one.filesystem_type = self.pick_value(&["", "ext4/4096", "vda"]).to_owned();
        one.cache_mode = self.pick_value(&[CacheMode::Cold, CacheMode::Warm, CacheMode::Direct]);
        one.protocol.statistic =
            self.pick_value(&[SummaryStatistic::Median, SummaryStatistic::Minimum]);
        one
    }

    fn random_run(&mut self) -> Run {
        let results = self.pick_value(&[0, 1, 12]);
        let results = (0..results).map(|row| self.random_result(row)).collect();
        let mut one = build_run("3fa85f6457", "suite", self.pick_value(&["/a", ""]), results);
        one.overhead = self.pick_value(&[None, Some(Overhead::default()), one.overhead]);
        one
    }
}

/// JSON fields that must always be numbers, even if 0. JSON has no NaN and no infinity; they would
/// be written as null.
const NEVER_NULL_KEYS: [&str; 14] = [
    "kb_per_s",
    "cpu_percent",
    "elapsed_s",
    "cpu_s",
    "user_s",
    "system_s",
    "calls",
    "low",
    "high",
    "confidence",
    "widened_by",
    "mean_ns",
    "ns",
    "total_ns",
];

fn assert_numbers(json: &Value, place: &str) {
    match json {
        Value::Array(values) => values.iter().for_each(|value| assert_numbers(value, place)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let wanted = NEVER_NULL_KEYS.contains(&name.as_str());
                assert!(!wanted || value.is_number(), "{place}: {name} in {json}");
                assert_numbers(value, place);
            }
        }
        _ => {}
    }
}

#[test]
fn degenerate_runs_print_no_nonsense() {
    let seed = 11;
    println!("seed {seed}");
    let mut dice = RandomInput(RandomNoise::new(seed));
    for case in 0..60 {
        let some = [dice.random_run(), dice.random_run()];
        let compared = compare(&some);
        for text in [
            render_runs(&some, ReportFormat::Json, 0),
            render_comparison(&compared, ReportFormat::Json, 0),
        ] {
            let json = serde_json::from_str(&text).unwrap();
            assert_numbers(&json, &format!("seed {seed}, case {case}"));
        }
        // A number that is none would be null.
        let reported = some.each_ref().map(|run| html::ReportedRun {
            run: run.clone(),
            printed_figures: Vec::new(),
            pictures_by_result: Vec::new(),
            no_pictures_reason: None,
        });
        for chart in html::build_charts(&reported) {
            let rows = chart.vega_spec["data"]["values"].to_string();
            assert!(!rows.contains(":null"), "seed {seed}, case {case}: {rows}");
        }
        let mut texts = vec![
            render_details(&some[0], 80),
            render_series(&some, ReportFormat::Table, 80),
        ];
        for format in [
            ReportFormat::Table,
            ReportFormat::Markdown,
            ReportFormat::Json,
            ReportFormat::Csv,
        ] {
            for width in [0, 80] {
                texts.push(render_runs(&some, format, width));
                texts.push(render_comparison(&compared, format, width));
            }
        }
        for text in texts {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            let nonsense = words.find(|word| ["NaN", "nan", "inf"].contains(word));
            assert_eq!(nonsense, None, "seed {seed}, case {case}:\n{text}");
        }
    }
}
