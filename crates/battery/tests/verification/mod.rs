//! Ways in which tests run programs and sections of job files: on a folder, on modelled
//! computers, and by fio.
#![allow(dead_code, reason = "each test uses some of them")]

#[path = "../../../fio/tests/installed/mod.rs"]
pub(crate) mod installed;

use diskperf_battery::{Medium, Program, ProgramError, Worker};
use diskperf_catalogue::Catalogue;
use diskperf_fio::plan::FileSize;
use diskperf_fio::{JobDefinition, JobEnvironment, JobFile};
use diskperf_machine::specification::Specification;
use diskperf_machine::{Circumstances, Machine, Rendezvous as Meeting};
use diskperf_system::host::{Clock, Control, Host, Ports};
use diskperf_system::model::{Model, ModelPorts};
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
        index: 0,
        drive: 0,
        medium,
        folder: "",
        other: None,
        size_bytes: 1 << 20,
        direct: medium == Medium::Device,
        seed: 1983,
        company: Default::default(),
        think: Nanoseconds::ZERO,
    }
}

pub(crate) async fn work(system: &mut System, program: &Program, worker: &Worker) -> Outcome {
    let mut program = program.clone();
    let mut buffer = program.buffer(worker);
    program.prepare(system, worker).await?;
    program.survey(system, worker).await?;
    let origin = system.now();
    system.start_measuring(origin)?;
    let run = program.run(system, worker, &mut buffer).await;
    let measure = system.finish_measuring().await?;
    system.close_all().await;
    // One call at a time leaves no load: what was verified is all that is looked at.
    let verified = measure.all_verified().cloned();
    if let Err(ProgramError::Corrupt(text)) = &run {
        let mismatches = verified.as_ref().map(|one| one.mismatches);
        assert!(mismatches > Some(0), "{text}: {verified:?}");
    }
    run.map(|()| LoadMeasure {
        verified,
        ..measure.load.unwrap_or_default()
    })
}

/// Runs a section in a directory.
pub(crate) fn on_host(folder: &Path, options: &str) -> Outcome {
    let program = Program::of_fio_job(
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
        index,
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
    let ports = Ports {
        directories: vec![directory],
        pipe_ends,
        ..Ports::default()
    };
    let control = Control {
        progress: Arc::clone(progress),
        ..Control::alone(true, Clock::calibrated())
    };
    let mut system = System::Host(Box::new(Host::new(ports, control)));
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
            Program::of_fio_job(&job(options), &existing, &BTreeMap::new(), &BTreeMap::new());
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
    let read = Specification::read(resolved).unwrap_or_else(|problem| panic!("{problem}"));
    let machine = Machine::build(&read.0, Circumstances::default());
    let ports = ModelPorts {
        number: 0,
        pipe_ends: Vec::new(),
        meeting: Meeting::new(1),
        time_calls: false,
        stop: Default::default(),
        progress: Arc::clone(&progress),
    };
    let kernel = machine.kernel().clone();
    let outcomes: Rc<RefCell<Vec<Outcome>>> = Rc::default();
    let kept = Rc::clone(&outcomes);
    machine.spawn("worker", async move {
        let mut system = System::Model(Box::new(Model::begin(&kernel, ports).await));
        for program in &programs {
            let outcome = work(&mut system, program, &worker(medium)).await;
            kept.borrow_mut().push(outcome);
        }
        system.end().await;
    });
    machine.run().expect("the worker ends");
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
