//! Tests with runs in which anything may be zero, absent or huge, for which a report must print no
//! nonsense.

use super::{Format, comparison, details, html, runs, series};
use crate::comparison::compare;
use crate::fixtures::{Noise, result, run, seqread};
use diskperf_timeline::{
    CacheMode, Histogram, LoadMeasure, Nanoseconds, Overhead, ProgramResult, Repetition, Residency,
    Run, SeriesPoint, SummaryStatistic, WorkerMeasure,
};
use serde_json::Value;

const NUMBERS: [u64; 4] = [0, 1, 1000, 1 << 40];

struct RandomInput(Noise);

impl RandomInput {
    fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[(self.0.uniform() * values.len() as f64) as usize].clone()
    }

    fn number(&mut self) -> u64 {
        self.pick(&NUMBERS)
    }

    fn maybe(&mut self, value: u64) -> Option<u64> {
        self.pick(&[None, Some(value)])
    }

    fn worker(&mut self) -> WorkerMeasure {
        let durable = self.number();
        let stored = self.number();
        let latency: Histogram = [Nanoseconds(self.number())].into_iter().collect();
        WorkerMeasure {
            drive_index: self.pick(&[0, 1]),
            start_time: Nanoseconds(self.pick(&[0, 1000])),
            elapsed_time: Nanoseconds(self.number()),
            durable_time: self.maybe(durable).map(Nanoseconds),
            cpu_time: Nanoseconds(self.number()),
            system_cpu_time: Nanoseconds(self.number()),
            payload_bytes: self.number(),
            read_bytes: self.number(),
            call_count: self.number(),
            storage_read_bytes: self.maybe(stored),
            read_latency: self.pick(&[Histogram::new(), latency]),
            load_measure: self.pick(&[None, Some(())]).map(|()| self.load()),
            ..WorkerMeasure::default()
        }
    }

    fn load(&mut self) -> LoadMeasure {
        let latencies = |dice: &mut Self| -> Histogram {
            match dice.pick(&[0, 1, 200]) {
                0 => Histogram::new(),
                count => vec![(dice.number(), count)].into(),
            }
        };
        let mut load = LoadMeasure::default();
        load.read.response_times = latencies(self);
        load.write.submit_call_times = latencies(self);
        load.sync.response_times = latencies(self);
        let lag = latencies(self);
        load.arrival_lag = self.pick(&[None, Some(lag)]);
        load.series_interval = Nanoseconds(self.number());
        load.time_series = (0..self.pick(&[0, 1, 3]))
            .map(|_| SeriesPoint {
                read_count: self.number(),
                read_bytes: self.number(),
                response_times: latencies(self),
                ..SeriesPoint::default()
            })
            .collect();
        load
    }

    fn repetition(&mut self) -> Repetition {
        let residency = Residency {
            file_bytes: self.number(),
            resident_before_bytes: self.number(),
            resident_after_bytes: self.number(),
        };
        let workers = self.pick(&[0, 1, 2]);
        Repetition {
            is_discarded: self.pick(&[false, false, true]),
            workers: (0..workers).map(|_| self.worker()).collect(),
            residency: self.pick(&[None, Some(residency)]),
            ..Repetition::default()
        }
    }

    fn result(&mut self, row: u32) -> ProgramResult {
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
        let of_layer = seqread(self.pick(&layers), self.pick(&[512, 1024]), row, &[]);
        let mut one = self.pick(&[result("read", row, Vec::new()), of_layer]);
        let repetitions = self.pick(&[0, 1, 2, 3, 7]);
        one.repetitions = (0..repetitions).map(|_| self.repetition()).collect();
        one.drive_count = self.pick(&[1, 2]);
        one.filesystem_type = self.pick(&["", "ext4/4096", "vda"]).to_owned();
        one.cache_mode = self.pick(&[CacheMode::Cold, CacheMode::Warm, CacheMode::Direct]);
        one.protocol.statistic = self.pick(&[SummaryStatistic::Median, SummaryStatistic::Minimum]);
        one
    }

    fn run(&mut self) -> Run {
        let results = self.pick(&[0, 1, 12]);
        let results = (0..results).map(|row| self.result(row)).collect();
        let mut one = run("3fa85f6457", "suite", self.pick(&["/a", ""]), results);
        one.overhead = self.pick(&[None, Some(Overhead::default()), one.overhead]);
        one
    }
}

/// JSON fields that must always be numbers, even if 0. JSON has no NaN and no infinity; they would
/// be written as null.
const ALWAYS_NUMBERS: [&str; 14] = [
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
                let wanted = ALWAYS_NUMBERS.contains(&name.as_str());
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
    let mut dice = RandomInput(Noise::new(seed));
    for case in 0..60 {
        let some = [dice.run(), dice.run()];
        let compared = compare(&some);
        for text in [
            runs(&some, Format::Json, 0),
            comparison(&compared, Format::Json, 0),
        ] {
            let json = serde_json::from_str(&text).unwrap();
            assert_numbers(&json, &format!("seed {seed}, case {case}"));
        }
        // A number that is none would be null.
        let reported = some.each_ref().map(|run| html::Reported {
            run: run.clone(),
            printed: Vec::new(),
            pictures: Vec::new(),
            no_pictures: None,
        });
        for chart in html::charts(&reported) {
            let rows = chart.spec["data"]["values"].to_string();
            assert!(!rows.contains(":null"), "seed {seed}, case {case}: {rows}");
        }
        let mut texts = vec![details(&some[0], 80), series(&some, Format::Table, 80)];
        for format in [Format::Table, Format::Markdown, Format::Json, Format::Csv] {
            for width in [0, 80] {
                texts.push(runs(&some, format, width));
                texts.push(comparison(&compared, format, width));
            }
        }
        for text in texts {
            let mut words = text.split(|c: char| !c.is_alphanumeric());
            let nonsense = words.find(|word| ["NaN", "nan", "inf"].contains(word));
            assert_eq!(nonsense, None, "seed {seed}, case {case}:\n{text}");
        }
    }
}
