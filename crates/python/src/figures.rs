//! Figures of a run as columns.

use crate::columns::Columns;
use crate::table::{TableBuilder, to_signed};
use diskperf_analysis::quantity::Quantity;
use diskperf_analysis::statistics::ConfidenceInterval;
use diskperf_analysis::summary::ResultSummary;
use diskperf_analysis::summary::load::{self, LatencySummary};
use diskperf_timeline::{Nanoseconds, ProgramResult, Repetition, Run, Stage, WorkerMeasure};

/// Returns a row for each program and file system, in the order of the suite's table.
pub(crate) fn result_columns(run: &Run) -> Columns {
    let mut ordered: Vec<&ProgramResult> = run.results.iter().collect();
    ordered.sort_by_key(|result| result.table_row);
    let titles: Vec<String> = ordered.iter().map(|result| result.result_key()).collect();
    let summaries = ordered
        .iter()
        .map(|one| ResultSummary::summarize_in_world(run.world, one));
    let summaries: Vec<ResultSummary> = summaries.collect();
    let results = || ordered.iter();
    let of = || summaries.iter();
    TableBuilder::default()
        .text_column("program", titles.iter().map(String::as_str))
        .text_column(
            "filesystem",
            results().map(|one| one.filesystem_type.as_str()),
        )
        .integer_column("drives", results().map(|one| i64::from(one.drive_count)))
        .integer_column("size_bytes", results().map(|one| to_signed(one.size_bytes)))
        .text_column("cache", results().map(|one| one.cache_mode.mode_name()))
        .integer_column("kept", of().map(|one| one.kept_count as i64))
        .number_column("kb_per_s", of().map(|one| one.kb_per_s))
        .number_column("durable_kb_per_s", of().map(|one| one.durable_kb_per_s))
        .number_column("cpu_percent", of().map(|one| one.cpu_percent))
        .number_column("elapsed_s", of().map(|one| one.elapsed_s))
        .number_column("durable_elapsed_s", of().map(|one| one.durable_elapsed_s))
        .number_column("cpu_s", of().map(|one| one.cpu_s))
        .number_column(
            "kb_per_s_low",
            of().map(|one| one.speed_interval.map(|it| it.min)),
        )
        .number_column(
            "kb_per_s_high",
            of().map(|one| one.speed_interval.map(|it| it.max)),
        )
        .number_column("calls", of().map(|one| one.call_count))
        .number_column("mean_call_ns", of().map(|one| one.mean_call_ns))
        .integer_column(
            "read_p50_ns",
            of().map(|one| one.read_latency.and_then(|it| it.p50_ns.map(to_signed))),
        )
        .integer_column(
            "read_p99_ns",
            of().map(|one| one.read_latency.and_then(|it| it.p99_ns.map(to_signed))),
        )
        .integer_column(
            "write_p50_ns",
            of().map(|one| one.write_latency.and_then(|it| it.p50_ns.map(to_signed))),
        )
        .integer_column(
            "write_p99_ns",
            of().map(|one| one.write_latency.and_then(|it| it.p99_ns.map(to_signed))),
        )
        .number_column("device_share", of().map(|one| one.device_share))
        .number_column("iops", of().map(|one| Some(one.load.as_ref()?.iops)))
        .number_column(
            "iops_low",
            of().map(|one| Some(one.load.as_ref()?.iops_interval?.min)),
        )
        .number_column(
            "iops_high",
            of().map(|one| Some(one.load.as_ref()?.iops_interval?.max)),
        )
        .number_column(
            "mb_per_s",
            of().map(|one| Some(one.load.as_ref()?.mb_per_s)),
        )
        .integer_column(
            "depth",
            of().map(|one| Some(i64::from(one.load.as_ref()?.queue_depth_max))),
        )
        .integer_column(
            "workers",
            of().map(|one| Some(i64::from(one.load.as_ref()?.worker_count))),
        )
        .flag_column("steady", of().map(|one| Some(one.steady?.is_attained)))
        .number_column("steady_at_s", of().map(|one| one.steady?.attained_at_s))
        .text_column(
            "cliff_cache",
            of().map(|one| Some(one.cache_cliff?.cache.name())),
        )
        .integer_column(
            "cliff_at_bytes",
            of().map(|one| Some(one.cache_cliff?.written_bytes_at_cliff as i64)),
        )
        .number_column(
            "cliff_past_share",
            of().map(|one| Some(one.cache_cliff?.past_cache_share)),
        )
        .number_column("unwritten_share", of().map(|one| one.unwritten_share))
        .number_column("read_share", of().map(|one| one.load.as_ref()?.read_share))
        .number_column(
            "response_p50_us",
            of().map(|one| response_latency(one)?.p50_us),
        )
        .number_column(
            "response_p99_us",
            of().map(|one| response_latency(one)?.p99_us),
        )
        .number_column(
            "response_p99_9_us",
            of().map(|one| response_latency(one)?.p99_9_us),
        )
        .number_column(
            "response_max_us",
            of().map(|one| Some(response_latency(one)?.max_us)),
        )
        .number_column(
            "cpu_us_per_io",
            of().map(|one| one.load.as_ref()?.cpu_us_per_io),
        )
        .into_columns()
}

fn response_latency(summary: &ResultSummary) -> Option<&LatencySummary> {
    summary.load.as_ref()?.response.as_ref()
}

/// Returns rows for each operation of each program with several requests in flight: one for the
/// response time, one for the time in the submitting call.
pub(crate) fn latency_columns(run: &Run) -> Columns {
    let mut rows: Vec<(String, &ProgramResult, &str, &str, LatencySummary)> = Vec::new();
    for result in &run.results {
        let summary = ResultSummary::summarize_in_world(run.world, result);
        for one in summary
            .load
            .into_iter()
            .flat_map(|load| load.operation_summaries)
        {
            for (part, latency) in [
                ("response", one.response_latency),
                ("submit", one.submit_latency),
            ] {
                let row = |latency| (result.result_key(), result, one.name, part, latency);
                rows.extend(latency.map(row));
            }
        }
    }
    let of = || rows.iter().map(|(.., latency)| latency);
    let (low, high) = (
        |it: ConfidenceInterval| it.min,
        |it: ConfidenceInterval| it.max,
    );
    TableBuilder::default()
        .text_column("program", rows.iter().map(|(title, ..)| title.as_str()))
        .text_column(
            "filesystem",
            rows.iter().map(|(_, one, ..)| one.filesystem_type.as_str()),
        )
        .text_column("operation", rows.iter().map(|(_, _, name, ..)| *name))
        .text_column("part", rows.iter().map(|(_, _, _, part, _)| *part))
        .integer_column("count", of().map(|one| to_signed(one.request_count)))
        .number_column("p50_us", of().map(|one| one.p50_us))
        .number_column("p50_us_low", of().map(|one| one.p50_interval.map(low)))
        .number_column("p50_us_high", of().map(|one| one.p50_interval.map(high)))
        .number_column("p99_us", of().map(|one| one.p99_us))
        .number_column("p99_us_low", of().map(|one| one.p99_interval.map(low)))
        .number_column("p99_us_high", of().map(|one| one.p99_interval.map(high)))
        .number_column("p99_9_us", of().map(|one| one.p99_9_us))
        .number_column("p99_99_us", of().map(|one| one.p99_99_us))
        .number_column("max_us", of().map(|one| one.max_us))
        .number_column("mean_us", of().map(|one| one.mean_us))
        .into_columns()
}

/// Returns a row for each interval of each repetition of a program with several requests in flight.
pub(crate) fn series_columns(run: &Run) -> Columns {
    let repetitions = numbered_repetitions(run);
    let mut rows = Vec::new();
    for one in &repetitions {
        let intervals = load::build_series(one.repetition).into_iter();
        rows.extend(intervals.map(|interval| (one, interval)));
    }
    let of = || rows.iter().map(|(_, interval)| interval);
    TableBuilder::default()
        .text_column("program", rows.iter().map(|(one, _)| one.title.as_str()))
        .text_column("filesystem", rows.iter().map(|(one, _)| one.filesystem))
        .integer_column(
            "repetition",
            rows.iter().map(|(one, _)| one.repetition_index),
        )
        .flag_column(
            "discarded",
            rows.iter().map(|(one, _)| one.repetition.is_discarded),
        )
        .number_column("at_s", of().map(|one| one.start_s))
        .number_column("iops", of().map(|one| one.iops))
        .number_column("mb_per_s", of().map(|one| one.mb_per_s))
        .number_column("p99_us", of().map(|one| one.p99_us))
        .into_columns()
}

/// Repetition with its index, program and file system.
struct NumberedRepetition<'a> {
    title: String,
    filesystem: &'a str,
    repetition_index: i64,
    repetition: &'a Repetition,
}

fn numbered_repetitions(run: &Run) -> Vec<NumberedRepetition<'_>> {
    let of_result = |result: &'_ ProgramResult| result.result_key();
    let mut all = Vec::new();
    for result in &run.results {
        for (number, repetition) in result.repetitions.iter().enumerate() {
            all.push(NumberedRepetition {
                title: of_result(result),
                filesystem: &result.filesystem_type,
                repetition_index: number as i64,
                repetition,
            });
        }
    }
    all
}

/// Returns a row for each repetition, in the order of execution.
pub(crate) fn repetition_columns(run: &Run) -> Columns {
    let all = numbered_repetitions(run);
    let rows = || all.iter();
    let of = || all.iter().map(|one| one.repetition);
    let total = |count: fn(&WorkerMeasure) -> u64| {
        of().map(move |one| to_signed(one.sum_over_workers(count)))
    };
    let time = |ns: Nanoseconds| to_signed(ns.0);
    let disturbed = |one: &Repetition| {
        let by = one.interference.iter().map(ToString::to_string);
        one.is_disturbed()
            .then(|| by.collect::<Vec<_>>().join("; "))
    };
    let disturbed: Vec<Option<String>> = of().map(disturbed).collect();
    TableBuilder::default()
        .text_column("program", rows().map(|one| one.title.as_str()))
        .text_column("filesystem", rows().map(|one| one.filesystem))
        .integer_column("repetition", rows().map(|one| one.repetition_index))
        .flag_column("discarded", of().map(|one| one.is_discarded))
        .integer_column("drives", of().map(|one| i64::from(one.drive_count())))
        .number_column("kb_per_s", of().map(Repetition::kb_per_s))
        .number_column("durable_kb_per_s", of().map(Repetition::durable_kb_per_s))
        .number_column("cpu_percent", of().map(Repetition::cpu_percent))
        .integer_column("elapsed_ns", of().map(|one| time(one.elapsed_time())))
        .integer_column("durable_ns", of().map(|one| one.durable_time().map(time)))
        .integer_column("cpu_ns", total(|worker| worker.cpu_time.0))
        .integer_column("bytes", of().map(|one| to_signed(one.payload_bytes())))
        .integer_column("read_bytes", total(|worker| worker.read_bytes))
        .integer_column("written_bytes", total(|worker| worker.written_bytes))
        .integer_column("calls", total(|worker| worker.call_count))
        .number_column("iops", of().map(Repetition::iops))
        .number_column(
            "response_p50_us",
            of().map(percentile_figure(Quantity::ResponseP50Us)),
        )
        .number_column(
            "response_p99_us",
            of().map(percentile_figure(Quantity::ResponseP99Us)),
        )
        .text_column("disturbed", disturbed.iter().map(Option::as_deref))
        .into_columns()
}

/// Returns a function that computes a percentile of a repetition; `None` unless several requests
/// were in flight.
fn percentile_figure(quantity: Quantity) -> impl Fn(&Repetition) -> Option<f64> {
    move |one| quantity.figure_of_repetition(one)
}

/// Returns a row for each stage of each worker's elapsed time.
pub(crate) fn ledger_columns(run: &Run) -> Columns {
    let repetitions = numbered_repetitions(run);
    let mut rows = Vec::new();
    for one in &repetitions {
        for (number, worker) in one.repetition.workers.iter().enumerate() {
            let entries = worker.ledger.entries().iter();
            rows.extend(entries.map(|entry| (one, number as i64, worker.drive_index, entry)));
        }
    }
    TableBuilder::default()
        .text_column("program", rows.iter().map(|(one, ..)| one.title.as_str()))
        .text_column("filesystem", rows.iter().map(|(one, ..)| one.filesystem))
        .integer_column(
            "repetition",
            rows.iter().map(|(one, ..)| one.repetition_index),
        )
        .flag_column(
            "discarded",
            rows.iter().map(|(one, ..)| one.repetition.is_discarded),
        )
        .integer_column("worker", rows.iter().map(|(_, worker, ..)| *worker))
        .integer_column(
            "drive",
            rows.iter().map(|(_, _, drive, _)| i64::from(*drive)),
        )
        .text_column(
            "stage",
            rows.iter().map(|(.., entry)| stage_name(entry.stage)),
        )
        .text_column(
            "cause",
            rows.iter()
                .map(|(.., entry)| missed_deadline_name(entry.stage)),
        )
        .integer_column(
            "ns",
            rows.iter().map(|(.., entry)| to_signed(entry.duration.0)),
        )
        .into_columns()
}

/// Returns the name of a stage without its missed deadline.
pub(crate) fn stage_name(stage: Stage) -> &'static str {
    split_stage_name(stage).0
}

/// Returns the deadline that a missed revolution is due to; `None` for other stages.
pub(crate) fn missed_deadline_name(stage: Stage) -> Option<&'static str> {
    split_stage_name(stage).1
}

fn split_stage_name(stage: Stage) -> (&'static str, Option<&'static str>) {
    let name = stage.name();
    match name.split_once(": ") {
        Some((stage, deadline)) => (stage, Some(deadline)),
        None => (name, None),
    }
}
