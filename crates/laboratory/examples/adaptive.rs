//! The controller that adapts beside every fixed setting: prints the page
//! `bench/results/adaptive.md`, which `bench/adaptive` keeps. It takes some minutes.
//!
//!     cargo run --release -p diskperf-laboratory --example adaptive
//!
//! With the words `seed`, `held-out`, `changes` or `design`, only those sections;
//! the last, of the workloads that the policy was made with, only so.

use diskperf_catalogue::Catalogue;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::crew::{ThreadCrew, available_threads};
use diskperf_models::adaptive::{
    AdaptiveWorkload, CachePolicy, DESIGN_SEEDS, HELD_OUT_SEED, LOOK_DISTANCES, TABLE_PREAMBLE,
    WorkloadSet, changing_workloads, design_workloads, draw_workloads, render_table,
};
use diskperf_models::model::load_catalogue;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Random workloads of each set.
const DRAWN: usize = 20;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let known = ["seed", "changes", "held-out", "design"];
    if let Some(word) = wanted.iter().find(|word| !known.contains(&word.as_str())) {
        eprintln!(
            "there is no section `{word}`; there are {}",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    let is_wanted = |word: &str| match wanted.is_empty() {
        true => word != "design",
        false => wanted.iter().any(|one| one == word),
    };
    match known
        .into_iter()
        .filter(|word| is_wanted(word))
        .try_for_each(print)
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The workloads of a section, and its title.
fn section(word: &str) -> (String, Vec<AdaptiveWorkload>) {
    let random = |what: &str, seed: u64| {
        let title = format!("{what}: {DRAWN} random workloads of seed {seed}");
        (title, draw_workloads(seed, DRAWN))
    };
    match word {
        "seed" => (
            "Zachariassen 1987's own workloads".to_owned(),
            design_workloads(),
        ),
        "held-out" => random("Not looked at when the policy was made", HELD_OUT_SEED),
        "changes" => ("Changes in mid-run".to_owned(), changing_workloads()),
        _ => {
            let all = DESIGN_SEEDS
                .map(|seed| draw_workloads(seed, DRAWN))
                .concat();
            (format!("Looked at: seeds {DESIGN_SEEDS:?}"), all)
        }
    }
}

fn print(word: &str) -> Result<(), LaboratoryError> {
    let catalogue: Catalogue = load_catalogue(None)?;
    let (title, workloads) = section(word);
    if word == "seed" {
        print!("{TABLE_PREAMBLE}");
    }
    let policies = CachePolicy::all_effective(&LOOK_DISTANCES);
    let threads = ThreadCrew(available_threads());
    let done = AtomicUsize::new(0);
    let mut set = WorkloadSet::run_set(
        &catalogue,
        &workloads,
        &policies,
        (&threads, &Arc::default()),
        &|row| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            eprintln!(
                "{word}: {done} of {}, {} machines: {:.3} of the best: {}",
                workloads.len(),
                row.fixed_runs.run_count() + 1,
                row.share_of_best_policy(),
                row.workload().name,
            );
        },
    )?;
    if word == "seed" {
        eprintln!("{word}: class by class over all");
        set.search_by_class(&threads)?;
    }
    print!("{}", render_table(&title, &set));
    Ok(())
}
