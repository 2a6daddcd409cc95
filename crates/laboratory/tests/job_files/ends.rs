//! No run outlives its runtime: random job files with time limits, on models and on real
//! storage. By default a sample of them; with DISKPERF_ENDS=all 2,000, with
//! DISKPERF_ENDS=NUMBER so many, and with DISKPERF_ENDS=FIRST..LAST those of each kind of
//! target from one number to another. DISKPERF_ENDS_SEED=SEED draws others.

use crate::drawn::{Drawn, Limit, Scale, drawn};
use crate::experiment;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{LaboratoryError, RunRecorder, SilentObserver, plan};
use diskperf_timeline::{Nanoseconds, ProgramResult, Run, WorkerMeasure};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Seed of the files, unless the environment says otherwise.
const SEED: u64 = 1983;

/// Files that are tried unless the environment says otherwise.
const SAMPLE: u64 = 24;
const ALL: u64 = 2_000;

/// Time after which a run counts as one without an end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time that a worker may take beyond its runtime and its longest request.
const GRACE: Nanoseconds = Nanoseconds::from_millis(1000);

/// Files that may be of options which are refused together.
const REFUSED_SHARE_MAX: f64 = 0.25;

#[test]
fn no_run_on_a_model_outlives_its_runtime() {
    try_files(numbers(4), Scale::Model, |_| {
        PathBuf::from("vax780-sc780-eagle")
    });
    let drives = ["bare-fixed", "bare-sata-7200"];
    try_files(numbers(4), Scale::ModelledDrive, |number| {
        PathBuf::from(drives[number as usize % drives.len()])
    });
}

#[test]
fn no_run_on_real_storage_outlives_its_runtime() {
    let folder = tempfile::tempdir().expect("a folder");
    try_files(numbers(2), Scale::Host, |number| match number % 4 {
        0 => PathBuf::from("null"),
        _ => folder.path().to_owned(),
    });
}

/// Numbers of the files of a kind of target, which has so large a share of all.
fn numbers(share: u64) -> Range<u64> {
    let number = |text: &str| -> u64 {
        let number = text.parse();
        number.expect("DISKPERF_ENDS is `all`, a number, or two with `..` between them")
    };
    match std::env::var("DISKPERF_ENDS").ok().as_deref() {
        None => 0..SAMPLE / share,
        Some("all") => 0..ALL / share,
        Some(text) => match text.split_once("..") {
            Some((first, last)) => number(first)..number(last),
            None => 0..number(text) / share,
        },
    }
}

fn seed() -> u64 {
    let seed = std::env::var("DISKPERF_ENDS_SEED");
    seed.map_or(SEED, |seed| seed.parse().expect("a number"))
}

fn try_files(files: Range<u64>, scale: Scale, target: impl Fn(u64) -> PathBuf) {
    let (mut ran, mut refused, mut broken) = (0, Vec::new(), Vec::new());
    let seed = seed();
    let mut latest = Nanoseconds::ZERO;
    for number in files {
        let file = drawn(seed, number, scale);
        let target = target(number);
        let place = format!(
            "seed {seed}, {scale:?} file {number} on {}",
            target.display()
        );
        match run_on(&target, &file.text) {
            Outcome::Refused(why) => refused.push(format!("{place}: {why}")),
            Outcome::Failed(why) => broken.push(format!("{place}: {why}\n{}", file.text)),
            Outcome::Ran(run) => {
                ran += 1;
                let beyond = beyond_limits(&run, &file);
                latest = latest.max(beyond.time);
                if beyond.time > GRACE {
                    let Beyond { time, job } = beyond;
                    broken.push(format!(
                        "{place}: [{job}] ran for {time:?} too long\n{}",
                        file.text
                    ));
                }
            }
        }
    }
    eprintln!(
        "{scale:?}: seed {seed}, {ran} files ran, {} are refused; the latest end was {latest:?} \
         after the runtime and the longest request",
        refused.len()
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let share = refused.len() as f64 / (ran as f64 + refused.len() as f64);
    assert!(share <= REFUSED_SHARE_MAX, "{}", refused.join("\n"));
}

enum Outcome {
    Ran(Box<Run>),
    Refused(LaboratoryError),
    Failed(String),
}

/// Runs a file, and stops it when it seems to have no end.
fn run_on(target: &Path, text: &str) -> Outcome {
    let plan = match plan::plan(&experiment(target, text)) {
        Ok(plans) => plans.into_iter().next().expect("one target"),
        Err(error) => return Outcome::Refused(error),
    };
    let stop: Arc<AtomicBool> = Arc::default();
    let executed = std::thread::scope(|scope| {
        let (ended, waits) = channel::<()>();
        let watchdog = Arc::clone(&stop);
        scope.spawn(move || {
            if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                watchdog.store(true, Ordering::Relaxed);
            }
        });
        let executed = execute(
            &plan,
            &stop,
            &mut SilentObserver,
            &mut RunRecorder::without_store(),
        );
        drop(ended);
        executed
    });
    match executed.error {
        None => Outcome::Ran(Box::new(executed.run)),
        Some(LaboratoryError::Interrupted) => Outcome::Failed("it has no end".to_owned()),
        // A rate that was missed, a latency that no depth meets: an end as well.
        Some(error) if error.to_string().contains("[") => Outcome::Ran(Box::new(executed.run)),
        Some(error) => Outcome::Failed(error.to_string()),
    }
}

/// Time of a worker beyond its section's limit and its longest request.
#[derive(Default)]
struct Beyond {
    time: Nanoseconds,
    job: String,
}

/// That of the worker that is latest. A section that waits for another one may start when the
/// other's time is over.
fn beyond_limits(run: &Run, file: &Drawn) -> Beyond {
    let sections = run.results.iter().zip(&file.limits);
    let of_section = |(result, limit): (&ProgramResult, &Limit)| {
        let limit_ms = limit.delay_ms + limit.ramp_ms + limit.runtime_ms;
        let limit = Nanoseconds::from_millis(limit_ms);
        let workers = result.repetitions.iter().flat_map(|one| &one.workers);
        let beyond = workers.map(|worker| worker.elapsed_time.since(limit + longest(worker)));
        Beyond {
            time: beyond.max().unwrap_or_default(),
            job: result.program.clone(),
        }
    };
    let beyond = sections.map(of_section).max_by_key(|beyond| beyond.time);
    beyond.unwrap_or_default()
}

/// Longest response of a worker's requests.
fn longest(worker: &WorkerMeasure) -> Nanoseconds {
    let operations = worker.load_measure.iter().flat_map(|load| {
        [&load.read, &load.write, &load.sync, &load.discard]
            .map(|one| one.response_times.latency_max())
    });
    operations.max().unwrap_or_default()
}
