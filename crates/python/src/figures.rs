//! What a run measured, as columns.

use crate::columns::Columns;
use crate::table::{Table, whole};
use diskperf_analysis::quantity::Quantity;
use diskperf_analysis::statistics::Interval;
use diskperf_analysis::summary::Summary;
use diskperf_analysis::summary::load::{self, Latency};
use diskperf_timeline::{Nanoseconds, ProgramResult, Repetition, Run, Stage, WorkerMeasure};

/// One row for each program and file system, in the order of the suite's table.
pub(crate) fn results(run: &Run) -> Columns {
    let mut ordered: Vec<&ProgramResult> = run.results.iter().collect();
    ordered.sort_by_key(|result| result.table_row);
    let titles: Vec<String> = ordered.iter().map(|result| result.result_key()).collect();
    let summaries = ordered.iter().map(|one| Summary::in_world(run.world, one));
    let summaries: Vec<Summary> = summaries.collect();
    let results = || ordered.iter();
    let of = || summaries.iter();
    Table::default()
        .text("program", titles.iter().map(String::as_str))
        .text(
            "filesystem",
            results().map(|one| one.filesystem_type.as_str()),
        )
        .integer("drives", results().map(|one| i64::from(one.drive_count)))
        .integer("size_bytes", results().map(|one| whole(one.size_bytes)))
        .text("cache", results().map(|one| one.cache_mode.mode_name()))
        .integer("kept", of().map(|one| one.kept as i64))
        .number("kb_per_s", of().map(|one| one.kb_per_s))
        .number("durable_kb_per_s", of().map(|one| one.durable_kb_per_s))
        .number("cpu_percent", of().map(|one| one.cpu_percent))
        .number("elapsed_s", of().map(|one| one.elapsed_s))
        .number("durable_elapsed_s", of().map(|one| one.durable_s))
        .number("cpu_s", of().map(|one| one.cpu_s))
        .number(
            "kb_per_s_low",
            of().map(|one| one.interval.map(|it| it.low)),
        )
        .number(
            "kb_per_s_high",
            of().map(|one| one.interval.map(|it| it.high)),
        )
        .number("calls", of().map(|one| one.calls))
        .number("mean_call_ns", of().map(|one| one.mean_call_ns))
        .integer(
            "read_p50_ns",
            of().map(|one| one.read_latency.and_then(|it| it.p50_ns.map(whole))),
        )
        .integer(
            "read_p99_ns",
            of().map(|one| one.read_latency.and_then(|it| it.p99_ns.map(whole))),
        )
        .integer(
            "write_p50_ns",
            of().map(|one| one.write_latency.and_then(|it| it.p50_ns.map(whole))),
        )
        .integer(
            "write_p99_ns",
            of().map(|one| one.write_latency.and_then(|it| it.p99_ns.map(whole))),
        )
        .number("device_share", of().map(|one| one.device_share))
        .number("iops", of().map(|one| Some(one.load.as_ref()?.iops)))
        .number(
            "iops_low",
            of().map(|one| Some(one.load.as_ref()?.iops_interval?.low)),
        )
        .number(
            "iops_high",
            of().map(|one| Some(one.load.as_ref()?.iops_interval?.high)),
        )
        .number(
            "mb_per_s",
            of().map(|one| Some(one.load.as_ref()?.mb_per_s)),
        )
        .integer(
            "depth",
            of().map(|one| Some(i64::from(one.load.as_ref()?.depth))),
        )
        .integer(
            "workers",
            of().map(|one| Some(i64::from(one.load.as_ref()?.workers))),
        )
        .flag("steady", of().map(|one| Some(one.steady?.attained)))
        .number("steady_at_s", of().map(|one| one.steady?.at_s))
        .text("cliff_cache", of().map(|one| Some(one.cliff?.cache.name())))
        .integer(
            "cliff_at_bytes",
            of().map(|one| Some(one.cliff?.at_bytes as i64)),
        )
        .number(
            "cliff_past_share",
            of().map(|one| Some(one.cliff?.past_share)),
        )
        .number("unwritten_share", of().map(|one| one.unwritten_share))
        .number("read_share", of().map(|one| one.load.as_ref()?.read_share))
        .number("response_p50_us", of().map(|one| response(one)?.p50_us))
        .number("response_p99_us", of().map(|one| response(one)?.p99_us))
        .number("response_p99_9_us", of().map(|one| response(one)?.p99_9_us))
        .number(
            "response_max_us",
            of().map(|one| Some(response(one)?.max_us)),
        )
        .number(
            "cpu_us_per_io",
            of().map(|one| one.load.as_ref()?.cpu_us_per_io),
        )
        .finish()
}

fn response(summary: &Summary) -> Option<&Latency> {
    summary.load.as_ref()?.response.as_ref()
}

/// One row for each operation of each program that had several requests under way: of
/// the whole response, and of the part of it in the call that submitted.
pub(crate) fn latencies(run: &Run) -> Columns {
    let mut rows: Vec<(String, &ProgramResult, &str, &str, Latency)> = Vec::new();
    for result in &run.results {
        let summary = Summary::in_world(run.world, result);
        for one in summary.load.into_iter().flat_map(|load| load.latency) {
            for (part, latency) in [("response", one.response), ("submit", one.submit)] {
                let row = |latency| (result.result_key(), result, one.name, part, latency);
                rows.extend(latency.map(row));
            }
        }
    }
    let of = || rows.iter().map(|(.., latency)| latency);
    let (low, high) = (|it: Interval| it.low, |it: Interval| it.high);
    Table::default()
        .text("program", rows.iter().map(|(title, ..)| title.as_str()))
        .text(
            "filesystem",
            rows.iter().map(|(_, one, ..)| one.filesystem_type.as_str()),
        )
        .text("operation", rows.iter().map(|(_, _, name, ..)| *name))
        .text("part", rows.iter().map(|(_, _, _, part, _)| *part))
        .integer("count", of().map(|one| whole(one.count)))
        .number("p50_us", of().map(|one| one.p50_us))
        .number("p50_us_low", of().map(|one| one.p50_interval.map(low)))
        .number("p50_us_high", of().map(|one| one.p50_interval.map(high)))
        .number("p99_us", of().map(|one| one.p99_us))
        .number("p99_us_low", of().map(|one| one.p99_interval.map(low)))
        .number("p99_us_high", of().map(|one| one.p99_interval.map(high)))
        .number("p99_9_us", of().map(|one| one.p99_9_us))
        .number("p99_99_us", of().map(|one| one.p99_99_us))
        .number("max_us", of().map(|one| one.max_us))
        .number("mean_us", of().map(|one| one.mean_us))
        .finish()
}

/// One row for each interval of each repetition of a program that had several requests
/// under way.
pub(crate) fn series(run: &Run) -> Columns {
    let repetitions = numbered(run);
    let mut rows = Vec::new();
    for one in &repetitions {
        let intervals = load::series(one.repetition).into_iter();
        rows.extend(intervals.map(|interval| (one, interval)));
    }
    let of = || rows.iter().map(|(_, interval)| interval);
    Table::default()
        .text("program", rows.iter().map(|(one, _)| one.title.as_str()))
        .text("filesystem", rows.iter().map(|(one, _)| one.filesystem))
        .integer("repetition", rows.iter().map(|(one, _)| one.number))
        .flag(
            "discarded",
            rows.iter().map(|(one, _)| one.repetition.is_discarded),
        )
        .number("at_s", of().map(|one| one.at_s))
        .number("iops", of().map(|one| one.iops))
        .number("mb_per_s", of().map(|one| one.mb_per_s))
        .number("p99_us", of().map(|one| one.p99_us))
        .finish()
}

/// A repetition, with what it is of.
struct Numbered<'a> {
    title: String,
    filesystem: &'a str,
    number: i64,
    repetition: &'a Repetition,
}

fn numbered(run: &Run) -> Vec<Numbered<'_>> {
    let of_result = |result: &'_ ProgramResult| result.result_key();
    let mut all = Vec::new();
    for result in &run.results {
        for (number, repetition) in result.repetitions.iter().enumerate() {
            all.push(Numbered {
                title: of_result(result),
                filesystem: &result.filesystem_type,
                number: number as i64,
                repetition,
            });
        }
    }
    all
}

/// One row for each repetition, in the order of running.
pub(crate) fn repetitions(run: &Run) -> Columns {
    let all = numbered(run);
    let rows = || all.iter();
    let of = || all.iter().map(|one| one.repetition);
    let total =
        |count: fn(&WorkerMeasure) -> u64| of().map(move |one| whole(one.sum_over_workers(count)));
    let time = |ns: Nanoseconds| whole(ns.0);
    let disturbed = |one: &Repetition| {
        let by = one.interference.iter().map(ToString::to_string);
        one.is_disturbed()
            .then(|| by.collect::<Vec<_>>().join("; "))
    };
    let disturbed: Vec<Option<String>> = of().map(disturbed).collect();
    Table::default()
        .text("program", rows().map(|one| one.title.as_str()))
        .text("filesystem", rows().map(|one| one.filesystem))
        .integer("repetition", rows().map(|one| one.number))
        .flag("discarded", of().map(|one| one.is_discarded))
        .integer("drives", of().map(|one| i64::from(one.drive_count())))
        .number("kb_per_s", of().map(Repetition::kb_per_s))
        .number("durable_kb_per_s", of().map(Repetition::durable_kb_per_s))
        .number("cpu_percent", of().map(Repetition::cpu_percent))
        .integer("elapsed_ns", of().map(|one| time(one.elapsed_time())))
        .integer("durable_ns", of().map(|one| one.durable_time().map(time)))
        .integer("cpu_ns", total(|worker| worker.cpu_time.0))
        .integer("bytes", of().map(|one| whole(one.payload_bytes())))
        .integer("read_bytes", total(|worker| worker.read_bytes))
        .integer("written_bytes", total(|worker| worker.written_bytes))
        .integer("calls", total(|worker| worker.call_count))
        .number("iops", of().map(Repetition::iops))
        .number(
            "response_p50_us",
            of().map(percentile(Quantity::ResponseP50Us)),
        )
        .number(
            "response_p99_us",
            of().map(percentile(Quantity::ResponseP99Us)),
        )
        .text("disturbed", disturbed.iter().map(Option::as_deref))
        .finish()
}

/// Of a repetition with several requests under way.
fn percentile(quantity: Quantity) -> impl Fn(&Repetition) -> Option<f64> {
    move |one| quantity.figure(one)
}

/// One row for each stage that a worker's elapsed time went to.
pub(crate) fn ledger(run: &Run) -> Columns {
    let repetitions = numbered(run);
    let mut rows = Vec::new();
    for one in &repetitions {
        for (number, worker) in one.repetition.workers.iter().enumerate() {
            let entries = worker.ledger.entries().iter();
            rows.extend(entries.map(|entry| (one, number as i64, worker.drive_index, entry)));
        }
    }
    Table::default()
        .text("program", rows.iter().map(|(one, ..)| one.title.as_str()))
        .text("filesystem", rows.iter().map(|(one, ..)| one.filesystem))
        .integer("repetition", rows.iter().map(|(one, ..)| one.number))
        .flag(
            "discarded",
            rows.iter().map(|(one, ..)| one.repetition.is_discarded),
        )
        .integer("worker", rows.iter().map(|(_, worker, ..)| *worker))
        .integer(
            "drive",
            rows.iter().map(|(_, _, drive, _)| i64::from(*drive)),
        )
        .text("stage", rows.iter().map(|(.., entry)| stage(entry.stage)))
        .text("cause", rows.iter().map(|(.., entry)| cause(entry.stage)))
        .integer("ns", rows.iter().map(|(.., entry)| whole(entry.duration.0)))
        .finish()
}

/// The stage without the deadline.
pub(crate) fn stage(stage: Stage) -> &'static str {
    apart(stage).0
}

/// Of a missed revolution, the deadline.
pub(crate) fn cause(stage: Stage) -> Option<&'static str> {
    apart(stage).1
}

fn apart(stage: Stage) -> (&'static str, Option<&'static str>) {
    let name = stage.name();
    match name.split_once(": ") {
        Some((stage, deadline)) => (stage, Some(deadline)),
        None => (name, None),
    }
}
