use super::*;
use crate::fixtures::{Noise, ffs83, read, result, run};
use diskperf_timeline::units::MIB;
use diskperf_timeline::{CacheMode, RunState};

/// How many of 1000 pairs get this verdict.
fn share_of(verdict: Verdict, slowdown: f64, correlation: f64, seed: u64) -> f64 {
    const PAIRS: usize = 1000;
    let mut noise = Noise::new(seed);
    let found = (0..PAIRS)
        .map(|_| {
            let base = noise.speeds(10, 1000.0, 0.03, correlation);
            let other = noise.speeds(10, 1000.0 * (1.0 - slowdown), 0.03, correlation);
            judge(&base, &other, 1).1
        })
        .filter(|found| *found == verdict)
        .count();
    found as f64 / PAIRS as f64
}

#[test]
fn identical_runs_are_seldom_called_different_and_ten_percent_is_found() {
    for (correlation, at_most) in [(0.0, 0.07), (0.5, 0.10)] {
        let seed = 7;
        let same = share_of(Verdict::NoDifferenceSeen, 0.0, correlation, seed);
        println!(
            "seed {seed}, r {correlation}: {:.3} called different",
            1.0 - same
        );
        assert!(1.0 - same <= at_most, "r {correlation}: {:.3}", 1.0 - same);
    }
    let seed = 8;
    let found = share_of(Verdict::Slower, 0.10, 0.0, seed);
    println!("seed {seed}: a slow-down of 10 % found in {found:.3}");
    assert!(found > 0.90, "{found:.3}");
}

#[test]
fn many_rows_together_are_called_different_no_more_often_than_one() {
    const RUNS: usize = 200;
    const ROWS: usize = 25;
    let seed = 9;
    let mut noise = Noise::new(seed);
    let mut called = 0;
    let mut found = 0;
    for _ in 0..RUNS {
        let mut verdict = |factor: f64| {
            let base = noise.speeds(10, 1000.0, 0.02, 0.0);
            let other = noise.speeds(10, 1000.0 * factor, 0.02, 0.0);
            judge(&base, &other, ROWS).1
        };
        let different = (0..ROWS).any(|_| verdict(1.0) != Verdict::NoDifferenceSeen);
        called += usize::from(different);
        found += usize::from(verdict(0.9) == Verdict::Slower);
    }
    println!("seed {seed}: {called} of {RUNS} called different, {found} slow-downs found");
    assert!(called <= RUNS / 10, "{called}");
    assert!(found >= RUNS * 9 / 10, "{found}");
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
        (times(0.95).to_vec(), Verdict::Slower),
        (times(1.05).to_vec(), Verdict::Faster),
        // Large, and not told apart from noise.
        (
            vec![700.0, 1500.0, 600.0, 1300.0],
            Verdict::NoDifferenceSeen,
        ),
        (vec![500.0], Verdict::TooFewRepetitions),
        (vec![], Verdict::TooFewRepetitions),
    ] {
        assert_eq!(judge(&base, &other, 1).1, verdict, "{other:?}");
    }
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
