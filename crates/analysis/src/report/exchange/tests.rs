//! Tests of what other tools demand of their formats. Their own parsers read the same formats in
//! the tests of the program.

use super::super::{ExchangeError, ExchangeFormat, render_exchange};
use super::{render_junit_comparison, render_junit_runs};
use crate::comparison::compare;
use crate::fixtures::load::READ_LOAD;
use crate::fixtures::{build_ffs83_run, build_run};
use diskperf_timeline::{Histogram, Nanoseconds, Run};
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;

/// Label with everything that a format may take for its own syntax.
const HOSTILE: &str = "a\"b\\c\n{d=\"e\"} 1\r# EOF\0é]]>&<x/>,\u{202e}%0A\u{ffff}";

const FORMATS: [ExchangeFormat; 6] = [
    ExchangeFormat::BencherMetric,
    ExchangeFormat::GithubBenchmarkBigger,
    ExchangeFormat::GithubBenchmarkSmaller,
    ExchangeFormat::Prometheus,
    ExchangeFormat::OpenMetrics,
    ExchangeFormat::HdrLog,
];

fn load_run(id: &str, label: Option<&str>) -> Run {
    // Two rows with one title.
    let results = vec![
        READ_LOAD.build_result("random", 0),
        READ_LOAD.build_result("random", 1),
    ];
    Run {
        user_label: label.map(str::to_owned),
        ..build_run(id, "random", "/var", results)
    }
}

fn hostile_runs() -> [Run; 3] {
    [
        load_run("00000000aa", Some(HOSTILE)),
        load_run("00000000bb", Some(HOSTILE)),
        build_ffs83_run("00000000cc", "/mnt/a \"b\"\n"),
    ]
}

#[test]
fn hostile_labels_add_no_line_and_no_benchmark() {
    let tame = [
        load_run("00000000aa", Some("tame")),
        load_run("00000000bb", Some("tame")),
        build_ffs83_run("00000000cc", "/mnt/a"),
    ];
    for format in FORMATS {
        let [hostile, tame] =
            [&hostile_runs(), &tame].map(|runs| render_exchange(runs, format).unwrap());
        assert_eq!(hostile.lines().count(), tame.lines().count(), "{format:?}");
        let refused = |character: char| {
            (character.is_control() && character != '\n') || character == '\u{202e}'
        };
        assert!(!hostile.contains(refused), "{format:?}");
    }
}

#[test]
fn bencher_gets_values_within_their_bounds_under_names_of_their_own() {
    let runs = hostile_runs();
    let text = render_exchange(&runs, ExchangeFormat::BencherMetric).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let benchmarks = found.as_object().unwrap();
    let rows: usize = runs.iter().map(|run| run.results.len()).sum();
    assert_eq!(benchmarks.len(), rows);
    let mut bounded = 0;
    for (name, measures) in benchmarks {
        assert!(!name.is_empty());
        for figure in measures.as_object().unwrap().values() {
            let value = figure["value"].as_f64().unwrap();
            if let Some(low) = figure.get("lower_value") {
                let high = figure["upper_value"].as_f64().unwrap();
                assert!(
                    low.as_f64().unwrap() <= value && value <= high,
                    "{name}: {figure}"
                );
                bounded += 1;
            }
        }
    }
    assert!(bounded >= rows);
}

#[test]
fn a_file_for_github_has_figures_of_one_direction() {
    let runs = hostile_runs();
    let names = |format| -> Vec<String> {
        let found: Value = serde_json::from_str(&render_exchange(&runs, format).unwrap()).unwrap();
        let entries = found.as_array().unwrap().iter();
        entries
            .map(|entry| {
                assert!(
                    entry["value"].is_number() && entry["unit"].is_string(),
                    "{entry}"
                );
                entry["name"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    let bigger = names(ExchangeFormat::GithubBenchmarkBigger);
    let smaller = names(ExchangeFormat::GithubBenchmarkSmaller);
    assert!(
        bigger
            .iter()
            .all(|name| name.ends_with("iops") || name.ends_with("bytes_per_s"))
    );
    assert!(smaller.iter().all(|name| name.ends_with("_ns")
        || name.ends_with("cpu_ns_per_request")
        || name.ends_with("cpu_percent")));
    let mut all = [bigger, smaller].concat();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn buckets_are_cumulative_and_end_with_the_number_of_requests() {
    let run = load_run("00000000aa", None);
    let text = render_exchange(std::slice::from_ref(&run), ExchangeFormat::Prometheus).unwrap();
    assert!(!text.contains("EOF"));
    let number = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let requests: Histogram = run.results[0]
        .kept_repetitions()
        .map(|one| one.response_times())
        .fold(Histogram::new(), |mut sum, one| {
            sum.merge(&one);
            sum
        });
    let of_first: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("diskperf_response_time_seconds_"))
        .take(27)
        .collect();
    let buckets: Vec<f64> = of_first[..26].iter().map(|line| number(line)).collect();
    assert!(buckets.is_sorted());
    assert_eq!(buckets[25], requests.latency_count() as f64);
    let below = |bound: u64| {
        requests
            .buckets()
            .iter()
            .filter(move |(ns, _)| *ns <= bound)
    };
    let expected: u64 = below(100_000).map(|(_, count)| count).sum();
    let bucket = of_first.iter().find(|line| line.contains("le=\"0.0001\""));
    assert_eq!(number(bucket.unwrap()), expected as f64);
}

#[test]
fn a_log_of_histograms_is_read_back_with_its_counts() {
    let run = load_run("00000000aa", None);
    let text = render_exchange(std::slice::from_ref(&run), ExchangeFormat::HdrLog).unwrap();
    let mut lines = Vec::new();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        if let LogEntry::Interval(line) = entry.unwrap() {
            lines.push(line);
        }
    }
    let repetitions: Vec<_> = run
        .results
        .iter()
        .flat_map(|one| one.kept_repetitions())
        .collect();
    assert_eq!(lines.len(), repetitions.len());
    for (line, repetition) in lines.iter().zip(repetitions) {
        let bytes = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            line.encoded_histogram(),
        );
        let read: Hdr<u64> = Deserializer::new()
            .deserialize(&mut &bytes.unwrap()[..])
            .unwrap();
        let kept = repetition.response_times();
        assert_eq!(read.len(), kept.latency_count());
        for percent in [50.0, 99.0, 99.9, 100.0] {
            let ours = kept.percentile(percent).0 as f64;
            let theirs = read.value_at_quantile(percent / 100.0 - 1e-9) as f64;
            assert!(
                (theirs / ours - 1.0).abs() < 1e-3,
                "{percent}: {ours} {theirs}"
            );
        }
    }
}

#[test]
fn runs_without_figures_are_refused() {
    let empty = build_run("00000000aa", "ffs83", "/var", Vec::new());
    for format in FORMATS {
        let refused = render_exchange(std::slice::from_ref(&empty), format);
        assert_eq!(refused, Err(ExchangeError::NoFigures));
    }
    let mut untimed = build_ffs83_run("00000000bb", "/var");
    for result in &mut untimed.results {
        for worker in result
            .repetitions
            .iter_mut()
            .flat_map(|one| &mut one.workers)
        {
            (worker.read_latency, worker.write_latency) = (Histogram::new(), Histogram::new());
        }
    }
    let refused = render_exchange(&[untimed], ExchangeFormat::HdrLog);
    assert_eq!(refused, Err(ExchangeError::NoLatencies));
}

#[test]
fn a_slower_row_fails_and_an_undecided_one_is_skipped() {
    let slowed = |factor: u64, id: &str| {
        let mut run = build_ffs83_run(id, "/var");
        for result in &mut run.results {
            let one = result.repetitions[1].clone();
            // Enough repetitions for a firm verdict.
            result.repetitions = (0..20)
                .map(|number| {
                    let mut repetition = one.clone();
                    for worker in &mut repetition.workers {
                        let ns = worker.elapsed_time.0 * factor;
                        worker.elapsed_time = Nanoseconds(ns + number % 3 * ns / 200);
                    }
                    repetition
                })
                .collect();
            result.protocol.repetition_count = 20;
            result.protocol.discarded_count = 0;
        }
        run
    };
    let runs = [slowed(1, "00000000aa"), slowed(3, "00000000bb")];
    let text = render_junit_comparison(&compare(&runs));
    assert!(text.contains("failure type=\"slower\""), "{text}");
    // Their durable rates are alike, and separate runs cannot show that.
    assert!(
        text.contains("failures=\"4\" errors=\"0\" skipped=\"3\""),
        "{text}"
    );
    let few = [
        build_ffs83_run("00000000cc", "/var"),
        build_ffs83_run("00000000dd", "/var"),
    ];
    let text = render_junit_comparison(&compare(&few));
    assert!(
        text.contains("<skipped") && !text.contains("<failure"),
        "{text}"
    );
    let alone = render_junit_runs(&hostile_runs());
    assert!(
        alone.contains("&lt;x/&gt;") && alone.contains("\\uffff"),
        "{alone}"
    );
}
