//! Command `diskperf report`: HTML page of runs.

use super::{CommandResult, DONE};
use crate::arguments::ReportArguments;
use diskperf_analysis::report::html::{self, ReportedRun};
use diskperf_laboratory::Output;
use diskperf_laboratory::files::HostFiles;
use diskperf_laboratory::report::{build_pictures, build_reports};
use diskperf_models::again::plan_stored_run;
use diskperf_models::model::load_catalogue;
use diskperf_timeline::{MeasuredWorld, Run};
use std::path::Path;

/// Executes `diskperf report`: writes runs as one HTML page.
pub(crate) fn report(arguments: &ReportArguments, store: Option<&Path>) -> CommandResult {
    let output = Output::open(&arguments.output)?;
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let mut wanted = Vec::new();
    for name in &arguments.runs {
        wanted.extend(super::load_runs(store, name)?);
    }
    let mut reported = build_reports(&catalogue, wanted)?;
    draw_platters(&mut reported);
    let page = html::render_page(&reported);
    output.write(page.as_bytes())?;
    Ok(DONE)
}

/// Repeats the modelled runs, each on its own thread, to draw the activity of their drives.
fn draw_platters(reported: &mut [ReportedRun]) {
    let modelled = reported
        .iter_mut()
        .filter(|one| one.run.world == MeasuredWorld::Model);
    std::thread::scope(|scope| {
        for one in modelled {
            scope.spawn(|| match draw_platter(&one.run) {
                Ok(pictures) => one.pictures_by_result = pictures,
                Err(why) => one.no_pictures_reason = Some(why),
            });
        }
    });
}

fn draw_platter(run: &Run) -> Result<Vec<(usize, html::Picture)>, String> {
    let drawn = plan_stored_run(run, &HostFiles).and_then(|plan| build_pictures(&plan, run));
    drawn.map_err(|why| format!("There is no picture of the platter: {why}."))
}
