//! Ledger of a program's elapsed time by stage.

use crate::{Nanoseconds, Stage};
use serde::{Deserialize, Serialize};

/// Elapsed time of a program by stage. The entries sum to the elapsed time, to the nanosecond,
/// because each component books the time that it spends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    entries: Vec<LedgerEntry>,
}

/// Entry of a ledger: one stage and the time spent in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Stage that spent the time.
    pub stage: Stage,
    /// Time spent in the stage.
    #[serde(rename = "ns")]
    pub duration: Nanoseconds,
}

impl Ledger {
    /// Builds a ledger from a table of nanoseconds in the order of [`Stage::index`]. Stages without
    /// time get no entry.
    pub fn from_table(table: &[u64; Stage::COUNT]) -> Self {
        let entries = Stage::ALL
            .into_iter()
            .zip(table)
            .filter(|(_, ns)| **ns > 0)
            .map(|(stage, ns)| LedgerEntry {
                stage,
                duration: Nanoseconds(*ns),
            })
            .collect();
        Self { entries }
    }

    /// Returns the ledger's entries in the order of the stages.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// Reports whether the ledger has no entries, as for a run on real storage.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the time booked to a stage.
    pub fn stage_duration(&self, stage: Stage) -> Nanoseconds {
        let booked = self.entries.iter().filter(|entry| entry.stage == stage);
        booked.map(|entry| entry.duration).sum()
    }

    /// Returns the sum of all booked time.
    pub fn total_duration(&self) -> Nanoseconds {
        self.entries.iter().map(|entry| entry.duration).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_a_place_of_its_own() {
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage.index(), index, "{stage:?}");
        }
    }

    #[test]
    fn a_ledger_is_its_table_without_the_empty_lines() {
        let mut table = [0; Stage::COUNT];
        table[Stage::Copy.index()] = 5;
        table[Stage::Seek.index()] = 7;
        let ledger = Ledger::from_table(&table);
        assert_eq!(ledger.entries().len(), 2);
        assert_eq!(ledger.stage_duration(Stage::Seek), Nanoseconds(7));
        assert_eq!(ledger.total_duration(), Nanoseconds(12));
    }
}
