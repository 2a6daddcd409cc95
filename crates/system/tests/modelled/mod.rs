//! What the tests of the model arm share: a computer of the catalogue, and
//! workers on it.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, Pipe, PipeEnd, RunConditions, RunEndReason, WorkerRendezvous};
use diskperf_system::System;
use diskperf_system::model::{ModelPorts, ModelWorker};
use std::cell::RefCell;
use std::rc::Rc;

/// The system that a test runs on if any will do.
pub(crate) const ANY_SYSTEM: &str = "vax780-sc780-eagle";

/// A system whose kernel is SunOS.
pub(crate) const SUNOS: &str = "sun3-xy451-eagle";

/// The system whose kernel is Minix.
pub(crate) const MINIX: &str = "atarist-supra";

/// The system whose kernel is the seventh edition's.
pub(crate) const XENIX: &str = "pcat-st251";

/// The systems of the catalogue.
pub(crate) const SYSTEMS: [&str; 13] = [
    "vax780-sc780-eagle",
    "vax750-sc750-eagle",
    "vax780-uda50-ra81",
    "vax750-uda50-ra81",
    "vax780-si9900-eagle",
    "vax750-si9900-eagle",
    "vax780-si9900-cdc9775",
    "sun3-rimfire-2344",
    "sun3-rimfire-2344:adaptive",
    "sun3-cheetah-2344",
    SUNOS,
    MINIX,
    XENIX,
];

/// A system of the catalogue with these settings, each PATH=VALUE.
pub(crate) fn specification(system: &str, settings: &[&str]) -> MachineSpecification {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|setting| {
            let (path, text) = setting.split_once('=').expect("PATH=VALUE");
            Setting {
                path: path.to_owned(),
                value_text: text.to_owned(),
            }
        })
        .collect();
    let resolved = Catalogue::embedded().resolve(system, &settings);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}"));
    let read = MachineSpecification::read_machine(resolved);
    read.unwrap_or_else(|problem| panic!("{problem}")).0
}

/// One drive, seed 1.
pub(crate) fn machine(specification: &MachineSpecification) -> Machine {
    Machine::build(specification, RunConditions::default())
}

/// Starts a worker; `work` takes its system and gives it back with a result,
/// which is put at the worker's place.
pub(crate) fn start<T: 'static, F>(
    machine: &Machine,
    ports: ModelPorts,
    results: &Rc<RefCell<Vec<Option<T>>>>,
    work: impl FnOnce(System) -> F + 'static,
) where
    F: Future<Output = (System, T)>,
{
    let kernel = machine.kernel().clone();
    let results = Rc::clone(results);
    let number = ports.process_number;
    if results.borrow().len() <= number {
        results.borrow_mut().resize_with(number + 1, || None);
    }
    machine.spawn_process(&format!("worker {number}"), async move {
        let system =
            System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
        let (system, result) = work(system).await;
        system.end_session().await;
        results.borrow_mut()[number] = Some(result);
    });
}

/// Runs one worker to its end on a machine.
///
/// # Errors
///
/// When it waits for what never comes.
pub(crate) fn run_alone<T: 'static, F>(
    machine: &Machine,
    ports: ModelPorts,
    work: impl FnOnce(System) -> F + 'static,
) -> Result<T, RunEndReason>
where
    F: Future<Output = (System, T)>,
{
    let results = Rc::default();
    let number = ports.process_number;
    start(machine, ports, &results, work);
    machine.run_to_end()?;
    let result = results.borrow_mut()[number].take();
    Ok(result.expect("the worker came to its end"))
}

/// For each of a meeting's workers its ports: the reading end of the pipe from
/// the worker before it, then the writing end of the pipe to the one after it.
pub(crate) fn ports_in_a_ring(workers: usize) -> Vec<ModelPorts> {
    let (mut reads, writes): (Vec<PipeEnd>, Vec<PipeEnd>) =
        (0..workers).map(|_| Pipe::make_ends()).unzip();
    // The pipe that a worker reads is the one that the worker before it writes.
    reads.rotate_right(1);
    let meeting = WorkerRendezvous::new(workers);
    let ends = reads.into_iter().zip(writes).enumerate();
    ends.map(|(number, (read_end, write_end))| ModelPorts {
        process_number: number,
        pipe_ends: vec![read_end, write_end],
        ..ports(number, &meeting)
    })
    .collect()
}

/// Ports of a worker without pipes.
pub(crate) fn ports(number: usize, meeting: &Rc<WorkerRendezvous>) -> ModelPorts {
    ModelPorts {
        process_number: number,
        pipe_ends: Vec::new(),
        rendezvous: Rc::clone(meeting),
        times_calls: true,
        stop_requested: Default::default(),
        progress: Default::default(),
    }
}

/// Ports of the only worker.
pub(crate) fn ports_alone() -> ModelPorts {
    ports(0, &WorkerRendezvous::new(1))
}

/// Expects a sound file system on each of the first drives, with no file left
/// in use.
#[track_caller]
pub(crate) fn expect_sound(machine: &Machine, drives: usize) {
    for drive in 0..drives {
        assert_eq!(
            unsound(machine, drive),
            Vec::<String>::new(),
            "drive {drive}"
        );
    }
}

/// What is wrong with a drive's file system, whatever its kind; a file without
/// a name that is still in use, too.
pub(crate) fn unsound(machine: &Machine, drive: usize) -> Vec<String> {
    match machine.check_file_system(drive) {
        Ok(0) => Vec::new(),
        Ok(open) => vec![format!("{open} files without a name are in use")],
        Err(problems) => problems,
    }
}
