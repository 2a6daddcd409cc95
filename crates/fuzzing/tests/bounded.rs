//! Every target with some thousands of inputs, and all that was found before. These
//! fail when a parser panics. `PROPTEST_RNG_SEED` repeats what a failure prints.

use diskperf_fuzzing::{FuzzTarget, TARGETS};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Inputs for each target; more if they are wanted.
fn cases(target: &FuzzTarget) -> u32 {
    let asked = std::env::var("DISKPERF_FUZZ_CASES").ok();
    asked
        .and_then(|asked| asked.parse().ok())
        .unwrap_or(match target.name {
            // A store is opened for each.
            "store_file" | "store_row" => 200,
            "catalogue_entry" | "setting" | "nbd_session" => 500,
            _ => 2000,
        })
}

fn seed() -> u64 {
    let asked = std::env::var("PROPTEST_RNG_SEED").ok();
    asked
        .and_then(|asked| asked.parse().ok())
        .unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("the clock is past 1970").as_nanos() as u64
        })
}

/// One step away from an input that is right.
#[derive(Clone, Debug)]
enum Step {
    /// A byte becomes another.
    Byte(Index, u8),
    /// A word of the language comes in.
    Word(Index, Index),
    /// A piece goes.
    Cut(Index, u8),
    /// A piece comes twice.
    Twice(Index, u8),
    /// The rest is that of another seed.
    Splice(Index, Index),
    /// A number becomes one at an end.
    Number(Index, Index),
}

const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "1",
    "255",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "0.0000001",
];

fn step() -> impl Strategy<Value = Step> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(place, byte)| Step::Byte(place, byte)),
        (at(), at()).prop_map(|(place, word)| Step::Word(place, word)),
        (at(), any::<u8>()).prop_map(|(place, bytes)| Step::Cut(place, bytes)),
        (at(), any::<u8>()).prop_map(|(place, bytes)| Step::Twice(place, bytes)),
        (at(), at()).prop_map(|(place, seed)| Step::Splice(place, seed)),
        (at(), at()).prop_map(|(place, number)| Step::Number(place, number)),
    ]
}

fn stepped(
    target: &FuzzTarget,
    seeds: &[Vec<u8>],
    mut bytes: Vec<u8>,
    steps: Vec<Step>,
) -> Vec<u8> {
    for step in steps {
        let length = bytes.len() + 1;
        match step {
            Step::Byte(place, byte) => match bytes.get_mut(place.index(length)) {
                Some(there) => *there = byte,
                None => bytes.push(byte),
            },
            Step::Word(place, word) => {
                let place = place.index(length);
                bytes.splice(
                    place..place,
                    target.keywords[word.index(target.keywords.len())].bytes(),
                );
            }
            Step::Cut(place, count) => {
                let place = place.index(length);
                let end = (place + usize::from(count)).min(bytes.len());
                bytes.drain(place..end);
            }
            Step::Twice(place, count) => {
                let place = place.index(length);
                let end = (place + usize::from(count)).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                bytes.splice(place..place, piece);
            }
            Step::Splice(place, seed) => {
                let place = place.index(length);
                bytes.truncate(place);
                bytes.extend(seeds[seed.index(seeds.len())].iter().skip(place));
            }
            Step::Number(place, number) => {
                let digit = |byte: &u8| byte.is_ascii_digit();
                let from = place.index(length);
                let Some(start) = bytes[from..].iter().position(digit) else {
                    continue;
                };
                let start = from + start;
                let end = bytes[start..].iter().position(|byte| !digit(byte));
                let end = end.map_or(bytes.len(), |count| start + count);
                bytes.splice(start..end, NUMBERS[number.index(NUMBERS.len())].bytes());
            }
        }
    }
    bytes
}

/// What libFuzzer found: panics of the past.
fn found(target: &FuzzTarget) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/found");
    let entries = std::fs::read_dir(folder.join(target.name));
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("a folder that can be read").path())
        .collect();
    paths.sort();
    paths
}

fn check(name: &str) {
    let target = FuzzTarget::find_by_name(name).expect("a target");
    let run = (target.make_body)();
    for path in found(&target) {
        println!("{}", path.display());
        run(&std::fs::read(&path).expect("a file that can be read"));
    }
    let seeds = (target.make_seeds)();
    for seed in &seeds {
        run(seed);
    }
    let rng_seed = seed();
    println!("{name}: PROPTEST_RNG_SEED={rng_seed}");
    let mut runner = TestRunner::new(Config {
        cases: cases(&target),
        rng_seed: RngSeed::Fixed(rng_seed),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    });
    let steps = (any::<Index>(), prop::collection::vec(step(), 0..12));
    let outcome = runner.run(&steps, |(first, steps)| {
        let bytes = seeds[first.index(seeds.len())].clone();
        run(&stepped(&target, &seeds, bytes, steps));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_here() {
            let names = TARGETS.map(|target| target.name);
            assert_eq!(names.as_slice(), [$(stringify!($name)),*]);
        }
    };
}

targets!(
    catalogue_entry,
    setting,
    sizes,
    document,
    store_file,
    store_row,
    event_lines,
    event_pages,
    mounts,
    fresh,
    job_file,
    drive_file,
    drive_trace,
    block_trace,
    crash_log,
    nbd_session
);

/// Each target has a binary of libFuzzer.
#[test]
fn every_target_has_a_binary() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for target in TARGETS {
        let line = format!("name = \"{}\"", target.name);
        assert!(manifest.contains(&line), "{line}");
    }
}
