//! Replay beside its trace: the response times of both, and the fidelity of the issue times.

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::view::RunView;
use crate::replay::{ReplayFidelity, list_responses, replay_of_run};
use diskperf_timeline::{Histogram, ProgramResult, ReplayPace, Run};
use serde::Serialize;
use serde::ser::SerializeMap;

/// Tabulates the response times of the replay beside those in the trace; empty where the trace has
/// none. Where the report has several runs, the heading names the run.
pub(super) fn build_blocks(view: &RunView, views: usize) -> Vec<DocumentBlock> {
    let Some((_, held)) = replay_of_run(view.run) else {
        return Vec::new();
    };
    let mut titles = Vec::new();
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for row in &view.rows {
        for (name, response) in list_responses(held) {
            let own = merge_replayed_response(row.result, name);
            if own.latency_count() > 0 {
                titles.push(format!("{}, {name}", row.title));
                here.push(own);
                there.push(response.clone());
            }
        }
    }
    if titles.is_empty() {
        return Vec::new();
    }
    let column = |heading: &str, of: &[Histogram], figure: fn(&Histogram) -> String| {
        Column::right_aligned(heading, of.iter().map(figure).collect())
    };
    let group = |heading: &str, of: &[Histogram]| {
        ColumnGroup::new(
            heading,
            vec![
                column("p50", of, |one| format_percentile(one, 50.0)),
                column("p99", of, |one| format_percentile(one, 99.0)),
                column("max", of, |one| {
                    figures::format_us(one.latency_max().0 as f64 / 1e3)
                }),
            ],
        )
    };
    let ratio = here.iter().zip(&there).map(|(here, there)| {
        let mean = there.mean_ns();
        match mean > 0.0 {
            true => format!("{:.2}", here.mean_ns() / mean),
            false => "-".to_owned(),
        }
    });
    let ratio = Column::right_aligned("mean here /\nin the trace", ratio.collect());
    let whose = match views {
        1 => "Responses here".to_owned(),
        _ => format!("Responses of {}", view.name),
    };
    vec![
        DocumentBlock::Section(format!("{whose}, and where the trace was recorded")),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("replay, operation", titles),
            groups: vec![
                group("here", &here),
                group("in the trace", &there),
                ColumnGroup::new("", vec![ratio]),
            ],
        }),
    ]
}

/// Returns the response times of one operation in the replay, over all kept repetitions.
fn merge_replayed_response(result: &ProgramResult, name: &str) -> Histogram {
    let mut all = Histogram::new();
    for load in result
        .kept_repetitions()
        .flat_map(|one| one.load_measures())
    {
        let mut operations = load.named_operations().into_iter();
        if let Some((_, operation)) = operations.find(|(known, _)| *known == name) {
            all.merge(&operation.response_times);
        }
    }
    all
}

fn format_percentile(histogram: &Histogram, percentile: f64) -> String {
    match histogram.can_estimate(percentile) {
        true => figures::format_us(histogram.percentile(percentile).0 as f64 / 1e3),
        false => "-".to_owned(),
    }
}

/// Describes how the requests of replays were issued, and the fidelity of their issue times.
pub(super) fn list_notes(views: &[RunView]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut meanings: Vec<&str> = Vec::new();
    for view in views {
        if let Some((replay, _)) = replay_of_run(view.run) {
            said.extend(describe_issue_times(view, replay.replay_pace, views.len()));
            let meaning = describe_pace(replay.replay_pace);
            if !meanings.contains(&meaning) {
                meanings.push(meaning);
            }
        }
    }
    said.extend(meanings.into_iter().map(str::to_owned));
    said
}

/// Describes how the requests of one replay were issued.
fn describe_issue_times(view: &RunView, pace: ReplayPace, views: usize) -> Vec<String> {
    let mut said = Vec::new();
    for row in &view.rows {
        let title = view.format_row_title(row, views);
        if let Some(found) = ReplayFidelity::from_result(row.result) {
            said.push(format!(
                "{title}: {:.2} % of the requests were issued within 100 µs of {}; late by {} at p50, {} at p99, {} at most; {} in flight at most",
                100.0 * found.within_100_us_share,
                describe_pace_reference(pace),
                figures::format_us(found.lag_p50_us),
                figures::format_us(found.lag_p99_us),
                figures::format_us(found.lag_max_us),
                found.queue_depth_max
            ));
            let warnings = found.warnings().into_iter();
            said.extend(warnings.map(|warning| format!("{title}: {warning}")));
        }
    }
    said
}

fn describe_pace_reference(pace: ReplayPace) -> &'static str {
    match pace {
        ReplayPace::OpenLoop { .. } => "the trace's times",
        ReplayPace::ClosedLoop { .. } | ReplayPace::Dependent => "the end of the trace's pauses",
    }
}

fn describe_pace(pace: ReplayPace) -> &'static str {
    match pace {
        ReplayPace::OpenLoop { .. } => {
            "open loop: requests arrive at the trace's times, so storage slower than the trace's gets more requests in flight than a program would submit"
        }
        ReplayPace::ClosedLoop { .. } => {
            "closed loop: each completion issues the next request, in the trace's order, without its times"
        }
        ReplayPace::Dependent => {
            "dependent: pauses come from the trace, response times from this storage"
        }
    }
}

/// Facts about a replay in the JSON contract.
#[derive(Serialize)]
pub(super) struct ReplayJson<'a> {
    trace: &'a str,
    form: &'a str,
    pace: ReplayPace,
    trace_requests: u64,
    trace_duration_s: f64,
    /// Fidelity of the issue times; absent for a closed loop, which has no scheduled times.
    #[serde(skip_serializing_if = "Option::is_none")]
    fidelity: Option<ReplayFidelity>,
    /// Response times in the trace, by operation.
    #[serde(serialize_with = "serialize_by_name")]
    trace_latency: Vec<(&'static str, TraceLatencyJson)>,
}

/// Response times of one operation in a recorded trace, in microseconds. A percentile is absent
/// where requests are too few.
#[derive(Serialize)]
struct TraceLatencyJson {
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    p99_9_us: Option<f64>,
    max_us: f64,
    mean_us: f64,
    count: u64,
}

impl TraceLatencyJson {
    fn from_histogram(response: &Histogram) -> Self {
        let at = |percentile| {
            let told = response.can_estimate(percentile);
            told.then(|| response.percentile(percentile).0 as f64 / 1e3)
        };
        Self {
            p50_us: at(50.0),
            p99_us: at(99.0),
            p99_9_us: at(99.9),
            max_us: response.latency_max().0 as f64 / 1e3,
            mean_us: response.mean_ns() / 1e3,
            count: response.latency_count(),
        }
    }
}

impl<'a> ReplayJson<'a> {
    /// Returns the facts about a replay; `None` if the result is no replay.
    pub(super) fn from_result(run: &'a Run, result: &ProgramResult) -> Option<Self> {
        let (replay, held) = replay_of_run(run)?;
        let in_trace = list_responses(held).into_iter();
        Some(Self {
            trace: replay.name(),
            form: &held.trace_format,
            pace: replay.replay_pace,
            trace_requests: held.request_count(),
            trace_duration_s: held.duration_ns as f64 / 1e9,
            fidelity: ReplayFidelity::from_result(result),
            trace_latency: in_trace
                .map(|(name, response)| (name, TraceLatencyJson::from_histogram(response)))
                .collect(),
        })
    }
}

/// Serializes an object with a field for each operation.
fn serialize_by_name<S: serde::Serializer>(
    operations: &[(&'static str, TraceLatencyJson)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(operations.len()))?;
    for (name, operation) in operations {
        map.serialize_entry(name, operation)?;
    }
    map.end()
}
