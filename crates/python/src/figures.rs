//! What a run measured, as columns.

use crate::columns::Columns;
use crate::table::{Table, whole};
use diskperf_laboratory::analysis::summary::Summary;
use diskperf_laboratory::timeline::{
    Nanoseconds, ProgramResult, Repetition, Run, Stage, WorkerMeasure,
};

/// One row for each program and file system, in the order of the suite's table.
pub(crate) fn results(run: &Run) -> Columns {
    let mut ordered: Vec<&ProgramResult> = run.results.iter().collect();
    ordered.sort_by_key(|result| result.row);
    let titles: Vec<String> = ordered.iter().map(|result| result.title()).collect();
    let summaries = ordered.iter().map(|one| Summary::in_world(run.world, one));
    let summaries: Vec<Summary> = summaries.collect();
    let results = || ordered.iter();
    let of = || summaries.iter();
    Table::default()
        .text("program", titles.iter().map(String::as_str))
        .text("filesystem", results().map(|one| one.filesystem.as_str()))
        .integer("drives", results().map(|one| i64::from(one.drives)))
        .integer("size_bytes", results().map(|one| whole(one.size_bytes)))
        .text("cache", results().map(|one| one.cache.name()))
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
    let of_result = |result: &'_ ProgramResult| result.title();
    let mut all = Vec::new();
    for result in &run.results {
        for (number, repetition) in result.repetitions.iter().enumerate() {
            all.push(Numbered {
                title: of_result(result),
                filesystem: &result.filesystem,
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
    let total = |count: fn(&WorkerMeasure) -> u64| of().map(move |one| whole(one.total(count)));
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
        .flag("discarded", of().map(|one| one.discarded))
        .integer("drives", of().map(|one| i64::from(one.drives())))
        .number("kb_per_s", of().map(Repetition::kb_per_s))
        .number("durable_kb_per_s", of().map(Repetition::durable_kb_per_s))
        .number("cpu_percent", of().map(Repetition::cpu_percent))
        .integer("elapsed_ns", of().map(|one| time(one.elapsed())))
        .integer("durable_ns", of().map(|one| one.durable().map(time)))
        .integer("cpu_ns", total(|worker| worker.cpu.0))
        .integer("bytes", of().map(|one| whole(one.payload_bytes())))
        .integer("read_bytes", total(|worker| worker.read_bytes))
        .integer("written_bytes", total(|worker| worker.written_bytes))
        .integer("calls", total(|worker| worker.calls))
        .text("disturbed", disturbed.iter().map(Option::as_deref))
        .finish()
}

/// One row for each stage that a worker's elapsed time went to.
pub(crate) fn ledger(run: &Run) -> Columns {
    let repetitions = numbered(run);
    let mut rows = Vec::new();
    for one in &repetitions {
        for (number, worker) in one.repetition.workers.iter().enumerate() {
            let entries = worker.ledger.entries().iter();
            rows.extend(entries.map(|entry| (one, number as i64, worker.drive, entry)));
        }
    }
    Table::default()
        .text("program", rows.iter().map(|(one, ..)| one.title.as_str()))
        .text("filesystem", rows.iter().map(|(one, ..)| one.filesystem))
        .integer("repetition", rows.iter().map(|(one, ..)| one.number))
        .flag(
            "discarded",
            rows.iter().map(|(one, ..)| one.repetition.discarded),
        )
        .integer("worker", rows.iter().map(|(_, worker, ..)| *worker))
        .integer(
            "drive",
            rows.iter().map(|(_, _, drive, _)| i64::from(*drive)),
        )
        .text("stage", rows.iter().map(|(.., entry)| stage(entry.stage)))
        .text("cause", rows.iter().map(|(.., entry)| cause(entry.stage)))
        .integer("ns", rows.iter().map(|(.., entry)| whole(entry.ns.0)))
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
