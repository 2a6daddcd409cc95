//! The account of a program's elapsed time.

use crate::{Nanoseconds, Stage};
use serde::{Deserialize, Serialize};

/// Elapsed time by stage. The parts sum to the whole, to the nanosecond: each
/// is booked by the component that spent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    entries: Vec<Entry>,
}

/// One line of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What the time went to.
    pub stage: Stage,
    /// How much.
    pub ns: Nanoseconds,
}

impl Ledger {
    /// The ledger of a table in the order of [`Stage::index`]; stages without
    /// time have no line.
    pub fn from_table(table: &[u64; Stage::COUNT]) -> Self {
        let entries = Stage::ALL
            .into_iter()
            .zip(table)
            .filter(|(_, ns)| **ns > 0)
            .map(|(stage, ns)| Entry {
                stage,
                ns: Nanoseconds(*ns),
            })
            .collect();
        Self { entries }
    }

    /// The lines, in the order of the stages.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether nothing was booked, as for a run on real storage.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was booked to this stage.
    pub fn stage(&self, stage: Stage) -> Nanoseconds {
        let booked = self.entries.iter().filter(|entry| entry.stage == stage);
        booked.map(|entry| entry.ns).sum()
    }

    /// All that was booked.
    pub fn total(&self) -> Nanoseconds {
        self.entries.iter().map(|entry| entry.ns).sum()
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
        assert_eq!(ledger.stage(Stage::Seek), Nanoseconds(7));
        assert_eq!(ledger.total(), Nanoseconds(12));
    }
}
