//! As many I/Os of each direction as fio does: random job files of fixed sizes over the
//! options that say where I/O goes and how much of it there is. By default a sample of
//! them; with DISKPERF_COUNTS=all 300, with DISKPERF_COUNTS=NUMBER so many.
//! DISKPERF_COUNTS_SEED draws others.

use crate::drawn::{Counted, counted};
use crate::experiment;
use crate::installed::is_fio_installed;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{RunRecorder, SilentObserver, plan};
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
const FIO_PATIENCE_S: &str = "60";

/// Files that fio runs at once.
const BATCH: usize = 25;

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
    let drawn: Vec<Counted> = (0..files).map(|number| counted(seed, number)).collect();
    let by_fio = drawn.chunks(BATCH).flat_map(counts_by_fio);
    for (number, (file, theirs)) in drawn.iter().zip(by_fio).enumerate() {
        let place = format!("seed {seed}, file {number}: {}", file.options());
        match (counts_here(file), theirs) {
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
    let mut recorder = RunRecorder::without_store();
    let executed = execute(
        &plans[0],
        &Arc::default(),
        &mut SilentObserver,
        &mut recorder,
    );
    if let Some(error) = executed.error {
        return Err(error.to_string());
    }
    let mut counts = Counts::default();
    for result in &executed.run.results {
        for load in result.repetitions[0]
            .workers
            .iter()
            .filter_map(|one| one.load_measure.as_ref())
        {
            let of_worker = [&load.read, &load.write, &load.discard];
            for (count, operation) in counts.iter_mut().zip(of_worker) {
                *count += operation.response_times.latency_count();
            }
        }
    }
    Ok(counts)
}

/// I/Os of each file by fio: of all in one run, which takes less time, or where it does not
/// take them so, of each in its own.
fn counts_by_fio(files: &[Counted]) -> Vec<Result<Counts, String>> {
    match batch_by_fio(files) {
        Ok(counts) => counts.into_iter().map(Ok).collect(),
        Err(error) if files.len() == 1 => vec![Err(error)],
        Err(_) => files
            .iter()
            .flat_map(|file| counts_by_fio(std::slice::from_ref(file)))
            .collect(),
    }
}

/// Runs files one after the other, as sections of one file.
fn batch_by_fio(files: &[Counted]) -> Result<Vec<Counts>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let name = |number: usize| format!("job{number}");
    let sections = files.iter().enumerate().map(|(number, file)| {
        let header = format!("[{}]\nstonewall\n", name(number));
        file.text.replace("[job]\n", &header)
    });
    let text: String = sections.collect();
    std::fs::write(folder.path().join("job.fio"), text).expect("a job file");
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
    let counts_of = |number: usize| {
        let clones = jobs
            .iter()
            .filter(|job| job["jobname"] == name(number).as_str());
        let mut counts = Counts::default();
        for job in clones {
            for (count, direction) in counts.iter_mut().zip(["read", "write", "trim"]) {
                *count += job[direction]["total_ios"].as_u64().unwrap_or(0);
            }
        }
        counts
    };
    Ok((0..files.len()).map(counts_of).collect())
}

/// Jobs whose counts fio makes in ways of its own.
const KINDS: &[&str] = &[
    // A trim follows where the last trim and the last write of a file began at one offset.
    "rw=trimwrite size=64k bs=4k",
    "rw=trimwrite size=62k bs=4k nrfiles=3",
    "rw=trimwrite size=1m ba=16k norandommap number_ios=40 numjobs=3 bs=8k,8k,4k",
    "rw=trimwrite size=256k nrfiles=4 numjobs=2 bs=4k,16k,8k",
    "rw=trimwrite size=100k bs=4k io_size=300k",
    "rw=trimwrite size=62k zonemode=strided zonesize=48k zonerange=16k zoneskip=16k offset=12k \
     nrfiles=3 bs=4k,16k,8k",
    "rw=trimwrite size=256k number_ios=7 loops=3 bs=512",
    // Of a percentage a pass does what there is.
    "rw=write:8k size=1m io_size=50% bs=4k",
    "rw=write:8k size=1m io_size=512k bs=4k",
    "rw=write:8k size=1m io_size=50% bs=4k loops=2",
    // A random write adds the start of the file's part to the offset of the trim.
    "rw=randtrimwrite size=256k bs=4k loops=2",
    "rw=randtrimwrite size=64k ba=16k norandommap io_size=30k number_ios=40 offset=12k bs=8k",
    "rw=randtrimwrite size=62k zonemode=strided zonesize=8k zoneskip=8k number_ios=300 loops=3 \
     bs=4k",
    // What was done in a zone counts for all files.
    "rw=write size=256k zonemode=strided zonesize=8k zoneskip=8k nrfiles=3 \
     file_service_type=roundrobin:3 bs=4k",
    "rw=write:8k size=256k zonemode=strided zonesize=8k zoneskip=8k nrfiles=3 \
     file_service_type=roundrobin:2 bs=4k",
    "rw=randread size=256k bs=4k zonemode=strided zonesize=48k zonerange=16k zoneskip=16k",
    // A size in zones without a zonesize is no value, and those before it are lost.
    "rw=write size=1m filesize=128k size=12z bs=4k",
    "rw=write size=64k io_size=8k io_size=3z bs=4k",
    "rw=write size=64k filesize=64k offset=32k offset=1z bs=4k",
    // An lfsr gives each number once, whatever blockalign makes of it.
    "rw=randwrite size=62k ba=512 random_generator=lfsr bs=4k",
];

/// The same of files that are made, each job file by itself, since what is there counts.
const KINDS_OF_FILES: &[&str] = &[
    // Percentages of an offset are of what is there when a clone is set up: of nothing for the
    // first, of what it laid out for the next.
    "rw=write offset=25% filesize=1m bs=4k",
    "rw=read offset=25% filesize=1m bs=4k nrfiles=3",
    "rw=randread offset=99% filesize=1m bs=4k",
    "rw=write offset=50% filesize=1m bs=4k io_size=50%",
    "rw=write offset=75% filesize=1m bs=4k size=50%",
    "rw=write offset=50% filesize=1m bs=4k filename=x numjobs=2",
    "rw=read offset=25% filesize=1m bs=4k filename=x numjobs=3",
    "rw=write offset_increment=25% filesize=1m bs=4k filename=x numjobs=3",
    "rw=write offset_increment=64k offset=10% filesize=1m bs=4k filename=x numjobs=3",
    "rw=write offset_increment=25% size=1m bs=4k filename=x numjobs=3",
    "rw=write offset=50% filesize=1m bs=4k filename=x numjobs=2 fallocate=none",
    "rw=write offset=50% filesize=1m bs=4k filename=x numjobs=2 create_on_open=1",
];

fn job_file(engine: &str, options: &str) -> Counted {
    let text = format!("[job]\nioengine={engine}\n");
    let text = options
        .split_whitespace()
        .fold(text, |text, option| text + option + "\n");
    Counted { text }
}

#[test]
fn what_fio_counts_in_ways_of_its_own_is_counted_so() {
    if !is_fio_installed() {
        return;
    }
    let file = |options: &&str| job_file("null", options);
    let mut files: Vec<Counted> = KINDS.iter().map(file).collect();
    let mut by_fio = counts_by_fio(&files);
    for options in KINDS_OF_FILES {
        let file = job_file("psync", options);
        by_fio.extend(counts_by_fio(std::slice::from_ref(&file)));
        files.push(file);
    }
    let differing = files.iter().zip(by_fio).filter_map(|(file, theirs)| {
        let ours = counts_here(file);
        (ours != theirs).then(|| format!("{}: {ours:?} here, {theirs:?} by fio", file.options()))
    });
    let differing: Vec<String> = differing.collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
