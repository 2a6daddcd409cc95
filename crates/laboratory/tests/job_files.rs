//! Sections of a job file beside each other and one after the other, in time: on the
//! modelled device without mechanics, and beside fio itself.
#![cfg(target_os = "linux")]

#[path = "job_files/counts.rs"]
mod counts;
#[path = "job_files/drawn.rs"]
mod drawn;
#[path = "job_files/ends.rs"]
mod ends;
#[path = "../../fio/tests/installed/mod.rs"]
mod installed;

use diskperf_laboratory::execute::{ExecutionOutcome, execute};
use diskperf_laboratory::{
    Experiment, LaboratoryError, Plan, RunRecorder, SilentObserver, Workload, plan,
};
use diskperf_timeline::{Nanoseconds, ProgramResult, Repetition, Run, RunState};
use installed::is_fio_installed;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Reads of the modelled device, one each millisecond, or of nothing at all by fio.
const GLOBAL: &str = "[global]\nfilename=f\nsize=4m\nrw=randread\ntime_based\n";

/// Sections of some options: `a: runtime=2; b: stonewall runtime=1`.
fn sections(text: &str) -> String {
    let section = |section: &str| {
        let (name, options) = section.split_once(':').expect("a name");
        format!("[{}]\n{}\n", name.trim(), options.trim().replace(' ', "\n"))
    };
    text.split(';').map(section).collect()
}

fn experiment(target: &Path, text: &str) -> Experiment {
    Experiment {
        workload: Workload::NamedSuite(text.to_owned()),
        targets: vec![target.to_owned()],
        ..Experiment::default()
    }
}

fn run_on(target: &Path, text: &str) -> Run {
    let executed = executed_on(target, text);
    if let Some(error) = executed.error {
        panic!("{text}: {error}");
    }
    executed.run
}

/// A run, whole or as far as it came, and its error.
fn executed_on(target: &Path, text: &str) -> ExecutionOutcome {
    let plans =
        plan::plan(&experiment(target, text)).unwrap_or_else(|error| panic!("{text}: {error}"));
    let [plan]: [Plan; 1] = plans.try_into().expect("one target");
    let mut recorder = RunRecorder::without_store();
    execute(&plan, &Arc::default(), &mut SilentObserver, &mut recorder)
}

fn run_on_model(text: &str) -> Run {
    run_on(
        Path::new("bare-fixed"),
        &(GLOBAL.to_owned() + &sections(text)),
    )
}

/// Start and end of a job's only worker, in milliseconds since the start of its step.
fn span_ms(result: &ProgramResult) -> [u64; 2] {
    let worker = &result.repetitions[0].workers[0];
    [worker.start_time, worker.start_time + worker.elapsed_time].map(|moment| moment.0 / 1_000_000)
}

fn spans_ms(run: &Run) -> Vec<[u64; 2]> {
    run.results.iter().map(span_ms).collect()
}

/// A delay is counted from the start of the first step, whether or not its job waits for
/// others.
#[test]
fn a_start_delay_counts_from_the_start_of_the_file() {
    for (text, expected) in [
        (
            "a: runtime=2; b: stonewall startdelay=3 runtime=1",
            vec![[0, 2000], [1000, 2000]],
        ),
        (
            "a: runtime=3; b: stonewall startdelay=2 runtime=1",
            vec![[0, 3000], [0, 1000]],
        ),
        (
            "a: runtime=1; b: startdelay=2 runtime=1; c: stonewall startdelay=3 runtime=1; \
             d: stonewall startdelay=5 runtime=1",
            vec![[0, 1000], [2000, 3000], [0, 1000], [1000, 2000]],
        ),
    ] {
        assert_eq!(spans_ms(&run_on_model(text)), expected, "{text}");
    }
}

/// Starts of fio's jobs in milliseconds, from that of the first.
fn starts_of_fio_ms(text: &str) -> Vec<i64> {
    let folder = tempfile::tempdir().expect("a folder");
    let prerun = "ioengine=null\nthinktime=1000\nexec_prerun=date +%s%3N\n";
    let file = format!("{GLOBAL}{prerun}{}", sections(text));
    std::fs::write(folder.path().join("job.fio"), file).expect("a job file");
    let output = Command::new("fio")
        .arg("job.fio")
        .current_dir(folder.path())
        .output();
    let output = output.expect("fio");
    assert!(output.status.success(), "{text}: {output:?}");
    let names = text
        .split(';')
        .map(|section| section.split(':').next().expect("a name").trim());
    let moment = |name: &str| -> i64 {
        let path = folder.path().join(format!("{name}.prerun.txt"));
        let said = std::fs::read_to_string(&path).expect("a moment");
        said.trim().parse().expect("a number")
    };
    let moments: Vec<i64> = names.map(moment).collect();
    moments.iter().map(|moment| moment - moments[0]).collect()
}

#[test]
fn fio_counts_a_start_delay_from_its_own_start() {
    if !is_fio_installed() {
        return;
    }
    let starts =
        starts_of_fio_ms("a: runtime=2; b: stonewall startdelay=2 runtime=100ms; c: runtime=100ms");
    // From the end of `a` it would be 4 seconds.
    assert!((1900..3500).contains(&starts[1]), "{starts:?}");
    // `c` passes the stonewall that is not due.
    assert!(starts[2] < 1500, "{starts:?}");
}

/// Jobs of one file, and the start and end of each in milliseconds from the start of its step:
/// a job waits for all clones of the one that it names, and for nothing else.
const WAITS: &[(&str, &[[u64; 2]])] = &[
    (
        "a: runtime=1; b: runtime=4; c: wait_for=a runtime=1",
        &[[0, 1000], [0, 4000], [1000, 2000]],
    ),
    (
        "a: runtime=1; b: wait_for=a runtime=1; c: wait_for=b runtime=1",
        &[[0, 1000], [1000, 2000], [2000, 3000]],
    ),
    // A delay counts from the start of the file, and a runtime from that of the job.
    (
        "a: runtime=1; b: wait_for=a startdelay=3 runtime=1; c: wait_for=a startdelay=500ms runtime=1",
        &[[0, 1000], [3000, 4000], [1000, 2000]],
    ),
    (
        "a: runtime=1; b: wait_for=a ramp_time=1 runtime=1",
        &[[0, 1000], [2000, 3000]],
    ),
    // Its wall has waited for `a` already.
    (
        "a: runtime=1; b: stonewall runtime=1; c: wait_for=a runtime=1",
        &[[0, 1000], [0, 1000], [0, 1000]],
    ),
];

#[test]
fn a_job_waits_for_the_job_that_it_names_alone() {
    for (text, expected) in WAITS {
        let spans = spans_ms(&run_on_model(text));
        assert_eq!(spans.len(), expected.len(), "{text}");
        // A job ends with its last I/O, which takes its turn on the drive.
        let is_close = |(span, expected): (&[u64; 2], &[u64; 2])| {
            let late = [0, 1].map(|end| span[end].checked_sub(expected[end]));
            late.iter().all(|late| late.is_some_and(|late| late < 20))
        };
        assert!(
            spans.iter().zip(*expected).all(is_close),
            "{text}: {spans:?}"
        );
    }
    let run = run_on_model("a: runtime=1 numjobs=3 startdelay=0-2s; b: wait_for=a runtime=1");
    let [a, b] = &run.results[..] else {
        panic!("two jobs")
    };
    let ends = a.repetitions[0].workers.iter();
    let last = ends
        .map(|worker| worker.start_time + worker.elapsed_time)
        .max();
    let b = &b.repetitions[0].workers[0];
    assert!(
        Some(b.start_time) >= last,
        "{:?}, and not {last:?}",
        b.start_time
    );
}

#[test]
fn fio_starts_a_job_when_the_one_that_it_names_has_ended() {
    if !is_fio_installed() {
        return;
    }
    for (text, spans) in &WAITS[..3] {
        let starts = starts_of_fio_ms(text);
        for (start, [expected, _]) in starts.iter().zip(*spans) {
            // fio looks ten times a second, on a machine that may have more to do.
            let late = start - *expected as i64;
            assert!((-100..900).contains(&late), "{text}: {starts:?}");
        }
    }
}

/// Jobs of which one fails, whether each fails, and how long each runs in milliseconds.
const FAILURES: &[(&str, &[(bool, u64)])] = &[
    (
        "a: runtime=3 max_latency=1; b: runtime=1; c: stonewall runtime=2",
        &[(true, 0), (false, 1000), (false, 2000)],
    ),
    (
        "a: runtime=1; b: runtime=3 max_latency=1; c: wait_for=b runtime=2",
        &[(false, 1000), (true, 0), (false, 2000)],
    ),
    (
        "a: runtime=3 max_latency=1 exitall_on_error=1; b: runtime=3; c: stonewall runtime=1",
        &[(true, 0), (false, 0), (false, 1000)],
    ),
    (
        "a: runtime=3 max_latency=1 exitall_on_error=1 exit_what=all; b: runtime=3; c: stonewall runtime=1",
        &[(true, 0), (false, 0), (false, 0)],
    ),
    // It is a switch of the job that fails.
    (
        "a: runtime=3 max_latency=1; b: runtime=1 exitall_on_error=1",
        &[(true, 0), (false, 1000)],
    ),
];

/// The others go on and have their rows, and the run says who failed.
#[test]
fn an_error_of_a_job_ends_that_job_alone() {
    for (text, expected) in FAILURES {
        let whole = GLOBAL.to_owned() + &sections(text);
        let ExecutionOutcome { run, error } = executed_on(Path::new("bare-fixed"), &whole);
        let error = error.unwrap_or_else(|| panic!("{text}: no error"));
        assert_eq!(error.exit_code(), 1, "{text}: {error}");
        assert!(error.to_string().contains("max_latency"), "{text}: {error}");
        assert!(matches!(run.state, RunState::Failed(_)), "{text}");
        assert_eq!(run.results.len(), expected.len(), "{text}");
        for (result, (fails, ran_ms)) in run.results.iter().zip(*expected) {
            let failures = result
                .repetitions
                .iter()
                .flat_map(Repetition::worker_failures);
            assert_eq!(failures.count() > 0, *fails, "{text}: {}", result.program);
            let is_noted = result.notes.iter().any(|note| note.starts_with("failed: "));
            assert_eq!(is_noted, *fails, "{text}: {:?}", result.notes);
            let ran = result.repetitions[0].workers[0].elapsed_time.0 / 1_000_000;
            // An end is noticed within 10 ms.
            assert!(
                (*ran_ms..ran_ms + 20).contains(&ran),
                "{text}: {} ran for {ran} ms, not {ran_ms}",
                result.program
            );
        }
    }
}

/// The same by fio: which jobs fail, and how long each runs.
#[test]
fn fio_lets_the_other_jobs_go_on() {
    if !is_fio_installed() {
        return;
    }
    for (text, expected) in FAILURES {
        let folder = tempfile::tempdir().expect("a folder");
        let slow = "ioengine=psync\nthinktime=1000\n";
        let file = format!("{GLOBAL}{slow}{}", sections(text));
        std::fs::write(folder.path().join("job.fio"), file).expect("a job file");
        let output = Command::new("fio")
            .args(["--output-format=json", "job.fio"])
            .current_dir(folder.path())
            .output()
            .expect("fio");
        assert!(!output.status.success(), "{text}");
        let said = String::from_utf8_lossy(&output.stdout);
        let json = &said[said.find("{\n").expect("JSON")..];
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let jobs = json["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), expected.len(), "{text}");
        for (job, (fails, ran_ms)) in jobs.iter().zip(*expected) {
            assert_eq!(job["error"] != 0, *fails, "{text}: {job}");
            let ran = job["job_runtime"].as_u64().expect("a time");
            assert!(
                (*ran_ms..ran_ms + 900).contains(&ran),
                "{text}: {} ran for {ran} ms, not {ran_ms}",
                job["jobname"]
            );
        }
    }
}

/// Clones that share a file and unlink it: the first that ends does not take it from others.
#[test]
fn a_shared_file_is_there_until_its_last_job_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    for text in [
        "a: unlink=1 number_ios=1 numjobs=20",
        "a: unlink=1 number_ios=1; b: startdelay=200ms number_ios=9",
        "a: unlink=1 number_ios=1; b: wait_for=a number_ios=9 unlink=1",
    ] {
        let text = format!(
            "[global]\nfilename=f\nsize=64k\nrw=randread\n{}",
            sections(text)
        );
        for target in [folder.path(), Path::new("vax780-sc780-eagle")] {
            run_on(target, &text);
        }
    }
}

/// What ends when a job does, where the file has `exitall`.
#[test]
fn the_end_of_a_job_ends_those_in_its_scope() {
    for (text, expected) in [
        (
            "a: runtime=1 exitall; b: runtime=3; c: stonewall runtime=1",
            vec![1000, 1000, 1000],
        ),
        // It is one switch for all of the file.
        (
            "a: runtime=1; b: runtime=2 exitall; c: runtime=3",
            vec![1000, 1000, 1000],
        ),
        (
            "a: runtime=1 exitall; b: new_group runtime=3",
            vec![1000, 3000],
        ),
        (
            "a: runtime=1 exitall exit_what=stonewall; b: new_group runtime=3; c: stonewall runtime=1",
            vec![1000, 1000, 1000],
        ),
        (
            "a: runtime=1 exitall exit_what=all; b: new_group runtime=3; c: stonewall runtime=1",
            vec![1000, 1000, 0],
        ),
        (
            "a: runtime=1 exitall; b: startdelay=3 runtime=1",
            vec![1000, 0],
        ),
        (
            "a: runtime=1 exitall; b: runtime=9 thinktime=1h",
            vec![1000, 1000],
        ),
        (
            "a: runtime=1 exitall; b: runtime=9 rate_iops=1",
            vec![1000, 1000],
        ),
    ] {
        let run = run_on_model(text);
        for (result, expected) in run.results.iter().zip(&expected) {
            let ran = result.repetitions[0].workers[0].elapsed_time;
            let late = ran.since(Nanoseconds::from_millis(*expected));
            assert!(
                ran >= Nanoseconds::from_millis(*expected) && late < Nanoseconds::from_millis(20),
                "{text}: {} ran for {ran:?}, not {expected} ms",
                result.program
            );
        }
    }
}

/// Reads of each job by fio, on nothing at all.
fn reads_by_fio(text: &str) -> Vec<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("{GLOBAL}ioengine=null\n{}", sections(text));
    std::fs::write(folder.path().join("job.fio"), file).expect("a job file");
    let output = Command::new("fio")
        .args(["--output-format=json", "job.fio"])
        .current_dir(folder.path())
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}: {said}");
    let json = &said[said.find("{\n").expect("JSON")..];
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let jobs = json["jobs"].as_array().expect("jobs");
    let reads = jobs.iter().map(|job| job["read"]["total_ios"].as_u64());
    reads.map(|reads| reads.expect("a number")).collect()
}

/// Reads of each job on the modelled device, clone by clone.
fn reads_on_model(text: &str) -> Vec<u64> {
    let run = run_on_model(text);
    let repetitions = run.results.iter().map(|result| &result.repetitions[0]);
    let workers = repetitions.flat_map(|repetition| &repetition.workers);
    let reads = workers.map(|worker| {
        worker
            .load_measure
            .as_ref()
            .map(|load| load.read.request_count())
    });
    reads.map(|reads| reads.expect("it has a ring")).collect()
}

/// Jobs that end each other, share a flow, or wait for a group: how much each comes to.
#[test]
fn jobs_beside_each_other_do_as_much_as_those_of_fio() {
    if !is_fio_installed() {
        return;
    }
    for text in [
        "a: runtime=1 rate_iops=100 exitall; b: runtime=3 rate_iops=100; c: stonewall runtime=1 rate_iops=50",
        "a: runtime=1 rate_iops=100 exitall exit_what=all; b: runtime=3 rate_iops=100; c: stonewall runtime=1",
        "a: runtime=1 rate_iops=100 exitall; b: startdelay=2 runtime=1",
        "a: runtime=1 flow=3 rate_iops=150; b: runtime=1 flow=1; c: runtime=1 flow=1 flow_id=2 rate_iops=70",
        "a: runtime=2 rate_iops=100 flow=1; b: runtime=1 startdelay=1 flow=1 rate_iops=100",
        "a: runtime=9 rate_iops=100 numjobs=3 group_reporting steadystate=iops:30% ss_dur=3",
        "a: runtime=9 rate_iops=100 group_reporting steadystate=iops:30% ss_dur=2; \
         b: runtime=9 rate_iops=50 group_reporting steadystate=iops:30% ss_dur=2",
    ] {
        let (ours, theirs) = (reads_on_model(text), reads_by_fio(text));
        // fio prints a group as one.
        let is_grouped = text.contains("group_reporting");
        let ours = match is_grouped {
            true => vec![ours.iter().sum()],
            false => ours,
        };
        assert_eq!(
            ours.len(),
            theirs.len(),
            "{text}: {ours:?} here, {theirs:?} by fio"
        );
        for (ours_of, theirs_of) in ours.iter().zip(&theirs) {
            // A machine with more to do delays fio's ends.
            let room = theirs_of / 5 + 20;
            assert!(
                ours_of.abs_diff(*theirs_of) <= room,
                "{text}: {ours:?} here, {theirs:?} by fio"
            );
        }
    }
}

/// I/Os of a job in a second: reads and writes.
fn ios_by_fio(text: &str) -> [u64; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("{GLOBAL}ioengine=null\n{}", sections(text));
    std::fs::write(folder.path().join("job.fio"), file).expect("a job file");
    let output = Command::new("timeout")
        .args(["-k", "1", "30", "fio", "--output-format=json", "job.fio"])
        .current_dir(folder.path())
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}: {said}");
    let json = &said[said.find("{\n").expect("JSON")..];
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    ["read", "write"].map(|direction| {
        json["jobs"][0][direction]["total_ios"]
            .as_u64()
            .expect("a number")
    })
}

/// Rates of I/Os and of bytes, of blocks of several sizes: with `rate_iops` the smallest size
/// counts, so that larger ones lower it.
#[test]
fn blocks_of_several_sizes_come_at_the_rates_of_fio() {
    if !is_fio_installed() {
        return;
    }
    for options in [
        "rw=randrw bs=4k,16k rate_iops=200,100",
        "rw=randrw bs=4k,16k rate_iops=200,100 norandommap",
        "rw=randrw bs=4k,16k rate=800k,1600k",
        "rw=randrw bs=8k,4k rate_iops=100,300",
        "rw=randread bsrange=4k-16k rate_iops=300 norandommap",
        "rw=randwrite bssplit=4k/50:16k/50 rate_iops=300 norandommap",
        "rw=randwrite bssplit=4k/50:16k/50 rate=2m norandommap",
    ] {
        let text = format!("a: runtime=1 size=256m {options}");
        let run = run_on_model(&text);
        let load = run.results[0].repetitions[0].workers[0]
            .load_measure
            .as_ref();
        let load = load.expect("it has a ring");
        let ours = [load.read.request_count(), load.write.request_count()];
        let theirs = ios_by_fio(&text);
        for (ours_of, theirs_of) in ours.iter().zip(&theirs) {
            // A machine with more to do delays fio's ends.
            assert!(
                ours_of.abs_diff(*theirs_of) <= theirs_of / 8 + 5,
                "{options}: {ours:?} here, {theirs:?} by fio"
            );
        }
    }
}

/// A run that is told to end does so, whatever its jobs wait for.
#[test]
fn a_run_is_stopped_in_every_wait() {
    for wait in [
        "startdelay=1h",
        "thinktime=1h",
        "thinktime=1h thinktime_spin=1h",
        "thinktime=1h thinktime_iotime=1",
        "rate_iops=1",
        "ramp_time=1h thinktime=1h",
        "flow=1 flow_sleep=4000000000",
        "latency_target=1s latency_window=1h",
    ] {
        let text = format!(
            "{GLOBAL}{}",
            sections(&format!("a: runtime=2h {wait}; b: runtime=2h {wait}"))
        );
        let stop: Arc<AtomicBool> = Arc::default();
        let plans = plan::plan(&experiment(Path::new("null"), &text)).expect("a plan");
        let told = Arc::clone(&stop);
        let teller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            told.store(true, Ordering::Relaxed);
        });
        // It comes to an end at all.
        let executed = execute(
            &plans[0],
            &stop,
            &mut SilentObserver,
            &mut RunRecorder::without_store(),
        );
        teller.join().expect("it ends");
        assert!(
            matches!(executed.error, Some(LaboratoryError::Interrupted)),
            "{wait}"
        );
    }
}
