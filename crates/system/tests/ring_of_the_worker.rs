//! Engines of a ring that do each request in the worker itself: mapped files, and splice.
#![cfg(target_os = "linux")]

mod requests;

use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};
use diskperf_system::{
    EngineChoice, Errno, File, IoOperation, MapOptions, OpenOptions, RangeSteps, Submission,
    System, run_ready,
};
use requests::{BLOCK, options, request};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

const ENGINES: [EngineChoice; 4] = [
    EngineChoice::MappedFiles(MapOptions {
        is_random: false,
        drops_pages: false,
    }),
    EngineChoice::MappedFiles(MapOptions {
        is_random: true,
        drops_pages: true,
    }),
    EngineChoice::SplicedFiles,
    EngineChoice::Threads,
];

/// Blocks of the file, each filled with its number, and half a block.
const FILE_BLOCKS: u8 = 5;

/// A file of a folder, open and with a ring of two slots.
fn opened(folder: &Path, engine: EngineChoice) -> (System, File) {
    let mut data: Vec<u8> = (0..FILE_BLOCKS).flat_map(|n| [n; BLOCK as usize]).collect();
    data.extend([FILE_BLOCKS; BLOCK as usize / 2]);
    fs::write(folder.join("file"), data).unwrap();
    let ports = HostPorts {
        directories: vec![OwnedFd::from(fs::File::open(folder).unwrap())],
        ..HostPorts::default()
    };
    let control = WorkerControl::for_single_worker(true, CallClock::new_calibrated());
    let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
    let file = run_ready(system.open("/mnt0/file", OpenOptions::READ_WRITE)).unwrap();
    run_ready(system.open_ring(options(2, engine), &[file])).unwrap();
    (system, file)
}

fn done(system: &mut System, submission: Submission) -> Result<u32, Errno> {
    run_ready(requests::all(system, &[submission])).remove(0)
}

#[test]
fn what_is_read_is_in_the_file_and_what_is_written_comes_to_be_there() {
    for engine in ENGINES {
        let folder = tempfile::tempdir().unwrap();
        let (mut system, file) = opened(folder.path(), engine);
        let read = |system: &mut System, block: u64| {
            let moved = done(system, request(IoOperation::Read, file, 1, block)).unwrap();
            let buffer = system.ring_buffer(1).unwrap();
            (moved, buffer[0])
        };
        for block in [3, 0, 4] {
            assert_eq!(read(&mut system, block), (BLOCK, block as u8), "{engine:?}");
        }
        // Half a block, and nothing behind it.
        let last = u64::from(FILE_BLOCKS);
        assert_eq!(
            read(&mut system, last),
            (BLOCK / 2, FILE_BLOCKS),
            "{engine:?}"
        );
        assert_eq!(read(&mut system, last + 1).0, 0, "{engine:?}");
        system.ring_buffer(0).unwrap().fill(77);
        let write = request(IoOperation::Write, file, 0, 2);
        assert_eq!(done(&mut system, write), Ok(BLOCK), "{engine:?}");
        let steps = RangeSteps {
            starts_writeback: true,
            waits_after: true,
            ..RangeSteps::default()
        };
        let syncs = [
            IoOperation::Fsync,
            IoOperation::Fdatasync,
            IoOperation::SyncRange(steps),
        ];
        for sync in syncs {
            assert!(
                done(&mut system, request(sync, file, 0, 2)).is_ok(),
                "{engine:?}"
            );
        }
        let data = fs::read(folder.path().join("file")).unwrap();
        let block = BLOCK as usize;
        assert_eq!(data.len(), block * usize::from(FILE_BLOCKS) + block / 2);
        let firsts: Vec<u8> = data.chunks(block).map(|block| block[0]).collect();
        assert_eq!(firsts, [0, 1, 77, 3, 4, 5], "{engine:?}");
        assert!(data[2 * block..3 * block].iter().all(|byte| *byte == 77));
    }
}

/// A page that the kernel cannot give is the end of a process that touches it.
#[test]
fn a_mapped_file_that_became_shorter_is_an_error_and_no_signal() {
    let mapped = EngineChoice::MappedFiles(MapOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let (mut system, file) = opened(folder.path(), mapped);
    let path = folder.path().join("file");
    let cut = fs::File::options().write(true).open(path).unwrap();
    cut.set_len(u64::from(BLOCK)).unwrap();
    let populate_is_there = kernel_has_populate();
    if !populate_is_there {
        eprintln!("SKIPPED a_mapped_file_that_became_shorter: a kernel before Linux 5.14");
        return;
    }
    for operation in [IoOperation::Read, IoOperation::Write] {
        let behind = request(operation, file, 0, 3);
        assert_eq!(done(&mut system, behind), Err(Errno::Io), "{operation:?}");
    }
    assert_eq!(
        done(&mut system, request(IoOperation::Read, file, 0, 0)),
        Ok(BLOCK)
    );
}

fn kernel_has_populate() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse().ok());
    let version: (u32, u32) = (number().unwrap_or(0), number().unwrap_or(0));
    version >= (5, 14)
}
