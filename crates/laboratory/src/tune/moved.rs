//! How much the programs of a search move.

use super::Search;
use super::over::Over;
use super::point::Subject;
use crate::error::LaboratoryError;
use diskperf_machine::catalogue::Catalogue;
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{SizeChoice, Workload};

/// What each program moves on a modelled system without a cache in its drives, unless the
/// user says how much.
const MODEL_BYTES: u64 = 2 * MIB;

/// How much programs move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// This much each.
    Bytes(u64),
    /// As much as in `run`, where a drive has a cache of its own: a smaller stream would
    /// come from that, and the search find what is best for a cache.
    AsRun,
}

impl Moved {
    /// What a search has them move, by the target as it is.
    pub(super) fn of(
        search: &Search,
        catalogue: &Catalogue,
        overs: &[Over],
    ) -> Result<Self, LaboratoryError> {
        if let SizeChoice::Bytes(bytes) = search.experiment.size {
            return Ok(Self::Bytes(bytes));
        }
        let subject = Subject {
            catalogue,
            search,
            overs,
            moved: Self::AsRun,
        };
        let specification = &subject.today()?.computers[0].specification;
        let mut drives = specification.drives.iter();
        Ok(match drives.any(|drive| drive.cache_bytes() > 0) {
            true => Self::AsRun,
            false => Self::Bytes(MODEL_BYTES),
        })
    }

    /// What a reader must know of it.
    pub(super) fn told(self, search: &Search) -> Option<String> {
        let workload = &search.experiment.workload;
        if matches!(workload, Workload::JobFile(_) | Workload::Replay(_)) {
            return None;
        }
        match (self, search.experiment.size) {
            (_, SizeChoice::Bytes(_)) => None,
            (Self::AsRun, SizeChoice::Auto) => {
                Some("the programs move as much as in `run`; --size says another size".to_owned())
            }
            (Self::Bytes(bytes), SizeChoice::Auto) => Some(format!(
                "the programs move {} at most, and more in `run`; --size says another size",
                format_size(bytes)
            )),
        }
    }
}
