use super::*;
use crate::fixtures::{Noise, ffs83, read, result, run};
use diskperf_timeline::units::MIB;
use diskperf_timeline::{CacheMode, RunState};

/// The share of 1000 pairs of runs on a shared machine, each of ten
/// repetitions, that get one of these verdicts.
fn share_of(verdicts: &[Verdict], slowdown: f64, seed: u64) -> f64 {
    const PAIRS: usize = 1000;
    let mut noise = Noise::new(seed);
    let found = (0..PAIRS)
        .map(|_| {
            let base = noise.disturbed(10, 1000.0);
            let other = noise.disturbed(10, 1000.0 * (1.0 - slowdown));
            judge(&base, &other, 1).verdict
        })
        .filter(|found| verdicts.contains(found))
        .count();
    found as f64 / PAIRS as f64
}

#[test]
fn identical_runs_are_seldom_called_different_and_ten_percent_is_found() {
    let seed = 7;
    let different = share_of(&[Verdict::Faster, Verdict::Slower], 0.0, seed);
    let found = share_of(&[Verdict::Slower], 0.10, seed);
    println!("seed {seed}: {different:.3} called different, 10 % found in {found:.3}");
    assert!(different <= 0.05, "{different:.3}");
    assert!(found > 0.90, "{found:.3}");
}

#[test]
fn correlated_noise_with_heavy_tails_is_seldom_called_a_difference() {
    let seed = 8;
    let mut noise = Noise::new(seed);
    for correlation in [0.0, 0.5, 0.7] {
        let mut pair = || {
            let base = noise.speeds(10, 1000.0, 0.03, correlation);
            judge(&base, &noise.speeds(10, 1000.0, 0.03, correlation), 1).verdict
        };
        let called = (0..1000).filter(|_| pair().is_difference()).count();
        println!("seed {seed}, r {correlation}: {called} of 1000 called different");
        assert!(called <= 70, "r {correlation}: {called}");
    }
}

#[test]
fn many_rows_together_are_called_different_no_more_often_than_one() {
    const RUNS: usize = 200;
    const ROWS: usize = 25;
    let seed = 9;
    let mut noise = Noise::new(seed);
    let mut called = 0;
    for _ in 0..RUNS {
        let mut verdict = || {
            let base = noise.disturbed(10, 1000.0);
            judge(&base, &noise.disturbed(10, 1000.0), ROWS).verdict
        };
        called += usize::from((0..ROWS).any(|_| verdict().is_difference()));
    }
    println!("seed {seed}: {called} of {RUNS} called different");
    assert!(called <= RUNS / 10, "{called}");
}

#[test]
fn verdicts() {
    let base = [1000.0, 1004.0, 996.0, 1002.0, 998.0, 1001.0];
    let times = |factor: f64| base.map(|speed| speed * factor);
    for (other, verdict) in [
        (times(1.0).to_vec(), Verdict::NoDifferenceSeen),
        // Significant, and too small to matter.
        (times(0.992).to_vec(), Verdict::NoDifferenceSeen),
        (times(1.008).to_vec(), Verdict::NoDifferenceSeen),
        (times(0.92).to_vec(), Verdict::Slower),
        (times(1.08).to_vec(), Verdict::Faster),
        // The fastest are alike, and the rest is far from it.
        (
            vec![
                1004.0, 700.0, 1003.0, 710.0, 690.0, 1002.0, 720.0, 705.0, 695.0, 700.0,
            ],
            Verdict::Unsure,
        ),
        // Noisy about the same speed.
        (
            vec![900.0, 1100.0, 930.0, 1070.0, 1000.0],
            Verdict::NoDifferenceSeen,
        ),
        // Large, and not told apart from noise.
        (vec![800.0, 1010.0, 850.0, 1005.0], Verdict::Unsure),
        // Two or three show what is plain, and nothing else.
        (vec![500.0, 501.0, 499.0], Verdict::Slower),
        (vec![1000.0, 1001.0, 999.0], Verdict::TooFewRepetitions),
        (vec![500.0, 400.0], Verdict::TooFewRepetitions),
        (vec![500.0], Verdict::TooFewRepetitions),
        (vec![], Verdict::TooFewRepetitions),
    ] {
        assert_eq!(judge(&base, &other, 1).verdict, verdict, "{other:?}");
    }
}

#[test]
fn an_interval_that_says_nothing_is_left_out() {
    for (base, other, ratio, has_interval) in [
        (&[1000.0, 1100.0][..], &[500.0, 600.0][..], 0.5222, true),
        (&[1000.0, 200.0], &[500.0, 400.0], 1.0, false),
        (&[1e300, 1e-300, 1.0], &[1e300, 1e-300], 1.0, false),
        (&[1000.0], &[500.0, 700.0], 0.6, false),
    ] {
        let found = judge(base, other, 4);
        assert_eq!(found.verdict, Verdict::TooFewRepetitions, "{base:?}");
        let ratio_found = found.ratio.unwrap();
        assert!((ratio_found / ratio - 1.0).abs() < 1e-3, "{ratio_found}");
        assert_eq!(found.interval.is_some(), has_interval, "{found:?}");
    }
    assert_eq!(judge(&[], &[1.0], 1).ratio, None);
}

#[test]
fn results_are_paired_by_what_they_measured() {
    let one = |filesystem: &str, drives: u32, row: u32, block: &str| {
        let mut one = result("read", row, vec![read(MIB, 500.0, 10.0); 2]);
        one.filesystem = filesystem.to_owned();
        one.drives = drives;
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
        let (base, other) = (run("a", "s", "/a", base), run("b", "s", "/b", other));
        let text = |one: &ProgramResult| {
            format!(
                "{} {} {}",
                one.filesystem, one.drives, one.parameters["block_bytes"]
            )
        };
        let pairing = Pairing::of(&base, &other);
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

#[test]
fn warnings_name_both_values() {
    let base = ffs83("aaaaaaaaaa", "/a");
    let mut other = ffs83("bbbbbbbbbb", "/b");
    other.state = RunState::Interrupted;
    other.world = World::Model;
    other.environment.kernel = "Linux 6.12".to_owned();
    other.environment.places[0].devices[0].model = None;
    other.results.remove(3);
    let changed = &mut other.results[2];
    changed.size_bytes = 64 * MIB;
    changed.cache = CacheMode::Warm;
    changed.filesystem = "xfs/4096".to_owned();
    changed.protocol.statistic = diskperf_timeline::Statistic::Minimum;
    let comparison = compare(&[base, other]);
    let texts: Vec<&str> = comparison
        .warnings
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "not finished: interrupted by the user",
            "worlds differ: host, model. KB/s is compared with KB/s and durable KB/s with \
             durable KB/s, never one with the other",
            "kernels differ: Linux 6.1.0, Linux 6.12",
            "devices differ: vda (QEMU HARDDISK), vda",
        ]
    );
    assert_eq!(
        comparison.pairs[0].warnings,
        [
            "sizes differ: 8 MiB, 64 MiB",
            "cache modes differ: cold, warm",
            "file systems differ: ext4/4096, xfs/4096",
            "protocols differ: median of 2 after 1 discarded, minimum of 2 after 1 discarded",
        ]
    );
    assert_eq!(comparison.unpaired.len(), 1);
    assert_eq!(comparison.unpaired[0].title, "rewrite_8192");
    assert_eq!(
        (
            comparison.unpaired[0].run,
            comparison.unpaired[0].missing_in
        ),
        (0, 1)
    );
}

#[test]
fn only_a_slow_down_that_is_seen_counts_as_the_worst() {
    let with = |id: &str, slow: f64, noisy: [f64; 6]| {
        let calm = [1000.0, 1003.0, 997.0, 1001.0, 999.0, 1002.0];
        let repetitions = |speeds: [f64; 6], factor: f64| {
            speeds.map(|speed| read(MIB, speed * factor, 50.0)).to_vec()
        };
        run(
            id,
            "suite",
            "/a",
            vec![
                result("calm", 0, repetitions(calm, slow)),
                result("noisy", 1, repetitions(noisy, 1.0)),
            ],
        )
    };
    let base = with("a", 1.0, [1000.0, 400.0, 1500.0, 700.0, 1200.0, 900.0]);
    let other = with("b", 0.93, [800.0, 300.0, 1300.0, 500.0, 1000.0, 600.0]);
    let comparison = compare(&[base.clone(), other]);
    let worst = comparison.worst_slowdown().unwrap();
    assert_eq!(worst.title, "calm");
    assert!((worst.slowdown().unwrap() - 0.07).abs() < 1e-6);
    assert_eq!(
        compare(&[base.clone(), base.clone()]).worst_slowdown(),
        None
    );
    assert_eq!(compare(&[base]).pairs, []);
    assert_eq!(compare(&[]), Comparison::default());
}

/// One program per list of speeds.
fn run_of(id: &str, programs: &[(&str, &[f64])]) -> Run {
    let one = |((program, speeds), row): (&(&str, &[f64]), u32)| {
        let repetitions = speeds.iter().map(|speed| read(MIB, *speed, 50.0));
        result(program, row, repetitions.collect())
    };
    run(id, "suite", id, programs.iter().zip(0..).map(one).collect())
}

const CALM: &[f64] = &[1000.0, 1003.0, 997.0, 1001.0, 999.0, 1002.0];

/// What fails, of two runs that are named `/base` and `/other`.
fn failures(base: &[(&str, &[f64])], other: &Run, limit: f64) -> Vec<String> {
    let comparison = compare(&[run_of("/base", base), other.clone()]);
    let failures = comparison.failures(limit);
    failures.iter().map(Failure::to_string).collect()
}

#[test]
fn a_limit_must_be_seen_to_be_kept() {
    const SLOWER: &[f64] = &[900.0, 902.0, 898.0, 901.0, 899.0, 900.0];
    const NOISY: &[f64] = &[500.0, 900.0, 1400.0, 800.0];
    const UNDECIDED: &str = "but the repetitions do not decide; run both again with";
    for (base, other, limit, expected) in [
        (CALM, CALM, 0.05, None),
        (SLOWER, CALM, 0.0, None),
        (CALM, SLOWER, 0.11, None),
        (
            CALM,
            SLOWER,
            0.05,
            Some("slower by 10.1 %, which is over 5.0 %".to_owned()),
        ),
        (
            &CALM[..2],
            &[500.0, 400.0],
            0.05,
            Some(format!(
                "seems slower by 55.3 %, which is over 5.0 %, {UNDECIDED} `--runs 10`"
            )),
        ),
        (
            CALM,
            NOISY,
            0.05,
            Some(format!(
                "seems slower by 15.1 %, which is over 5.0 %, {UNDECIDED} `--runs 16`"
            )),
        ),
        (CALM, NOISY, 0.2, None),
        (&CALM[..2], &[1000.0, 1200.0], 0.05, None),
    ] {
        let found = failures(
            &[("read", base)],
            &run_of("/other", &[("read", other)]),
            limit,
        );
        let pair = |text| format!("read (ext4/4096), /other against /base: {text}");
        assert_eq!(found, Vec::from_iter(expected.map(pair)), "{other:?}");
    }
}

#[test]
fn what_was_not_compared_fails() {
    let (read, write) = (("read", CALM), ("write", CALM));
    let missing = |program: &str| {
        format!(
            "{program} (ext4/4096): not measured in /other; run the same suite there, to its end"
        )
    };
    let failed = Run {
        state: RunState::Failed("disk full".to_owned()),
        ..run_of("/other", &[read])
    };
    let common = "the runs have no program in common; compare runs of the same suite";
    let unfinished = "/other: not finished: disk full; run it again, to its end";
    for (base, other, expected) in [
        (&[read][..], run_of("/other", &[read, write]), vec![]),
        (
            &[read],
            run_of("/other", &[("read", &[])]),
            vec![missing("read")],
        ),
        (
            &[read, write],
            run_of("/other", &[read]),
            vec![missing("write")],
        ),
        (&[read], run_of("/other", &[write]), vec![common.to_owned()]),
        (&[read], failed, vec![unfinished.to_owned()]),
    ] {
        assert_eq!(failures(base, &other, 0.05), expected);
    }
}
