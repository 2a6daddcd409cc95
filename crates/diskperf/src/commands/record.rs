//! Commands `diskperf record` and `diskperf run --record`: recording of block traces.

use super::{CommandResult, DONE, FAILED};
use crate::arguments::{OutputFormat, RecordArguments};
use crate::output::{print, print_message, width};
use crate::progress::TimeDisplay;
use crate::signals::stop_on_signals;
use diskperf_analysis::report;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::recording::RecordingOutcome;
use diskperf_laboratory::recording::device::{ReadyRecording, RecordRequest};

/// Executes `diskperf record`: records the requests to a disk.
pub(crate) fn record(arguments: &RecordArguments) -> CommandResult {
    let asked = RecordRequest {
        target: arguments.target.clone(),
        duration: arguments.lasts,
    };
    let ready = ReadyRecording::prepare(asked, &arguments.output, arguments.force)?;
    let stop = stop_on_signals()?;
    let progress = TimeDisplay::new(arguments.quiet, arguments.lasts);
    let came = ready.record(&stop, |so_far| {
        progress.update(so_far.request_count, so_far.lost_event_count);
    });
    drop(progress);
    let came = came?;
    let is_printed_elsewhere = arguments.output.as_os_str() == "-";
    let text = report::render_recording(&came, arguments.format.into(), width());
    match is_printed_elsewhere {
        true => print_message(&text),
        false => print(&text)?,
    }
    if !arguments.quiet && !is_printed_elsewhere && arguments.format == OutputFormat::Table {
        let path = arguments.output.display();
        print_message(&format!("`diskperf trace {path}` shows what is in it"));
    }
    Ok(match came.lost_event_count {
        0 => DONE,
        _ => FAILED,
    })
}

/// Reports the result of recording a run; returns whether the recording is complete.
pub(super) fn report_recording(
    came: Result<Option<RecordingOutcome>, LaboratoryError>,
    quiet: bool,
) -> Result<bool, LaboratoryError> {
    let Some(came) = came? else {
        return Ok(true);
    };
    let path = came.path.display();
    let missing = came.describe_missing();
    if let Some(missing) = &missing {
        print_message(&format!("--record {path}: {missing}"));
    }
    if !quiet && came.part_count > 0 {
        print_message(&format!(
            "recorded in {path}: {} requests of {} repetitions, {}; `diskperf trace {path}` shows them",
            came.request_count,
            came.part_count,
            came.descriptions.join(", and ")
        ));
    }
    Ok(missing.is_none())
}
