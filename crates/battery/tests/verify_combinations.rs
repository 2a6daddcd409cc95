//! Options of verification in random combinations: what is written here is verified by fio,
//! what fio writes is verified here, and both judge planted damage alike.
#![cfg(target_os = "linux")]

mod verification;

use diskperf_battery::Program;
use diskperf_fio::{Files, Job, JobFile, Surroundings};
use rand_core::Rng;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use verification::installed::is_fio_installed;
use verification::{ByFio, KINDS, flip, one_by_fio, program_on_host};

/// Combinations that are drawn.
const COMBINATIONS: usize = 200;

/// A seed that is repeated; without it the clock gives one.
const SEED: &str = "DISKPERF_VERIFY_SEED";

/// Values of each option, of which a combination has one; "" is without the option.
const OPTIONS: &[(&str, &[&str])] = &[
    ("rw", &["write", "randwrite", "write", "rw", "randrw"]),
    ("bs", &["4k", "4k", "8k", "1000", "512", "64k"]),
    (
        "verify_interval",
        &["", "", "512", "1k", "1000", "4k", "100"],
    ),
    ("verify_offset", &["", "", "40", "64", "512", "300", "1k"]),
    ("verify_async", &["", "", "0", "1", "4"]),
    ("verify_async_cpus", &["", "", "0", "0-1"]),
    ("verify_backlog", &["", "", "1", "7", "1000"]),
    ("verify_backlog_batch", &["", "", "1", "3", "100"]),
    ("verify_fatal", &["", "0", "1"]),
    ("verify_dump", &["", "0"]),
    ("do_verify", &["", "0", "1"]),
    ("verify_state_save", &["0"]),
    ("experimental_verify", &["", "", "", "1"]),
    ("nrfiles", &["", "", "", "2"]),
    ("loops", &["", "", "", "2"]),
    ("buffer_compress_percentage", &["", "", "40"]),
    ("randseed", &["", "7", "0"]),
    ("norandommap", &["", "", "", "1"]),
    ("continue_on_error", &["", "", "", "verify"]),
    ("direct", &["", "", "1"]),
    ("ioengine", &["", "", "libaio", "io_uring", "sync", "mmap"]),
    ("iodepth", &["", "", "4", "16"]),
    (
        "verify_header_seed",
        &["", "", "", "", "", "", "", "", "", "0"],
    ),
    (
        "verify_write_sequence",
        &["", "", "", "", "", "", "", "", "", "0"],
    ),
];

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

/// A combination: its own file, and its options.
fn draw(random: &mut Pcg64, number: usize) -> String {
    let mut pick = |values: &[&'static str]| {
        let index = random.next_u64() % values.len() as u64;
        values[index as usize]
    };
    let mut options = vec![format!("filename=f{number} size=128k")];
    let kind = pick(KINDS);
    if kind.starts_with("verify=") {
        options.push(kind.split(' ').next().expect("a kind").to_owned());
    }
    if !kind.starts_with("verify=")
        || kind.contains("verify_pattern")
        || pick(&["", "", "", "1"]) == "1"
    {
        options.push(format!("verify_pattern={}", pick(PATTERNS)));
    }
    for (name, values) in OPTIONS {
        let value = pick(values);
        if !value.is_empty() {
            options.push(format!("{name}={value}"));
        }
    }
    let options = options.join(" ");
    match options.contains("nrfiles=2") {
        true => options.replace(
            &format!("filename=f{number} "),
            &format!("filename=f{number}:g{number} "),
        ),
        false => options,
    }
}

/// Reads a section here; the reason where it is refused.
fn section(folder: &Path, options: &str) -> Result<Program, String> {
    let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
    let surroundings = Surroundings {
        files: Files::Disk {
            working_directory: folder.to_owned(),
        },
        ..Surroundings::default()
    };
    let parsed = JobFile::parse("job.fio", &text, &surroundings);
    let job: Job = parsed
        .map_err(|errors| errors.render(false))?
        .jobs
        .remove(0);
    let program = Program::of_fio_job(&job, &BTreeMap::new(), &BTreeMap::new());
    program.map_err(|errors| errors.render(false))
}

/// Outcome of a section here: the reason where it is refused, or differs.
fn here(folder: &Path, options: &str) -> Result<(), Judgement> {
    let program = section(folder, options).map_err(Judgement::Refused)?;
    match program_on_host(folder, &program) {
        Ok(load) if load.verified.as_ref().is_some_and(|one| one.mismatches > 0) => {
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

/// What becomes of a combination.
#[derive(Debug, Default)]
struct Counts {
    refused_by_both: usize,
    verified: usize,
    damage_found_by_both: usize,
    damage_unseen_by_both: usize,
    /// Combinations that fio does not end with.
    hung: Vec<String>,
    faults: Vec<String>,
}

fn seed() -> u64 {
    let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.expect("a clock after 1970").as_nanos() as u64
    })
}

#[test]
fn random_combinations_are_judged_as_fio_judges_them() {
    if !is_fio_installed() {
        return;
    }
    let seed = seed();
    println!("{SEED}={seed}");
    let mut random = Pcg64::new(u128::from(seed), 1);
    let mut counts = Counts::default();
    for number in 0..COMBINATIONS {
        let options = draw(&mut random, number);
        let at = random.next_u64() as usize;
        let writes_here = number % 2 == 0;
        println!("{number}: {options}");
        judge(&options, (number, writes_here), at, &mut counts);
    }
    println!("{counts:#?}");
    assert!(
        counts.faults.is_empty(),
        "{SEED}={seed}: {:#?}",
        counts.faults
    );
    assert!(counts.verified > COMBINATIONS / 4, "{counts:#?}");
}

fn judge(options: &str, (number, writes_here): (usize, bool), at: usize, counts: &mut Counts) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("pattern"), b"\x01\xfe of a file").expect("a pattern");
    let taken_here = section(folder, options).is_ok();
    let written = one_by_fio(folder, options);
    let faults = &mut counts.faults;
    let mut fault = |text: String| faults.push(format!("{number}: {options}: {text}"));
    let error = match written {
        ByFio::Ended(error) => error,
        ByFio::Hung => return counts.hung.push(options.to_owned()),
        ByFio::Refused if taken_here => return fault("fio refuses it".to_owned()),
        ByFio::Refused => {
            counts.refused_by_both += 1;
            return;
        }
    };
    if !taken_here {
        let why = section(folder, options).err().unwrap_or_default();
        return fault(format!(
            "refused here, and fio takes it with error {error}: {why}"
        ));
    }
    if writes_here {
        for name in [format!("f{number}"), format!("g{number}")] {
            let _ = std::fs::remove_file(folder.join(name));
        }
        if let Err(judgement) = here(folder, options) {
            return fault(format!("written here: {judgement:?}; fio: {error}"));
        }
    } else if error != 0 {
        return fault(format!("fio wrote it with error {error}"));
    }
    let only = format!("{options} verify_only=1 do_verify=1");
    let both = |only: &str| (here(folder, only), one_by_fio(folder, only));
    match both(&only) {
        (Ok(()), ByFio::Ended(0)) => counts.verified += 1,
        (ours, of_fio) => {
            return fault(format!(
                "written by {}: here {ours:?}, fio {of_fio:?}",
                if writes_here { "us" } else { "fio" }
            ));
        }
    }
    flip(
        &folder.join(format!("f{number}")),
        at % (128 << 10) / if options.contains("nrfiles") { 2 } else { 1 },
    );
    match both(&only) {
        (Ok(()), ByFio::Ended(0)) => counts.damage_unseen_by_both += 1,
        (Err(_), ByFio::Ended(1..)) => counts.damage_found_by_both += 1,
        (ours, of_fio) => fault(format!("flipped: here {ours:?}, fio {of_fio:?}")),
    }
}
