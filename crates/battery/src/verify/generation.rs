//! Blocks that another run of the same job wrote (`verify_only`).

use super::Verifier;
use super::survey::Survey;
use crate::program::ProgramError;
use diskperf_fio::verify::Seeds;
use std::collections::BTreeSet;

/// Knowledge of the run that wrote the blocks. Where any order of the job's writes leaves the
/// same blocks: once a block is met that has a seed of the job, one with another seed is of
/// another run: a stale block. Where none is met, all were written by another job, whose seeds
/// nobody knows. Where fio's order leaves other blocks, the survey decides.
pub(super) struct OtherRun {
    /// Seeds of the job's writes.
    pub(super) seeds: BTreeSet<u64>,
    /// Whether a block had one of them.
    pub(super) is_met: bool,
    /// Differences of blocks with other seeds, before one was met.
    pub(super) strangers: Vec<String>,
    /// Blocks that must have a seed of the job, of a run that was interrupted and drew its
    /// offsets in an order of its own: the others were not written.
    pub(super) writes_min: Option<u64>,
    /// Blocks that have one.
    pub(super) found: u64,
    /// Search for the blocks of a run whose order is not known.
    pub(super) survey: Option<Survey>,
}

impl Verifier {
    /// Takes what is recorded for writes of another run. fio draws a seed as well for each
    /// block that it reads back between its writes: `reads_between` where the job does so, and
    /// the run that wrote the blocks may have, which moves seeds behind those of all writes.
    /// A `survey` is of a job whose blocks follow from its order.
    pub(crate) fn expect_other_run(&mut self, reads_between: bool, survey: Option<Survey>) {
        let mut seeds: BTreeSet<u64> = self.records.seeds().collect();
        if self.plan.layout.is_seeded() {
            let mut drawn = Seeds::new(self.plan.randseed, self.plan.thread);
            let drawn = (0..2 * self.writes).map(|_| drawn.next_seed());
            let behind = match reads_between || self.plan.is_random {
                true => 0,
                false => self.writes,
            };
            seeds.extend(drawn.skip(behind as usize));
        }
        self.other_run = Some(OtherRun {
            seeds,
            is_met: false,
            strangers: Vec::new(),
            writes_min: None,
            found: 0,
            survey,
        });
    }

    /// Takes what is recorded for writes of a run that was interrupted, which drew its offsets
    /// in an order of its own: it issued so many writes, the last `depth` of which may not
    /// have been complete.
    pub(crate) fn expect_part_of_other_run(&mut self, (writes, depth): (u64, u64)) {
        let mut drawn = Seeds::new(self.plan.randseed, self.plan.thread);
        let seeds = (0..writes).map(|_| drawn.next_seed()).collect();
        self.other_run = Some(OtherRun {
            seeds,
            is_met: true,
            strangers: Vec::new(),
            writes_min: Some(writes.saturating_sub(depth).min(self.records.count())),
            found: 0,
            survey: None,
        });
    }

    /// Decides what blocks with other seeds are, when all are read.
    pub(super) fn settle_strangers(&mut self) -> Result<(), ProgramError> {
        let Some(other) = &mut self.other_run else {
            return Ok(());
        };
        if let Some(writes_min) = other.writes_min.filter(|min| other.found < *min) {
            let found = other.found;
            return self.note(format!(
                "expected at least {writes_min} blocks that the interrupted run wrote, got {found}"
            ));
        }
        let strangers = std::mem::take(&mut other.strangers);
        if !other.is_met {
            return Ok(());
        }
        strangers.into_iter().try_for_each(|text| self.note(text))
    }
}
