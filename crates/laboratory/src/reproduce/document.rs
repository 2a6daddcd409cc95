//! The five founding documents, and the parts of the accuracy card that each of them fills.

use super::asking::{Asking, Values};
use super::speck::Speck;
use super::{gaps, interleave, kirkendall, speck, statements, zachariassen};
use diskperf_analysis::accuracy::{CellQuantity, PublishedStatement};
use diskperf_catalogue::PublishedCell;
use diskperf_models::LaboratoryError;

/// A published document whose systems the catalogue models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Document {
    KridleMcKusick,
    Zachariassen,
    Kirkendall,
    SpeckBass,
    PizialiZam,
}

/// Content of a document on the accuracy card: modelled values of its cells, and statements of its
/// text.
type Filled = (Values, Vec<PublishedStatement>);

impl Document {
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
            Self::KridleMcKusick => statements::DOCUMENT,
            Self::Zachariassen => zachariassen::DOCUMENT,
            Self::Kirkendall => kirkendall::DOCUMENT,
            Self::SpeckBass => speck::DOCUMENT,
            Self::PizialiZam => interleave::DOCUMENT,
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Models cells of this document. Its statements have runs of their own and concern the whole
    /// document; they are left out unless all cells are requested (`whole`). The cells of Kridle
    /// and McKusick are programs on setups and are filled from the runs of those.
    pub(super) fn fill(
        self,
        asking: &Asking<'_>,
        cells: &[&PublishedCell],
        whole: bool,
    ) -> Result<Filled, LaboratoryError> {
        let said = |say: &dyn Fn() -> Result<Vec<PublishedStatement>, LaboratoryError>| match whole
        {
            true => say(),
            false => Ok(Vec::new()),
        };
        Ok(match self {
            Self::KridleMcKusick => (Values::default(), said(&|| statements::statements(asking))?),
            Self::Zachariassen => {
                let values = zachariassen::values(asking, cells)?;
                let said = said(&|| zachariassen::statements(asking, cells, &values))?;
                (values, said)
            }
            Self::Kirkendall => (
                kirkendall::values(asking, cells)?,
                said(&|| kirkendall::statements(asking))?,
            ),
            Self::SpeckBass => {
                let speck = Speck::run(asking)?;
                (speck.values(cells), said(&|| Ok(speck.statements()))?)
            }
            Self::PizialiZam => (
                interleave::values(asking, cells)?,
                said(&|| gaps::statements(asking))?,
            ),
        })
    }

    /// Describes a published cell for the accuracy card: its quantity, its printed value, and the
    /// name of its test. `value` is the modelled value.
    pub(super) fn described(
        self,
        cell: &PublishedCell,
        value: Option<f64>,
    ) -> (CellQuantity, Option<f64>, Option<String>) {
        let rate = |test| (CellQuantity::KbPerS, cell.kb_per_s, test);
        match self {
            Self::KridleMcKusick => rate(cell.test.clone()),
            Self::Zachariassen => zachariassen::described(cell),
            Self::Kirkendall => rate(Some(kirkendall::title(cell, value))),
            Self::SpeckBass => match cell.blocks_per_s {
                Some(_) => (
                    CellQuantity::BlocksPerS,
                    cell.blocks_per_s,
                    cell.test.clone(),
                ),
                None => (CellQuantity::Ratio, None, cell.test.clone()),
            },
            Self::PizialiZam => rate(interleave::title(cell)),
        }
    }
}
