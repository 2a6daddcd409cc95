//! The ring of real storage where it meets the kernel: what ends it, what it falls back
//! to, and devices that fail.
#![cfg(target_os = "linux")]

mod requests;
mod support;

use diskperf_system::host::{CallClock, DrivePort, HostPorts, HostWorker, WorkerControl};
use diskperf_system::{
    EngineChoice, Errno, Error, File, IoOperation, OpenOptions, RingOptions, SeekOrigin,
    Submission, System, run_ready,
};
use diskperf_timeline::{Engine, WorkerMeasure};
use requests::{BLOCK, options, reads, request};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{LoopDevice, Needs, Scratch, can_run, fill, forbid, opened};

/// What most faults are met with under way.
const MANY: u32 = 128;

fn host(ports: HostPorts, stop: &Arc<AtomicBool>) -> System {
    let control = WorkerControl {
        stop_requested: Arc::clone(stop),
        ..WorkerControl::for_single_worker(true, CallClock::new_calibrated())
    };
    System::HostWorker(Box::new(HostWorker::new(ports, control)))
}

fn on(ports: HostPorts) -> System {
    host(ports, &Arc::default())
}

fn directory(path: &Path) -> HostPorts {
    HostPorts {
        directories: vec![opened(path)],
        ..HostPorts::default()
    }
}

fn drive(drive: DrivePort) -> HostPorts {
    HostPorts {
        drive_ports: vec![drive],
        ..HostPorts::default()
    }
}

/// Submits these, and takes all; their results by slot.
fn all(system: &mut System, submissions: &[Submission]) -> Vec<Result<u32, Errno>> {
    run_ready(requests::all(system, submissions))
}

fn measured(system: &mut System) -> WorkerMeasure {
    run_ready(system.finish_measuring()).unwrap()
}

/// A worker whose ring has reads of a pipe under way into which nobody writes: they never
/// complete by themselves. With the end to write into.
fn reading_nothing(stop: &Arc<AtomicBool>) -> (System, OwnedFd) {
    let (read_end, write_end) = rustix::pipe::pipe().unwrap();
    let ports = HostPorts {
        pipe_ends: vec![Some(read_end)],
        ..HostPorts::default()
    };
    let mut system = host(ports, stop);
    let file = run_ready(system.open_pipe_end(0)).unwrap();
    let ring = options(MANY, EngineChoice::IoUring);
    run_ready(system.open_ring(ring, &[file])).unwrap();
    let reads = reads(file, vec![0; MANY as usize]);
    run_ready(system.submit_requests(&reads)).unwrap();
    (system, write_end)
}

fn has_io_uring(test: &str) -> bool {
    let mut system = on(drive(DrivePort::RegularFile("/dev/zero".into())));
    let file = run_ready(system.open("/dev/drive0", OpenOptions::READ)).unwrap();
    let ring = system_ring(&mut system, file);
    if let Err(error) = &ring {
        eprintln!("SKIPPED {test}: {error}");
    }
    ring.is_ok()
}

fn system_ring(system: &mut System, file: File) -> diskperf_system::Result<()> {
    run_ready(system.open_ring(options(1, EngineChoice::IoUring), &[file]))
}

#[test]
fn a_stop_ends_a_wait_for_what_never_completes() {
    if !has_io_uring("a_stop_ends_a_wait_for_what_never_completes") {
        return;
    }
    for at_least in [1, 2, MANY as usize] {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, waits) = std::sync::mpsc::channel();
        let of_worker = Arc::clone(&stop);
        let worker = std::thread::spawn(move || {
            let (mut system, _write_end) = reading_nothing(&of_worker);
            told.send(()).unwrap();
            let mut completions = Vec::new();
            let ended = run_ready(system.reap_requests(at_least, None, &mut completions));
            (ended, completions.len())
        });
        waits.recv().unwrap();
        stop.store(true, Ordering::Relaxed);
        // It would not end, if it did not notice.
        let (ended, completions) = worker.join().unwrap();
        assert_eq!((ended, completions), (Err(Error::Interrupted), 0));
    }
}

#[test]
fn a_panic_leaves_nothing_under_way() {
    if !has_io_uring("a_panic_leaves_nothing_under_way") {
        return;
    }
    let (system, write_end) = reading_nothing(&Arc::default());
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _system = system;
        panic!("the program has a fault");
    }));
    assert!(panicked.is_err());
    // Nobody reads any more: the ring has given the pipe up.
    let written = rustix::io::write(&write_end, b"too late");
    assert_eq!(written, Err(rustix::io::Errno::PIPE));
}

#[test]
fn a_closed_file_is_given_up_with_its_ring() {
    let scratch = Scratch::new();
    fill(&scratch.path().join("file"), 1, 7);
    for engine in [
        EngineChoice::BestAvailable,
        EngineChoice::Threads,
        EngineChoice::WorkerThread,
    ] {
        let mut system = on(directory(&scratch.path()));
        let file = run_ready(system.open("/mnt0/file", OpenOptions::READ_WRITE)).unwrap();
        run_ready(system.open_ring(options(MANY, engine), &[file])).unwrap();
        let writes: Vec<Submission> = (0..MANY)
            .map(|slot| request(IoOperation::Write, file, slot, u64::from(slot)))
            .collect();
        run_ready(system.submit_requests(&writes)).unwrap();
        drop(system);
        let link = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let path = scratch.path().join("file");
        let left = open.flatten().filter_map(link).filter(|to| *to == path);
        assert_eq!(left.count(), 0, "{engine:?}");
    }
}

#[test]
fn each_engine_says_which_it_is() {
    let scratch = Scratch::new();
    fill(&scratch.path().join("file"), 1, 7);
    let mut engines = vec![
        (EngineChoice::Threads, Engine::Threads),
        (EngineChoice::WorkerThread, Engine::Calls),
    ];
    if has_io_uring("each_engine_says_which_it_is") {
        engines.push((EngineChoice::BestAvailable, Engine::IoUring));
        engines.push((EngineChoice::IoUring, Engine::IoUring));
        engines.push((EngineChoice::SqPoll, Engine::IoUringSqPoll));
    }
    for (choice, expected) in engines {
        let mut system = on(directory(&scratch.path()));
        let file = run_ready(system.open("/mnt0/file", OpenOptions::READ)).unwrap();
        run_ready(system.open_ring(options(4, choice), &[file])).unwrap();
        system.start_measuring(system.now()).unwrap();
        assert_eq!(all(&mut system, &reads(file, 0..4)), [Ok(BLOCK); 4]);
        let load = measured(&mut system).load_measure.unwrap();
        assert_eq!(load.engine, expected);
    }
}

/// Filters know some of the three calls, and answer as if there was no such call, or
/// as if it was not permitted.
#[test]
fn threads_do_it_where_a_call_of_io_uring_is_forbidden() {
    let scratch = Scratch::new();
    fill(&scratch.path().join("file"), 1, 7);
    for call in [
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ] {
        for (errno, name, refusal) in [
            (libc::EPERM, "EPERM", Errno::NotPermitted),
            (libc::ENOSYS, "ENOSYS", Errno::NoCall),
        ] {
            let path = scratch.path();
            let worker = std::thread::spawn(move || {
                forbid(call, errno);
                let mut system = on(directory(&path));
                let file = run_ready(system.open("/mnt0/file", OpenOptions::READ)).unwrap();
                let refused = system_ring(&mut system, file).unwrap_err();
                assert_eq!(refused.errno(), Some(refusal), "{call}: {refused}");
                run_ready(system.open_ring(options(4, EngineChoice::BestAvailable), &[file]))
                    .unwrap();
                system.start_measuring(system.now()).unwrap();
                assert_eq!(all(&mut system, &reads(file, 0..4)), [Ok(BLOCK); 4]);
                let load = measured(&mut system).load_measure.unwrap();
                assert_eq!(load.engine, Engine::Threads);
                let System::HostWorker(host) = &system else {
                    panic!()
                };
                let note = &host.engine_note().expect("there is a reason").message;
                assert!(note.contains("io_uring"), "{note}");
                let names = [name, "io_uring_disabled"];
                assert!(names.iter().any(|name| note.contains(name)), "{note}");
            });
            worker.join().unwrap();
        }
    }
}

#[test]
fn time_of_the_pool_is_the_worker_s() {
    let scratch = Scratch::new();
    fill(&scratch.path().join("file"), 8, 7);
    let mut system = on(directory(&scratch.path()));
    let file = run_ready(system.open("/mnt0/file", OpenOptions::READ)).unwrap();
    let ring = RingOptions {
        buffer_bytes: 1 << 20,
        ..options(4, EngineChoice::Threads)
    };
    run_ready(system.open_ring(ring, &[file])).unwrap();
    let cpu = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let before = cpu();
    system.start_measuring(system.now()).unwrap();
    for _ in 0..32 {
        let reads: Vec<Submission> = (0..4)
            .map(|slot| Submission {
                bytes: 1 << 20,
                ..request(IoOperation::Read, file, slot, 256 * u64::from(slot))
            })
            .collect();
        assert_eq!(all(&mut system, &reads), [Ok(1 << 20); 4]);
    }
    run_ready(system.close_ring()).unwrap();
    let measure = measured(&mut system);
    let own = cpu() - before;
    // 128 MiB are copied by others.
    assert!(
        measure.cpu_time.0 > own,
        "{} ns, own: {own}",
        measure.cpu_time.0
    );
    assert_eq!(measure.load_measure.unwrap().read.bytes, 128 << 20);
}

#[test]
fn a_drive_that_is_not_there_is_done_at_once() {
    const LENGTH: u64 = 10 * BLOCK as u64 + 512;
    let mut system = on(drive(DrivePort::NullDrive {
        length_bytes: LENGTH,
    }));
    let how = OpenOptions::READ_WRITE.with_direct(true);
    let file = run_ready(system.open("/dev/drive0", how)).unwrap();
    assert_eq!(run_ready(system.file_length(file)), Ok(LENGTH));
    system.start_measuring(system.now()).unwrap();
    let mut buffer = [1; 8192];
    assert_eq!(
        run_ready(system.lseek(file, -8192, SeekOrigin::FileEnd)),
        Ok(LENGTH - 8192)
    );
    assert_eq!(run_ready(system.write(file, &buffer)), Ok(8192));
    assert_eq!(run_ready(system.read(file, &mut buffer)), Ok(0));
    let before = run_ready(system.lseek(file, -1, SeekOrigin::FileStart)).unwrap_err();
    assert_eq!(before.errno(), Some(Errno::Invalid));
    run_ready(system.lseek(file, 0, SeekOrigin::FileStart)).unwrap();
    assert_eq!(run_ready(system.read(file, &mut buffer)), Ok(8192));
    assert_eq!(run_ready(system.fsync(file)), Ok(()));
    run_ready(system.open_ring(options(4, EngineChoice::BestAvailable), &[file])).unwrap();
    assert_eq!(
        all(&mut system, &reads(file, [0, 9, 10, 11])),
        [Ok(BLOCK), Ok(BLOCK), Ok(512), Ok(0)]
    );
    let others = [
        request(IoOperation::Write, file, 0, 0),
        request(IoOperation::Fsync, file, 1, 0),
        request(IoOperation::DiscardRange, file, 2, 0),
    ];
    assert_eq!(all(&mut system, &others), [Ok(BLOCK), Ok(0), Ok(0)]);
    let measure = measured(&mut system);
    assert_eq!((measure.call_count, measure.durable_time), (3 + 5, None));
    let load = measure.load_measure.unwrap();
    assert_eq!((load.engine, load.read_write_count()), (Engine::Null, 5));
}

#[test]
fn a_discard_leaves_a_hole() {
    let scratch = Scratch::new();
    let path = scratch.path().join("file");
    for engine in [
        EngineChoice::BestAvailable,
        EngineChoice::Threads,
        EngineChoice::WorkerThread,
    ] {
        fill(&path, 1, 7);
        let mut system = on(directory(&scratch.path()));
        let file = run_ready(system.open("/mnt0/file", OpenOptions::READ_WRITE)).unwrap();
        run_ready(system.open_ring(options(4, engine), &[file])).unwrap();
        system.start_measuring(system.now()).unwrap();
        let discard = Submission {
            bytes: 16 * BLOCK,
            ..request(IoOperation::DiscardRange, file, 1, 8)
        };
        match all(&mut system, &[discard])[..] {
            [Ok(0)] => {}
            // A file system need not have holes.
            [Err(Errno::NotSupported)] => return,
            ref results => panic!("{results:?}"),
        }
        let load = measured(&mut system).load_measure.unwrap();
        assert_eq!(
            (load.discard.request_count(), load.discard.bytes),
            (1, 65_536)
        );
        let data = std::fs::read(&path).unwrap();
        assert_eq!(data.len(), 1 << 20);
        let hole = 8 * BLOCK as usize..24 * BLOCK as usize;
        for (offset, byte) in data.iter().enumerate() {
            assert_eq!(
                *byte == 0,
                hole.contains(&offset),
                "{engine:?}: byte {offset}"
            );
        }
    }
}

/// A loop device whose file was cut: what is beyond its end cannot be read.
#[test]
fn a_device_that_fails_fails_single_requests() {
    let test = "a_device_that_fails_fails_single_requests";
    if !can_run(test, &[Needs::LoopDevices]) {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.path().join("image");
    fill(&image, 4, 7);
    let device = LoopDevice::over(&image, &[]);
    let cut = std::fs::File::options().write(true).open(&image).unwrap();
    cut.set_len(2 << 20).unwrap();
    for engine in [
        EngineChoice::BestAvailable,
        EngineChoice::Threads,
        EngineChoice::WorkerThread,
    ] {
        let mut system = on(drive(DrivePort::RegularFile(device.path.clone())));
        let how = OpenOptions::READ.with_direct(true);
        let file = run_ready(system.open("/dev/drive0", how)).unwrap();
        run_ready(system.open_ring(options(MANY, engine), &[file])).unwrap();
        system.start_measuring(system.now()).unwrap();
        // Half of the requests are to the half that is gone.
        let blocks = (0..u64::from(MANY)).map(|slot| slot * 8);
        for (slot, result) in all(&mut system, &reads(file, blocks)).iter().enumerate() {
            let expected = match slot as u32 {
                slot if slot < MANY / 2 => Ok(BLOCK),
                _ => Err(Errno::Io),
            };
            assert_eq!(*result, expected, "{engine:?}, slot {slot}");
        }
        // The ring goes on, and what failed is not counted.
        assert_eq!(all(&mut system, &reads(file, [3])), [Ok(BLOCK)]);
        let measure = measured(&mut system);
        assert_eq!(measure.call_count, u64::from(MANY) / 2 + 1);
    }
}

/// What polls for completions needs a device that can; another refuses each request.
#[test]
fn a_file_that_cannot_be_polled_refuses_each_request() {
    if !has_io_uring("a_file_that_cannot_be_polled_refuses_each_request") {
        return;
    }
    let ring = RingOptions {
        polls_completions: true,
        ..options(2, EngineChoice::IoUring)
    };
    let mut system = on(drive(DrivePort::RegularFile("/dev/zero".into())));
    let file = run_ready(system.open("/dev/drive0", OpenOptions::READ)).unwrap();
    run_ready(system.open_ring(ring, &[file])).unwrap();
    let results = all(&mut system, &reads(file, [0, 1]));
    assert!(results.iter().all(|result| result.is_err()), "{results:?}");
}

#[test]
#[should_panic(expected = "slot 1 is under way")]
fn a_slot_is_not_submitted_twice() {
    let mut system = on(drive(DrivePort::NullDrive { length_bytes: 8192 }));
    let file = run_ready(system.open("/dev/drive0", OpenOptions::READ)).unwrap();
    run_ready(system.open_ring(options(2, EngineChoice::BestAvailable), &[file])).unwrap();
    let read = request(IoOperation::Read, file, 1, 0);
    let _ = run_ready(system.submit_requests(&[read, read]));
}
