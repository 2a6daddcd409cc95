//! Whole machines, driven through the system calls of processes. Nothing here
//! looks up a result: each test reckons from the mechanism what a change must
//! do, and by how much.

mod accounts;
mod budgets;
mod catalogue;
mod cpu;
mod layout;
mod mechanisms;
mod repeatable;
mod rig;
mod ring;
mod rotation;

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::kernel::ffs::{InodeKind, InodeNumber};
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, OpenFlags, RunConditions, Session, Time, WorkerRendezvous};
use std::cell::RefCell;
use std::rc::Rc;

const SC780: &str = "vax780-sc780-eagle";
const SC750: &str = "vax750-sc750-eagle";
const UDA50: &str = "vax780-uda50-ra81";

/// A host whose instructions take next to no time, and whose memory serves
/// processor and drives at once.
const FAST: [(&str, &str); 4] = [
    ("host.speed", "100000"),
    ("host.copy_ms_per_kb", "0"),
    ("host.clear_ms_per_kb", "0"),
    ("bus.memory_contention_share", "0"),
];

/// A system of the catalogue with these parameters changed.
fn specification(system: &str, settings: &[(&str, &str)]) -> MachineSpecification {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(path, text)| Setting {
            path: (*path).to_string(),
            value_text: (*text).to_string(),
        })
        .collect();
    let system = Catalogue::embedded().resolve(system, &settings);
    let (specification, _) =
        MachineSpecification::read_machine(system.unwrap_or_else(|error| panic!("{error}")))
            .unwrap_or_else(|error| panic!("{error}"));
    specification
}

fn fast(system: &str, settings: &[(&str, &str)]) -> MachineSpecification {
    specification(system, &[&FAST, settings].concat())
}

/// Such a machine, with all its circumstances as they come.
fn machine(specification: &MachineSpecification) -> Machine {
    Machine::build(specification, RunConditions::default())
}

/// Starts a process; what it returns is there when the machine has run.
fn start<T: 'static>(
    machine: &Machine,
    number: usize,
    work: impl AsyncFnOnce(&mut Session) -> T + 'static,
) -> Rc<RefCell<Option<T>>> {
    let result = Rc::new(RefCell::new(None));
    let (kernel, out) = (machine.kernel().clone(), Rc::clone(&result));
    machine.spawn_process(&format!("process {number}"), async move {
        let meeting = WorkerRendezvous::new(1);
        let mut session = Session::begin_session(&kernel, number, Vec::new(), &meeting).await;
        let returned = work(&mut session).await;
        *out.borrow_mut() = Some(returned);
        session.end_session().await;
    });
    result
}

/// Runs one process to its end.
fn run<T: 'static>(machine: &Machine, work: impl AsyncFnOnce(&mut Session) -> T + 'static) -> T {
    let result = start(machine, 0, work);
    machine
        .run_to_end()
        .unwrap_or_else(|error| panic!("{error}"));
    result.take().expect("the process ended")
}

const READ: OpenFlags = OpenFlags {
    read: true,
    write: false,
    create: false,
    create_exclusive: false,
    truncate: false,
    direct_io: false,
    dsync: false,
};
const WRITE: OpenFlags = OpenFlags {
    read: false,
    write: true,
    ..READ
};
const CREATE: OpenFlags = OpenFlags {
    create: true,
    truncate: true,
    ..WRITE
};

const BLOCK: usize = 8192;

/// Writes a new file of this many calls of 8 KB, and waits until it is on the
/// drive.
async fn make(session: &mut Session, path: &str, calls: usize) {
    let file = session.open_path(path, CREATE).await.expect("a new file");
    for _ in 0..calls {
        assert_eq!(session.write(file, &[7; BLOCK]).await, Ok(BLOCK));
    }
    session.fsync(file).await.expect("it is open");
    session.close(file).await.expect("it is open");
}

/// Reads a file from its drive; when each call of 8 KB returned.
async fn read(session: &mut Session, path: &str) -> Vec<Time> {
    session.drop_cached_blocks(path).await.expect("the file");
    let file = session.open_path(path, READ).await.expect("the file");
    let mut into = [0; BLOCK];
    let mut moments = Vec::new();
    while session.read(file, &mut into).await.expect("a read") > 0 {
        moments.push(session.current_time());
    }
    session.close(file).await.expect("it is open");
    moments
}

/// The sector, on the drive, of each block of the only file of a drive.
fn sectors(machine: &Machine, specification: &MachineSpecification, drive: usize) -> Vec<u64> {
    let sectors = machine.with_file_system(drive, |fs| {
        let mut numbers = (2..100_000).map(InodeNumber);
        let file = numbers
            .find(|inode| {
                fs.is_inode_allocated(*inode) && fs.inode_kind(*inode) == InodeKind::RegularFile
            })
            .expect("a file");
        let superblock = fs.superblock();
        let blocks = fs
            .size_bytes(file)
            .div_ceil(u64::from(superblock.block_bytes()));
        (0..blocks as u32)
            .map(|lbn| fs.block_address(file, lbn).expect("no holes"))
            .map(|address| {
                specification.volumes[drive].partition.first_sector
                    + u64::from(superblock.first_sector_of_fragment(address))
            })
            .collect()
    });
    sectors.expect("a fast file system")
}
