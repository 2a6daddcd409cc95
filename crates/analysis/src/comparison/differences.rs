//! Facts about settings, caches and file systems that distinguish compared runs.

use diskperf_timeline::units::format_size;
use diskperf_timeline::{CacheMode, Experiment, FRESH_NOTE_PREFIX, ProgramResult, Run, SizeChoice};

/// Returns for each run the facts that not all of the runs share; empty where no known fact
/// distinguishes it.
pub(super) fn list_differences(runs: &[Run]) -> Vec<Vec<String>> {
    let known: Vec<Vec<String>> = runs.iter().map(list_run_facts).collect();
    let is_shared = |fact: &String| known.iter().all(|of| of.contains(fact));
    let own = |of: &Vec<String>| -> Vec<String> {
        let own = of.iter().filter(|fact| !is_shared(fact));
        own.cloned().collect()
    };
    known.iter().map(own).collect()
}

fn list_run_facts(run: &Run) -> Vec<String> {
    let mut facts = list_filesystems(run);
    facts.push(match run.cache_mode {
        CacheMode::Cold | CacheMode::Warm => format!("--cache {}", run.cache_mode.mode_name()),
        CacheMode::Direct => "--direct".to_owned(),
    });
    if run.drops_all_caches {
        facts.push("--drop-caches".to_owned());
    }
    facts.extend(run.experiment.iter().flat_map(list_options));
    facts.extend(list_parameters(run));
    let before = run
        .interleaved
        .as_ref()
        .and_then(|one| one.ordered_after.clone());
    facts.extend(before.map(|command| format!("after `{command}`")));
    let mut unique = Vec::new();
    for fact in facts {
        if !unique.contains(&fact) {
            unique.push(fact);
        }
    }
    unique
}

/// Lists the file systems that were made for the run; else the kinds and mount options of the file
/// systems that were present.
fn list_filesystems(run: &Run) -> Vec<String> {
    let notes = |result: &ProgramResult| result.notes.clone();
    let fresh = run.results.iter().flat_map(notes);
    let fresh: Vec<String> = fresh
        .filter(|note| note.starts_with(FRESH_NOTE_PREFIX))
        .collect();
    if !fresh.is_empty() {
        return fresh;
    }
    let places = run.environment.places.iter();
    let mounted = places.filter_map(|place| place.filesystem.as_ref());
    let facts = mounted.flat_map(|one| {
        let options = one.mount_options.split(',');
        let options = options.filter(|option| !option.is_empty());
        std::iter::once(one.filesystem_type.clone()).chain(options.map(str::to_owned))
    });
    facts.collect()
}

/// Lists the distinguishing parameters that all programs of the run share, if they have them: those
/// set for the whole run.
fn list_parameters(run: &Run) -> Vec<String> {
    let mut names: Vec<&String> = run
        .results
        .iter()
        .flat_map(|one| &one.distinguishing)
        .collect();
    names.sort_unstable();
    names.dedup();
    let shared = names.into_iter().filter_map(|name| {
        let mut values = run
            .results
            .iter()
            .filter_map(|one| one.parameters.get(name));
        let first = values.next()?;
        let is_shared = values.all(|value| value == first);
        is_shared.then(|| format!("program.{name}={first}"))
    });
    shared.collect()
}

fn list_options(experiment: &Experiment) -> Vec<String> {
    let mut options: Vec<String> = experiment
        .settings
        .iter()
        .map(ToString::to_string)
        .collect();
    if let SizeChoice::SizeBytes(bytes) = experiment.size_choice {
        options.push(format!("--size {}", format_size(bytes)));
    }
    if let Some(drives) = experiment.drive_count {
        options.push(format!("--drives {drives}"));
    }
    options
}
