//! Content of the accuracy card: every cell of the documents, by its id.

use super::asking::{Asking, Values};
use super::document::Document;
use super::free::Free;
use super::glob::matches;
use super::jobs::Workshop;
use super::notes::Notes;
use super::setups::{Averaged, Modelled, Place, figures};
use super::{Options, published};
use diskperf_analysis::accuracy::{
    AccuracyCard, AccuracyCell, CellQuantity, CellRole, measure_bars, summarize_cells,
};
use diskperf_catalogue::{Catalogue, PublishedCell as Printed, PublishedValues, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::Computer;
use diskperf_models::two_drives::two_drives;
use std::collections::{BTreeMap, BTreeSet};

/// Makes the accuracy card: published values beside modelled ones.
pub(super) fn card(
    catalogue: &Catalogue,
    options: &Options,
    workshop: &Workshop<'_>,
) -> Result<AccuracyCard, LaboratoryError> {
    let published = published(catalogue)?;
    let notes = Notes::load(options.catalogue.as_deref())?;
    let two_drives = two_drives();
    let documents = documents(&published, &options.documents)?;
    let mut chosen: Vec<&Printed> = Vec::new();
    for document in &documents {
        let cells = published.cells_of_document(document.name());
        chosen.extend(cells.map_err(LaboratoryError::catalogue)?);
    }
    let all = chosen.len();
    chosen.retain(|cell| is_chosen(cell, options));
    if chosen.is_empty() {
        return Err(nothing_chosen(&published, &documents, options));
    }
    let whole = chosen.len() == all;
    // Whatever is wrong with a system or a set is found before anything runs.
    let free = free(catalogue, &options.settings, &published, &chosen)?;
    let places: Vec<Place> = chosen.iter().filter_map(|cell| Place::of(cell)).collect();
    let wanted: Vec<&Place> = places.iter().collect();
    let asking = Asking {
        catalogue,
        settings: &options.settings,
        seed: options.seed,
        two_drives: &two_drives,
        workshop,
    };
    let modelled = figures(
        catalogue,
        &options.settings,
        (&wanted, options.seed),
        &two_drives,
        workshop,
    )?;
    let mut values = Values::default();
    let mut said = Vec::new();
    for document in &documents {
        let of_it = |cell: &&&Printed| cell.document() == Some(document.name());
        let cells: Vec<&Printed> = chosen.iter().filter(of_it).copied().collect();
        if cells.is_empty() {
            continue;
        }
        let (of_cells, text) = document.fill(&asking, &cells, whole)?;
        values.extend(of_cells);
        said.extend(text);
    }
    let filling = Filling {
        modelled: &modelled,
        values: &values,
        calibration: calibration_cells(&published)?,
        notes: &notes,
    };
    let cells: Vec<AccuracyCell> = chosen.iter().flat_map(|cell| filling.cells(cell)).collect();
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
fn documents(
    published: &PublishedValues,
    asked: &[String],
) -> Result<Vec<Document>, LaboratoryError> {
    for document in asked {
        published
            .cells_of_document(document)
            .map_err(LaboratoryError::catalogue)?;
        if Document::named(document).is_none() {
            return Err(LaboratoryError::Request(format!(
                "the catalogue has no models of the systems of {document}; there are those of {}",
                Document::ALL.map(Document::name).join(" and ")
            )));
        }
    }
    let wanted =
        |document: &Document| asked.is_empty() || asked.iter().any(|one| one == document.name());
    Ok(Document::ALL.into_iter().filter(wanted).collect())
}

fn is_chosen(cell: &Printed, options: &Options) -> bool {
    let id = cell.id.as_deref().unwrap_or_default();
    let fits = |pattern: &String| matches(pattern.strip_suffix("#cpu").unwrap_or(pattern), id);
    (options.cells.is_empty() || options.cells.iter().any(fits))
        && options
            .table
            .as_ref()
            .is_none_or(|table| *table == cell.table)
}

fn nothing_chosen(
    published: &PublishedValues,
    documents: &[Document],
    options: &Options,
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
    let patterns = options.cells.join("` or `");
    let asked = match (patterns.is_empty(), &options.table) {
        (false, Some(table)) => format!("is `{patterns}` in table `{table}`"),
        (false, None) => format!("is `{patterns}`, in which * stands for any characters"),
        (true, table) => format!("is of table `{}`", table.as_deref().unwrap_or_default()),
    };
    LaboratoryError::Request(format!(
        "no cell {asked}; the tables are {}",
        tables.join(", ")
    ))
}

fn system_name(place: &Place) -> String {
    format!("{} {}", place.setup.target, place.setup.filesystem)
}

/// Ids of the cells in all calibration sets. A cell that calibrated one system predicts no other
/// system either, because a ratio to a second system depends on both.
fn calibration_cells(published: &PublishedValues) -> Result<BTreeSet<&str>, LaboratoryError> {
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

fn free(
    catalogue: &Catalogue,
    settings: &[Setting],
    published: &PublishedValues,
    chosen: &[&Printed],
) -> Result<Free, LaboratoryError> {
    let mut free = Free::default();
    let mut seen: Vec<String> = Vec::new();
    for cell in chosen {
        let (name, computer) = match (Place::of(cell), cell.full_target()) {
            (Some(place), _) if seen.contains(&system_name(&place)) => continue,
            (Some(place), _) => (
                system_name(&place),
                place.setup.computer(catalogue, settings)?,
            ),
            (None, Some(target)) if seen.contains(&target) => continue,
            (None, Some(target)) => {
                let computer = Computer::read(catalogue, &target, settings)?;
                (target, computer)
            }
            (None, None) => continue,
        };
        free.add(&computer, published)?;
        seen.push(name);
    }
    Ok(free)
}

struct Filling<'a> {
    modelled: &'a BTreeMap<Place, Modelled>,
    values: &'a Values,
    calibration: BTreeSet<&'a str>,
    notes: &'a Notes,
}

impl Filling<'_> {
    /// Makes the cells of the accuracy card for one published cell: its rate, and its CPU share if
    /// one is printed or nothing was measured.
    fn cells(&self, printed: &Printed) -> Vec<AccuracyCell> {
        let Some(place) = Place::of(printed) else {
            return vec![self.of_document(printed)];
        };
        let modelled = &self.modelled[&place];
        let blank = AccuracyCell {
            phase_count: modelled.phases,
            seed_count: modelled.seeds,
            ..self.blank(printed)
        };
        let rate = filled(
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
            cells.push(filled(share, &modelled.cpu_percent));
        }
        cells
    }

    /// Makes the cell of the accuracy card for a published cell of a document that has its own
    /// model.
    fn of_document(&self, printed: &Printed) -> AccuracyCell {
        let blank = self.blank(printed);
        let document = printed.document().and_then(Document::named);
        let document = document.expect("cells of documents with models are chosen");
        let value = self.values.of(printed);
        let (quantity, rate, test) = document.described(printed, value);
        let cell = AccuracyCell {
            quantity,
            printed_value: rate,
            test,
            ..blank
        };
        match value {
            Some(value) => with_value(cell, value),
            None => cell,
        }
    }

    fn blank(&self, printed: &Printed) -> AccuracyCell {
        let id = printed.id.clone().unwrap_or_default();
        let measurement = printed.scored_as.as_deref().unwrap_or(&id);
        let calibrates = self.calibration.contains(measurement);
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
            note: self.notes.on(&id),
            id,
        }
    }
}

fn filled(cell: AccuracyCell, over: &Averaged) -> AccuracyCell {
    AccuracyCell {
        seed_range: (cell.phase_count > 1 || cell.seed_count > 1).then_some(over.spread),
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
