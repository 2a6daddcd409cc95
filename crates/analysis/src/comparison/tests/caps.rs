//! Rows at a cap that a probe of the same run recognised.

use super::*;
use crate::caps::tests::observe_cap;
use crate::fixtures::build_run;
use crate::fixtures::load::{LoadFixture, READ_LOAD};
use diskperf_timeline::{LoadMeasure, Nanoseconds, OperationMeasure, WorkerMeasure};

/// Run of random reads at a rate, with a probe that found a cap on requests.
fn run_with_cap(target: &str, iops: f64, cap: f64) -> Run {
    let row = LoadFixture { iops, ..READ_LOAD }.build_result("random", 0);
    let load = LoadMeasure {
        read: OperationMeasure {
            response_times: vec![(1_000_000, 1000)].into(),
            ..OperationMeasure::default()
        },
        cap_probe: Some(Box::new(observe_cap(cap))),
        ..LoadMeasure::default()
    };
    let probe = Repetition {
        workers: vec![WorkerMeasure {
            elapsed_time: Nanoseconds::from_millis(66_000),
            load_measure: Some(load),
            ..WorkerMeasure::default()
        }],
        ..Repetition::default()
    };
    let probe = ProgramResult {
        program: "cap_probe".to_owned(),
        repetitions: vec![probe],
        table_row: 1,
        ..row.clone()
    };
    build_run(target, "random", target, vec![row, probe])
}

#[test]
fn a_row_at_a_cap_cannot_regress() {
    for (base, other, is_capped) in [
        ((2000.0, 2000.0), (2000.0, 2000.0), true),
        // The cap fell, and not the storage.
        ((2000.0, 2000.0), (1000.0, 1000.0), true),
        // It is below the cap, and slower than it was.
        ((2000.0, 2000.0), (1000.0, 2000.0), false),
        // It is faster, whatever holds it now.
        ((1000.0, 1000.0), (2000.0, 2000.0), false),
    ] {
        let runs = [
            run_with_cap("/base", base.0, base.1),
            run_with_cap("/other", other.0, other.1),
        ];
        let mut comparison = compare(&runs);
        // Probes are not compared, nor missed.
        let rates: Vec<&ResultPair> = comparison
            .result_pairs
            .iter()
            .filter(|pair| pair.quantity == Quantity::Iops)
            .collect();
        let [pair] = rates[..] else {
            panic!("{:?}", comparison.result_pairs)
        };
        let is_verdict = pair.judgement.verdict == Verdict::Capped;
        assert_eq!(is_verdict, is_capped, "{base:?} {other:?}: {pair:?}");
        assert!(
            pair.warnings.iter().any(|one| one.contains("at a cap")),
            "{:?}",
            pair.warnings
        );
        assert!(comparison.unpaired_results.is_empty());
        if is_capped {
            assert_eq!(
                comparison.apply_gate(0.05).outcome,
                GateOutcome::WithinLimit
            );
        }
    }
}
