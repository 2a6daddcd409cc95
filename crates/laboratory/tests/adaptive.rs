//! The author's wish of Zachariassen 1987: a controller that chooses its cache bits and
//! its read-ahead by itself, beside fixed settings, on the seed's own workloads,
//! on random ones and across changes in mid-run.
//!
//! Here some of the settings are tried, on some of the workloads; `bench/adaptive`
//! searches all of both, and keeps what it finds in `bench/results/adaptive.md`, where one of
//! the twenty random workloads that nobody had looked at misses its 10 % by one.

use diskperf_machine::RandomStreams;
use diskperf_models::adaptive::{
    AdaptiveRig, AdaptiveWorkload, CachePolicy, DESIGN_SEEDS, FixedPolicyRuns, HELD_OUT_SEED,
    LOOK_DISTANCES, PolicyChooser, WorkloadSet, changing_workloads, design_workloads,
    draw_workloads,
};
use diskperf_models::model::load_catalogue;
use std::sync::Arc;

const BITS: [&str; 4] = [
    "0",
    "SEA|XHD|XCY",
    "SEA|CRD|RAP|XHD|XCY",
    "SEA|CRD|CWT|SRD|SWT|XHD",
];
const SECTORS: [u32; 4] = [0, 10, 30, 100];

fn some() -> Vec<CachePolicy> {
    let parse = |bits: &str, sectors| CachePolicy::parse_policy(bits, sectors).expect("bits");
    BITS.iter()
        .flat_map(|bits| SECTORS.map(|sectors| parse(bits, sectors)))
        .collect()
}

/// Those of a list with these numbers.
fn select_workloads(all: Vec<AdaptiveWorkload>, numbers: &[usize]) -> Vec<AdaptiveWorkload> {
    numbers.iter().map(|number| all[*number].clone()).collect()
}

fn compared(workloads: &[AdaptiveWorkload], threads: usize) -> WorkloadSet {
    let catalogue = load_catalogue(None).expect("the catalogue");
    let tell = |row: &diskperf_models::adaptive::SetRow| {
        println!(
            "{:.3} of the best, {} {}, of the first pass {:.3}: {}",
            row.share_of_best_policy(),
            row.best_policy.0.format_bits(),
            row.best_policy.0.read_ahead_sectors,
            row.share_of_first_policy(),
            row.workload().name
        );
    };
    let threads = diskperf_laboratory::crew::ThreadCrew(threads);
    let how: (&dyn diskperf_models::crew::Crew, _) = (&threads, &Arc::default());
    WorkloadSet::run_set(&catalogue, workloads, &some(), how, &tell)
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn it_is_near_the_best_fixed_setting_and_better_over_all() {
    let workloads = select_workloads(design_workloads(), &[0, 1, 3, 4, 5, 8]);
    let set = compared(&workloads, 2);
    assert!(
        set.worst_share() >= 0.95,
        "{:.3} of the best",
        set.worst_share()
    );
    println!("over all {:.3}", set.best_over_all.time_ratio);
    assert!(
        set.best_over_all.time_ratio > 1.0,
        "no fixed setting is better"
    );
}

#[test]
fn it_is_near_the_best_on_random_workloads_and_across_changes() {
    let design = DESIGN_SEEDS[0];
    println!("seeds {design} and {HELD_OUT_SEED}");
    let mut workloads = select_workloads(draw_workloads(design, 20), &[4, 7, 16]);
    workloads.extend(select_workloads(draw_workloads(HELD_OUT_SEED, 20), &[0, 4]));
    workloads.extend(select_workloads(changing_workloads(), &[0, 1]));
    let set = compared(&workloads, 2);
    assert!(
        set.worst_share() >= 0.90,
        "{:.3} of the best",
        set.worst_share()
    );
}

/// What is not run again, because it could not show, would have been the same.
#[test]
fn settings_that_cannot_show_are_the_same() {
    const SEED: u64 = 7;
    println!("seed {SEED}");
    let catalogue = load_catalogue(None).expect("the catalogue");
    let all = CachePolicy::all_effective(&LOOK_DISTANCES);
    let mut stream = RandomStreams::new(SEED).named_stream("settings");
    let mut skipped = 0;
    for workload in select_workloads(draw_workloads(DESIGN_SEEDS[0], 20), &[5, 7]) {
        let rig = |_| AdaptiveRig::new(&catalogue, &workload, &Arc::default()).expect("a rig");
        let again = rig(());
        let mut fixed = FixedPolicyRuns::new(rig(()));
        for _ in 0..30 {
            let policies = [all[stream.draw_below(all.len() as u64) as usize]; 3];
            let before = fixed.run_count();
            let took = fixed.times_with(policies).expect("it runs");
            if fixed.run_count() == before {
                skipped += 1;
                let anew = again
                    .run_workload(PolicyChooser::Driver(policies))
                    .expect("it runs");
                assert_eq!(took, anew, "{policies:?} on {}", workload.name);
            }
        }
    }
    assert!(skipped > 10, "only {skipped} were not run again");
}
