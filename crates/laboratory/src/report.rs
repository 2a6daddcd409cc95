//! Additions to the report of a run: published results of the same programs on the same system, and
//! the activity of the drives when a modelled run is repeated.

use crate::plan::ModelPlan;
use crate::reproduce::read_published;
use diskperf_analysis::report::html::{
    Picture, PrintedFigure, ReportedRun, choose_pictured_results,
};
use diskperf_catalogue::{Catalogue, PublishedCell};
use diskperf_models::LaboratoryError;
use diskperf_timeline::units::parse_size;
use diskperf_timeline::{MeasuredWorld, Run};

/// Adds the published results to each run.
///
/// # Errors
///
/// Returns an error if the catalogue is faulty.
pub fn build_reports(
    catalogue: &Catalogue,
    runs: Vec<Run>,
) -> Result<Vec<ReportedRun>, LaboratoryError> {
    let published = read_published(catalogue)?;
    let documents = published.document_names();
    let mut cells = Vec::new();
    for document in documents {
        cells.extend(
            published
                .cells_of_document(document)
                .map_err(LaboratoryError::catalogue)?,
        );
    }
    let one = |run: Run| ReportedRun {
        printed_figures: list_printed_figures(&cells, &run),
        run,
        pictures_by_result: Vec::new(),
        no_pictures_reason: None,
    };
    Ok(runs.into_iter().map(one).collect())
}

/// Repeats a modelled run by its plan and returns pictures of its drives' activity, with the index
/// of the result. Only results that are worth a picture have one.
///
/// # Errors
///
/// Returns the error of the modelled machine.
pub fn build_pictures(
    plan: &ModelPlan,
    run: &Run,
) -> Result<Vec<(usize, Picture)>, LaboratoryError> {
    diskperf_models::model::run::run_with_traces(
        plan,
        (run, &choose_pictured_results(run)),
        |trace| Picture::from_trace(&trace),
    )
}

/// Returns the published results of a run's system. The list is empty if settings change the
/// system, because it is then a different one.
fn list_printed_figures(cells: &[&PublishedCell], run: &Run) -> Vec<PrintedFigure> {
    let changed = |model: &diskperf_timeline::ModelInformation| !model.settings.is_empty();
    if run.world == MeasuredWorld::Host || run.model_information.as_ref().is_none_or(changed) {
        return Vec::new();
    }
    let of_target = cells.iter().filter(|cell| {
        cell.full_target().as_ref() == Some(&run.target_label) && cell.scored_as.is_none()
    });
    of_target
        .filter_map(|cell| printed_throughput(cell))
        .collect()
}

/// Converts a published cell to the throughput of a program, if the cell is a measured one.
fn printed_throughput(cell: &PublishedCell) -> Option<PrintedFigure> {
    // `8K/1K`: the block and the fragment.
    let block = cell.filesystem.as_deref()?.split('/').next()?;
    Some(PrintedFigure {
        document: format!("{}, {}", cell.document()?, cell.table),
        program: cell.test.clone()?,
        filesystem: format!("ffs/{}", parse_size(block).ok()?),
        drives: cell.drives.unwrap_or(1),
        kb_per_s: cell.kb_per_s?,
        cpu_percent: cell.cpu_percent,
    })
}
