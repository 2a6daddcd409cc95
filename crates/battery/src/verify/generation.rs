//! Blocks that another run of the same job wrote (`verify_only`).

use super::Verifier;
use super::survey::BlockSearch;
use crate::program::ProgramError;
use diskperf_fio::verify::SeedSequence;
use std::collections::BTreeSet;

/// Knowledge of the other run that wrote the blocks. If every order of the job's writes leaves the
/// same blocks, the seeds decide. Once some block has a seed of the job, a block with another seed
/// is stale, left by a different run. If no block has one, a different job wrote all blocks with
/// unknown seeds. If fio's order leaves other blocks, the survey decides.
pub(super) struct OtherRunExpectation {
    /// Seeds of the job's writes.
    pub(super) foreign_seeds: BTreeSet<u64>,
    /// Whether some block had a seed of the job.
    pub(super) has_own_seed: bool,
    /// Differences of blocks with foreign seeds that were read before any block had a seed of the
    /// job.
    pub(super) foreign_seed_differences: Vec<String>,
    /// Minimum number of blocks that must have a seed of the job, for an interrupted run with an
    /// order of offsets of its own. The remaining blocks were not written.
    pub(super) write_number_min: Option<u64>,
    /// Number of blocks with a seed of the job.
    pub(super) own_seed_count: u64,
    /// Search for the blocks of a run whose order is unknown.
    pub(super) block_search: Option<BlockSearch>,
}

impl Verifier {
    /// Treats the recorded writes as those of another run. fio also draws a seed for each block
    /// that it reads back between its writes. `reads_between` says that the job does so, and that
    /// the other run may have done so, which moves its seeds beyond those of the writes. A `survey`
    /// is given for a job whose blocks depend on its order.
    pub(crate) fn expect_other_run(&mut self, reads_between: bool, survey: Option<BlockSearch>) {
        let mut seeds: BTreeSet<u64> = self.block_records.iter_seeds().collect();
        if self.verification_rules.block_layout.is_seeded() {
            let mut drawn = SeedSequence::new(
                self.verification_rules.job_randseed,
                self.verification_rules.thread_number,
            );
            let drawn = (0..2 * self.write_count).map(|_| drawn.next_seed());
            let behind = match reads_between || self.verification_rules.has_random_offsets {
                true => 0,
                false => self.write_count,
            };
            seeds.extend(drawn.skip(behind as usize));
        }
        self.other_run_expectation = Some(OtherRunExpectation {
            foreign_seeds: seeds,
            has_own_seed: false,
            foreign_seed_differences: Vec::new(),
            write_number_min: None,
            own_seed_count: 0,
            block_search: survey,
        });
    }

    /// Treats the recorded writes as those of an interrupted run with an order of offsets of its
    /// own. The run issued `writes` writes, the last `depth` of which may be incomplete.
    pub(crate) fn expect_part_of_other_run(&mut self, (writes, depth): (u64, u64)) {
        let mut drawn = SeedSequence::new(
            self.verification_rules.job_randseed,
            self.verification_rules.thread_number,
        );
        let seeds = (0..writes).map(|_| drawn.next_seed()).collect();
        self.other_run_expectation = Some(OtherRunExpectation {
            foreign_seeds: seeds,
            has_own_seed: true,
            foreign_seed_differences: Vec::new(),
            write_number_min: Some(
                writes
                    .saturating_sub(depth)
                    .min(self.block_records.block_count()),
            ),
            own_seed_count: 0,
            block_search: None,
        });
    }

    /// Decides how blocks with foreign seeds count, after all reads.
    pub(super) fn judge_foreign_seeds(&mut self) -> Result<(), ProgramError> {
        let Some(other) = &mut self.other_run_expectation else {
            return Ok(());
        };
        if let Some(writes_min) = other
            .write_number_min
            .filter(|min| other.own_seed_count < *min)
        {
            let found = other.own_seed_count;
            return self.add_difference(format!(
                "expected at least {writes_min} blocks of the interrupted run, got {found}"
            ));
        }
        let strangers = std::mem::take(&mut other.foreign_seed_differences);
        if !other.has_own_seed {
            return Ok(());
        }
        strangers
            .into_iter()
            .try_for_each(|text| self.add_difference(text))
    }
}
