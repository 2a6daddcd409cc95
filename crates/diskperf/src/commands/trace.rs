//! Command `diskperf trace`: describes or converts block traces.

use super::{CommandResult, DONE};
use crate::arguments::TraceArguments;
use crate::output::{print, print_message, width};
use crate::progress::BytesDisplay;
use crate::signals::stop_on_signals;
use diskperf_analysis::report;
use diskperf_laboratory::Output;
use diskperf_laboratory::traces::{
    Form, ReadOptions, ReadProgress, TraceRequest, convert, list_files, summarize, total_file_bytes,
};
use std::path::Path;

/// Executes `diskperf trace`: describes a block trace, or writes it in another format.
pub(crate) fn trace(arguments: &TraceArguments) -> CommandResult {
    let asked = TraceRequest {
        files: list_files(&arguments.files)?,
        read_options: ReadOptions {
            form: arguments.form,
            columns: arguments.columns.clone(),
            time_unit: arguments.time_unit,
            is_partial_allowed: arguments.partial,
        },
        window_ns: arguments.window,
        part_index: arguments.part.map(|part| part as usize),
        device_name: arguments.device.clone(),
        scale_to_bytes: arguments.scale_addresses,
    };
    if let (Some(form), Some(output)) = (arguments.convert, &arguments.output) {
        return convert_trace(arguments, &asked, (form, output));
    }
    let page = match &arguments.report {
        Some(path) => Some(Output::open_beside_table("--report", path)?),
        None => None,
    };
    let stop = stop_on_signals()?;
    let far = ReadProgress::default();
    let progress = show_progress(arguments, &asked, &far);
    let found = summarize(&asked, &far, &stop);
    drop(progress);
    let found = found?;
    let printed = print(&report::render_trace(
        &found,
        arguments.format.into(),
        width(),
    ));
    if let Some(page) = page {
        page.write(report::html::render_trace(&found).as_bytes())?;
    }
    printed?;
    Ok(DONE)
}

fn convert_trace(
    arguments: &TraceArguments,
    asked: &TraceRequest,
    (form, path): (Form, &Path),
) -> CommandResult {
    let output = Output::open(path)?;
    let stop = stop_on_signals()?;
    let far = ReadProgress::default();
    let progress = show_progress(arguments, asked, &far);
    let done = convert(asked, (form, output), &far, &stop);
    drop(progress);
    let done = done?;
    if !done.omitted_counts.is_empty() {
        let kinds = done.omitted_counts.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{kind} ({count})"))
            .collect();
        print_message(&format!(
            "left out, because {form} cannot carry them: {}",
            kinds.join(", ")
        ));
    }
    print_message(&format!(
        "{} requests written as {form}",
        done.written_count
    ));
    Ok(DONE)
}

fn show_progress(
    arguments: &TraceArguments,
    asked: &TraceRequest,
    far: &ReadProgress,
) -> BytesDisplay {
    let all = total_file_bytes(&asked.files);
    BytesDisplay::new(arguments.quiet, all, far.read_bytes.clone())
}
