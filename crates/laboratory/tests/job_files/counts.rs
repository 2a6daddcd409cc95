//! As many I/Os of each direction as fio does: random job files of fixed sizes over the
//! options that say where I/O goes and how much of it there is. By default a sample of
//! them; with DISKPERF_COUNTS=all 300, with DISKPERF_COUNTS=NUMBER so many.
//! DISKPERF_COUNTS_SEED draws others.

use crate::drawn::{Counted, counted};
use crate::experiment;
use crate::installed::is_fio_installed;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{Nobody, Recorder, plan};
use std::process::Command;
use std::sync::Arc;

const SEED: u64 = 1983;

/// Files that are tried unless the environment says otherwise.
const SAMPLE: u64 = 24;
const ALL: u64 = 300;

/// Share of files whose counts may differ from those of fio.
const DIFFERING_SHARE_MAX: f64 = 0.02;

/// Share of files that may be refused here or by fio.
const REFUSED_SHARE_MAX: f64 = 0.25;

/// Seconds after which fio is killed.
const FIO_PATIENCE_S: &str = "30";

/// Reads, writes and trims.
type Counts = [u64; 3];

fn number(name: &str, all: u64, default: u64) -> u64 {
    match std::env::var(name).ok().as_deref() {
        None => default,
        Some("all") => all,
        Some(number) => number
            .parse()
            .unwrap_or_else(|_| panic!("{name} is `all` or a number")),
    }
}

#[test]
fn random_files_do_as_many_ios_as_with_fio() {
    if !is_fio_installed() {
        return;
    }
    let files = number("DISKPERF_COUNTS", ALL, SAMPLE);
    let seed = number("DISKPERF_COUNTS_SEED", SEED, SEED);
    let (mut compared, mut refused, mut differing) = (0, Vec::new(), Vec::new());
    for number in 0..files {
        let file = counted(seed, number);
        let place = format!("seed {seed}, file {number}: {}", file.options());
        match (counts_here(&file), counts_by_fio(&file)) {
            (Ok(ours), Ok(theirs)) if ours == theirs => compared += 1,
            (Ok(ours), Ok(theirs)) => {
                compared += 1;
                differing.push(format!("{place}: {ours:?} here, {theirs:?} by fio"));
            }
            (Err(error), _) => refused.push(format!("{place}: here: {error}")),
            (_, Err(error)) => refused.push(format!("{place}: fio: {error}")),
        }
    }
    eprintln!(
        "seed {seed}: {compared} files are compared, {} differ, {} are refused",
        differing.len(),
        refused.len()
    );
    let share = |count: usize, of: u64| count as f64 / of.max(1) as f64;
    assert!(
        share(differing.len(), compared) < DIFFERING_SHARE_MAX,
        "{}",
        differing.join("\n")
    );
    eprintln!("{}\n{}", differing.join("\n"), refused.join("\n"));
    assert!(
        share(refused.len(), files) <= REFUSED_SHARE_MAX,
        "{}",
        refused.join("\n")
    );
}

/// I/Os of all clones here, on files.
fn counts_here(file: &Counted) -> Result<Counts, String> {
    let folder = tempfile::tempdir().expect("a folder");
    // The null target is a device, which is longer than the files that fio makes.
    let text = file.text.replace("ioengine=null", "ioengine=psync");
    let plans = plan::plan(&experiment(folder.path(), &text)).map_err(|error| error.to_string())?;
    let mut recorder = Recorder::of_nothing();
    let executed = execute(&plans[0], &Arc::default(), &mut Nobody, &mut recorder);
    if let Some(error) = executed.error {
        return Err(error.to_string());
    }
    let mut counts = Counts::default();
    for result in &executed.run.results {
        for load in result.repetitions[0]
            .workers
            .iter()
            .filter_map(|one| one.load.as_ref())
        {
            let of_worker = [&load.read, &load.write, &load.discard];
            for (count, operation) in counts.iter_mut().zip(of_worker) {
                *count += operation.response.count();
            }
        }
    }
    Ok(counts)
}

fn counts_by_fio(file: &Counted) -> Result<Counts, String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("job.fio"), &file.text).expect("a job file");
    let output = Command::new("timeout")
        .args(["-k", "1", FIO_PATIENCE_S, "fio"])
        .args(["--output-format=json", "job.fio"])
        .current_dir(folder.path())
        .env("LC_ALL", "C")
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(said.lines().next().unwrap_or("no output").to_owned());
    }
    let json = &said[said.find("{\n").ok_or("no JSON")?..];
    let json: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let jobs = json["jobs"].as_array().expect("jobs");
    let count = |direction: &str| {
        let of_job = |job: &serde_json::Value| job[direction]["total_ios"].as_u64();
        jobs.iter().filter_map(of_job).sum()
    };
    Ok(["read", "write", "trim"].map(count))
}
