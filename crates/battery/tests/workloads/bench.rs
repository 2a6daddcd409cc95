//! A modelled machine, and workers on it.

use diskperf_battery::{Medium, Program, SecondTarget, Worker, WorkerGroupMember};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, Pipe, RunConditions, TieBreak, WorkerRendezvous};
use diskperf_system::model::{ModelPorts, ModelWorker};
use diskperf_system::{FilesystemLayout, OpenOptions, System};
use diskperf_timeline::{Nanoseconds, WorkerMeasure};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

pub(crate) const SIZE_BYTES: u64 = 3_000_000;

pub(crate) fn program(name: &str, settings: &[(&str, &str)]) -> Program {
    let mut program = Program::from_name(name).expect("a program");
    for (key, value) in settings {
        program.set_parameter(key, value).expect("a parameter");
    }
    program
}

pub(crate) fn worker(index: u32) -> Worker {
    Worker {
        worker_index: index,
        drive_index: 0,
        medium: Medium::Directory,
        file_folder: "",
        second_target: Some(SecondTarget {
            drive_number: 1,
            medium: Medium::Directory,
        }),
        size_bytes: SIZE_BYTES,
        direct_io: false,
        random_seed: 1,
        think_time: Nanoseconds::ZERO,
        worker_group: WorkerGroupMember::default(),
    }
}

/// What a worker does in a repetition, on either world.
pub(crate) async fn work(system: &mut System, program: &Program, worker: &Worker) -> WorkerMeasure {
    let mut program = program.clone();
    let name = program.name();
    let failed = |error| panic!("{name} {}: {error}", worker.worker_index);
    let mut buffer = program.new_buffer(worker);
    let prepared = program.prepare_target(system, worker).await;
    prepared.unwrap_or_else(failed);
    system.barrier().await.expect("all come");
    let surveyed = program.survey_target(system, worker).await;
    surveyed.unwrap_or_else(failed);
    let origin = system.barrier().await.expect("all come");
    let start = origin + program.start_offset(worker);
    system.sleep_until(start).await.expect("time passes");
    system.start_measuring(origin).expect("it starts");
    let run = program.run_timed_part(system, worker, &mut buffer).await;
    run.unwrap_or_else(failed);
    let mut measure = system.finish_measuring().await.expect("it ends");
    measure.payload_bytes = program.payload_bytes(worker, &measure);
    system.close_all().await;
    measure
}

/// A machine, and the number of its next process: no two share one.
pub(crate) struct Bench {
    machine: Machine,
    next: Cell<usize>,
}

impl Deref for Bench {
    type Target = Machine;
    fn deref(&self) -> &Machine {
        &self.machine
    }
}

pub(crate) fn machine() -> Bench {
    machine_with(TieBreak::InsertionOrder)
}

pub(crate) fn machine_with(tie_break: TieBreak) -> Bench {
    machine_set(tie_break, &[])
}

/// One with other settings than its own.
pub(crate) fn machine_set(tie_break: TieBreak, settings: &[(&str, &str)]) -> Bench {
    let room = ("drive.partition_sectors", "80640");
    let settings = [room].into_iter().chain(settings.iter().copied());
    let settings: Vec<Setting> = settings
        .map(|(path, text)| Setting {
            path: path.to_owned(),
            value_text: text.to_owned(),
        })
        .collect();
    let circumstances = RunConditions {
        volume_count: 2,
        tie_break,
        ..RunConditions::default()
    };
    machine_of(("vax780-sc780-eagle", &settings), circumstances)
}

/// A system of the catalogue.
pub(crate) fn machine_of(
    (system, settings): (&str, &[Setting]),
    circumstances: RunConditions,
) -> Bench {
    let resolved = Catalogue::embedded().resolve(system, settings);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}"));
    let read =
        MachineSpecification::read_machine(resolved).unwrap_or_else(|problem| panic!("{problem}"));
    Bench {
        machine: Machine::build(&read.0, circumstances),
        next: Cell::new(0),
    }
}

/// Runs one body for each of some workers on a machine, to their ends.
pub(crate) fn run_workers<T: 'static>(
    machine: &Bench,
    workers: u32,
    body: impl AsyncFn(&mut System, u32) -> T + Clone + 'static,
) -> Vec<T> {
    let meeting = WorkerRendezvous::new(workers as usize);
    let results: Rc<RefCell<BTreeMap<u32, T>>> = Rc::default();
    let (read, write) = Pipe::make_ends();
    let mut ends = [Some(write), Some(read)];
    for index in 0..workers {
        let end = ends.get_mut(index as usize).and_then(Option::take);
        let ports = ModelPorts {
            process_number: machine.next.replace(machine.next.get() + 1),
            pipe_ends: end.into_iter().collect(),
            rendezvous: Rc::clone(&meeting),
            times_calls: false,
            stop_requested: Default::default(),
            progress: Default::default(),
        };
        let kernel = machine.kernel().clone();
        let (results, body) = (Rc::clone(&results), body.clone());
        machine.spawn_process(&format!("worker {index}"), async move {
            let mut system =
                System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
            let result = body(&mut system, index).await;
            system.end_session().await;
            results.borrow_mut().insert(index, result);
        });
    }
    machine.run_to_end().expect("all workers end");
    results.take().into_values().collect()
}

pub(crate) fn run_modelled(machine: &Bench, program: &Program) -> Vec<WorkerMeasure> {
    let program = program.clone();
    let workers = program.worker_count();
    run_workers(machine, workers, async move |system: &mut System, index| {
        work(system, &program, &worker(index)).await
    })
}

pub(crate) fn layout(machine: &Bench, mount: u32) -> FilesystemLayout {
    let mut layouts = run_workers(machine, 1, async move |system: &mut System, _| {
        system.layout_of_mount(mount).expect("it is mounted")
    });
    layouts.remove(0)
}

/// The files under a directory of a modelled file system, with their contents.
pub(crate) fn files_modelled(
    machine: &Bench,
    mount: u32,
    top: &'static str,
) -> BTreeMap<String, Vec<u8>> {
    let inodes = layout(machine, mount).inode_layouts();
    let mut read = run_workers(machine, 1, async move |system: &mut System, _| {
        let mut files = BTreeMap::new();
        for inode in inodes.iter().filter(|inode| !inode.is_directory) {
            let Some(name) = inode.path.strip_prefix(top) else {
                continue;
            };
            let path = format!("/mnt{mount}/{}", inode.path);
            let file = system.open(&path, OpenOptions::READ).await.expect("a file");
            let mut bytes = vec![0; inode.size_bytes as usize];
            let mut done = 0;
            while done < bytes.len() {
                done += system.read(file, &mut bytes[done..]).await.expect("read");
            }
            system.close(file).await.expect("closed");
            files.insert(name.to_owned(), bytes);
        }
        files
    });
    read.remove(0)
}

pub(crate) fn assert_sound(machine: &Bench) {
    for drive in 0..2 {
        if let Err(problems) = machine.check_file_system(drive) {
            panic!("drive {drive}: {problems:?}");
        }
    }
}
