//! Blocks that another run of the same job wrote (`verify_only`).

use super::Verifier;
use crate::program::ProgramError;
use std::collections::BTreeSet;

/// Knowledge of the run that wrote the blocks. Once a block is met that has a seed of the
/// job, one with another seed is of another run: a stale block. Where none is met, all were
/// written by another job, whose seeds nobody knows.
pub(super) struct OtherRun {
    /// Seeds of the job's writes.
    pub(super) seeds: BTreeSet<u64>,
    /// Whether a block had one of them.
    pub(super) is_met: bool,
    /// Differences of blocks with other seeds, before one was met.
    pub(super) strangers: Vec<String>,
}

impl Verifier {
    /// Takes what is recorded for writes of another run.
    pub(crate) fn expect_other_run(&mut self) {
        self.other_run = Some(OtherRun {
            seeds: self.records.seeds().collect(),
            is_met: false,
            strangers: Vec::new(),
        });
    }

    /// Decides what blocks with other seeds are, when all are read.
    pub(super) fn settle_strangers(&mut self) -> Result<(), ProgramError> {
        let Some(other) = &mut self.other_run else {
            return Ok(());
        };
        let strangers = std::mem::take(&mut other.strangers);
        if !other.is_met {
            return Ok(());
        }
        strangers.into_iter().try_for_each(|text| self.note(text))
    }
}
