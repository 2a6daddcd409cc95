//! The cliffs of disks, wherever they are along a sweep.

use crate::support::{User, words};
use serde_json::Value;

/// Streams of 64 KiB, thirty times a second each, that the drive reads ahead for.
const STREAMS: &str = "tune bare-sata-7200 --suite sequential --seeds 0 --set program.depth=64 \
    --set program.block_bytes=64K --set program.area_bytes=64G --set program.rate_iops=30 \
    --set drive.read_ahead_least_bytes=1M";
const RANDOM: &str =
    "tune bare-sata-7200 --suite random --size 16M --seeds 0 --set program.area_bytes=7T";

struct Cliff {
    from: u32,
    to: u32,
    gain: f64,
    expected: f64,
}

/// The cliffs of a search, whose points and figures are those of the sweep.
fn cliffs(user: &User, line: &str) -> Vec<Cliff> {
    let line = format!("{line} --format json");
    let found = user.run(&words(&line)).expect(0, &[]).json();
    let key = found["keys"][0]["path"].as_str().unwrap().to_owned();
    let value_at = |setting: &Value| {
        let mut points = found["points"].as_array().unwrap().iter();
        let point = points.find(|point| point["settings"][&key] == *setting);
        point.unwrap()["value"].clone()
    };
    let cliff = |one: &Value| {
        assert_eq!(one["path"], *key);
        assert_eq!(one["from_value"], value_at(&one["from"]));
        assert_eq!(one["to_value"], value_at(&one["to"]));
        let number = |name: &str| one[name].as_str().unwrap().parse().unwrap();
        Cliff {
            from: number("from"),
            to: number("to"),
            gain: one["gain"].as_f64().unwrap(),
            expected: one["expected_gain"].as_f64().unwrap(),
        }
    };
    found["cliffs"]
        .as_array()
        .unwrap()
        .iter()
        .map(cliff)
        .collect()
}

fn deepest(cliffs: &[Cliff]) -> &Cliff {
    let mut all = cliffs.iter();
    let first = all.next().expect("a cliff");
    all.fold(first, |deepest, one| {
        if one.gain < deepest.gain {
            one
        } else {
            deepest
        }
    })
}

/// The best is the fewest streams, and the cliff is far from it: where they are more than
/// the segments, and than what the drive makes up for between two requests.
#[test]
fn more_streams_than_segments_are_a_cliff() {
    let user = User::new();
    let line =
        format!("{STREAMS} --size 16M --over program.workers=4..16 --set drive.cache_segments=8");
    let all = cliffs(&user, &format!("{line} --goal latency"));
    let one = deepest(&all);
    assert!((8..14).contains(&one.from), "{} to {}", one.from, one.to);
    assert_eq!(one.to, one.from + 1);
    assert!(
        one.gain < -0.9 && one.expected > -0.5,
        "{} {}",
        one.gain,
        one.expected
    );
    user.run(&words(&format!("{line} --goal latency")))
        .expect(0, &[])
        .shows(&[
            "the best settings stand on no cliff; the nearest is",
            "Cliffs:",
            &format!("program.workers {} {}", one.from, one.to),
        ]);
    // By what they move, too.
    let line =
        format!("{STREAMS} --size 8M --over program.workers=4..20:2 --set drive.cache_segments=8");
    let all = cliffs(&user, &line);
    let one = deepest(&all);
    assert!((8..14).contains(&one.from), "{} to {}", one.from, one.to);
    assert!(one.gain < -0.25, "{}", one.gain);
}

#[test]
fn fewer_segments_than_streams_are_a_cliff() {
    let user = User::new();
    let line = format!(
        "{STREAMS} --size 16M --set program.workers=16 --over drive.cache_segments=4,8,12,14,16,18,20,24,32"
    );
    let all = cliffs(&user, &line);
    let one = deepest(&all);
    // From the better side to the worse, whichever way the values run.
    assert_eq!(one.from, 14);
    assert_eq!(one.to, 12);
    assert!(one.gain < -0.2, "{}", one.gain);
    assert!(
        all.iter().all(|one| one.from <= 16),
        "none where all have a segment"
    );
}

/// At depth 1, p99 is twice the median; from where a request can be passed, it turns.
#[test]
fn the_depth_at_which_p99_turns_is_a_cliff() {
    let user = User::new();
    for (depths, to) in [("1,2,4,8,16,32", 4), ("1..16", 3)] {
        let all = cliffs(
            &user,
            &format!("{RANDOM} --goal latency --over program.depth={depths}"),
        );
        assert_eq!(all.len(), 1, "{depths}");
        assert_eq!((all[0].from, all[0].to), (2, to));
        assert!(
            all[0].gain < -0.5 && all[0].expected > -0.5,
            "{}",
            all[0].gain
        );
    }
}

/// First come, first served: p99 grows in proportion to the depth. And at random the rate
/// grows in proportion to the size.
#[test]
fn a_smooth_sweep_has_no_cliff() {
    let user = User::new();
    for depths in ["1,2,4,8,16,32", "1..16"] {
        let fcfs = format!("{RANDOM} --goal latency --set drive.queue_policy=fcfs");
        let line = format!("{fcfs} --over program.depth={depths}");
        assert!(cliffs(&user, &line).is_empty(), "{depths}");
        let shown = user.run(&words(&line)).expect(0, &[]);
        assert!(!shown.stdout.contains("ON A CLIFF"), "{}", shown.stdout);
    }
    let line = format!("{RANDOM} --over program.depth=1,2,4,8,16,32");
    assert!(cliffs(&user, &line).is_empty());
    let line = format!("{RANDOM} --over program.block_bytes=4096,8192,16384,32768,65536,131072");
    assert!(cliffs(&user, &line).is_empty());
}

/// A p99 of 512 calls wiggles by more than a cliff: none is named, and it is said why. The
/// seeds are those of the sweeps that had one.
#[test]
fn a_short_run_tells_no_cliff() {
    let user = User::new();
    let line = "tune bare-sata-7200 --suite random --size 2M --seeds 0 --set program.area_bytes=7T \
        --goal latency --over program.depth=1,2,4,8,16,32";
    for seed in 1..=5 {
        let line = format!("{line} --seed {seed}");
        assert!(cliffs(&user, &line).is_empty(), "seed {seed}");
    }
    user.run(&words(line)).expect(0, &[]).shows(&[
        "no cliff is named down from 6 of 6 points: their p99 is of fewer than 757 calls",
    ]);
}

/// Two depths that somebody chose: a step from one to the other, and no cliff.
#[test]
fn two_values_far_apart_have_a_step_between_them() {
    let user = User::new();
    let line = format!("{RANDOM} --goal latency --over program.depth=1,32");
    let shown = user.run(&words(&line)).expect(0, &[]).shows(&[
        "program.depth from 1 to 32 loses",
        "with nothing tried between",
        "Steps by more than a factor of 2",
    ]);
    assert!(!shown.stdout.contains("ON A CLIFF"), "{}", shown.stdout);
    assert!(cliffs(&user, &line).is_empty());
}
