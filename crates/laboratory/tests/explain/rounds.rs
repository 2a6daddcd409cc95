//! Programs that are repeated until they are steady.

use crate::means;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::plan::{Plan, plan};
use diskperf_laboratory::{Experiment, RunRecorder, SilentObserver, SizeChoice, Workload};
use diskperf_models::explain::{ExplainedSystem, explain_system};
use diskperf_models::model::parse_settings;
use diskperf_timeline::{Nanoseconds, Repetition, SteadyRule};
use std::sync::Arc;

/// What is explained, and what would become of it otherwise, is of the rounds that count:
/// which these are is known after the last of them.
#[test]
fn a_round_that_counts_is_explained() {
    let experiment = Experiment {
        workload: Workload::NamedSuite("random".to_owned()),
        targets: vec!["vax780-sc780-eagle".into()],
        size_choice: SizeChoice::SizeBytes(64 << 10),
        settings: parse_settings(&["program.area_bytes=1M".to_owned()]).unwrap(),
        steady_rule: Some(SteadyRule {
            window_rounds: 3,
            excursion_share: 0.02,
            slope_share: 0.01,
        }),
        ..Experiment::default()
    };
    let planned = plan(&experiment).unwrap().remove(0);
    let mut nothing = RunRecorder::without_store();
    let done = execute(&planned, &Arc::default(), &mut SilentObserver, &mut nothing);
    let result = &done.run.results[0];
    assert!(result.repetitions[0].is_discarded, "some do not count");
    let mut kept: Vec<Nanoseconds> = result
        .kept_repetitions()
        .map(Repetition::elapsed_time)
        .collect();
    kept.sort_unstable();
    let Plan::Model(plan) = planned else {
        panic!("a modelled system")
    };
    let subject = ExplainedSystem {
        name: "vax780-sc780-eagle".to_owned(),
        plan: *plan,
        run: Some(done.run),
    };
    let (found, _) = explain_system(&subject, &means(&Arc::default(), true)).unwrap();
    assert_eq!(found.programs[0].time_account.elapsed, kept[1]);
    assert!(!found.programs[0].counterfactuals.is_empty());
}
