//! Ways in which tests run programs and sections of job files: on a folder, on modelled
//! computers, and by fio.
#![allow(dead_code, reason = "each test uses some of them")]

#[path = "../../../fio/tests/installed/mod.rs"]
pub(crate) mod installed;

use diskperf_battery::{Medium, Program, ProgramError, Worker};
use diskperf_catalogue::Catalogue;
use diskperf_fio::plan::FileSize;
use diskperf_fio::{JobDefinition, JobEnvironment, JobFile};
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, RunConditions, WorkerRendezvous as Meeting};
use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};
use diskperf_system::model::{ModelPorts, ModelWorker};
use diskperf_system::{System, WorkerProgress, run_ready};
use diskperf_timeline::{LoadMeasure, Nanoseconds};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) type Outcome = Result<LoadMeasure, ProgramError>;

pub(crate) fn job(options: &str) -> JobDefinition {
    let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
    let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
    let mut parsed = parsed.unwrap_or_else(|errors| panic!("{options}: {errors}"));
    parsed.jobs.remove(0)
}

pub(crate) fn worker(medium: Medium) -> Worker {
    Worker {
        worker_index: 0,
        drive_index: 0,
        medium,
        file_folder: "",
        second_target: None,
        size_bytes: 1 << 20,
        direct_io: medium == Medium::Device,
        random_seed: 1983,
        worker_group: Default::default(),
        think_time: Nanoseconds::ZERO,
    }
}

pub(crate) async fn work(system: &mut System, program: &Program, worker: &Worker) -> Outcome {
    let mut program = program.clone();
    let mut buffer = program.new_buffer(worker);
    program.prepare_target(system, worker).await?;
    program.survey_target(system, worker).await?;
    let origin = system.now();
    system.start_measuring(origin)?;
    let run = program.run_timed_part(system, worker, &mut buffer).await;
    let measure = system.finish_measuring().await?;
    system.close_all().await;
    // One call at a time leaves no load: what was verified is all that is looked at.
    let verified = measure.all_verified().cloned();
    if let Err(ProgramError::CorruptData(text)) = &run {
        let mismatches = verified.as_ref().map(|one| one.mismatch_count);
        assert!(mismatches > Some(0), "{text}: {verified:?}");
    }
    run.map(|()| LoadMeasure {
        verified_blocks: verified,
        ..measure.load_measure.unwrap_or_default()
    })
}

/// Runs a section in a directory.
pub(crate) fn on_host(folder: &Path, options: &str) -> Outcome {
    let program = Program::from_fio_job(
        &job(options),
        &BTreeMap::new(),
        &BTreeMap::new(),
        &BTreeMap::new(),
    );
    let program = program.unwrap_or_else(|errors| panic!("{options}: {errors}"));
    program_on_host(folder, &program)
}

pub(crate) fn program_on_host(folder: &Path, program: &Program) -> Outcome {
    shown_on_host(folder, program).outcome
}

/// Outcomes of a worker, and the progress that it showed at last.
pub(crate) struct Shown<T> {
    pub(crate) outcome: T,
    pub(crate) progress: Arc<WorkerProgress>,
}

/// Runs a program in a directory.
pub(crate) fn shown_on_host(folder: &Path, program: &Program) -> Shown<Outcome> {
    let progress = Arc::<WorkerProgress>::default();
    let worker = (worker(Medium::Directory), Vec::new());
    Shown {
        outcome: worker_on_host(folder, program, worker, &progress),
        progress,
    }
}

/// Runs the program of one end of a pipe in a directory.
pub(crate) fn end_on_host(
    folder: &Path,
    (program, index): (&Program, u32),
    end: OwnedFd,
) -> Outcome {
    let worker = Worker {
        worker_index: index,
        ..worker(Medium::Directory)
    };
    worker_on_host(folder, program, (worker, vec![Some(end)]), &Arc::default())
}

fn worker_on_host(
    folder: &Path,
    program: &Program,
    (worker, pipe_ends): (Worker, Vec<Option<OwnedFd>>),
    progress: &Arc<WorkerProgress>,
) -> Outcome {
    let directory = OwnedFd::from(std::fs::File::open(folder).expect("a folder"));
    let ports = HostPorts {
        directories: vec![directory],
        pipe_ends,
        ..HostPorts::default()
    };
    let control = WorkerControl {
        progress: Arc::clone(progress),
        ..WorkerControl::for_single_worker(true, CallClock::new_calibrated())
    };
    let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
    run_ready(work(&mut system, program, &worker))
}

/// Runs sections one after the other on a modelled computer.
pub(crate) fn on_model(rig: &str, medium: Medium, sections: &[&str]) -> Vec<Outcome> {
    let program = |options: &&str| {
        let existing = match medium {
            Medium::Device => BTreeMap::from([("f".to_owned(), FileSize::Fixed(8 << 20))]),
            Medium::Directory | Medium::File => BTreeMap::new(),
        };
        let program =
            Program::from_fio_job(&job(options), &existing, &BTreeMap::new(), &BTreeMap::new());
        program.unwrap_or_else(|errors| panic!("{options}: {errors}"))
    };
    let programs: Vec<Program> = sections.iter().map(program).collect();
    programs_on_model(rig, medium, programs)
}

pub(crate) fn programs_on_model(rig: &str, medium: Medium, programs: Vec<Program>) -> Vec<Outcome> {
    shown_on_model(rig, medium, programs).outcome
}

/// Runs programs one after the other on a modelled computer.
pub(crate) fn shown_on_model(
    rig: &str,
    medium: Medium,
    programs: Vec<Program>,
) -> Shown<Vec<Outcome>> {
    let progress = Arc::<WorkerProgress>::default();
    let resolved = Catalogue::embedded().resolve(rig, &[]);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}"));
    let read =
        MachineSpecification::read_machine(resolved).unwrap_or_else(|problem| panic!("{problem}"));
    let machine = Machine::build(&read.0, RunConditions::default());
    let ports = ModelPorts {
        process_number: 0,
        pipe_ends: Vec::new(),
        rendezvous: Meeting::new(1),
        times_calls: false,
        stop_requested: Default::default(),
        progress: Arc::clone(&progress),
    };
    let kernel = machine.kernel().clone();
    let outcomes: Rc<RefCell<Vec<Outcome>>> = Rc::default();
    let kept = Rc::clone(&outcomes);
    machine.spawn_process("worker", async move {
        let mut system =
            System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
        for program in &programs {
            let outcome = work(&mut system, program, &worker(medium)).await;
            kept.borrow_mut().push(outcome);
        }
        system.end_session().await;
    });
    machine.run_to_end().expect("the worker ends");
    Shown {
        outcome: outcomes.take(),
        progress,
    }
}

/// Runs sections by fio, one after the other; the error number of each.
pub(crate) fn by_fio(folder: &Path, sections: &[String]) -> Vec<i64> {
    let mut text = "[global]\nthread\n".to_owned();
    for section in sections {
        text += &format!("[job]\nstonewall\n{}\n", section.replace(' ', "\n"));
    }
    std::fs::write(folder.join("all.fio"), &text).expect("a job file");
    let output = Command::new("fio")
        .args(["--output-format=json", "--output=all.json", "all.fio"])
        .current_dir(folder)
        .output()
        .expect("fio runs");
    let json = std::fs::read_to_string(folder.join("all.json")).expect("fio's results");
    // fio prints what differs in front of its results.
    let start = json.find('{').unwrap_or_else(|| panic!("{output:?}"));
    let json: serde_json::Value = serde_json::from_str(&json[start..]).expect("JSON");
    let jobs = json["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), sections.len(), "{text}");
    jobs.iter()
        .map(|job| job["error"].as_i64().expect("a number"))
        .collect()
}

/// Flips a bit of the last byte, which every checksum of fio's covers.
pub(crate) fn flip_last(path: &Path) {
    let bytes = std::fs::metadata(path).expect("a file").len();
    flip(path, bytes as usize - 1);
}

/// Flips a bit of a byte.
pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[at] ^= 4;
    std::fs::write(path, bytes).expect("a file");
}

/// Every kind of verification.
pub(crate) const KINDS: &[&str] = &[
    "verify=md5",
    "verify=crc64",
    "verify=crc32",
    "verify=crc32c",
    "verify=crc32c-intel",
    "verify=crc16",
    "verify=crc7",
    "verify=sha1",
    "verify=sha256",
    "verify=sha512",
    "verify=sha3-224",
    "verify=sha3-256",
    "verify=sha3-384",
    "verify=sha3-512",
    "verify=xxhash",
    "verify=meta",
    "verify=null",
    "verify_pattern=0xdeadbeef",
    "verify=pattern verify_pattern=\"ab\"%o0x07",
    "verify=crc32c verify_pattern=0xaa%o",
];

/// Outcome of a section by fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByFio {
    /// It ended with this error number.
    Ended(i64),
    /// fio does not take it.
    Refused,
    /// It did not end, as some of fio's combinations do not.
    Hung,
}

/// Runs one section by fio.
pub(crate) fn one_by_fio(folder: &Path, options: &str) -> ByFio {
    const TIMED_OUT: i32 = 124;
    const EILSEQ: i64 = 84;
    let text = format!("[job]\nthread\n{}\n", options.replace(' ', "\n"));
    std::fs::write(folder.join("one.fio"), &text).expect("a job file");
    let output = Command::new("timeout")
        .args(["-s", "KILL", "-k", "1", "6"])
        .args(["fio", "--output-format=json", "one.fio"])
        .current_dir(folder)
        .output()
        .expect("fio runs");
    if output
        .status
        .code()
        .is_none_or(|code| code == TIMED_OUT || code == 137)
    {
        return ByFio::Hung;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text.find("\n{").or_else(|| text.find('{'));
    let json = json.and_then(|at| serde_json::from_str(&text[at..]).ok());
    let error = json.and_then(|json: serde_json::Value| json["jobs"][0]["error"].as_i64());
    // With verify_async, or where a later part of the I/O is right, fio names a difference and
    // ends without an error.
    let printed = text.into_owned() + &String::from_utf8_lossy(&output.stderr);
    let names = ["verify failed at", "verify: bad", "bad pattern"];
    let is_named = names.iter().any(|name| printed.contains(name));
    match error {
        Some(0) if is_named => ByFio::Ended(EILSEQ),
        Some(error) => ByFio::Ended(error),
        None => ByFio::Refused,
    }
}
