//! Choice of cache mode for programs that keep requests in flight. They bypass the page cache
//! wherever they can, so that a row means the same in every suite and alone.

use crate::target::StorageTarget;
use diskperf_battery::Suite;
use diskperf_models::plan::direct::requests_cache_mode;
use diskperf_models::plan::format_title;
use diskperf_timeline::{Experiment, SizeChoice};

/// Chooses O_DIRECT where the targets support it, and the page cache where the experiment requests
/// it. Returns the remarks for readers.
pub(super) fn choose_direct(
    suite: &mut Suite,
    targets: &[StorageTarget],
    experiment: &Experiment,
) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    // A fresh file system has O_DIRECT, whatever the directory of its image has.
    let asked = targets
        .iter()
        .filter(|_| experiment.fresh_filesystem.is_none());
    for job in suite.iter_jobs_mut() {
        if !job.program.is_direct_unset() {
            continue;
        }
        if requests_cache_mode(experiment) {
            job.program.set_direct_if_unset(false);
            continue;
        }
        let size_bytes = match experiment.size_choice {
            SizeChoice::SizeBytes(size_bytes) => size_bytes,
            SizeChoice::AutomaticSize => job.program.default_size_bytes_range().0,
        };
        let unit_bytes = job.program.unit_bytes(size_bytes);
        let obstacle = asked
            .clone()
            .find_map(|target| target.find_direct_obstacle(unit_bytes));
        job.program.set_direct_if_unset(obstacle.is_none());
        if let Some(why) = obstacle {
            match found.iter_mut().find(|(known, _)| *known == why) {
                Some((_, titles)) => titles.push(format_title(job)),
                None => found.push((why, vec![format_title(job)])),
            }
        }
    }
    let jobs = suite.iter_jobs().count();
    let note = |(why, titles): (String, Vec<String>)| {
        let what = match titles.len() == jobs {
            true => "all goes".to_owned(),
            false => format!("{} go", titles.join("; ")),
        };
        format!("{why}: {what} through the page cache, which is dropped before each repetition")
    };
    found.into_iter().map(note).collect()
}
