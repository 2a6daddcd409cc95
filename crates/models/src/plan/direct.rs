//! Choice of cache mode for programs that keep requests in flight. They bypass the page cache
//! wherever they can, so that a row means the same in every suite and alone.

use crate::model::computer::ModelComputer;
use diskperf_battery::{Medium, Suite};
use diskperf_timeline::{CacheMode, Experiment};

/// Chooses O_DIRECT on a modelled computer if its drives are bare. Only those have no kernel cache.
pub fn choose_direct(suite: &mut Suite, computer: &ModelComputer, experiment: &Experiment) {
    let direct = computer.medium() == Medium::Device
        && !computer.is_minix()
        && !requests_cache_mode(experiment);
    for job in suite.iter_jobs_mut() {
        job.program.set_direct_if_unset(direct);
    }
}

/// Reports whether an experiment requests the page cache.
pub fn requests_cache_mode(experiment: &Experiment) -> bool {
    experiment.passes_cache || experiment.cache_mode == CacheMode::Warm
}

/// Returns the cache mode of a run: O_DIRECT if all its programs use it, otherwise the requested
/// mode.
pub fn cache_mode_of_run(suite: &Suite, asked: CacheMode) -> CacheMode {
    let mut programs = suite
        .iter_programs()
        .filter(|program| program.accesses_target())
        .peekable();
    let any = programs.peek().is_some();
    match any && programs.all(|program| program.cache_mode_for(asked) == CacheMode::Direct) {
        true => CacheMode::Direct,
        false => asked,
    }
}
