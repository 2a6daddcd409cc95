//! Fills the card: every cell of the documents under its id.

use super::free::Free;
use super::gaps;
use super::glob::matches;
use super::interleave::{self, Interleaves};
use super::jobs::Workshop;
use super::kirkendall::{self, Kirkendall};
use super::notes::{Notes, two_drives};
use super::setups::{Modelled, OverPhases, Place, figures};
use super::speck::{self, Speck};
use super::statements::{self, Asking, statements};
use super::zachariassen::{self, Zachariassen};
use super::{Options, published};
use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use diskperf_analysis::accuracy::{Card, Cell, Quantity, Role, bars};
use diskperf_machine::catalogue::{Catalogue, Cell as Printed, Published, Setting};
use std::collections::BTreeMap;

/// The documents that have models.
const DOCUMENTS: [&str; 5] = [
    statements::DOCUMENT,
    zachariassen::DOCUMENT,
    kirkendall::DOCUMENT,
    speck::DOCUMENT,
    interleave::DOCUMENT,
];

/// The accuracy card.
pub(super) fn card(
    catalogue: &Catalogue,
    options: &Options,
    workshop: &Workshop<'_>,
) -> Result<Card, LaboratoryError> {
    let published = published(catalogue)?;
    let notes = Notes::load(options.catalogue.as_deref())?;
    let two_drives = two_drives();
    let documents = documents(&published, &options.documents)?;
    let mut chosen: Vec<&Printed> = Vec::new();
    for document in &documents {
        let cells = published.of_document(document);
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
    let modelled = figures(
        catalogue,
        &options.settings,
        (&wanted, options.seed),
        &two_drives,
        workshop,
    )?;
    let speck = chosen
        .iter()
        .any(|cell| cell.document() == Some(speck::DOCUMENT))
        .then(|| Speck::run(catalogue, &options.settings, options.seed, workshop))
        .transpose()?;
    let interleaves = Interleaves::run(
        catalogue,
        &options.settings,
        (&chosen, options.seed),
        workshop,
    )?;
    let kirkendall = Kirkendall::run(
        catalogue,
        &options.settings,
        (&chosen, options.seed),
        workshop,
    )?;
    let zachariassen = Zachariassen::run(
        catalogue,
        &options.settings,
        (&chosen, options.seed),
        workshop,
    )?;
    let filling = Filling {
        zachariassen: &zachariassen,
        kirkendall: &kirkendall,
        modelled: &modelled,
        speck: speck.as_ref(),
        interleaves: &interleaves,
        free: &free,
        notes: &notes,
    };
    let cells: Vec<Cell> = chosen.iter().flat_map(|cell| filling.cells(cell)).collect();
    let mut said = Vec::new();
    if whole && documents.contains(&statements::DOCUMENT.to_owned()) {
        said.extend(statements(&Asking {
            catalogue,
            settings: &options.settings,
            seed: options.seed,
            two_drives: &two_drives,
            workshop,
        })?);
    }
    if let (true, Some(speck)) = (whole, &speck) {
        said.extend(speck.statements());
    }
    if whole && documents.iter().any(|one| one == zachariassen::DOCUMENT) {
        let more = zachariassen.statements(catalogue, &options.settings, options.seed, workshop)?;
        said.extend(more);
    }
    if whole && documents.iter().any(|one| one == kirkendall::DOCUMENT) {
        said.extend(kirkendall.statements(catalogue, &options.settings, options.seed, workshop)?);
    }
    if whole && documents.iter().any(|one| one == interleave::DOCUMENT) {
        let asking = gaps::Asking {
            document: interleave::DOCUMENT,
            catalogue,
            settings: &options.settings,
            seed: options.seed,
            workshop,
        };
        said.extend(asking.statements()?);
    }
    let pairs = cells.iter().any(|cell| cell.phases > 1);
    Ok(Card {
        settings: options
            .settings
            .iter()
            .map(|setting| format!("{}={}", setting.path, setting.text))
            .collect(),
        seed: options.seed,
        two_drives,
        parameters: free.into_parameters(pairs),
        bars: bars(&cells),
        cells,
        statements: said,
        documents,
    })
}

/// The documents asked for, in the order of this list.
fn documents(published: &Published, asked: &[String]) -> Result<Vec<String>, LaboratoryError> {
    for document in asked {
        published
            .of_document(document)
            .map_err(LaboratoryError::catalogue)?;
        if !DOCUMENTS.contains(&document.as_str()) {
            return Err(LaboratoryError::Request(format!(
                "the catalogue has no models of the systems of {document}; there are those of {}",
                DOCUMENTS.join(" and ")
            )));
        }
    }
    let wanted =
        |document: &&str| asked.is_empty() || asked.iter().any(|one| one.as_str() == *document);
    Ok(DOCUMENTS
        .into_iter()
        .filter(wanted)
        .map(str::to_owned)
        .collect())
}

fn is_chosen(cell: &Printed, options: &Options) -> bool {
    let id = cell.id.as_deref().unwrap_or_default();
    let fits = |pattern: &String| matches(pattern.strip_suffix("#cpu").unwrap_or(pattern), id);
    options.cell.as_ref().is_none_or(fits)
        && options
            .table
            .as_ref()
            .is_none_or(|table| *table == cell.table)
}

fn nothing_chosen(
    published: &Published,
    documents: &[String],
    options: &Options,
) -> LaboratoryError {
    let cells = published.cells.iter();
    let of = cells.filter(|cell| documents.iter().any(|one| cell.document() == Some(one)));
    let mut tables: Vec<&str> = of.map(|cell| cell.table.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    let asked = match (&options.cell, &options.table) {
        (Some(cell), Some(table)) => format!("is `{cell}` in table `{table}`"),
        (Some(cell), None) => format!("is `{cell}`, in which * stands for any characters"),
        (None, table) => format!("is of table `{}`", table.as_deref().unwrap_or_default()),
    };
    LaboratoryError::Request(format!(
        "no cell {asked}; the tables are {}",
        tables.join(", ")
    ))
}

/// A system's name with its file system: what free parameters are kept by.
fn system_name(place: &Place) -> String {
    format!("{} {}", place.setup.target, place.setup.filesystem)
}

/// The free parameters of all systems that the cells are about.
fn free(
    catalogue: &Catalogue,
    settings: &[Setting],
    published: &Published,
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
        free.add(&name, &computer, published)?;
        seen.push(name);
    }
    Ok(free)
}

/// All that cells are filled from.
struct Filling<'a> {
    zachariassen: &'a Zachariassen,
    modelled: &'a BTreeMap<Place, Modelled>,
    speck: Option<&'a Speck>,
    interleaves: &'a Interleaves,
    kirkendall: &'a Kirkendall,
    free: &'a Free,
    notes: &'a Notes,
}

impl Filling<'_> {
    /// The card's cells of a printed one: its rate, and its CPU share where it
    /// has one, or where nothing was measured.
    fn cells(&self, printed: &Printed) -> Vec<Cell> {
        let Some(place) = Place::of(printed) else {
            return vec![match printed.document() {
                Some(interleave::DOCUMENT) => self.of_interleave(printed),
                Some(zachariassen::DOCUMENT) => self.of_zachariassen(printed),
                Some(kirkendall::DOCUMENT) => self.of_kirkendall(printed),
                _ => self.of_speck(printed),
            }];
        };
        let modelled = &self.modelled[&place];
        let blank = self.blank(printed, &system_name(&place), modelled.phases);
        let rate = filled(
            Cell {
                quantity: Quantity::KbPerS,
                printed: printed.kb_per_s,
                ..blank.clone()
            },
            &modelled.kb_per_s,
        );
        let mut cells = vec![rate];
        if printed.cpu_given || !printed.measured {
            let same_as = blank.same_as.as_ref().map(|id| format!("{id}#cpu"));
            let share = Cell {
                id: format!("{}#cpu", blank.id),
                quantity: Quantity::CpuPercent,
                printed: printed.cpu_percent,
                scored: blank.scored && printed.cpu_given && blank.drives == 1,
                printed_low: None,
                printed_high: None,
                same_as,
                ..blank
            };
            cells.push(filled(share, &modelled.cpu_percent));
        }
        cells
    }

    fn of_speck(&self, printed: &Printed) -> Cell {
        let name = printed.full_target().unwrap_or_default();
        let blank = self.blank(printed, &name, 1);
        let quantity = match printed.blocks_per_s {
            Some(_) => Quantity::BlocksPerS,
            None => Quantity::Ratio,
        };
        let cell = Cell {
            quantity,
            printed: printed.blocks_per_s,
            ..blank
        };
        match self.speck.and_then(|speck| speck.value(printed)) {
            Some(value) => with_value(cell, value),
            None => cell,
        }
    }

    fn of_zachariassen(&self, printed: &Printed) -> Cell {
        let name = printed.full_target().unwrap_or_default();
        let (quantity, value) = match printed {
            Printed {
                minutes: Some(minutes),
                ..
            } => (Quantity::Minutes, Some(*minutes)),
            Printed {
                real_s: Some(seconds),
                ..
            } => (Quantity::Seconds, Some(*seconds)),
            Printed {
                ratio: Some(ratio), ..
            } => (Quantity::Ratio, Some(*ratio)),
            _ => (Quantity::KbPerS, printed.kb_per_s),
        };
        let size = printed.blocksize.iter().map(|size| format!(", {size}"));
        let bits = printed.cache_bits.iter().map(|bits| format!(", {bits}"));
        let ahead = printed
            .readahead_sectors
            .map(|sectors| format!(" {sectors}"));
        let cell = Cell {
            quantity,
            printed: value,
            test: printed.test.as_ref().map(|test| {
                size.chain(bits)
                    .chain(ahead)
                    .fold(test.clone(), |text, more| text + &more)
            }),
            ..self.blank(printed, &name, 1)
        };
        match self.zachariassen.value(printed) {
            Some(value) => with_value(cell, value),
            None => cell,
        }
    }

    fn of_interleave(&self, printed: &Printed) -> Cell {
        let name = printed.full_target().unwrap_or_default();
        let cell = Cell {
            printed: printed.kb_per_s,
            test: printed
                .test
                .as_ref()
                .zip(printed.interleave)
                .map(|(test, interleave)| format!("{test}, {interleave}:1")),
            ..self.blank(printed, &name, 1)
        };
        match self.interleaves.value(printed) {
            Some(value) => with_value(cell, value),
            None => cell,
        }
    }

    fn of_kirkendall(&self, printed: &Printed) -> Cell {
        let name = printed.full_target().unwrap_or_default();
        let value = self.kirkendall.value(printed);
        let cell = Cell {
            printed: printed.kb_per_s,
            test: Some(kirkendall::title(printed, value)),
            ..self.blank(printed, &name, 1)
        };
        match value {
            Some(value) => with_value(cell, value),
            None => cell,
        }
    }

    /// A cell with all but its figures.
    fn blank(&self, printed: &Printed, system: &str, phases: u32) -> Cell {
        let id = printed.id.clone().unwrap_or_default();
        let measurement = printed.same_as.as_deref().unwrap_or(&id);
        let calibrates = self.free.calibrates(system, measurement);
        Cell {
            published: printed.document().unwrap_or_default().to_owned(),
            table: printed.table.clone(),
            target: printed.full_target(),
            filesystem: printed.filesystem.clone(),
            test: printed.test.clone(),
            drives: printed.drives.unwrap_or(1),
            quantity: Quantity::KbPerS,
            printed: None,
            printed_low: printed.printed_low,
            printed_high: printed.printed_high,
            modelled: None,
            error: None,
            scored: printed.scored,
            same_as: printed.same_as.clone(),
            role: if calibrates && printed.measured {
                Role::Calibration
            } else {
                Role::Prediction
            },
            phases,
            spread: None,
            suspect: printed.suspect,
            unexplained: printed.unexplained,
            note: self.notes.on(&id),
            id,
        }
    }
}

fn filled(cell: Cell, over: &OverPhases) -> Cell {
    Cell {
        spread: (cell.phases > 1).then_some(over.spread),
        ..with_value(cell, over.mean)
    }
}

fn with_value(cell: Cell, value: f64) -> Cell {
    Cell {
        modelled: Some(value),
        error: cell.error_of(value),
        ..cell
    }
}
