//! Blocks that another run of the same job wrote (`verify_only`).

use super::Verifier;
use super::survey::Survey;
use crate::program::ProgramError;
use diskperf_fio::verify::Seeds;
use std::collections::BTreeSet;

/// Knowledge of the other run that wrote the blocks. If every order of the job's writes leaves the
/// same blocks, the seeds decide. Once some block has a seed of the job, a block with another seed
/// is stale, left by a different run. If no block has one, a different job wrote all blocks with
/// unknown seeds. If fio's order leaves other blocks, the survey decides.
pub(super) struct OtherRun {
    /// Seeds of the job's writes.
    pub(super) seeds: BTreeSet<u64>,
    /// Whether some block had a seed of the job.
    pub(super) is_met: bool,
    /// Differences of blocks with foreign seeds that were read before any block had a seed of the
    /// job.
    pub(super) strangers: Vec<String>,
    /// Minimum number of blocks that must have a seed of the job, for an interrupted run with an
    /// order of offsets of its own. The remaining blocks were not written.
    pub(super) writes_min: Option<u64>,
    /// Number of blocks with a seed of the job.
    pub(super) found: u64,
    /// Search for the blocks of a run whose order is unknown.
    pub(super) survey: Option<Survey>,
}

impl Verifier {
    /// Treats the recorded writes as those of another run. fio also draws a seed for each block
    /// that it reads back between its writes. `reads_between` says that the job does so, and that
    /// the other run may have done so, which moves its seeds beyond those of the writes. A `survey`
    /// is given for a job whose blocks depend on its order.
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

    /// Treats the recorded writes as those of an interrupted run with an order of offsets of its
    /// own. The run issued `writes` writes, the last `depth` of which may be incomplete.
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

    /// Decides how blocks with foreign seeds count, after all reads.
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
