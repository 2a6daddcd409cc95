//! The five founding documents, and the parts of the accuracy card that each of them fills.

use super::asking::{CellValues, ModelQueries};
use super::speck::SpeckResults;
use super::{CellDescription, gaps, interleave, kirkendall, speck, statements, zachariassen};
use diskperf_analysis::accuracy::{CellQuantity, PublishedStatement};
use diskperf_catalogue::PublishedCell;
use diskperf_models::LaboratoryError;

/// A published document whose systems the catalogue models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReproducedDocument {
    KridleMcKusick,
    Zachariassen,
    Kirkendall,
    SpeckBass,
    PizialiZam,
}

/// Content of a document on the accuracy card: modelled values of its cells, and statements of its
/// text.
type FilledDocument = (CellValues, Vec<PublishedStatement>);

impl ReproducedDocument {
    /// All documents, in the order of the accuracy card.
    pub(super) const ALL: [Self; 5] = [
        Self::KridleMcKusick,
        Self::Zachariassen,
        Self::Kirkendall,
        Self::SpeckBass,
        Self::PizialiZam,
    ];

    /// Name of the document in the catalogue's `published` folder, such as `kridle-mckusick-1983`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::KridleMcKusick => statements::DOCUMENT_ID,
            Self::Zachariassen => zachariassen::DOCUMENT_ID,
            Self::Kirkendall => kirkendall::DOCUMENT_ID,
            Self::SpeckBass => speck::DOCUMENT_ID,
            Self::PizialiZam => interleave::DOCUMENT_ID,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Models cells of this document. Its statements have runs of their own and concern the whole
    /// document; they are left out unless all cells are requested (`whole`). The cells of Kridle
    /// and McKusick are programs on setups and are filled from the runs of those.
    pub(super) fn fill_cells(
        self,
        asking: &ModelQueries<'_>,
        cells: &[&PublishedCell],
        whole: bool,
    ) -> Result<FilledDocument, LaboratoryError> {
        let said = |say: &dyn Fn() -> Result<Vec<PublishedStatement>, LaboratoryError>| match whole
        {
            true => say(),
            false => Ok(Vec::new()),
        };
        Ok(match self {
            Self::KridleMcKusick => (
                CellValues::default(),
                said(&|| statements::check_statements(asking))?,
            ),
            Self::Zachariassen => {
                let values = zachariassen::model_values(asking, cells)?;
                let said = said(&|| zachariassen::check_statements(asking, cells, &values))?;
                (values, said)
            }
            Self::Kirkendall => (
                kirkendall::model_values(asking, cells)?,
                said(&|| kirkendall::check_statements(asking))?,
            ),
            Self::SpeckBass => {
                let speck = SpeckResults::run_layouts(asking)?;
                (
                    speck.cell_values(cells),
                    said(&|| Ok(speck.check_statements()))?,
                )
            }
            Self::PizialiZam => (
                interleave::model_values(asking, cells)?,
                said(&|| gaps::check_statements(asking))?,
            ),
        })
    }

    /// Describes a published cell for the accuracy card: its quantity, its printed value, and the
    /// name of its test. `value` is the modelled value.
    pub(super) fn describe_cell(self, cell: &PublishedCell, value: Option<f64>) -> CellDescription {
        let rate = |test| CellDescription {
            quantity: CellQuantity::KbPerS,
            printed_value: cell.kb_per_s,
            test,
        };
        match self {
            Self::KridleMcKusick => rate(cell.test.clone()),
            Self::Zachariassen => zachariassen::describe_cell(cell),
            Self::Kirkendall => rate(Some(kirkendall::title_of_cell(cell, value))),
            Self::SpeckBass => CellDescription {
                quantity: match cell.blocks_per_s {
                    Some(_) => CellQuantity::BlocksPerS,
                    None => CellQuantity::Ratio,
                },
                printed_value: cell.blocks_per_s,
                test: cell.test.clone(),
            },
            Self::PizialiZam => rate(interleave::title_of_cell(cell)),
        }
    }
}
