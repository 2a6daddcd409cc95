//! Spans of a modelled run as a table.

use crate::columns::Columns;
use crate::figures::{missed_deadline_name, stage_name};
use crate::table::{TableBuilder, to_signed};
use diskperf_analysis::explanation::Explanation;
use diskperf_timeline::trace::{DiskPosition, RequestPurpose, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, StageInterval, Trace};

/// Span of a process, a request or an interrupt handler.
struct SpanRow<'a> {
    program: &'a str,
    filesystem: &'a str,
    kind: &'static str,
    process: Option<i64>,
    request: Option<(i64, &'a TracedRequest)>,
    stage: Stage,
    start: Nanoseconds,
    end: Nanoseconds,
}

/// Returns a row for each span of the processes, of the drives' requests, and of the interrupt
/// handlers, program by program.
pub(crate) fn span_columns(found: &Explanation, traces: &[Trace]) -> Columns {
    let mut rows = Vec::new();
    for (explained, trace) in found.programs.iter().zip(traces) {
        let names = (explained.program.as_str(), explained.filesystem.as_str());
        add_trace_rows(names, trace, &mut rows);
    }
    let rows = || rows.iter();
    let requests = || rows().map(|row| row.request);
    let of = |figure: fn(&TracedRequest) -> u64| {
        requests().map(move |request| request.map(|(_, one)| to_signed(figure(one))))
    };
    let on_disk = |figure: fn(DiskPosition) -> u64| {
        requests().map(move |request| Some(to_signed(figure(request?.1.disk_position()?))))
    };
    TableBuilder::default()
        .text_column("program", rows().map(|row| row.program))
        .text_column("filesystem", rows().map(|row| row.filesystem))
        .text_column("kind", rows().map(|row| row.kind))
        .integer_column("process", rows().map(|row| row.process))
        .integer_column(
            "request",
            requests().map(|request| request.map(|(number, _)| number)),
        )
        .integer_column("drive", of(|one| u64::from(one.drive_index)))
        .text_column(
            "purpose",
            requests().map(|request| request.map(|(_, one)| purpose_name(one.purpose))),
        )
        .integer_column("sector", of(|one| one.sector))
        .integer_column("sectors", of(|one| u64::from(one.sector_count)))
        .integer_column("cylinder", on_disk(|on| u64::from(on.cylinder)))
        .integer_column("head", on_disk(|on| u64::from(on.head)))
        .text_column("stage", rows().map(|row| stage_name(row.stage)))
        .text_column("cause", rows().map(|row| missed_deadline_name(row.stage)))
        .integer_column("start_ns", rows().map(|row| to_signed(row.start.0)))
        .integer_column("end_ns", rows().map(|row| to_signed(row.end.0)))
        .into_columns()
}

fn add_trace_rows<'a>(
    (program, filesystem): (&'a str, &'a str),
    trace: &'a Trace,
    rows: &mut Vec<SpanRow<'a>>,
) {
    let blank = |kind, interval: StageInterval| SpanRow {
        program,
        filesystem,
        kind,
        process: None,
        request: None,
        stage: interval.stage,
        start: interval.start,
        end: interval.end,
    };
    for process in &trace.processes {
        rows.extend(process.stage_intervals().map(|part| SpanRow {
            process: Some(i64::from(process.process_number)),
            ..blank("process", part)
        }));
    }
    for (number, request) in (0..).zip(&trace.requests) {
        rows.extend(request.stage_intervals().map(|part| SpanRow {
            request: Some((number, request)),
            ..blank("request", part)
        }));
    }
    let handlers = trace.handler_work.iter();
    rows.extend(handlers.map(|work| blank("handler", work.stage_interval())));
}

fn purpose_name(purpose: RequestPurpose) -> &'static str {
    match purpose {
        RequestPurpose::Read => "read",
        RequestPurpose::ReadAhead => "read_ahead",
        RequestPurpose::Write => "write",
        RequestPurpose::WriteBehind => "write_behind",
    }
}
