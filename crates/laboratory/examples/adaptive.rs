//! The controller that adapts beside every fixed setting: prints the page
//! `bench/results/adaptive.md`, which `bench/adaptive` keeps. It takes some minutes.
//!
//!     cargo run --release -p diskperf-laboratory --example adaptive
//!
//! With the words `seed`, `held-out`, `changes` or `design`, only those sections;
//! the last, of the workloads that the policy was made with, only so.

use diskperf_catalogue::Catalogue;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::crew::{Threads, available_threads};
use diskperf_models::adaptive::{
    CachePolicy, DESIGN_SEEDS, DISTANCES, HELD_OUT_SEED, PREAMBLE, Set, Workload, changes, drawn,
    of_the_seed, table,
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
fn section(word: &str) -> (String, Vec<Workload>) {
    let random = |what: &str, seed: u64| {
        let title = format!("{what}: {DRAWN} random workloads of seed {seed}");
        (title, drawn(seed, DRAWN))
    };
    match word {
        "seed" => (
            "Zachariassen 1987's own workloads".to_owned(),
            of_the_seed(),
        ),
        "held-out" => random("Not looked at when the policy was made", HELD_OUT_SEED),
        "changes" => ("Changes in mid-run".to_owned(), changes()),
        _ => {
            let all = DESIGN_SEEDS.map(|seed| drawn(seed, DRAWN)).concat();
            (format!("Looked at: seeds {DESIGN_SEEDS:?}"), all)
        }
    }
}

fn print(word: &str) -> Result<(), LaboratoryError> {
    let catalogue: Catalogue = load_catalogue(None)?;
    let (title, workloads) = section(word);
    if word == "seed" {
        print!("{PREAMBLE}");
    }
    let policies = CachePolicy::all_effective(&DISTANCES);
    let threads = Threads(available_threads());
    let done = AtomicUsize::new(0);
    let mut set = Set::run(
        &catalogue,
        &workloads,
        &policies,
        (&threads, &Arc::default()),
        &|row| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            eprintln!(
                "{word}: {done} of {}, {} machines: {:.3} of the best: {}",
                workloads.len(),
                row.fixed.runs() + 1,
                row.share_of_best(),
                row.workload().name,
            );
        },
    )?;
    if word == "seed" {
        eprintln!("{word}: class by class over all");
        set.search_by_class(&threads)?;
    }
    print!("{}", table(&title, &set));
    Ok(())
}
