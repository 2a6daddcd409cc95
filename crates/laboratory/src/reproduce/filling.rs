//! Content of the accuracy card: every cell of the documents, by its id.

use super::asking::{CellValues, ModelQueries};
use super::document::ReproducedDocument;
use super::free::FreeParameterList;
use super::glob::matches_pattern;
use super::jobs::ModelWorkshop;
use super::notes::CellNotes;
use super::setups::{AveragedValue, ModelledPlace, TablePlace, run_figures};
use super::{ReproduceOptions, read_published};
use diskperf_analysis::accuracy::{
    AccuracyCard, AccuracyCell, CellQuantity, CellRole, measure_bars, summarize_cells,
};
use diskperf_catalogue::{Catalogue, PublishedCell as Printed, PublishedValues, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;
use diskperf_models::two_drives::two_drive_settings;
use std::collections::{BTreeMap, BTreeSet};

/// Makes the accuracy card: published values beside modelled ones.
pub(super) fn build_card(
    catalogue: &Catalogue,
    options: &ReproduceOptions,
    workshop: &ModelWorkshop<'_>,
) -> Result<AccuracyCard, LaboratoryError> {
    let published = read_published(catalogue)?;
    let notes = CellNotes::load(options.catalogue.as_deref())?;
    let two_drives = two_drive_settings();
    let documents = choose_documents(&published, &options.documents)?;
    let mut chosen: Vec<&Printed> = Vec::new();
    for document in &documents {
        let cells = published.cells_of_document(document.name());
        chosen.extend(cells.map_err(LaboratoryError::catalogue)?);
    }
    let all = chosen.len();
    chosen.retain(|cell| is_chosen(cell, options));
    if chosen.is_empty() {
        return Err(nothing_chosen_error(&published, &documents, options));
    }
    let whole = chosen.len() == all;
    // Whatever is wrong with a system or a set is found before anything runs.
    let free = list_free_parameters(catalogue, &options.settings, &published, &chosen)?;
    let places: Vec<TablePlace> = chosen
        .iter()
        .filter_map(|cell| TablePlace::from_cell(cell))
        .collect();
    let wanted: Vec<&TablePlace> = places.iter().collect();
    let asking = ModelQueries {
        catalogue,
        settings: &options.settings,
        seed: options.seed,
        two_drives: &two_drives,
        workshop,
    };
    let modelled = run_figures(
        catalogue,
        &options.settings,
        (&wanted, options.seed),
        &two_drives,
        workshop,
    )?;
    let mut values = CellValues::default();
    let mut said = Vec::new();
    for document in &documents {
        let of_it = |cell: &&&Printed| cell.document() == Some(document.name());
        let cells: Vec<&Printed> = chosen.iter().filter(of_it).copied().collect();
        if cells.is_empty() {
            continue;
        }
        let (of_cells, text) = document.fill_cells(&asking, &cells, whole)?;
        values.extend(of_cells);
        said.extend(text);
    }
    let filling = CellFilling {
        modelled_by_place: &modelled,
        values: &values,
        calibration_ids: list_calibration_cells(&published)?,
        notes: &notes,
    };
    let cells: Vec<AccuracyCell> = chosen
        .iter()
        .flat_map(|cell| filling.fill_cells(cell))
        .collect();
    let pairs = cells.iter().any(|cell| cell.phase_count > 1);
    Ok(AccuracyCard {
        settings: options.settings.iter().map(ToString::to_string).collect(),
        seed: options.seed,
        two_drives,
        parameters: free.into_parameters(&documents, pairs),
        summary: summarize_cells(&cells),
        accuracy_bars: measure_bars(&cells),
        cells,
        statements: said,
        documents: documents.iter().map(|one| one.name().to_owned()).collect(),
    })
}

/// Returns the requested documents in the order of the accuracy card, or all that have models if
/// none is requested.
fn choose_documents(
    published: &PublishedValues,
    asked: &[String],
) -> Result<Vec<ReproducedDocument>, LaboratoryError> {
    for document in asked {
        published
            .cells_of_document(document)
            .map_err(LaboratoryError::catalogue)?;
        if ReproducedDocument::from_name(document).is_none() {
            return Err(LaboratoryError::Request(format!(
                "the catalogue has no models of the systems of {document}; there are those of {}",
                ReproducedDocument::ALL
                    .map(ReproducedDocument::name)
                    .join(" and ")
            )));
        }
    }
    let wanted = |document: &ReproducedDocument| {
        asked.is_empty() || asked.iter().any(|one| one == document.name())
    };
    Ok(ReproducedDocument::ALL.into_iter().filter(wanted).collect())
}

fn is_chosen(cell: &Printed, options: &ReproduceOptions) -> bool {
    let id = cell.id.as_deref().unwrap_or_default();
    let fits =
        |pattern: &String| matches_pattern(pattern.strip_suffix("#cpu").unwrap_or(pattern), id);
    (options.cell_patterns.is_empty() || options.cell_patterns.iter().any(fits))
        && options
            .table_title
            .as_ref()
            .is_none_or(|table| *table == cell.table)
}

fn nothing_chosen_error(
    published: &PublishedValues,
    documents: &[ReproducedDocument],
    options: &ReproduceOptions,
) -> LaboratoryError {
    let cells = published.cells.iter();
    let of = cells.filter(|cell| {
        documents
            .iter()
            .any(|one| cell.document() == Some(one.name()))
    });
    let mut tables: Vec<&str> = of.map(|cell| cell.table.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    let patterns = options.cell_patterns.join("` or `");
    let asked = match (patterns.is_empty(), &options.table_title) {
        (false, Some(table)) => format!("is `{patterns}` in table `{table}`"),
        (false, None) => format!("is `{patterns}`, in which * stands for any characters"),
        (true, table) => format!("is of table `{}`", table.as_deref().unwrap_or_default()),
    };
    LaboratoryError::Request(format!(
        "no cell {asked}; the tables are {}",
        tables.join(", ")
    ))
}

fn system_name(place: &TablePlace) -> String {
    format!("{} {}", place.setup.target, place.setup.filesystem)
}

/// Ids of the cells in all calibration sets. A cell that calibrated one system predicts no other
/// system either, because a ratio to a second system depends on both.
fn list_calibration_cells(published: &PublishedValues) -> Result<BTreeSet<&str>, LaboratoryError> {
    let mut cells = BTreeSet::new();
    for set in published.set_names() {
        cells.extend(
            published
                .calibration_set(set)
                .map_err(LaboratoryError::catalogue)?,
        );
    }
    Ok(cells)
}

fn list_free_parameters(
    catalogue: &Catalogue,
    settings: &[Setting],
    published: &PublishedValues,
    chosen: &[&Printed],
) -> Result<FreeParameterList, LaboratoryError> {
    let mut free = FreeParameterList::default();
    let mut seen: Vec<String> = Vec::new();
    for cell in chosen {
        let (name, computer) = match (TablePlace::from_cell(cell), cell.full_target()) {
            (Some(place), _) if seen.contains(&system_name(&place)) => continue,
            (Some(place), _) => (
                system_name(&place),
                place.setup.build_computer(catalogue, settings)?,
            ),
            (None, Some(target)) if seen.contains(&target) => continue,
            (None, Some(target)) => {
                let computer = ModelComputer::read_catalogue(catalogue, &target, settings)?;
                (target, computer)
            }
            (None, None) => continue,
        };
        free.add_parameter(&computer, published)?;
        seen.push(name);
    }
    Ok(free)
}

struct CellFilling<'a> {
    modelled_by_place: &'a BTreeMap<TablePlace, ModelledPlace>,
    values: &'a CellValues,
    calibration_ids: BTreeSet<&'a str>,
    notes: &'a CellNotes,
}

impl CellFilling<'_> {
    /// Makes the cells of the accuracy card for one published cell: its rate, and its CPU share if
    /// one is printed or nothing was measured.
    fn fill_cells(&self, printed: &Printed) -> Vec<AccuracyCell> {
        let Some(place) = TablePlace::from_cell(printed) else {
            return vec![self.fill_document_cell(printed)];
        };
        let modelled = &self.modelled_by_place[&place];
        let blank = AccuracyCell {
            phase_count: modelled.phase_count,
            seed_count: modelled.seed_count,
            ..self.blank_cell(printed)
        };
        let rate = with_average(
            AccuracyCell {
                quantity: CellQuantity::KbPerS,
                printed_value: printed.kb_per_s,
                ..blank.clone()
            },
            &modelled.kb_per_s,
        );
        let mut cells = vec![rate];
        if printed.has_cpu_share || !printed.is_measured {
            let same_as = blank.same_as_cell.as_ref().map(|id| format!("{id}#cpu"));
            let share = AccuracyCell {
                id: format!("{}#cpu", blank.id),
                quantity: CellQuantity::CpuPercent,
                printed_value: printed.cpu_percent,
                is_scored: blank.is_scored && printed.has_cpu_share && blank.drives == 1,
                printed_min: None,
                printed_max: None,
                same_as_cell: same_as,
                ..blank
            };
            cells.push(with_average(share, &modelled.cpu_percent));
        }
        cells
    }

    /// Makes the cell of the accuracy card for a published cell of a document that has its own
    /// model.
    fn fill_document_cell(&self, printed: &Printed) -> AccuracyCell {
        let blank = self.blank_cell(printed);
        let document = printed.document().and_then(ReproducedDocument::from_name);
        let document = document.expect("cells of documents with models are chosen");
        let value = self.values.value_of_cell(printed);
        let description = document.describe_cell(printed, value);
        let cell = AccuracyCell {
            quantity: description.quantity,
            printed_value: description.printed_value,
            test: description.test,
            ..blank
        };
        match value {
            Some(value) => with_value(cell, value),
            None => cell,
        }
    }

    fn blank_cell(&self, printed: &Printed) -> AccuracyCell {
        let id = printed.id.clone().unwrap_or_default();
        let measurement = printed.scored_as.as_deref().unwrap_or(&id);
        let calibrates = self.calibration_ids.contains(measurement);
        AccuracyCell {
            published: printed.document().unwrap_or_default().to_owned(),
            table_title: printed.table.clone(),
            target: printed.full_target(),
            filesystem: printed.filesystem.clone(),
            test: printed.test.clone(),
            drives: printed.drives.unwrap_or(1),
            quantity: CellQuantity::KbPerS,
            printed_value: None,
            printed_min: printed.value_min,
            printed_max: printed.value_max,
            modelled_value: None,
            error: None,
            is_scored: printed.is_scored,
            same_as_cell: printed.scored_as.clone(),
            role: if calibrates && printed.is_measured {
                CellRole::Calibration
            } else {
                CellRole::Prediction
            },
            phase_count: 1,
            seed_count: 1,
            seed_range: None,
            is_suspect: printed.is_suspect,
            is_unexplained: printed.is_unexplained,
            note: self.notes.note_on_cell(&id),
            id,
        }
    }
}

fn with_average(cell: AccuracyCell, over: &AveragedValue) -> AccuracyCell {
    AccuracyCell {
        seed_range: (cell.phase_count > 1 || cell.seed_count > 1).then_some(over.seed_range),
        ..with_value(cell, over.mean)
    }
}

fn with_value(cell: AccuracyCell, value: f64) -> AccuracyCell {
    AccuracyCell {
        modelled_value: Some(value),
        error: cell.relative_error(value),
        ..cell
    }
}
