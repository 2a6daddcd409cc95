//! No run outlives its runtime: random job files with time limits, on models and on real
//! storage. By default a sample of them; with DISKPERF_ENDS=all 2,000, with
//! DISKPERF_ENDS=NUMBER so many.

use crate::drawn::{Drawn, Scale, drawn};
use crate::experiment;
use diskperf_laboratory::execute::execute;
use diskperf_laboratory::{LaboratoryError, Nobody, Recorder, plan};
use diskperf_timeline::{Nanoseconds, ProgramResult, Run, WorkerMeasure};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

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
    try_files(count() / 4, Scale::Model, |_| {
        PathBuf::from("vax780-sc780-eagle")
    });
    let drives = ["bare-fixed", "bare-sata-7200"];
    try_files(count() / 4, Scale::ModelledDrive, |number| {
        PathBuf::from(drives[number as usize % drives.len()])
    });
}

#[test]
fn no_run_on_real_storage_outlives_its_runtime() {
    let folder = tempfile::tempdir().expect("a folder");
    try_files(count() / 2, Scale::Host, |number| match number % 2 {
        0 => PathBuf::from("null"),
        _ => folder.path().to_owned(),
    });
}

fn count() -> u64 {
    match std::env::var("DISKPERF_ENDS").ok().as_deref() {
        None => SAMPLE,
        Some("all") => ALL,
        Some(number) => number.parse().expect("DISKPERF_ENDS is `all` or a number"),
    }
}

fn try_files(files: u64, scale: Scale, target: impl Fn(u64) -> PathBuf) {
    let (mut ran, mut refused, mut broken) = (0, Vec::new(), Vec::new());
    for number in 0..files {
        let file = drawn(SEED, number, scale);
        let target = target(number);
        let place = format!(
            "seed {SEED}, {scale:?} file {number} on {}",
            target.display()
        );
        match run_on(&target, &file.text) {
            Outcome::Refused(why) => refused.push(format!("{place}: {why}")),
            Outcome::Failed(why) => broken.push(format!("{place}: {why}\n{}", file.text)),
            Outcome::Ran(run) => {
                ran += 1;
                let late = late(&run, &file);
                broken.extend(late.map(|late| format!("{place}: {late}\n{}", file.text)));
            }
        }
    }
    eprintln!(
        "{scale:?}: seed {SEED}, {ran} files ran, {} are refused",
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
        let executed = execute(&plan, &stop, &mut Nobody, &mut Recorder::of_nothing());
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

/// The first worker that outlived its section's time.
fn late(run: &Run, file: &Drawn) -> Option<String> {
    let limits = run.results.iter().zip(&file.limits);
    limits
        .filter_map(|(result, limit)| {
            let limit_ms = limit.delay_ms + limit.ramp_ms + limit.runtime_ms;
            late_worker(result, Nanoseconds::from_millis(limit_ms))
        })
        .next()
}

fn late_worker(result: &ProgramResult, limit: Nanoseconds) -> Option<String> {
    let mut workers = result.repetitions.iter().flat_map(|one| &one.workers);
    let late = |worker: &&WorkerMeasure| worker.elapsed > limit + longest(worker) + GRACE;
    workers.find(late).map(|worker| {
        format!(
            "[{}] ran for {:?} of {limit:?}",
            result.program, worker.elapsed
        )
    })
}

/// Longest response of a worker's requests.
fn longest(worker: &WorkerMeasure) -> Nanoseconds {
    let operations = worker.load.iter().flat_map(|load| {
        [&load.read, &load.write, &load.sync, &load.discard].map(|one| one.response.max())
    });
    operations.max().unwrap_or_default()
}
