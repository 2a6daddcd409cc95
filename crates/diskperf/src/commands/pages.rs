//! Command `diskperf report`: HTML page of runs.

use super::{DONE, Outcome};
use crate::arguments::ReportArguments;
use diskperf_analysis::report::html::{self, Reported};
use diskperf_laboratory::Output;
use diskperf_laboratory::files::HostFiles;
use diskperf_laboratory::report::{pictures, reported};
use diskperf_models::again::plan_of;
use diskperf_models::model::load_catalogue;
use diskperf_timeline::{MeasuredWorld, Run};
use std::path::Path;

/// Executes `diskperf report`: writes runs as one HTML page.
pub(crate) fn report(arguments: &ReportArguments, store: Option<&Path>) -> Outcome {
    let output = Output::open(&arguments.output)?;
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let mut wanted = Vec::new();
    for name in &arguments.runs {
        wanted.extend(super::load(store, name)?);
    }
    let mut reported = reported(&catalogue, wanted)?;
    draw_platters(&mut reported);
    let page = html::page(&reported);
    output.write(page.as_bytes())?;
    Ok(DONE)
}

/// Repeats the modelled runs, each on its own thread, to draw the activity of their drives.
fn draw_platters(reported: &mut [Reported]) {
    let modelled = reported
        .iter_mut()
        .filter(|one| one.run.world == MeasuredWorld::Model);
    std::thread::scope(|scope| {
        for one in modelled {
            scope.spawn(|| match replay_platter(&one.run) {
                Ok(pictures) => one.pictures = pictures,
                Err(why) => one.no_pictures = Some(why),
            });
        }
    });
}

fn replay_platter(run: &Run) -> Result<Vec<(usize, html::Picture)>, String> {
    let drawn = plan_of(run, &HostFiles).and_then(|plan| pictures(&plan, run));
    drawn.map_err(|why| format!("There is no picture of the platter: {why}."))
}
