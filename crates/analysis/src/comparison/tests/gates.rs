//! Comparisons that are held to a limit on slow-downs.

use super::*;

#[test]
fn a_limit_must_be_seen_to_be_kept() {
    let gate = |base: f64, other: f64, limit: f64| {
        let two = [
            run_of("/base", &[("read", noisy_speeds(base))]),
            run_of("/other", &[("read", noisy_speeds(other))]),
        ];
        let gated = compare(&two).apply_gate(limit);
        let texts: Vec<String> = gated.failures.iter().map(GateFailure::to_string).collect();
        (gated.outcome, texts.join("; "))
    };
    assert_eq!(
        gate(1000.0, 1000.0, 0.25),
        (GateOutcome::WithinLimit, String::new())
    );
    assert_eq!(
        gate(1000.0, 1500.0, 0.0),
        (GateOutcome::WithinLimit, String::new())
    );
    let (exceeded, why) = gate(1000.0, 500.0, 0.05);
    assert_eq!(exceeded, GateOutcome::LimitExceeded);
    assert_eq!(
        why,
        "read (ext4/4096), /other against /base: slower by 50.0 %, above the limit of 5.0 %"
    );
    let (open, why) = gate(1000.0, 1000.0, 0.05);
    assert_eq!(open, GateOutcome::Undecided);
    assert_eq!(
        why,
        "read (ext4/4096), /other against /base: cannot tell whether it is slower by more than 5.0 %: it may be slower by up to 23 %; separate runs can seldom resolve it; measure both with `diskperf ab`"
    );
    let drifting = |n: i32| {
        (
            1000.0,
            1000.0 * [0.99, 0.97, 0.94][n as usize % 3],
            n % 2 == 0,
        )
    };
    let blocks: Vec<_> = (0..60).map(drifting).collect();
    for (limit, outcome) in [
        (0.07, GateOutcome::WithinLimit),
        (0.01, GateOutcome::LimitExceeded),
        (0.05, GateOutcome::Undecided),
    ] {
        let gated = compare(&arms(&blocks)).apply_gate(limit);
        assert_eq!(gated.outcome, outcome, "{limit}");
    }
}

#[test]
fn results_without_a_partner_are_missing() {
    let (read, write) = (
        ("read", noisy_speeds(1000.0)),
        ("write", noisy_speeds(1000.0)),
    );
    let missing_in = |run: &str, program: &str| {
        format!(
            "{program} (ext4/4096): not measured in {run}; run the same suite there, to its end"
        )
    };
    let missing = |program: &str| missing_in("/other", program);
    let failed = Run {
        state: RunState::Failed("disk full".to_owned()),
        ..run_of("/other", std::slice::from_ref(&read))
    };
    let common = "the runs have no program in common; compare runs of the same suite";
    let unfinished = "/other: not finished: disk full; run it again, to its end";
    for (base, other, expected) in [
        (
            vec![read.clone()],
            run_of("/other", &[read.clone(), write.clone()]),
            vec![missing_in("/base", "write")],
        ),
        (
            vec![read.clone()],
            run_of("/other", std::slice::from_ref(&read)),
            vec![],
        ),
        (
            vec![read.clone()],
            run_of("/other", &[("read", vec![])]),
            vec![missing("read")],
        ),
        (
            vec![read.clone(), write.clone()],
            run_of("/other", std::slice::from_ref(&read)),
            vec![missing("write")],
        ),
        (
            vec![read.clone()],
            run_of("/other", &[write]),
            vec![common.to_owned()],
        ),
        (vec![read], failed, vec![unfinished.to_owned()]),
    ] {
        let gated = compare(&[run_of("/base", &base), other]).apply_gate(0.25);
        let texts: Vec<String> = gated.failures.iter().map(GateFailure::to_string).collect();
        assert_eq!(texts, expected);
        let wanted = if expected.is_empty() {
            GateOutcome::WithinLimit
        } else {
            GateOutcome::ResultMissing
        };
        assert_eq!(gated.outcome, wanted);
    }
}

/// Rows whose amount of work differs pass no gate, however fast they are.
#[test]
fn other_work_passes_no_gate() {
    let base = run_of("/base", &[("read", noisy_speeds(1000.0))]);
    type Change = fn(&mut ProgramResult);
    let changes: [(Change, &str); 4] = [
        (|_| {}, ""),
        (|one| one.size_bytes = 64 * MIB, "sizes differ: "),
        (
            |one| one.cache_mode = CacheMode::Warm,
            "cache modes differ: ",
        ),
        (|one| one.drive_count += 1, "numbers of drives differ: "),
    ];
    for speed in [400.0, 1000.0, 3000.0] {
        for (change, said) in changes {
            let mut other = run_of("/other", &[("read", noisy_speeds(speed))]);
            change(&mut other.results[0]);
            let gated = compare(&[base.clone(), other]).apply_gate(0.25);
            let texts: Vec<String> = gated.failures.iter().map(GateFailure::to_string).collect();
            if said.is_empty() {
                let outcome = if speed < 500.0 {
                    GateOutcome::LimitExceeded
                } else {
                    GateOutcome::WithinLimit
                };
                assert_eq!(gated.outcome, outcome, "{texts:?}");
            } else {
                assert_eq!(gated.outcome, GateOutcome::Undecided, "{texts:?}");
                assert!(texts[0].contains(said), "{texts:?}");
            }
        }
    }
}

#[test]
fn a_run_is_no_slower_than_itself() {
    let noisy = [
        ("read", noisy_speeds(1000.0)),
        ("write", vec![100.0, 300.0]),
    ];
    let run = run_of("/base", &noisy);
    let mut compared = compare(&[run.clone(), run.clone()]);
    for pair in &compared.result_pairs {
        assert_eq!(pair.basis, ComparisonBasis::SameModelledRun);
        assert_eq!(pair.judgement.ratio, Some(1.0));
        assert_eq!(pair.describe_verdict(), "the same run");
    }
    assert!(compared.warnings[0].message.contains("the base itself"));
    assert_eq!(compared.apply_gate(0.0).outcome, GateOutcome::WithinLimit);
    // One that has not ended has not shown that it is fast enough.
    let failed = Run {
        state: RunState::Failed("disk full".to_owned()),
        ..run.clone()
    };
    let gated = compare(&[failed.clone(), failed]).apply_gate(0.05);
    assert_eq!(gated.outcome, GateOutcome::ResultMissing);
    // The id alone does not make two runs one.
    let mut changed = run.clone();
    changed.results[0].repetitions[0].is_discarded = true;
    assert_eq!(
        compare(&[run, changed]).result_pairs[0].basis,
        ComparisonBasis::Medians
    );
}
