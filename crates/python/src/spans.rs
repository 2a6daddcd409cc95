//! Everything that happened in a modelled run, as a table.

use crate::columns::Columns;
use crate::figures::{cause, stage};
use crate::table::{Table, whole};
use diskperf_analysis::explanation::Explanation;
use diskperf_timeline::trace::{DiskPosition, RequestPurpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};

/// One row.
struct Row<'a> {
    program: &'a str,
    filesystem: &'a str,
    kind: &'static str,
    process: Option<i64>,
    request: Option<(i64, &'a TracedRequest)>,
    stage: Stage,
    from: Nanoseconds,
    until: Nanoseconds,
}

/// One row for each span of the programs, of the drives' requests, and of the
/// handlers of interrupts, each program's after the one's before it.
pub(crate) fn spans(found: &Explanation, traces: &[Trace]) -> Columns {
    let mut rows = Vec::new();
    for (explained, trace) in found.programs.iter().zip(traces) {
        let names = (explained.program.as_str(), explained.filesystem.as_str());
        of_trace(names, trace, &mut rows);
    }
    let rows = || rows.iter();
    let requests = || rows().map(|row| row.request);
    let of = |figure: fn(&TracedRequest) -> u64| {
        requests().map(move |request| request.map(|(_, one)| whole(figure(one))))
    };
    let on_disk = |figure: fn(DiskPosition) -> u64| {
        requests().map(move |request| Some(whole(figure(request?.1.disk_position()?))))
    };
    Table::default()
        .text("program", rows().map(|row| row.program))
        .text("filesystem", rows().map(|row| row.filesystem))
        .text("kind", rows().map(|row| row.kind))
        .integer("process", rows().map(|row| row.process))
        .integer(
            "request",
            requests().map(|request| request.map(|(number, _)| number)),
        )
        .integer("drive", of(|one| u64::from(one.drive_index)))
        .text(
            "purpose",
            requests().map(|request| request.map(|(_, one)| purpose(one.purpose))),
        )
        .integer("sector", of(|one| one.sector))
        .integer("sectors", of(|one| u64::from(one.sector_count)))
        .integer("cylinder", on_disk(|on| u64::from(on.cylinder)))
        .integer("head", on_disk(|on| u64::from(on.head)))
        .text("stage", rows().map(|row| stage(row.stage)))
        .text("cause", rows().map(|row| cause(row.stage)))
        .integer("start_ns", rows().map(|row| whole(row.from.0)))
        .integer("end_ns", rows().map(|row| whole(row.until.0)))
        .finish()
}

fn of_trace<'a>(
    (program, filesystem): (&'a str, &'a str),
    trace: &'a Trace,
    rows: &mut Vec<Row<'a>>,
) {
    let blank = |kind, (stage, from, until)| Row {
        program,
        filesystem,
        kind,
        process: None,
        request: None,
        stage,
        from,
        until,
    };
    for process in &trace.processes {
        rows.extend(process.stage_intervals().map(|part| Row {
            process: Some(i64::from(process.process_number)),
            ..blank("process", part)
        }));
    }
    for (number, request) in (0..).zip(&trace.requests) {
        rows.extend(request.stage_intervals().map(|part| Row {
            request: Some((number, request)),
            ..blank("request", part)
        }));
    }
    let handlers = trace.handler_work.iter();
    rows.extend(
        handlers.map(|work| blank("handler", (work.stage, work.work_start, work.work_end))),
    );
}

fn purpose(purpose: RequestPurpose) -> &'static str {
    match purpose {
        RequestPurpose::Read => "read",
        RequestPurpose::ReadAhead => "read_ahead",
        RequestPurpose::Write => "write",
        RequestPurpose::WriteBehind => "write_behind",
    }
}
