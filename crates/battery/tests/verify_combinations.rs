//! Options of verification in random combinations: what is written here is verified by fio,
//! what fio writes is verified here, and both judge planted damage alike.
#![cfg(target_os = "linux")]

mod verification;

use diskperf_battery::Program;
use diskperf_fio::{FileSource, JobDefinition, JobEnvironment, JobFile};
use rand_core::Rng;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use verification::installed::is_fio_installed;
use verification::{ByFio, KINDS, flip, one_by_fio, program_on_host};

/// Combinations of the ordinary run, whose seed is always the same.
const SAMPLE: usize = 48;
const SAMPLE_SEED: u64 = 1983;

/// Combinations of a run with a seed of its own.
const COMBINATIONS: usize = 200;

/// Seed of such a run: a number, or `clock`.
const SEED: &str = "DISKPERF_VERIFY_SEED";

/// Options that say what a block is; "" is without the option.
const FORMATS: &[(&str, &[&str])] = &[
    ("bs", &["4k", "4k", "8k", "1000", "512", "64k"]),
    (
        "verify_interval",
        &["", "", "512", "1k", "1000", "4k", "100"],
    ),
    (
        "verify_offset",
        &["", "", "", "40", "64", "512", "300", "1k"],
    ),
    ("buffer_compress_percentage", &["", "", "40"]),
    ("randseed", &["", "7", "0"]),
    (
        "verify_header_seed",
        &["", "", "", "", "", "", "", "", "", "0"],
    ),
    (
        "verify_write_sequence",
        &["", "", "", "", "", "", "", "", "", "0"],
    ),
    ("verify_table", &["", "", "", "", "", "", "", "", "", "0"]),
];

/// Options of the job that writes and verifies itself.
const WRITES: &[(&str, &[&str])] = &[
    ("rw", &["write", "randwrite"]),
    ("do_verify", &["", "0", "1"]),
    ("verify_backlog", &["", "", "1", "7", "1000"]),
    ("verify_backlog_batch", &["", "", "1", "3", "100"]),
    ("experimental_verify", &["", "", "", "1"]),
];

/// Options of any job.
const COMMON: &[(&str, &[&str])] = &[
    ("verify_async", &["", "", "0", "1", "4"]),
    ("verify_async_cpus", &["", "", "0", "0-1"]),
    ("verify_fatal", &["", "0", "1"]),
    ("verify_dump", &["", "0"]),
    ("verify_state_save", &["0"]),
    ("continue_on_error", &["", "", "", "verify"]),
    ("ioengine", &["", "", "libaio", "io_uring", "sync", "mmap"]),
    ("iodepth", &["", "", "4", "16"]),
];

/// Orders of the job that verifies what another one wrote.
const VERIFIES: &[&str] = &["rw=read", "verify_only=1"];

/// Patterns in every form, of which a combination without a kind of its own has one.
const PATTERNS: &[&str] = &[
    "deadface",
    "0xdeadface",
    "0xfff",
    "1",
    "-7",
    "65536",
    "4294967295",
    "\"text\"",
    "\"a\"%o0x07",
    "%o",
    "'pattern'",
    "'pattern'\"x\"%o",
    "'missing'",
    "0x",
];

/// A combination: the job that writes, and the job that verifies.
struct Combination {
    write: String,
    verify: String,
}

fn draw(random: &mut Pcg64) -> Combination {
    let mut pick = |values: &[&'static str]| {
        let index = random.next_u64() % values.len() as u64;
        values[index as usize]
    };
    let mut format = vec!["filename=f size=128k".to_owned()];
    let kind = pick(KINDS);
    if kind.starts_with("verify=") {
        format.push(kind.split(' ').next().expect("a kind").to_owned());
    }
    let is_of_pattern = kind.contains("verify_pattern");
    if is_of_pattern || pick(&["", "", "", "1"]) == "1" {
        format.push(format!("verify_pattern={}", pick(PATTERNS)));
    }
    let mut choose = |options: &[(&str, &[&'static str])]| {
        let chosen = options.iter().map(|(name, values)| (*name, pick(values)));
        let chosen = chosen.filter(|(_, value)| !value.is_empty());
        let words: Vec<String> = chosen
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        words.join(" ")
    };
    let format = format!("{} {}", format.join(" "), choose(FORMATS));
    let write = choose(WRITES);
    let (common, other) = (choose(COMMON), choose(COMMON));
    let order = pick(VERIFIES);
    let rw = write.split(' ').next().expect("an order");
    let order = match order {
        "rw=read" => order.to_owned(),
        order => format!("{rw} {order}"),
    };
    Combination {
        write: format!("{format} {write} {common}"),
        verify: format!("{format} {order} {other}"),
    }
}

/// Reads a section here; the reason where it is refused.
fn section(folder: &Path, options: &str) -> Result<Program, String> {
    let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
    let surroundings = JobEnvironment {
        file_source: FileSource::FileSystem {
            working_directory: folder.to_owned(),
        },
        ..JobEnvironment::default()
    };
    let parsed = JobFile::parse("job.fio", &text, &surroundings);
    let job: JobDefinition = parsed
        .map_err(|errors| errors.render(false))?
        .jobs
        .remove(0);
    let program = Program::from_fio_job(&job, &BTreeMap::new(), &BTreeMap::new(), &BTreeMap::new());
    program.map_err(|errors| errors.render(false))
}

/// Outcome of a section here: the reason where it is refused, or differs.
fn here(folder: &Path, options: &str) -> Result<(), Judgement> {
    let program = section(folder, options).map_err(Judgement::Refused)?;
    match program_on_host(folder, &program) {
        Ok(load)
            if load
                .verified_blocks
                .as_ref()
                .is_some_and(|one| one.mismatch_count > 0) =>
        {
            Err(Judgement::Differs("tolerated".to_owned()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(Judgement::Differs(error.to_string())),
    }
}

/// Judgement of a section that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judgement {
    Refused(String),
    Differs(String),
}

/// What becomes of the combinations.
#[derive(Debug, Default)]
struct Counts {
    refused_by_both: usize,
    /// Refused here for headers that do not fit: fio finds its own writes damaged.
    refused_here_and_unverifiable_by_fio: usize,
    /// Refused here for headers that reach beyond their blocks.
    refused_here_for_headers_outside: usize,
    /// fio does not verify what it wrote itself.
    fio_fails_alone: Vec<String>,
    /// fio does not verify what it wrote in another run, and neither does this program.
    damaged_by_fio: Vec<String>,
    /// fio does not end.
    fio_hangs: Vec<String>,
    verified: usize,
    damage_found_by_both: usize,
    damage_unseen_by_both: usize,
    /// Damage in what fio's checksum leaves out, which is compared here.
    damage_found_here_alone: usize,
    faults: Vec<String>,
}

/// The seed, and how many combinations are drawn.
fn seed_and_count() -> (u64, usize) {
    let Ok(text) = std::env::var(SEED) else {
        return (SAMPLE_SEED, SAMPLE);
    };
    let seed = match &*text {
        "clock" => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("a clock after 1970").as_nanos() as u64
        }
        number => number.parse().expect("a number, or `clock`"),
    };
    (seed, COMBINATIONS)
}

#[test]
fn random_combinations_are_judged_as_fio_judges_them() {
    if !is_fio_installed() {
        return;
    }
    let (seed, combinations) = seed_and_count();
    println!("{SEED}={seed}");
    let mut random = Pcg64::new(u128::from(seed), 1);
    let mut counts = Counts::default();
    for number in 0..combinations {
        let combination = draw(&mut random);
        let at = random.next_u64() as usize;
        if let Err(fault) = judge(&combination, (number % 2 == 0, at), &mut counts) {
            println!(
                "{number}: {fault}\n  {}\n  {}",
                combination.write, combination.verify
            );
            counts.faults.push(format!("{number}: {fault}"));
        }
    }
    println!("{counts:#?}");
    assert!(counts.faults.is_empty(), "{SEED}={seed}");
    assert!(counts.verified > combinations / 4, "{counts:#?}");
}

/// A job without the options whose names begin like these.
fn without(job: &str, beginnings: &[&str]) -> String {
    let is_left = |word: &&str| {
        !beginnings
            .iter()
            .any(|beginning| word.starts_with(beginning))
    };
    let words: Vec<&str> = job.split(' ').filter(is_left).collect();
    words.join(" ")
}

/// Outcome of a section by fio. Its threads of verification write the offsets of blocks into one
/// pattern that they share, so that some of 100 such runs find damage that is none: with such a
/// pattern fio verifies without them.
fn judgement_by_fio(folder: &Path, options: &str) -> ByFio {
    match options.contains("%o") {
        true => one_by_fio(folder, &without(options, &["verify_async="])),
        false => one_by_fio(folder, options),
    }
}

/// Has a combination written by one program and verified by the other; then damage is planted
/// and judged by both.
fn judge(
    Combination { write, verify }: &Combination,
    (writes_here, at): (bool, usize),
    counts: &mut Counts,
) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("pattern"), b"\x01\xfe of a file").expect("a pattern");
    let of_fio = judgement_by_fio(folder, write);
    let refused = section(folder, write).err();
    match (of_fio, &refused) {
        (ByFio::Refused, Some(_)) => counts.refused_by_both += 1,
        (ByFio::Refused, None) => return Err("fio refuses it".to_owned()),
        // fio writes such a header over what follows its block.
        (_, Some(why)) if why.contains("the header does not fit into its block") => {
            counts.refused_here_for_headers_outside += 1;
        }
        (_, Some(why)) => {
            let alone = without(write, &["do_verify", "verify_async", "verify_backlog"]);
            match judgement_by_fio(folder, &alone) {
                ByFio::Ended(0) => return Err(format!("refused here, and fio takes it: {why}")),
                _ => counts.refused_here_and_unverifiable_by_fio += 1,
            }
        }
        (ByFio::Hung, None) => counts.fio_hangs.push(write.clone()),
        (ByFio::Ended(0), None) => {
            return compare(folder, (write, verify), (writes_here, at), counts);
        }
        (ByFio::Ended(_), None) => {
            counts.fio_fails_alone.push(write.clone());
            here(folder, write).map_err(|why| format!("written here: {why:?}"))?;
        }
    }
    Ok(())
}

/// Whether fio leaves the header of an earlier block in data that it compares with a pattern.
fn leaves_headers(job: &str) -> bool {
    let words: Vec<&str> = job.split(' ').collect();
    let is_set = |name: &str| words.iter().any(|word| word.starts_with(name));
    let has_checksum = words
        .iter()
        .any(|word| word.starts_with("verify=") && *word != "verify=meta");
    is_set("verify_pattern=") && is_set("verify_offset=") && !has_checksum
}

fn compare(
    folder: &Path,
    (write, verify): (&str, &str),
    (writes_here, at): (bool, usize),
    counts: &mut Counts,
) -> Result<(), String> {
    let writer = if writes_here { "us" } else { "fio" };
    if writes_here {
        std::fs::remove_file(folder.join("f")).expect("a file of fio's");
        here(folder, write).map_err(|why| format!("written here: {why:?}"))?;
    }
    match (here(folder, verify), judgement_by_fio(folder, verify)) {
        (Ok(()), ByFio::Ended(0)) => counts.verified += 1,
        (_, ByFio::Hung) => {
            counts.fio_hangs.push(verify.to_owned());
            return Ok(());
        }
        (Err(Judgement::Differs(_)), ByFio::Ended(1..))
            if !writes_here && leaves_headers(verify) =>
        {
            counts.damaged_by_fio.push(write.to_owned());
            return Ok(());
        }
        (ours, of_fio) => {
            return Err(format!(
                "written by {writer}: here {ours:?}, fio {of_fio:?}"
            ));
        }
    }
    let path = folder.join("f");
    let length = std::fs::metadata(&path).expect("a file").len() as usize;
    flip(&path, at % length);
    // fio 3.33 with verify_async may end before its threads have found a difference.
    let waiting = without(verify, &["verify_async"]);
    match (here(folder, verify), judgement_by_fio(folder, &waiting)) {
        (Ok(()), ByFio::Ended(0)) => counts.damage_unseen_by_both += 1,
        (Err(_), ByFio::Ended(1..)) => counts.damage_found_by_both += 1,
        // A machine that is too busy is not told from a fio that never ends.
        (_, ByFio::Hung) => counts.fio_hangs.push(waiting),
        (Err(_), ByFio::Ended(0))
            if ["=sha512", "=meta"]
                .iter()
                .any(|kind| verify.contains(kind)) =>
        {
            counts.damage_found_here_alone += 1
        }
        (ours, of_fio) => {
            return Err(format!(
                "written by {writer}, byte {} flipped: here {ours:?}, fio {of_fio:?}",
                at % length
            ));
        }
    }
    Ok(())
}
