//! The author's wish of seed 001: a controller that chooses its cache bits and
//! its read-ahead by itself, beside every fixed setting, on the seed's own
//! workloads, on random ones, and across a change of workload.
//!
//! By default some of the settings are tried; `DISKPERF_ALL_SETTINGS=1` tries
//! all that do not contradict themselves.

use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::tune::{Search, tune};
use std::sync::Arc;

const FIXED: &str = "sun3-rimfire-2344";
const ADAPTIVE: &str = "sun3-rimfire-2344:adaptive";

/// A workload: its name, its program, and what is set for it.
struct Workload {
    name: String,
    program: &'static str,
    settings: Vec<String>,
    size_bytes: u64,
}

fn workload(name: &str, program: &'static str, size_bytes: u64, settings: &[&str]) -> Workload {
    Workload {
        name: name.to_owned(),
        program,
        settings: settings.iter().map(|text| (*text).to_owned()).collect(),
        size_bytes,
    }
}

const RAW: [&str; 1] = ["filesystem=none"];

/// The seed's own.
fn of_the_seed() -> Vec<Workload> {
    let raw = |more: &[&'static str]| -> Vec<&'static str> { [&RAW[..], more].concat() };
    vec![
        workload("raw dd, 8k", "copy", 4 << 20, &raw(&[])),
        workload(
            "raw dd, a track",
            "copy",
            134 * 34_304,
            &raw(&["program.call_bytes=34304"]),
        ),
        workload("file dd, 8k", "copy", 4 << 20, &[]),
        workload("fsck", "fsck", 30 << 20, &[]),
        workload(
            "four fscks",
            "fsck",
            30 << 20,
            &["program.checkers=4", "program.offset_ms=500"],
        ),
        workload(
            "files copied",
            "copy",
            4 << 20,
            &["program.destination=same"],
        ),
        workload(
            "raw copy",
            "copy",
            4 << 20,
            &raw(&["program.destination=same"]),
        ),
    ]
}

/// What is tried by default.
const SOME: [&str; 6] = [
    "0",
    "SEA|CRD",
    "SEA|XHD",
    "SEA|CRD|XHD",
    "SEA|CRD|RAP|XHD|XCY",
    "SEA|RAP|XHD|XCY",
];

/// Every setting that does not contradict itself, as (bits, sectors).
fn settings(all: bool) -> Vec<(String, u32)> {
    let mut bits = Vec::new();
    for mask in 0..256_u32 {
        let names = ["SEA", "CRD", "RAP", "CWT", "SRD", "SWT", "XHD", "XCY"];
        let set: Vec<&str> = names
            .iter()
            .enumerate()
            .filter(|(place, _)| mask & (1 << place) != 0)
            .map(|(_, name)| *name)
            .collect();
        let has = |name: &str| set.contains(&name);
        let needs_search = ["CRD", "RAP", "CWT", "XHD"].iter().any(|name| has(name));
        if (needs_search && !has("SEA")) || (has("XCY") && !has("XHD")) {
            continue;
        }
        let joined = match set.is_empty() {
            true => "0".to_owned(),
            false => set.join("|"),
        };
        // By default the seed's own, and those that were found to be best.
        if all || SOME.contains(&joined.as_str()) {
            bits.push(joined);
        }
    }
    let sectors = [0, 10, 30, 60, 100, 244];
    bits.iter()
        .flat_map(|bits| sectors.map(|sectors| (bits.clone(), sectors)))
        .collect()
}

fn search(workload: &Workload, target: &str, over: Vec<String>) -> Search {
    Search {
        program: workload.program.to_owned(),
        settings: workload.settings.clone(),
        target: target.to_owned(),
        drives: 1,
        size_bytes: workload.size_bytes,
        over,
        seed: 1987,
        threads: 2,
        stop: Arc::default(),
    }
}

/// KB/s of each fixed setting, and of the adaptive controller.
fn rates(workload: &Workload, settings: &[(String, u32)]) -> (Vec<f64>, f64) {
    let catalogue = load_catalogue(None).expect("the catalogue");
    let mut bits: Vec<&str> = settings.iter().map(|(bits, _)| bits.as_str()).collect();
    bits.dedup();
    let over = vec![
        format!("controller.cache_bits={}", bits.join(",")),
        "controller.read_ahead_sectors=0,10,30,60,100,244".to_owned(),
    ];
    let fixed = tune(&catalogue, &search(workload, FIXED, over), &|_, _| ());
    let fixed = fixed.unwrap_or_else(|error| panic!("{}: {error}", workload.name));
    let one = vec!["controller.adaptive=true".to_owned()];
    let adaptive = tune(&catalogue, &search(workload, ADAPTIVE, one), &|_, _| ());
    let adaptive = adaptive.unwrap_or_else(|error| panic!("{}: {error}", workload.name));
    (fixed.kb_per_s, adaptive.kb_per_s[0])
}

#[test]
fn it_is_near_the_best_fixed_setting_everywhere_and_better_over_all() {
    let all = std::env::var_os("DISKPERF_ALL_SETTINGS").is_some();
    let settings = settings(all);
    let mut of_settings = vec![0.0; settings.len()];
    let mut of_adaptive = 0.0;
    let mut worst: f64 = f64::INFINITY;
    for workload in of_the_seed() {
        let (fixed, adaptive) = rates(&workload, &settings);
        let best = (0..fixed.len())
            .max_by(|one, other| fixed[*one].total_cmp(&fixed[*other]))
            .expect("some setting");
        println!(
            "{}: adaptive {adaptive:.0} KB/s, best fixed {:.0} ({} {})",
            workload.name, fixed[best], settings[best].0, settings[best].1
        );
        worst = worst.min(adaptive / fixed[best]);
        for (sum, rate) in of_settings.iter_mut().zip(&fixed) {
            *sum += rate.ln();
        }
        of_adaptive += adaptive.ln();
    }
    let best = of_settings
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let place = of_settings
        .iter()
        .position(|sum| *sum == best)
        .expect("it is there");
    println!(
        "geometric mean against the best fixed setting over all, {} {}: {:.3}",
        settings[place].0,
        settings[place].1,
        ((of_adaptive - best) / 7.0).exp()
    );
    assert!(worst >= 0.95, "{worst:.3} of the best fixed setting");
    assert!(of_adaptive > best, "no fixed setting is better over all");
}
