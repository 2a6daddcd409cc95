//! Whether programs that keep requests in flight go past the page cache: they do wherever
//! they can, so that a row means the same in every suite and by itself.

use crate::model::computer::Computer;
use diskperf_battery::{Medium, Suite};
use diskperf_timeline::{CacheMode, Experiment};

/// Chooses O_DIRECT on a modelled computer: only its bare drives are without a cache of the kernel.
pub fn choose_modelled(suite: &mut Suite, computer: &Computer, experiment: &Experiment) {
    let direct =
        computer.medium() == Medium::Device && !computer.is_minix() && !asks_for_cache(experiment);
    for job in suite.jobs_mut() {
        job.program.choose_direct(direct);
    }
}

/// Whether an experiment asks for the page cache.
pub fn asks_for_cache(experiment: &Experiment) -> bool {
    experiment.through_cache || experiment.cache == CacheMode::Warm
}

/// State of the page cache that a run asks for: O_DIRECT where all its programs use it.
pub fn of_run(suite: &Suite, asked: CacheMode) -> CacheMode {
    let mut programs = suite
        .programs()
        .filter(|program| program.touches_target())
        .peekable();
    let any = programs.peek().is_some();
    match any && programs.all(|program| program.cache_mode(asked) == CacheMode::Direct) {
        true => CacheMode::Direct,
        false => asked,
    }
}
