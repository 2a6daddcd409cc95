mod caps;
mod differences;
mod gates;

use super::*;
use crate::fixtures::{RandomNoise, build_ffs83_run, build_result, build_run, read_repetition};
use crate::statistics::separate;
use diskperf_timeline::units::MIB;
use diskperf_timeline::{
    CacheMode, ComparisonVariant, Experiment, FRESH_NOTE_PREFIX, Interference, InterleavedBlock,
    InterleavedRun, RunState, Setting, SizeChoice,
};

/// Twenty repetitions about this speed.
fn noisy_speeds(speed: f64) -> Vec<f64> {
    let five = [1.0, 1.004, 0.996, 1.002, 0.998];
    five.iter()
        .cycle()
        .take(20)
        .map(|one| one * speed)
        .collect()
}

fn judge_speeds(base: &[f64], other: &[f64], rows: usize) -> Judgement {
    judge_repetitions(
        (base, other),
        (rows, separate::ERROR_FLOOR_DEFAULT),
        DecisionLimits::default(),
    )
}

#[test]
fn like_runs_of_a_disturbed_machine_are_not_called_different() {
    const ROWS: usize = 5;
    let seed = 7;
    println!("seed {seed}");
    let mut noise = RandomNoise::new(seed);
    let mut called = |slowdown: f64| {
        let pairs = (0..300).filter(|_| {
            let base = noise.disturbed_values(20, 1000.0);
            let other = noise.disturbed_values(20, 1000.0 * (1.0 - slowdown));
            judge_speeds(&base, &other, ROWS).verdict.shows_difference()
        });
        pairs.count()
    };
    assert!(called(0.0) <= 1);
    assert!(called(0.5) >= 100, "a factor of 2 is not found at all");
}

#[test]
fn verdicts_of_separate_runs() {
    let base = noisy_speeds(1000.0);
    let mut modes = noisy_speeds(1000.0);
    for speed in modes.iter_mut().step_by(4) {
        *speed *= 0.8;
    }
    let mut disturbed = noisy_speeds(500.0);
    disturbed[7] = 900.0;
    for (other, verdict, doubt) in [
        (
            noisy_speeds(1000.0),
            Verdict::Inconclusive,
            Some(UndecidedReason::Noise),
        ),
        (
            noisy_speeds(800.0),
            Verdict::Inconclusive,
            Some(UndecidedReason::Noise),
        ),
        (noisy_speeds(700.0), Verdict::Slower, None),
        (noisy_speeds(1400.0), Verdict::Faster, None),
        (
            disturbed,
            Verdict::Inconclusive,
            Some(UndecidedReason::OtherDisturbed),
        ),
        (
            noisy_speeds(500.0)[..15].to_vec(),
            Verdict::SuggestsSlower,
            Some(UndecidedReason::TooFewRepetitions),
        ),
        (
            noisy_speeds(2000.0)[..4].to_vec(),
            Verdict::SuggestsFaster,
            Some(UndecidedReason::TooFewRepetitions),
        ),
        (
            noisy_speeds(1000.0)[..15].to_vec(),
            Verdict::TooFewRepetitions,
            Some(UndecidedReason::TooFewRepetitions),
        ),
        (
            vec![500.0, 400.0],
            Verdict::TooFewRepetitions,
            Some(UndecidedReason::TooFewRepetitions),
        ),
        (
            vec![],
            Verdict::TooFewRepetitions,
            Some(UndecidedReason::TooFewRepetitions),
        ),
    ] {
        let found = judge_speeds(&base, &other, 1);
        assert_eq!(
            (found.verdict, found.undecided_reason),
            (verdict, doubt),
            "{other:?}"
        );
    }
    // Runs that are known to differ little tell more.
    let known = |limit| {
        let limits = DecisionLimits {
            effect_share_min: limit,
        };
        judge_repetitions((&base, &noisy_speeds(1000.0)), (1, 0.02), limits).verdict
    };
    assert_eq!(known(0.03), Verdict::Inconclusive);
    assert_eq!(known(0.15), Verdict::NoDifferenceSeen);
}

#[test]
fn two_modes_decide_nothing() {
    let with = |id: &str, speeds: Vec<f64>| {
        let repetitions = speeds
            .into_iter()
            .map(|speed| read_repetition(MIB, speed, 50.0));
        build_run(
            id,
            "suite",
            id,
            vec![build_result("read", 0, repetitions.collect())],
        )
    };
    let mut modes = noisy_speeds(600.0);
    for speed in modes.iter_mut().step_by(3) {
        *speed *= 0.92;
    }
    for (base, other) in [
        (noisy_speeds(1000.0), modes.clone()),
        (modes, noisy_speeds(1000.0)),
    ] {
        let compared = compare(&[with("a", base), with("b", other)]);
        let pair = &compared.result_pairs[0];
        assert_eq!(
            pair.judgement.undecided_reason,
            Some(UndecidedReason::Bimodal),
            "{pair:?}"
        );
        assert_eq!(pair.describe_verdict(), "not sure: two modes");
    }
}

/// The speeds of A and B in a block, and whether B ran second.
type Speeds = (f64, f64, bool);

/// The two arms of an A/B measurement of a program.
fn arms(blocks: &[Speeds]) -> [Run; 2] {
    let arm = |arm: ComparisonVariant, partner: &str, id: &str, of: fn(&Speeds) -> (f64, bool)| {
        let repetitions = blocks.iter().zip(0..).map(|(block, number)| {
            let (speed, second) = of(block);
            Repetition {
                interleaved_block: Some(InterleavedBlock {
                    block_number: number,
                    is_second_run: second,
                    is_after_verdict: false,
                }),
                ..read_repetition(MIB, speed, 50.0)
            }
        });
        Run {
            interleaved: Some(InterleavedRun {
                partner_run_id: partner.to_owned(),
                variant: arm,
                seed: 1983,
                targets_differ: false,
                effect_min: None,
                ordered_after: None,
            }),
            ..build_run(
                id,
                "suite",
                id,
                vec![build_result("read", 0, repetitions.collect())],
            )
        }
    };
    [
        arm(ComparisonVariant::A, "b", "a", |block| (block.0, !block.2)),
        arm(ComparisonVariant::B, "a", "b", |block| (block.1, block.2)),
    ]
}

/// The ratio is that of the blocks after the verdict, and without enough of them the
/// table says that it may overstate.
#[test]
fn the_blocks_after_a_verdict_give_the_ratio() {
    let blocks: Vec<Speeds> = (0..22)
        .map(|n| {
            let faster = match n {
                n if n >= 11 => 1100.0,
                n if n % 2 == 0 => 1450.0,
                _ => 1050.0,
            };
            (1000.0, faster, n % 2 == 0)
        })
        .collect();
    for (after, ratio, overstates) in [(11, 1.1, false), (5, 1.1, false), (0, 1.45, true)] {
        let mut runs = arms(&blocks);
        for run in &mut runs {
            let repetitions = &mut run.results[0].repetitions;
            repetitions.truncate(11 + after);
            for one in &mut repetitions[11..] {
                one.interleaved_block.as_mut().unwrap().is_after_verdict = true;
            }
        }
        let compared = compare(&runs);
        let pair = &compared.result_pairs[0];
        let found = pair.judgement.ratio.unwrap();
        assert_eq!(pair.judgement.verdict, Verdict::Faster);
        let counts = pair.block_counts.unwrap();
        assert_eq!(
            (counts.total_count, counts.after_verdict_count),
            (11 + after, after)
        );
        // Speeds are of whole nanoseconds.
        assert!((found - ratio).abs() < 1e-6, "{found}");
        assert_eq!(counts.has_unbiased_size(), !overstates);
        let interval = pair.judgement.interval.unwrap();
        assert!(
            interval.min <= found && found <= interval.max,
            "{interval:?}"
        );
        let table =
            crate::report::render_comparison(&compared, crate::report::ReportFormat::Table, 300);
        assert_eq!(table.contains("may overstate"), overstates, "{table}");
    }
}

#[test]
fn disturbed_blocks_are_reported() {
    let blocks: Vec<Speeds> = (0..20).map(|n| (1000.0, 1000.0, n % 2 == 0)).collect();
    let mut runs = arms(&blocks);
    assert!(compare(&runs).result_pairs[0].warnings.is_empty());
    let busy = Interference::ProcessorBusy { threads: 3 };
    for (run, count) in runs.iter_mut().zip([2, 1]) {
        for repetition in &mut run.results[0].repetitions[4..4 + count] {
            repetition.interference.push(busy.clone());
        }
    }
    let warnings = &compare(&runs).result_pairs[0].warnings;
    let said = format!(
        "disturbed in 2 blocks of the base and 1 of the other, which still count: {busy} (3)"
    );
    assert_eq!(warnings, &[said]);
}

#[test]
fn arms_are_compared_block_by_block() {
    // Both drift by far more than they differ.
    let drifting = |ratio: f64| {
        let block = |n: i32| {
            (
                1000.0 * 0.97_f64.powi(n),
                1000.0 * ratio * 0.97_f64.powi(n),
                n % 2 == 0,
            )
        };
        (0..20).map(block).collect::<Vec<_>>()
    };
    for (ratio, verdict) in [
        (0.95, Verdict::Slower),
        (1.06, Verdict::Faster),
        (1.0, Verdict::NoDifferenceSeen),
        (0.995, Verdict::NoDifferenceSeen),
    ] {
        let [a, b] = arms(&drifting(ratio));
        let compared = compare(&[a.clone(), b.clone()]);
        let pair = &compared.result_pairs[0];
        assert_eq!(
            (pair.basis, pair.judgement.verdict),
            (ComparisonBasis::MedianBlock, verdict)
        );
        assert!((pair.judgement.ratio.unwrap() / ratio - 1.0).abs() < 1e-6);
        // The other way round it is the inverse.
        let turned = &compare(&[b, a.clone()]).result_pairs[0];
        let product = pair.judgement.ratio.unwrap() * turned.judgement.ratio.unwrap();
        assert!((product - 1.0).abs() < 1e-9, "{product}");
        // Beside a third run it is a separate one.
        assert_eq!(
            compare(&[build_run("c", "suite", "c", a.results.clone()), a]).result_pairs[0].basis,
            ComparisonBasis::Medians
        );
    }
    // What matters is what they were measured for, unless another is asked for.
    let of_arms = |min_effect| {
        let mut arms = arms(&drifting(1.0));
        for (arm, n) in arms.iter_mut().zip([0.0, 0.02]) {
            arm.interleaved.as_mut().unwrap().effect_min = min_effect;
            let even = arm.results[0].repetitions.iter_mut().step_by(2);
            for worker in even.flat_map(|one| &mut one.workers) {
                worker.elapsed_time.0 = (worker.elapsed_time.0 as f64 * (1.0 + n)) as u64;
            }
        }
        arms
    };
    let verdict = |min_effect, asked: Option<f64>| {
        let terms = ComparisonTerms {
            limits: asked.map(|min_effect| DecisionLimits {
                effect_share_min: min_effect,
            }),
            ..ComparisonTerms::default()
        };
        compare_with_terms(&of_arms(min_effect), &terms).result_pairs[0]
            .judgement
            .verdict
    };
    for (measured_for, asked, found) in [
        (None, None, Verdict::NoDifferenceSeen),
        (Some(0.015), None, Verdict::Inconclusive),
        (Some(0.03), Some(0.015), Verdict::Inconclusive),
        (Some(0.015), Some(0.03), Verdict::NoDifferenceSeen),
    ] {
        let verdict = verdict(measured_for, asked);
        assert_eq!(verdict, found, "{measured_for:?} {asked:?}");
    }
    let [a, b] = arms(&drifting(0.9)[..10]);
    let few = compare(&[a, b]);
    assert_eq!(
        few.result_pairs[0].judgement.verdict,
        Verdict::TooFewRepetitions
    );
    assert!(few.result_pairs[0].judgement.ratio.is_some());
    // A block that one arm lacks counts for neither.
    let [mut a, b] = arms(&drifting(0.9));
    a.results[0].repetitions.remove(3);
    let compared = compare(&[a, b]);
    assert_eq!(compared.result_pairs[0].judgement.verdict, Verdict::Slower);
    assert!((compared.result_pairs[0].judgement.ratio.unwrap() / 0.9 - 1.0).abs() < 1e-6);
}

#[test]
fn earlier_runs_narrow_the_interval() {
    let of = |id: &str, speed: f64| {
        let repetitions = noisy_speeds(speed)
            .into_iter()
            .map(|speed| read_repetition(MIB, speed, 50.0));
        build_run(
            id,
            "suite",
            "/a",
            vec![build_result("read", 0, repetitions.collect())],
        )
    };
    let earlier: Vec<Run> = (0..8).map(|n| of(&format!("earlier{n}"), 1000.0)).collect();
    let compared = |history: Vec<Run>, speed: f64| {
        let terms = ComparisonTerms {
            history: RunHistory::from_runs(history),
            ..ComparisonTerms::default()
        };
        let two = [of("a", 1000.0), of("b", speed)];
        compare_with_terms(&two, &terms).result_pairs[0]
            .judgement
            .verdict
    };
    assert_eq!(compared(Vec::new(), 850.0), Verdict::Inconclusive);
    assert_eq!(compared(earlier.clone(), 850.0), Verdict::Slower);
    assert_eq!(
        compared(earlier[1..].to_vec(), 850.0),
        Verdict::Inconclusive
    );
    let elsewhere = earlier.iter().cloned().map(|run| Run {
        target_label: "/b".to_owned(),
        ..run
    });
    assert_eq!(compared(elsewhere.collect(), 850.0), Verdict::Inconclusive);
}

#[test]
fn results_are_paired_by_what_they_measured() {
    let one = |filesystem: &str, drives: u32, row: u32, block: &str| {
        let mut one = build_result("read", row, vec![read_repetition(MIB, 500.0, 10.0); 2]);
        one.filesystem_type = filesystem.to_owned();
        one.drive_count = drives;
        one.parameters
            .insert("block_bytes".to_owned(), block.to_owned());
        one.distinguishing = vec!["block_bytes".to_owned()];
        one
    };
    // (base, other, the pairs found)
    let cases = [
        (
            vec![one("ext4/1024", 1, 0, "8K"), one("ext4/4096", 1, 1, "8K")],
            vec![one("ext4/4096", 1, 0, "8K"), one("ext4/1024", 1, 1, "8K")],
            vec![
                "ext4/1024 1 8K = ext4/1024 1 8K",
                "ext4/4096 1 8K = ext4/4096 1 8K",
            ],
        ),
        (
            vec![one("ext4/1024", 1, 0, "8K"), one("ext4/4096", 1, 1, "8K")],
            vec![one("xfs/4096", 1, 0, "8K")],
            vec!["ext4/4096 1 8K = xfs/4096 1 8K"],
        ),
        (
            vec![one("ext4/4096", 1, 0, "8K"), one("ext4/4096", 2, 1, "8K")],
            vec![one("ext4/4096", 2, 0, "8K")],
            vec!["ext4/4096 2 8K = ext4/4096 2 8K"],
        ),
        (
            vec![one("ext4/4096", 1, 0, "8K")],
            vec![one("ext4/4096", 1, 0, "64K")],
            vec!["ext4/4096 1 8K = ext4/4096 1 64K"],
        ),
        (
            vec![one("ext4/4096", 1, 0, "8K"), one("ext4/4096", 1, 1, "16K")],
            vec![one("ext4/4096", 1, 0, "16K"), one("ext4/4096", 1, 1, "64K")],
            vec!["ext4/4096 1 16K = ext4/4096 1 16K"],
        ),
    ];
    for (base, other, expected) in cases {
        let (base, other) = (
            build_run("a", "s", "/a", base),
            build_run("b", "s", "/b", other),
        );
        let text = |one: &ProgramResult| {
            format!(
                "{} {} {}",
                one.filesystem_type, one.drive_count, one.parameters["block_bytes"]
            )
        };
        let pairing = ResultPairing::match_results(&base, &other);
        let found: Vec<String> = pairing
            .pairs
            .iter()
            .map(|(base, other)| format!("{} = {}", text(base), text(other)))
            .collect();
        assert_eq!(found, expected);
        let counted = 2 * found.len() + pairing.base_only.len() + pairing.other_only.len();
        assert_eq!(counted, base.results.len() + other.results.len());
    }
}

/// One program per list of speeds.
fn run_of(id: &str, programs: &[(&str, Vec<f64>)]) -> Run {
    let one = |((program, speeds), row): (&(&str, Vec<f64>), u32)| {
        let repetitions = speeds
            .iter()
            .map(|speed| read_repetition(MIB, *speed, 50.0));
        build_result(program, row, repetitions.collect())
    };
    build_run(id, "suite", id, programs.iter().zip(0..).map(one).collect())
}

#[test]
fn only_significant_slow_downs_count_as_the_worst() {
    let noisy: Vec<f64> = noisy_speeds(1.0)
        .iter()
        .zip([900.0, 300.0])
        .map(|(one, at)| one * at)
        .collect();
    let base = run_of(
        "a",
        &[
            ("calm", noisy_speeds(1000.0)),
            ("noisy", noisy_speeds(1000.0)),
        ],
    );
    let other = run_of("b", &[("calm", noisy_speeds(500.0)), ("noisy", noisy)]);
    let comparison = compare(&[base.clone(), other]);
    let worst = comparison.worst_slowdown().unwrap();
    assert_eq!(worst.title, "calm");
    assert!((worst.slowdown().unwrap() - 0.5).abs() < 1e-6);
    assert_eq!(comparison.undecided_count(), 1);
    assert_eq!(
        compare(&[base.clone(), base.clone()]).worst_slowdown(),
        None
    );
    assert_eq!(compare(&[base]).result_pairs, []);
    assert_eq!(compare(&[]), Comparison::default());
}

#[test]
fn a_title_claims_no_value_that_differs_between_the_sides() {
    for (base, other, expected) in [
        ("read_8192", "read_8192", "read_8192"),
        (
            "4 KiB random read, QD1",
            "4 KiB random read, QD8",
            "4 KiB random read, QD1 | QD8",
        ),
        (
            "4 KiB random read, QD1, 9/s",
            "64 KiB random read, QD8, 9/s",
            "4 | 64 KiB random read, QD1 | QD8, 9/s",
        ),
        ("a b=1", "a", "a b=1 | a"),
    ] {
        assert_eq!(super::join_titles(base, other), expected);
    }
}

#[test]
fn a_depth_of_the_program_is_shown_as_the_depth_that_it_used() {
    for (rate, shown) in [("0", "1"), ("500", "unlimited")] {
        let side = |depth: &str| {
            let mut result = build_result("random", 0, Vec::new());
            result.distinguishing = vec!["depth".to_owned()];
            let parameters = [("depth", depth), ("rate_iops", rate)];
            let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
            result.parameters = parameters.into();
            result
        };
        let warnings = warnings::warn_of_result_pair(&side("0"), &side("2"));
        let expected = format!("values of depth differ: {shown}, 2");
        assert!(warnings.contains(&expected), "{warnings:?}");
    }
}
