//! Programs of job files, run: on a directory beside fio itself, and in virtual time on a
//! modelled device of which everything is known.
#![cfg(target_os = "linux")]

#[path = "fio_job/counted.rs"]
mod counted;
#[path = "fio_job/duplicates.rs"]
mod duplicates;
#[path = "fio_job/ends.rs"]
mod ends;
#[path = "../../fio/tests/installed/mod.rs"]
mod installed;
#[path = "fio_job/logs.rs"]
mod logs;
#[path = "fio_job/processor.rs"]
mod processor;

use diskperf_battery::{Medium, Program, ProgramError, Worker, WorkerGroupMember};
use diskperf_catalogue::Catalogue;
use diskperf_fio::plan::FileSize;
use diskperf_fio::{JobDefinition, JobEnvironment, JobFile};
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, RunBudget, RunConditions, WorkerRendezvous as Meeting};
use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};
use diskperf_system::model::{ModelPorts, ModelWorker};
use diskperf_system::{System, run_ready};
use diskperf_timeline::{LoadMeasure, Nanoseconds, WorkerMeasure};
use installed::is_fio_installed;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

const SEED: u64 = 1983;

/// Events of a modelled run: far more than any section here takes that comes to an end.
const EVENTS_MAX: u64 = 1_000_000;

fn job(options: &str) -> JobDefinition {
    let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
    let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
    let mut parsed = parsed.unwrap_or_else(|errors| panic!("{errors}"));
    parsed.jobs.remove(0)
}

fn program(job: &JobDefinition, existing: &BTreeMap<String, FileSize>) -> Program {
    let program = Program::from_fio_job(job, existing, &BTreeMap::new(), &BTreeMap::new());
    program.unwrap_or_else(|errors| panic!("{errors}"))
}

fn worker(medium: Medium, index: u32) -> Worker {
    Worker {
        worker_index: index,
        drive_index: 0,
        medium,
        file_folder: "",
        second_target: None,
        size_bytes: 1 << 20,
        direct_io: medium == Medium::Device,
        random_seed: SEED + u64::from(index),
        think_time: Nanoseconds::ZERO,
        worker_group: WorkerGroupMember::default(),
    }
}

/// What a worker does in a repetition, on either world.
async fn work(
    system: &mut System,
    program: &Program,
    worker: &Worker,
) -> Result<WorkerMeasure, ProgramError> {
    let mut buffer = program.new_buffer(worker);
    program.prepare_target(system, worker).await?;
    let origin = system.now();
    system.start_measuring(origin)?;
    let run = program.run_timed_part(system, worker, &mut buffer).await;
    let measure = system.finish_measuring().await?;
    system.close_all().await;
    run.map(|()| measure)
}

/// Runs the clones of a section one after the other in a directory.
fn on_host(folder: &Path, options: &str) -> Vec<LoadMeasure> {
    run_on_host(folder, &program(&job(options), &BTreeMap::new()), options)
}

/// The same of a program; `options` are told where it fails.
fn run_on_host(folder: &Path, program: &Program, options: &str) -> Vec<LoadMeasure> {
    let run = |index| {
        let measure = tried_on_host(folder, program, index);
        let measure = measure.unwrap_or_else(|error| panic!("seed {SEED}, {options}: {error}"));
        measure.load_measure.expect("it has a ring")
    };
    (0..program.worker_count()).map(run).collect()
}

/// Runs one clone of a program in a directory, which may come to no end.
fn tried_on_host(
    folder: &Path,
    program: &Program,
    index: u32,
) -> Result<WorkerMeasure, ProgramError> {
    let directory = OwnedFd::from(std::fs::File::open(folder).expect("a folder"));
    let ports = HostPorts {
        directories: vec![directory],
        ..HostPorts::default()
    };
    let control = WorkerControl::for_single_worker(true, CallClock::new_calibrated());
    let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
    let worker = worker(Medium::Directory, index);
    run_ready(work(&mut system, program, &worker))
}

/// Runs a section alone on the modelled device without mechanics.
fn on_model(options: &str) -> WorkerMeasure {
    let measure = tried_on_model(options);
    let measure = measure.unwrap_or_else(|error| panic!("seed {SEED}, {options}: {error}"));
    assert_eq!(
        measure.ledger.total_duration(),
        measure.elapsed_time,
        "{options}"
    );
    measure
}

/// The same, which may come to no end.
fn tried_on_model(options: &str) -> Result<WorkerMeasure, ProgramError> {
    let job = job(&format!("filename=d direct=1 {options}"));
    let existing = BTreeMap::from([("d".to_owned(), FileSize::Fixed(8 << 20))]);
    let program = program(&job, &existing);
    let resolved = Catalogue::embedded().resolve("bare-fixed", &[]);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}"));
    let read =
        MachineSpecification::read_machine(resolved).unwrap_or_else(|problem| panic!("{problem}"));
    let budget = RunBudget {
        event_count_max: EVENTS_MAX,
        ..RunBudget::DEFAULT
    };
    let circumstances = RunConditions {
        budget,
        ..RunConditions::default()
    };
    let machine = Machine::build(&read.0, circumstances);
    let ports = ModelPorts {
        process_number: 0,
        pipe_ends: Vec::new(),
        rendezvous: Meeting::new(1),
        times_calls: false,
        stop_requested: Default::default(),
        progress: Default::default(),
    };
    let kernel = machine.kernel().clone();
    let result: Rc<RefCell<Option<Result<WorkerMeasure, ProgramError>>>> = Rc::default();
    let kept = Rc::clone(&result);
    machine.spawn_process("worker", async move {
        let mut system =
            System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
        let worker = worker(Medium::Device, 0);
        let measure = work(&mut system, &program, &worker).await;
        system.end_session().await;
        *kept.borrow_mut() = Some(measure);
    });
    let end = machine.run_to_end();
    end.unwrap_or_else(|standstill| panic!("seed {SEED}, {options}: {standstill}"));
    result.take().expect("it ended")
}

/// Sections that do the same number of I/Os whatever is drawn.
const COUNTED: &[&str] = &[
    "rw=read size=1m",
    "rw=write size=1m end_fsync=1",
    "rw=randread size=1m ioengine=io_uring iodepth=16",
    "rw=randread size=1m ioengine=io_uring iodepth=16 iodepth_batch=4 iodepth_batch_complete_min=4 iodepth_low=8",
    "rw=randwrite size=1m fsync=8",
    "rw=write size=1m nrfiles=4 fsync=16",
    "rw=write size=100k overwrite=1 loops=2 fallocate=none",
    "rw=write size=256k sync=dsync bs=16k",
    "rw=randwrite size=1m bs=8k norandommap io_size=2m",
    "rw=randread size=512k numjobs=3",
    "rw=read filename=one:two size=256k numjobs=2 offset_increment=64k filesize=512k",
    "rw=randread size=64k thinktime=100 thinktime_blocks=4 thinktime_spin=50",
    "rw=randwrite size=256k rate_iops=2000 ioengine=io_uring iodepth=4",
    "rw=read size=256k rate=100m startdelay=10ms",
    "rw=randread size=1m ioengine=io_uring iodepth=16 iodepth_batch_complete_min=2 iodepth_batch_complete_max=5",
    "rw=write size=256k nrfiles=3 fsync=4 file_service_type=random",
    "rw=write size=256k sync=sync bs=16k",
    "rw=write size=64k sync=1",
    "rw=write size=256k loops=3 unlink_each_loop=1",
    "rw=write size=256k io_size=128k unlink_each_loop=1 fallocate=keep",
    "rw=randread size=256k unlink=1",
    "rw=write size=256k unlink=1 nrfiles=2 end_fsync=1",
    "rw=write size=256k create_on_open=1 io_size=64k",
    "rw=write size=256k io_size=64k fallocate=none",
    "rw=write size=256k io_size=64k fallocate=posix",
    "rw=write size=256k io_size=64k fallocate=keep",
    "rw=write size=256k io_size=64k fallocate=truncate",
    "rw=write size=256k io_size=64k",
    "rw=randread size=256k invalidate=0 loops=2",
    "rw=randread size=256k loops=2",
    "rw=randwrite size=1m max_latency=100s rate_iops_min=1",
    "rw=write size=256k ioengine=mmap fsync=8",
    "rw=read size=258k ioengine=mmap bs=7k iodepth=8",
    "rw=randwrite size=64k ioengine=mmap overwrite=1 loops=2",
    "rw=randread size=256k ioengine=mmap direct=1 nrfiles=3",
    "rw=randread size=64k ioengine=mmap invalidate=0 numjobs=2 filename=x",
    "rw=write size=1m ioengine=splice bs=256k fsync=2",
    "rw=randread size=250k ioengine=splice bs=16k",
    "rw=write size=256k ioengine=falloc",
    "rw=read size=256k ioengine=falloc bs=16k",
    "rw=randwrite size=256k ioengine=falloc loops=2 fallocate=none",
    "rw=trim size=256k ioengine=falloc",
    "rw=write size=256k ioengine=ftruncate",
    "rw=write ioengine=filecreate filesize=4k nrfiles=9 openfiles=1 fallocate=none",
    "rw=read ioengine=filecreate filesize=4k nrfiles=4 loops=2 create_on_open=1",
    "rw=read ioengine=filestat filesize=4k nrfiles=9 numjobs=2",
    "rw=randread ioengine=filestat size=36k nrfiles=9 io_size=72k stat_type=lstat",
    "rw=write ioengine=filedelete filesize=8k bs=8k nrfiles=5",
    "rw=write size=256k lockfile=exclusive",
    "rw=randread size=256k lockfile=readwrite loops=2",
    "rw=write size=256k fill_device=1",
    "rw=write size=256k file_append=1 loops=2",
    "rw=write size=256k file_append=1 filename=x numjobs=3",
    "rw=randwrite size=256k file_append=1 nrfiles=2 fallocate=none",
];

#[test]
fn as_many_ios_bytes_and_syncs_as_fio() {
    if !is_fio_installed() {
        return;
    }
    for options in COUNTED {
        let theirs = tempfile::tempdir().expect("a folder");
        let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
        std::fs::write(theirs.path().join("job.fio"), text).expect("a job file");
        let output = Command::new("fio")
            .args(["--output-format=json", "job.fio"])
            .current_dir(theirs.path())
            .env("LC_ALL", "C")
            .output()
            .expect("fio");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{options}: {said}");
        let start = said.find('{').expect("JSON");
        let json: serde_json::Value = serde_json::from_str(&said[start..]).expect("JSON");
        let jobs = json["jobs"].as_array().expect("jobs");
        let ours = tempfile::tempdir().expect("a folder");
        let measures = on_host(ours.path(), options);
        assert_eq!(jobs.len(), measures.len(), "{options}");
        for (job, load) in jobs.iter().zip(&measures) {
            let theirs = [&job["read"], &job["write"]].map(|of| {
                let number = |key: &str| of[key].as_u64().expect("a number");
                (number("total_ios"), number("io_bytes"))
            });
            let ours = [&load.read, &load.write].map(|of| (of.request_count(), of.bytes));
            assert_eq!(ours, theirs, "seed {SEED}, {options}");
            // fio takes no time of its file calls apart.
            let sampled = [&job["read"], &job["write"]]
                .map(|of| of["clat_ns"]["N"].as_u64().expect("a number"));
            let samples = [&load.read, &load.write].map(|of| of.response_times.latency_count());
            assert_eq!(samples, sampled, "seed {SEED}, {options}");
            let syncs = job["sync"]["total_ios"].as_u64().expect("a number");
            assert_eq!(load.sync.request_count(), syncs, "seed {SEED}, {options}");
        }
        assert_eq!(files(ours.path()), files(theirs.path()), "{options}");
    }
}

/// The files in a folder with their lengths, by fio's names of them.
fn files(folder: &Path) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let entries = entries.map(|entry| {
        let entry = entry.expect("a file");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.metadata().expect("a length").len())
    });
    entries.filter(|(name, _)| name != "job.fio").collect()
}

/// Reads and writes of a section on the modelled device.
fn counts(measure: &WorkerMeasure) -> (u64, u64) {
    let load = measure.load_measure.as_ref().expect("it has a ring");
    (load.read.request_count(), load.write.request_count())
}

#[test]
fn each_direction_has_its_own_rate() {
    let both = "rw=randrw rwmixread=90 rate_iops=500 time_based=1 runtime=2 iodepth=16";
    let measure = on_model(&format!("{both} ioengine=io_uring"));
    assert_eq!(counts(&measure), (1000, 1000), "seed {SEED}");
    let measure = on_model("rw=randrw rate_iops=100, time_based=1 runtime=1");
    let (reads, writes) = counts(&measure);
    assert_eq!(reads, 100, "seed {SEED}");
    assert!(writes > 500, "seed {SEED}: {writes}");
    let measure = on_model("rw=read bs=8k rate=800k time_based=1 runtime=2");
    assert_eq!(counts(&measure), (200, 0), "seed {SEED}");
}

#[test]
fn poisson_arrivals_have_their_rate() {
    let options = "rw=randread rate_iops=500 rate_process=poisson time_based=1 runtime=20";
    let measure = on_model(&format!("{options} ioengine=io_uring iodepth=32"));
    let (reads, _) = counts(&measure);
    assert!((9_700..=10_300).contains(&reads), "seed {SEED}: {reads}");
    let lag = measure.load_measure.expect("a ring").arrival_lag;
    assert!(lag.is_some(), "arrivals do not wait");
}

#[test]
fn pauses_ramps_and_delays_take_their_time() {
    let plain = on_model("rw=read size=100k");
    let thinking = on_model("rw=read size=100k thinktime=1ms");
    assert_eq!(counts(&thinking), (25, 0));
    let paused = thinking.elapsed_time.since(plain.elapsed_time);
    let most = Nanoseconds::from_millis(26);
    assert!(
        paused >= Nanoseconds::from_millis(25) && paused <= most,
        "{paused:?}"
    );
    let grouped = on_model("rw=read size=100k thinktime=1ms thinktime_blocks=5");
    let paused = grouped.elapsed_time.since(plain.elapsed_time);
    assert!(paused <= Nanoseconds::from_millis(6), "{paused:?}");
    let late = on_model("rw=read size=100k startdelay=3");
    assert!(
        late.elapsed_time < Nanoseconds::from_millis(1000),
        "{late:?}"
    );
    let ramped = on_model("rw=randread time_based=1 runtime=2 ramp_time=3");
    let second = Nanoseconds::from_millis(1000);
    let room = Nanoseconds::from_millis(20);
    assert!(
        ramped.elapsed_time >= second + second && ramped.elapsed_time <= second + second + room
    );
}

#[test]
fn a_runtime_ends_what_would_go_on_and_time_goes_on_where_the_size_ends() {
    let runtime = Nanoseconds::from_millis(500);
    let capped = on_model("rw=read size=8m loops=10000 runtime=500ms");
    let room = runtime + Nanoseconds::from_millis(20);
    assert!(
        capped.elapsed_time >= runtime && capped.elapsed_time <= room,
        "{:?}",
        capped.elapsed_time
    );
    let again = on_model("rw=randread size=16k time_based=1 runtime=500ms");
    assert!(again.elapsed_time >= runtime, "{:?}", again.elapsed_time);
    let short = on_model("rw=read size=16k runtime=500ms");
    assert_eq!(counts(&short), (4, 0));
}

#[test]
fn passes_that_open_their_files_again_add_up() {
    let again = on_model("rw=write size=16k loops=3 unlink_each_loop=1");
    assert_eq!(counts(&again), (0, 12));
}

#[test]
fn the_same_seed_does_the_same() {
    let options = "rw=randrw bssplit=4k/60:8k/40 size=2m norandommap ioengine=io_uring iodepth=8";
    assert_eq!(on_model(options), on_model(options));
}

/// The last requests of a job are taken one by one: with a millisecond for each of 16 under
/// way, none lasts longer than 16.
#[test]
fn the_last_requests_last_no_longer_than_the_others() {
    for end in ["time_based=1 runtime=100ms", "io_size=1m"] {
        let load = on_model(&format!(
            "rw=randread size=2m ioengine=io_uring iodepth=16 {end}"
        ))
        .load_measure;
        let response = load.expect("it has a ring").read.response_times;
        let longest = response.latency_max().0 as f64 / 1e6;
        assert!((15.0..16.1).contains(&longest), "{end}: {longest} ms");
    }
}

#[test]
fn a_latency_or_a_rate_that_is_missed_ends_the_job_with_its_place() {
    for (options, words) in [
        (
            "rw=randread max_latency=1us",
            &["[job]: a read at byte ", "max_latency of 1.00 µs"][..],
        ),
        (
            "rw=write time_based=1 runtime=60 rate_iops_min=1m",
            &[
                "[job]: its writes came to ",
                " IOPS over 1.0 s",
                "1048576 of rate_iops_min",
            ],
        ),
        (
            "rw=randrw time_based=1 runtime=60 rate_min=1,1g rate_cycle=2000",
            &["[job]: its writes came to ", " B/s over 2.0 s", "rate_min"],
        ),
    ] {
        let missed = tried_on_model(options).expect_err(options).to_string();
        for word in words {
            assert!(missed.contains(word), "seed {SEED}, {options}: {missed}");
        }
    }
    let kept = on_model(
        "rw=randread max_latency=1s rate_iops=500 rate_iops_min=400 time_based=1 runtime=10",
    );
    assert_eq!(counts(&kept), (5000, 0), "seed {SEED}");
}

/// Calls on files have a latency, too; that of calls on names has no limit in fio.
#[test]
fn each_engine_is_held_to_the_latency_that_fio_holds_it_to() {
    if !is_fio_installed() {
        return;
    }
    for engine in ["psync", "null", "falloc", "ftruncate", "filecreate"] {
        let options = format!("ioengine={engine} rw=write bs=4k filesize=4k nrfiles=64");
        let options = format!("{options} max_latency=1us");
        let folder = tempfile::tempdir().expect("a folder");
        let output = Command::new("fio")
            .arg("--name=job")
            .args(options.split(' ').map(|option| format!("--{option}")))
            .current_dir(folder.path())
            .output()
            .expect("fio");
        let said = String::from_utf8_lossy(&output.stderr);
        let is_missed_by_fio = said.contains("exceeds specified max");
        let folder = tempfile::tempdir().expect("a folder");
        let program = program(&job(&options), &BTreeMap::new());
        let ran = tried_on_host(folder.path(), &program, 0);
        let is_missed = matches!(&ran, Err(ProgramError::ThresholdMissed(_)));
        let words = format!("seed {SEED}, {options}: {ran:?}; fio: {said}");
        assert_eq!(is_missed, is_missed_by_fio, "{words}");
        assert_eq!(is_missed, engine != "filecreate", "{words}");
    }
}

#[test]
fn a_job_ends_when_it_is_steady_and_says_whether_it_was() {
    let end = |options: &str| {
        let all = format!("rw=randread time_based=1 runtime=60 rate_iops=200 {options}");
        let measure = on_model(&all);
        let load = measure.load_measure.expect("it has a ring");
        (measure.elapsed_time, load.end_note.expect("it says so"))
    };
    let second = Nanoseconds::from_millis(1000);
    let room = Nanoseconds::from_millis(50);
    for (options, after_ms) in [
        ("steadystate=iops:5% ss_dur=5", 5000),
        ("steadystate=bw_slope:5% ss_dur=5 ss_ramp=3", 9000),
        ("steadystate=lat:20% ss_dur=4", 4000),
        // fio takes one sample for steady.
        ("steadystate=iops:5% ss_dur=1", 1000),
        ("steadystate=bw_slope:5% ss_dur=1", 1000),
    ] {
        let (elapsed, note) = end(options);
        let after = Nanoseconds::from_millis(after_ms);
        assert!(
            elapsed >= after && elapsed <= after + room,
            "seed {SEED}, {options}: {elapsed:?}"
        );
        assert!(note.contains("was attained"), "{options}: {note}");
    }
    let (elapsed, note) = end("steadystate=iops:5% ss_dur=100");
    assert!(elapsed >= second + second, "{elapsed:?}");
    assert!(note.contains("not attained"), "{note}");
}

/// What changes what is done and cannot be obeyed, each at its place.
#[test]
fn what_cannot_be_obeyed_is_refused_at_its_place() {
    for (options, key) in [
        ("ioengine=mmap rw=trim", "rw"),
        ("ioengine=splice rw=randtrim", "rw"),
        ("ioengine=ftruncate rw=read", "rw"),
        ("ioengine=falloc rw=write fsync=4", "fsync"),
        (
            "ioengine=filecreate rw=write bs=1m fdatasync=1",
            "fdatasync",
        ),
        (
            "ioengine=mmap rw=write verify=crc32c trim_percentage=9 trim_backlog=9",
            "trim_percentage",
        ),
        ("ioengine=filestat bs=4k", "bs"),
        ("ioengine=filestat", "size"),
        (
            "ioengine=filestat rw=write bs=1m create_on_open=1",
            "create_on_open",
        ),
        ("ioengine=filedelete bs=1m loops=2", "loops"),
        (
            "ioengine=filecreate bs=1m unlink_each_loop=1",
            "unlink_each_loop",
        ),
        ("file_append=1 rw=rw", "file_append"),
        ("ioengine=falloc read_iolog=log", "read_iolog"),
        ("write_iolog=log directory=a\tb", "write_iolog"),
        ("file_append=1 rw=write ioengine=mmap", "file_append"),
        ("ioengine=falloc rw=write verify=crc32c", "verify"),
        ("steadystate=iops:5% ss_dur=500ms", "steadystate"),
        ("create_on_open=1", "create_on_open"),
        ("unlink_each_loop=1", "unlink_each_loop"),
        ("ioengine=io_uring iodepth=10000", "iodepth"),
        (
            "rw=randread random_distribution=zipf:1.2:0.5",
            "random_distribution",
        ),
    ] {
        let (job, none) = (job(&format!("size=1m {options}")), BTreeMap::new());
        let refused = Program::from_fio_job(&job, &none, &BTreeMap::new(), &BTreeMap::new());
        let errors = refused.expect_err(options);
        let shown = errors.to_string();
        let places = errors
            .problems()
            .iter()
            .filter_map(|problem| problem.span());
        assert!(places.count() > 0, "{options}: {shown}");
        assert!(
            shown.contains(key) && shown.contains('^'),
            "{options}: {shown}"
        );
    }
}

#[test]
fn a_sequence_of_paths_stays_apart_in_one_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let measures = on_host(folder.path(), "rw=write size=16k filename=a/x:b/x");
    assert_eq!(measures[0].write.request_count(), 4);
    let names: Vec<String> = files(folder.path()).into_keys().collect();
    assert_eq!(names, ["a_x", "b_x"]);
}
