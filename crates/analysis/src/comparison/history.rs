//! Estimate of the noise between whole runs of one thing, from earlier runs.

use super::{Quantity, list_speeds};
use crate::statistics::{median, separate};
use diskperf_timeline::{MeasuredWorld, ProgramResult, Run, RunState};

/// Stored runs, in which a comparison looks for earlier runs of the same thing.
#[derive(Clone, Debug, Default)]
pub struct RunHistory(Vec<Run>);

impl RunHistory {
    /// Creates a history of the given runs, finished or not.
    pub fn from_runs(runs: Vec<Run>) -> Self {
        Self(runs)
    }

    /// Returns the minimum noise between whole runs, as the standard deviation of the logarithm of
    /// their rates.
    ///
    /// It comes from earlier runs of the same program, parameters, size, target and cache mode on
    /// the same machine, without these two. Too few such runs leave the value known for shared
    /// machines.
    pub(super) fn find_error_floor(
        &self,
        (base, other): (&Run, &Run),
        result: &ProgramResult,
        quantity: Quantity,
    ) -> f64 {
        let earlier = self.0.iter().filter(|run| {
            run.run_id != base.run_id
                && run.run_id != other.run_id
                && run.world == MeasuredWorld::Host
                && run.state == RunState::Finished
                && run.interleaved.is_none()
                && run.target_label == base.target_label
                && run.environment.cpu_model == base.environment.cpu_model
        });
        let results = earlier.filter_map(|run| {
            let same = |one: &&ProgramResult| {
                one.program == result.program
                    && one.parameters == result.parameters
                    && one.size_bytes == result.size_bytes
                    && one.cache_mode == result.cache_mode
                    && one.filesystem_type == result.filesystem_type
                    && one.drive_count == result.drive_count
            };
            run.results.iter().find(same)
        });
        let medians = results.filter_map(|one| median(&list_speeds(one, quantity)));
        separate::error_floor(&medians.collect::<Vec<_>>())
    }
}
