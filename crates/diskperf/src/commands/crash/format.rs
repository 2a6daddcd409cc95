//! The result of a crash test as a table, JSON and JUnit XML.

use crate::arguments::CrashArguments;
use diskperf_laboratory::crash::{
    CrashReport, CutMoment, CutStep, Loss, LostRequest, NumberedRequest, SavingFlush,
};
use diskperf_timeline::escape_unprintable_line;
use serde_json::{Value, json};
use std::ops::Range;

/// Lines of a check's output that are shown.
const OUTPUT_LINES_MAX: usize = 5;

fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

/// Name of the workload and the drive.
fn title(arguments: &CrashArguments) -> String {
    match (&arguments.workload, &arguments.on, &arguments.log) {
        (Some(workload), Some(drive), _) => format!("`{workload}` on {drive}"),
        (_, _, Some(log)) => log.display().to_string(),
        (Some(workload), ..) => format!("`{workload}` in a recorded directory"),
        _ => String::new(),
    }
}

/// Phrase with the moment of a cut.
fn moment(cut: &CutMoment) -> String {
    let numbered = |of: NumberedRequest| format!("request {} ({})", of.request, of.kind);
    let mark = cut.last_mark.as_deref().map(escape_unprintable_line);
    let after = match (&mark, cut.step) {
        (Some(mark), _) => format!("after the mark `{mark}`"),
        (None, CutStep::Start) => return "at the start of the workload".to_owned(),
        (None, _) => "before any mark".to_owned(),
    };
    match cut.step {
        CutStep::Start | CutStep::AfterMark => format!("right {after}"),
        CutStep::BeforeCompletion(of) => format!("before {} completes, {after}", numbered(of)),
        CutStep::AfterSubmission(of) => format!("when {} was sent, {after}", numbered(of)),
        CutStep::AfterCompletion(of) => format!("when {} was completed, {after}", numbered(of)),
        CutStep::End => format!("at the end of the workload, {after}"),
    }
}

fn units(units: &Range<u64>) -> String {
    match units.end - units.start {
        0 | 1 => format!("unit {}", units.start),
        _ => format!("units {} to {}", units.start, units.end - 1),
    }
}

fn requests(requests: &[LostRequest]) -> String {
    let one = |of: &LostRequest| {
        let is_torn = of.lost_unit_count < of.unit_count && of.lost_unit_count > 0;
        let parts = if of.file.is_some() { "parts" } else { "units" };
        let torn = match is_torn {
            true => format!(
                ", torn: {} of {} {parts} lost",
                of.lost_unit_count, of.unit_count
            ),
            false => String::new(),
        };
        if let Some(file) = &of.file {
            let place = escape_unprintable_line(&file.place);
            return format!("{} ({} of {place}{torn})", of.request, file.kind);
        }
        let changed = units(&(of.unit..of.unit + of.unit_count));
        match &of.unreadable {
            None => format!("{} ({} of {changed}{torn})", of.request, of.kind),
            Some(spoiled) => format!(
                "{} ({} of {changed}; the cut made {} unreadable)",
                of.request,
                of.kind,
                units(spoiled)
            ),
        }
    };
    let all: Vec<String> = requests.iter().map(one).collect();
    match all.len() {
        1 => format!("request {}", all[0]),
        _ => format!("requests {}", all.join(", ")),
    }
}

/// Sentence about the flush that would have prevented a loss. `is_directory` is for a sync of a
/// recorded directory.
fn saving(saving: &SavingFlush, is_directory: bool) -> String {
    if let Some(flush) = saving.ignored_flush {
        return match is_directory {
            true => format!("sync {flush}, which did nothing, would have saved it"),
            false => format!("flush {flush}, which the drive ignored, would have saved it"),
        };
    }
    let before = match (&saving.before_request, &saving.before_mark) {
        (Some(request), _) => format!(" and before request {request}"),
        (None, Some(mark)) => format!(" and before the mark `{}`", escape_unprintable_line(mark)),
        (None, None) => String::new(),
    };
    let next = match saving.next_flush {
        Some(flush) => format!("; the next one, request {flush}, came too late"),
        None => "; none followed".to_owned(),
    };
    let flush = match &saving.synced {
        Some(path) => format!("a sync of `{}`", escape_unprintable_line(path)),
        None => "a flush".to_owned(),
    };
    let unsent = match is_directory {
        true => "the data had not been written to the file: a sync (fsync, or msync of a mapping)",
        false => {
            "the data had not been sent to the drive: a sync (fsync of the file, or of its directory)"
        }
    };
    match saving.after_request {
        Some(after) => format!("{flush} after request {after}{before} would have saved it{next}"),
        None => format!(
            "{unsent}{} would have saved it",
            before.strip_prefix(" and").unwrap_or_default()
        ),
    }
}

/// Sentence about a loss that no flush would have prevented.
fn without_saving(lost: &[LostRequest], is_directory: bool) -> &'static str {
    match (lost, is_directory) {
        ([], true) => {
            "no sync would have saved it: the program itself made this state, which the check refuses"
        }
        ([], false) => {
            "no flush would have saved it: the program itself made this state, which the check refuses"
        }
        (_, true) => "no sync would have saved it: this overwrites durable data",
        (_, false) => "no flush would have saved it: this overwrites durable data",
    }
}

fn describe_loss(loss: &Loss, is_directory: bool) -> Vec<String> {
    let mark = match &loss.mark {
        Some(mark) => format!(
            "lost `{}`, which was marked durable",
            escape_unprintable_line(mark)
        ),
        None => "the check fails without any mark".to_owned(),
    };
    let mut lines = vec![format!("first loss: power cut {}", moment(&loss.cut))];
    lines.push(format!("  {mark}"));
    match loss.requests_before.as_deref() {
        None => {}
        Some([]) if is_directory => lines.push("  with every change kept".to_owned()),
        Some([]) => lines.push("  with every write kept that the drive had".to_owned()),
        Some(lost) => lines.push(format!("  it suffices to lose {}", requests(lost))),
    }
    if !loss.kept_requests.is_empty() {
        lines.push(format!("  and to keep {}", requests(&loss.kept_requests)));
    }
    match (&loss.would_have_saved, &loss.requests_before) {
        (Some(flush), _) => lines.push(format!("  {}", saving(flush, is_directory))),
        (None, Some(lost)) => lines.push(format!("  {}", without_saving(lost, is_directory))),
        (None, None) => {}
    }
    lines.extend(shown_output(&loss.output));
    lines
}

fn shown_output(output: &str) -> impl Iterator<Item = String> {
    let lines = output.lines().take(OUTPUT_LINES_MAX);
    lines.map(|line| format!("  | {}", escape_unprintable_line(line)))
}

/// Formats the result as text.
pub(super) fn table(arguments: &CrashArguments, report: &CrashReport) -> String {
    let (change, flush, damage) = match arguments.directory {
        true => ("change", "sync", String::new()),
        false => {
            let damaged = report.fsck_failures.len();
            (
                "write",
                "flush",
                format!(", {damaged} damaged the file system"),
            )
        }
    };
    let mut lines = vec![
        format!(
            "{}: {}, {}, {}",
            title(arguments),
            count(report.change_count, change),
            count(report.flush_count, flush).replace("flushs", "flushes"),
            count(report.mark_count, "mark")
        ),
        format!(
            "{} at {}: {} lost data{damage}",
            count(report.cut_count, "cut"),
            count(report.instant_count, "instant"),
            report.lost.len(),
        ),
    ];
    if let Some(loss) = report.lost.first() {
        lines.extend(describe_loss(loss, arguments.directory));
    }
    if let Some(failure) = report.fsck_failures.first() {
        lines.push(format!("first damage: power cut {}", moment(&failure.cut)));
        lines.extend(shown_output(&failure.output));
    }
    lines.join("\n")
}

fn request_json(of: &LostRequest) -> Value {
    json!({
        "request": of.request,
        "kind": of.kind,
        "unit": of.unit,
        "units": of.unit_count,
        "lost_units": of.lost_unit_count,
        "unreadable": of.unreadable.as_ref().map(|units| json!({
            "unit": units.start,
            "units": units.end - units.start,
        })),
        "place": of.file.as_ref().map(|file| &file.place),
        "synced": of.file.as_ref().map(|file| &file.synced),
    })
}

fn moment_json(cut: &CutMoment) -> Value {
    let (step, of) = match cut.step {
        CutStep::Start => ("start", None),
        CutStep::BeforeCompletion(of) => ("before_completion", Some(of)),
        CutStep::AfterSubmission(of) => ("after_submission", Some(of)),
        CutStep::AfterCompletion(of) => ("after_completion", Some(of)),
        CutStep::AfterMark => ("after_mark", None),
        CutStep::End => ("end", None),
    };
    json!({
        "step": step,
        "request": of.map(|of| of.request),
        "kind": of.map(|of| of.kind),
        "last_mark": cut.last_mark,
    })
}

fn loss_json(loss: &Loss) -> Value {
    let all = |requests: &[LostRequest]| -> Value { requests.iter().map(request_json).collect() };
    json!({
        "cut": loss.cut.position,
        "moment": moment_json(&loss.cut),
        "mark": loss.mark,
        "requests_before": loss.requests_before.as_deref().map(all),
        "kept_requests": all(&loss.kept_requests),
        "would_have_saved": loss.would_have_saved.as_ref().map(|flush| json!({
            "after_request": flush.after_request,
            "before_mark": flush.before_mark,
            "before_request": flush.before_request,
            "ignored_flush": flush.ignored_flush,
            "next_flush": flush.next_flush,
            "synced": flush.synced,
        })),
        "output": loss.output,
    })
}

/// Formats the result as JSON.
pub(super) fn json(arguments: &CrashArguments, report: &CrashReport) -> Value {
    let failures = report.fsck_failures.iter();
    let failures: Vec<Value> = failures
        .map(|failure| {
            json!({
                "cut": failure.cut.position,
                "moment": moment_json(&failure.cut),
                "output": failure.output,
            })
        })
        .collect();
    json!({
        "workload": arguments.workload,
        "drive": arguments.on,
        "log": arguments.log.as_ref().map(|path| path.display().to_string()),
        "file_system": (!arguments.directory).then_some(&arguments.fs),
        "directory": arguments.directory,
        "seed": arguments.seed,
        "writes": report.change_count,
        "flushes": report.flush_count,
        "marks": report.mark_count,
        "instants": report.instant_count,
        "cuts": report.cut_count,
        "lost": report.lost.iter().map(loss_json).collect::<Vec<_>>(),
        "fsck_failures": failures,
    })
}

fn escape(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    let text: String = text.chars().filter(allowed).collect();
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Formats the result as JUnit XML: a test case for lost data and one for the file system.
pub(super) fn junit(arguments: &CrashArguments, report: &CrashReport) -> String {
    let case = |name: &str, failures: usize, text: &str| {
        let failure = match failures {
            0 => String::new(),
            _ => format!(
                "\n      <failure message=\"{failures} of {} cuts\">{}</failure>\n    ",
                report.cut_count,
                escape(text)
            ),
        };
        format!("    <testcase classname=\"diskperf crash\" name=\"{name}\">{failure}</testcase>\n")
    };
    let loss = report.lost.first();
    let loss = loss.map(|loss| describe_loss(loss, arguments.directory));
    let loss = loss.unwrap_or_default();
    let damage = report.fsck_failures.first();
    let damage = damage.map_or("", |failure| &failure.output);
    let failed =
        usize::from(!report.lost.is_empty()) + usize::from(!report.fsck_failures.is_empty());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"2\" failures=\"{failed}\">\n{}{}  </testsuite>\n</testsuites>\n",
        escape(&title(arguments)),
        case("marked data survives", report.lost.len(), &loss.join("\n")),
        case(
            "the file system recovers",
            report.fsck_failures.len(),
            damage
        ),
    )
}
