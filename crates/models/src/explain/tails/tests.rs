use super::*;
use crate::model::parse_settings;
use crate::plan::plan;
use diskperf_device::WhatIf;
use diskperf_timeline::CacheMode;
use diskperf_timeline::trace::TracedRequest;
use diskperf_timeline::{Experiment, SizeChoice, Workload};
use std::sync::Arc;

/// A mixed load on a drive that collects, twice.
fn mixed(load: &[&str]) -> ModelPlan {
    let common = ["drive.past=random", "program.write_share=0.3"];
    let all: Vec<&str> = common.iter().chain(load).copied().collect();
    loaded(("bare-nvme-tlc-plp", 4 << 20), &all)
}

/// A random load on a drive, twice.
fn loaded((drive, size_bytes): (&str, u64), load: &[&str]) -> ModelPlan {
    let all: Vec<String> = (load.iter()).map(|one| (*one).to_owned()).collect();
    let experiment = Experiment {
        workload: Workload::from_suite_name(Some("random".to_owned())),
        targets: vec![drive.to_owned().into()],
        size_choice: SizeChoice::SizeBytes(size_bytes),
        settings: parse_settings(&all).expect("settings"),
        cache_mode: CacheMode::Direct,
        repetition_count: Some(2),
        ..Experiment::default()
    };
    let plans = plan(&experiment, &crate::files::NoFiles);
    plans.expect("a plan").pop().expect("a modelled drive")
}

/// The requests of a trace in the order of their issue.
fn requests(outcome: &RerunOutcome) -> Vec<&TracedRequest> {
    let trace = outcome.trace.as_ref().expect("it was recorded");
    let mut all: Vec<_> = trace.requests.iter().collect();
    all.sort_by_key(|one| (one.issued_at, one.sector, one.completed_at()));
    all
}

#[test]
fn a_rerun_with_nothing_taken_away_is_the_run_to_the_nanosecond() {
    for load in [
        &["program.depth=32"][..],
        &[
            "program.rate_iops=400000",
            "program.arrivals=poisson",
            "program.depth=128",
        ],
    ] {
        again(&mixed(load), load);
    }
}

/// Forced writes go past a disk's buffer again.
#[test]
fn forced_writes_are_forced_again() {
    for dsync in ["program.dsync=no", "program.dsync=yes"] {
        let load = ["program.depth=4", "program.write_share=0.5", dsync];
        again(&loaded(("bare-sata-7200", 4 << 20), &load), &load);
    }
}

/// The requests of a plan's first program, and the same once more at the same moments.
fn again(plan: &ModelPlan, load: &[&str]) {
    let (computer, stop) = (&plan.computers[0], Arc::default());
    let variant = ModelVariant {
        records_trace: true,
        ..ModelVariant::from_plan(plan, computer)
    };
    let base = rerun::rerun_programs(plan, &variant, &stop).expect("it runs");
    // Those before it leave the drive as it was.
    assert!(base[0].repetition_index > 0, "{load:?}");
    let own = plan.suite.iter_jobs().next().expect("a job");
    let job = moments::replay_job(plan, computer, own, &base[0]).expect("its requests");
    let supposed = (computer, WhatIf::default());
    let replaced = ReplacedRepetition {
        outcomes: &base,
        program_index: 0,
        job: &job,
    };
    let again = rerun::rerun_in_place((plan, &variant), replaced, supposed, &stop);
    let again = again.expect("it runs again");
    let (all, others) = (requests(&base[0]), requests(&again));
    assert_eq!(all.len(), others.len(), "{load:?}");
    assert!(all.len() >= 1000, "{load:?}");
    for (one, other) in all.iter().zip(others) {
        assert_eq!(
            (one.sector, one.issued_at),
            (other.sector, other.issued_at),
            "{load:?}"
        );
        assert_eq!(one.spans, other.spans, "{load:?}");
    }
}
