//! `diskperf report`.

use super::Outcome;
use crate::arguments::ReportArguments;
use diskperf_laboratory::analysis::report::html;
use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::report::reported;
use diskperf_laboratory::runs;
use std::path::Path;
use std::process::ExitCode;

/// Runs as one page.
pub(crate) fn report(arguments: &ReportArguments, store: Option<&Path>) -> Outcome {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let mut wanted = Vec::new();
    for name in &arguments.runs {
        wanted.extend(runs::load(store, name)?);
    }
    let page = html::page(&reported(&catalogue, wanted)?);
    runs::write_text(&arguments.output, &page)?;
    Ok(ExitCode::SUCCESS)
}
