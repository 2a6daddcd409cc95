//! The workloads of Zachariassen 1987 on both worlds: what is restored is what was
//! dumped, byte for byte, and fsck reads what there is to read.

use crate::bench::{
    SIZE_BYTES, assert_sound, files_modelled, layout, machine, machine_set, machine_with, program,
    run_modelled, work, worker,
};
use diskperf_battery::{PipeEnd, Program};
use diskperf_machine::TieBreak;
use diskperf_timeline::{Nanoseconds, Stage, WorkerMeasure};
use std::collections::BTreeMap;

fn total(files: &BTreeMap<String, Vec<u8>>) -> u64 {
    files.values().map(|bytes| bytes.len() as u64).sum()
}

/// Takes what restore leaves for the next restore out of what was restored; how
/// long it is.
fn without_table(restored: &mut BTreeMap<String, Vec<u8>>) -> u64 {
    let table = restored.remove("restoresymtable");
    table.expect("restore leaves its table").len() as u64
}

/// What the programs compute is the work of a VAX-11/780 on a VAX-11/780.
#[test]
fn dump_and_restore_compute() {
    let machine = machine();
    let measures = run_modelled(&machine, &program("dump_restore", &[]));
    let inodes = layout(&machine, 0).inode_layouts();
    let dumped = |path: &str| path == "usr" || path.starts_with("usr/");
    let dumped = inodes.iter().filter(|inode| dumped(&inode.path)).count() as u64;
    let records = measures[1].read_bytes / 1024;
    let user = |worker: usize| measures[worker].ledger.stage_duration(Stage::User);
    assert_eq!(user(0), Nanoseconds(dumped * 5_000_000));
    assert_eq!(user(1), Nanoseconds(dumped * 5_000_000 + records * 600_000));
}

/// For what restore changes of a file the kernel of SunOS 3 waits, that of
/// 4.2BSD does not.
#[test]
fn what_restore_changes_of_files_takes_its_time() {
    let elapsed = |waits: &str| {
        let waits = ("kernel.attributes_synchronous", waits);
        let machine = machine_set(TieBreak::InsertionOrder, &[waits]);
        let measures = run_modelled(&machine, &program("dump_restore", &[]));
        // Half of them are what was dumped.
        let inodes = layout(&machine, 0).inode_layouts().len() as u64;
        (measures[1].elapsed_time, inodes / 2)
    };
    let ((without, inodes), (with, _)) = (elapsed("false"), elapsed("true"));
    // Owner, mode and times of each, a write apiece, at half a turn at least.
    let least = Nanoseconds(inodes * 3 * 8_000_000);
    assert!(with.since(without) > least, "{without:?} and {with:?}");
}

#[test]
fn what_is_restored_on_a_model_is_what_was_dumped() {
    for (destination, mount, top) in [("same", 0, "restored/"), ("other", 1, "restored0/")] {
        let machine = machine();
        let program = program("dump_restore", &[("destination", destination)]);
        // What the first repetition restored the second removes.
        for _ in 0..2 {
            let measures = run_modelled(&machine, &program);
            let [dump, restore] = &measures[..] else {
                panic!("two workers: {measures:?}");
            };
            assert_eq!(dump.written_bytes, restore.read_bytes, "through the pipe");
            assert_eq!((dump.payload_bytes, restore.payload_bytes), (0, SIZE_BYTES));
            let dumped = files_modelled(&machine, 0, "usr/");
            let mut restored = files_modelled(&machine, mount, top);
            let table = without_table(&mut restored);
            assert_eq!(restore.written_bytes, SIZE_BYTES + table);
            assert_eq!(total(&dumped), SIZE_BYTES);
            assert!(dumped == restored, "{destination}: not what was dumped");
            assert_sound(&machine);
        }
    }
}

/// dump reads every block of inodes, and of every dumped file each block, from
/// the drive: whole sectors of what the files hold.
#[test]
fn dump_reads_past_the_cache() {
    let machine = machine();
    let program = program("dump_restore", &[("destination", "other")]);
    let measures = run_modelled(&machine, &program);
    let layout = layout(&machine, 0);
    let inodes: u64 = layout.inode_blocks().iter().map(length).sum();
    let read = measures[0].storage_read_bytes.expect("a model knows");
    assert_eq!(read, measures[0].read_bytes, "nothing comes from a cache");
    assert!(read > inodes + SIZE_BYTES, "{read}");
}

fn length(extent: &diskperf_system::ByteExtent) -> u64 {
    u64::from(extent.length_bytes)
}

#[test]
fn fsck_reads_the_whole_of_a_mounted_file_system() {
    let machine = machine();
    run_modelled(&machine, &program("populate", &[]));
    let populated = machine.current_time();
    let measures = run_modelled(&machine, &program("fsck", &[]));
    let layout = layout(&machine, 0);
    let reads = layout.fsck_reads();
    let bytes: u64 = reads.iter().map(|read| length(&read.extent)).sum();
    assert_eq!(measures[0].read_bytes, bytes);
    assert_eq!(measures[0].call_count, reads.len() as u64);
    assert_eq!(measures[0].storage_read_bytes, Some(bytes));
    assert_eq!(measures[0].written_bytes, 0);
    // The work of a VAX-11/780 on a VAX-11/780.
    let blocks = layout.inode_blocks().len() as u64;
    let work_us = blocks * 48_000 + (reads.len() as u64 - blocks) * 200;
    let user = measures[0].ledger.stage_duration(Stage::User);
    assert_eq!(user, Nanoseconds(work_us * 1000));
    assert!(machine.current_time() > populated);
    assert_sound(&machine);
}

/// Several start one after the other, and all read everything.
#[test]
fn fscks_start_apart() {
    let machine = machine();
    let program = program("fsck", &[("checkers", "4"), ("offset_ms", "5000")]);
    let measures = run_modelled(&machine, &program);
    assert_eq!(measures.len(), 4);
    for (number, measure) in measures.iter().enumerate() {
        assert_eq!(measure.read_bytes, measures[0].read_bytes);
        let asked = Nanoseconds::from_millis(5000 * number as u64);
        let late = measure.start_time.since(asked);
        assert!(measure.start_time >= asked && late < Nanoseconds::from_millis(1000));
    }
}

#[test]
fn a_tree_is_made_anew_and_the_same() {
    let machine = machine();
    let populate = program("populate", &[]);
    let made = |populate: &Program| {
        let measures = run_modelled(&machine, populate);
        assert_eq!(measures[0].payload_bytes, SIZE_BYTES);
        files_modelled(&machine, 0, "usr/")
    };
    let first = made(&populate);
    assert_eq!(total(&first), SIZE_BYTES);
    assert!(first == made(&populate), "the same again");
    let other = made(&program("populate", &[("tree_seed", "2")]));
    assert!(first != other, "another seed");
    assert_eq!(total(&other), SIZE_BYTES);
    assert!(first == made(&populate), "nothing is left of the other");
    assert_sound(&machine);
}

#[test]
fn the_same_plan_gives_the_same_run() {
    for name in ["populate", "fsck", "dump_restore"] {
        let run = |tie_break| run_modelled(&machine_with(tie_break), &program(name, &[]));
        let once = run(TieBreak::InsertionOrder);
        assert_eq!(once, run(TieBreak::InsertionOrder), "{name}");
        assert_eq!(once, run(TieBreak::ReversedOrder), "{name}: a tie moves it");
    }
}

#[test]
fn of_the_two_processes_the_first_writes() {
    let program = program("dump_restore", &[]);
    let ends = [0, 1].map(|index| program.pipe_end(&worker(index)));
    assert_eq!(ends, [Some(PipeEnd::Write), Some(PipeEnd::Read)]);
    assert_eq!(program.worker_count(), 2);
}

#[cfg(target_os = "linux")]
mod on_host {
    use super::*;
    use diskperf_system::host::{CallClock, HostPorts, HostRendezvous, HostWorker, WorkerControl};
    use diskperf_system::{System, run_ready};
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;

    fn run_on_host(program: &Program, mounts: &[&Path]) -> Vec<WorkerMeasure> {
        let workers = program.worker_count();
        let rendezvous = Arc::new(HostRendezvous::new(workers as usize));
        let (read, write) = std::io::pipe().expect("a pipe");
        let mut ends: [Option<OwnedFd>; 2] = [Some(write.into()), Some(read.into())];
        std::thread::scope(|scope| {
            let start = |index: u32| {
                let directory = |path: &&Path| std::fs::File::open(path).expect("it is there");
                let ports = HostPorts {
                    directories: mounts.iter().map(|path| directory(path).into()).collect(),
                    pipe_ends: ends
                        .get_mut(index as usize)
                        .map(Option::take)
                        .into_iter()
                        .collect(),
                    ..HostPorts::default()
                };
                let control = WorkerControl {
                    rendezvous: Arc::clone(&rendezvous),
                    ..WorkerControl::for_single_worker(false, CallClock::new_calibrated())
                };
                scope.spawn(move || {
                    let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
                    run_ready(work(&mut system, program, &worker(index)))
                })
            };
            let threads: Vec<_> = (0..workers).map(start).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, WorkerMeasure>| {
                thread.join().expect("a worker comes to its end")
            };
            threads.into_iter().map(join).collect()
        })
    }

    fn files(top: &Path, within: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(top.join(within)).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name of letters");
            let path = format!("{within}{name}");
            if entry.file_type().expect("a type").is_dir() {
                files(top, &format!("{path}/"), found);
            } else {
                found.insert(path, std::fs::read(entry.path()).expect("a file"));
            }
        }
    }

    fn all_files(top: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        files(top, "", &mut found);
        found
    }

    /// The files are the same on both worlds, too.
    #[test]
    fn what_is_restored_on_the_host_is_what_was_dumped() {
        let machine = machine();
        run_modelled(&machine, &program("populate", &[]));
        let modelled = files_modelled(&machine, 0, "usr/");
        let (here, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mounts = [here.path(), other.path()];
        for (destination, top) in [
            ("same", here.path().join("restored")),
            ("other", other.path().join("restored0")),
        ] {
            let program = program("dump_restore", &[("destination", destination)]);
            for _ in 0..2 {
                let measures = run_on_host(&program, &mounts);
                assert_eq!(measures[0].written_bytes, measures[1].read_bytes);
                assert_eq!(measures[1].payload_bytes, SIZE_BYTES);
                assert!(measures[1].durable_time.is_some(), "all was synced");
                let dumped = all_files(&here.path().join("usr"));
                let mut restored = all_files(&top);
                without_table(&mut restored);
                assert!(dumped == restored, "{destination}");
                assert!(dumped == modelled, "{destination}");
            }
        }
    }

    #[test]
    fn fsck_reads_an_image_as_it_reads_a_drive() {
        let here = tempfile::tempdir().unwrap();
        let program = program("fsck", &[("checkers", "2"), ("offset_ms", "0")]);
        let measures = run_on_host(&program, &[here.path()]);
        let image = std::fs::metadata(here.path().join("fsck.image")).unwrap();
        assert_eq!(image.len(), program.file_bytes(SIZE_BYTES));
        assert!(measures[0].call_count > 100, "{measures:?}");
        assert_eq!(measures[0].read_bytes, measures[1].read_bytes);
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
    }
}
