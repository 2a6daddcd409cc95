//! What a report says of a run beside what the run holds itself: what documents
//! print of the same programs on the same system, and what the drives did when
//! a modelled run is made again.

use crate::plan::ModelPlan;
use crate::reproduce::published;
use diskperf_analysis::report::html::{Picture, Printed, Reported, worth_a_picture};
use diskperf_catalogue::{Catalogue, Cell};
use diskperf_models::LaboratoryError;
use diskperf_timeline::units::parse_size;
use diskperf_timeline::{Run, World};

/// Runs with all that a report says of them.
///
/// # Errors
///
/// A catalogue that is wrong.
pub fn reported(catalogue: &Catalogue, runs: Vec<Run>) -> Result<Vec<Reported>, LaboratoryError> {
    let published = published(catalogue)?;
    let documents = published.documents();
    let mut cells = Vec::new();
    for document in documents {
        cells.extend(
            published
                .of_document(document)
                .map_err(LaboratoryError::catalogue)?,
        );
    }
    let one = |run: Run| Reported {
        printed: printed(&cells, &run),
        run,
        pictures: Vec::new(),
        no_pictures: None,
    };
    Ok(runs.into_iter().map(one).collect())
}

/// Makes a modelled run again by its plan, and keeps what is to be seen of its
/// drives: for the results that are worth it, by their numbers.
///
/// # Errors
///
/// What a machine fails with.
pub fn pictures(plan: &ModelPlan, run: &Run) -> Result<Vec<(usize, Picture)>, LaboratoryError> {
    diskperf_models::model::run::traced(plan, (run, &worth_a_picture(run)), |trace| {
        Picture::of(&trace)
    })
}

/// What was printed of the system as it is in the catalogue: a changed one is
/// another.
fn printed(cells: &[&Cell], run: &Run) -> Vec<Printed> {
    let changed = |model: &diskperf_timeline::Modelled| !model.settings.is_empty();
    if run.world == World::Host || run.model.as_ref().is_none_or(changed) {
        return Vec::new();
    }
    let of_target = cells
        .iter()
        .filter(|cell| cell.full_target().as_ref() == Some(&run.target) && cell.same_as.is_none());
    of_target.filter_map(|cell| throughput(cell)).collect()
}

/// A cell as the throughput of a program, if it is one that was measured.
fn throughput(cell: &Cell) -> Option<Printed> {
    // `8K/1K`: the block and the fragment.
    let block = cell.filesystem.as_deref()?.split('/').next()?;
    Some(Printed {
        published: format!("{}, {}", cell.document()?, cell.table),
        program: cell.test.clone()?,
        filesystem: format!("ffs/{}", parse_size(block).ok()?),
        drives: cell.drives.unwrap_or(1),
        kb_per_s: cell.kb_per_s?,
        cpu_percent: cell.cpu_percent,
    })
}
