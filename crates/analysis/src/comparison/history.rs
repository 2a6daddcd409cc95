//! How much runs of one thing differ as wholes, by earlier ones.

use super::{Quantity, speeds};
use crate::statistics::{median, separate};
use diskperf_timeline::{ProgramResult, Run, RunState, World};

/// Stored runs, among which earlier ones of the same thing are looked for.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<Run>);

impl History {
    /// Of these runs, finished or not.
    pub fn of(runs: Vec<Run>) -> Self {
        Self(runs)
    }

    /// How much whole runs differ at least (standard deviation of the logarithm): as
    /// the runs of the same program, parameters, size, target and cache mode on the
    /// same machine do, without these two, or what is known of shared machines.
    pub(super) fn floor(
        &self,
        (base, other): (&Run, &Run),
        result: &ProgramResult,
        quantity: Quantity,
    ) -> f64 {
        let earlier = self.0.iter().filter(|run| {
            run.id != base.id
                && run.id != other.id
                && run.world == World::Host
                && run.state == RunState::Finished
                && run.interleaved.is_none()
                && run.target == base.target
                && run.environment.cpu_model == base.environment.cpu_model
        });
        let results = earlier.filter_map(|run| {
            let same = |one: &&ProgramResult| {
                one.program == result.program
                    && one.parameters == result.parameters
                    && one.size_bytes == result.size_bytes
                    && one.cache == result.cache
                    && one.filesystem == result.filesystem
                    && one.drives == result.drives
            };
            run.results.iter().find(same)
        });
        let medians = results.filter_map(|one| median(&speeds(one, quantity)));
        separate::floor(&medians.collect::<Vec<_>>())
    }
}
