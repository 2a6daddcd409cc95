//! Command `diskperf trace`: describes or converts block traces.

use super::{CommandResult, DONE};
use crate::arguments::TraceArguments;
use crate::output::{print, print_message, width};
use crate::progress::BytesDisplay;
use crate::signals::stop_on_signals;
use diskperf_analysis::report;
use diskperf_laboratory::Output;
use diskperf_laboratory::traces::{
    Asked, Far, Form, ReadOptions, convert, files, size_bytes, summarize,
};
use std::path::Path;

/// Executes `diskperf trace`: describes a block trace, or writes it in another format.
pub(crate) fn trace(arguments: &TraceArguments) -> CommandResult {
    let asked = Asked {
        files: files(&arguments.files)?,
        options: ReadOptions {
            form: arguments.form,
            columns: arguments.columns.clone(),
            time_unit: arguments.time_unit,
            is_partial_allowed: arguments.partial,
        },
        window_ns: arguments.window,
        part: arguments.part.map(|part| part as usize),
        device: arguments.device.clone(),
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
    let far = Far::default();
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
    asked: &Asked,
    (form, path): (Form, &Path),
) -> CommandResult {
    let output = Output::open(path)?;
    let stop = stop_on_signals()?;
    let far = Far::default();
    let progress = show_progress(arguments, asked, &far);
    let done = convert(asked, (form, output), &far, &stop);
    drop(progress);
    let done = done?;
    if done.left_out > 0 {
        print_message(&format!(
            "left out: {} requests, which {form} cannot carry",
            done.left_out
        ));
    }
    print_message(&format!("{} requests written as {form}", done.written));
    Ok(DONE)
}

fn show_progress(arguments: &TraceArguments, asked: &Asked, far: &Far) -> BytesDisplay {
    let all = size_bytes(&asked.files);
    BytesDisplay::new(arguments.quiet, all, far.read_bytes.clone())
}
