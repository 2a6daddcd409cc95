//! What is true of the modelled Minix alone: its devices, where the time of
//! its calls goes, and that a run is the same whenever it is made.

mod modelled;

use diskperf_machine::{Machine, RunConditions, TieBreak, WorkerRendezvous};
use diskperf_system::{Errno, OpenOptions, SeekOrigin, System};
use diskperf_timeline::{Nanoseconds, Stage, WorkerMeasure};
use modelled::{MINIX, ports, ports_alone, run_alone, specification};
use std::cell::RefCell;
use std::rc::Rc;

const READ_WRITE: OpenOptions = OpenOptions {
    write: true,
    ..OpenOptions::READ
};

fn start(system: &mut System) {
    let now = system.now();
    system.start_measuring(now).unwrap();
}

/// Reads a path in calls of one size.
async fn read_all(
    system: &mut System,
    path: &str,
    how: OpenOptions,
    (calls, bytes): (usize, usize),
) {
    let file = system.open(path, how).await.unwrap();
    let mut buffer = vec![0; bytes];
    for _ in 0..calls {
        system.read(file, &mut buffer).await.unwrap();
    }
    system.close(file).await.unwrap();
}

/// Reads a path in calls of one size on a machine with these settings.
fn reading(
    settings: &[&str],
    path: &'static str,
    direct: bool,
    calls: (usize, usize),
) -> WorkerMeasure {
    let machine = modelled::machine(&specification(MINIX, settings));
    let measure = run_alone(&machine, ports_alone(), async move |mut system| {
        start(&mut system);
        read_all(
            &mut system,
            path,
            OpenOptions::READ.with_direct(direct),
            calls,
        )
        .await;
        let measure = system.finish_measuring().await.unwrap();
        (system, measure)
    });
    measure.unwrap()
}

#[test]
fn a_drive_is_the_same_as_a_character_and_as_a_block_device() {
    let machine = modelled::machine(&specification(MINIX, &["filesystem=none"]));
    let fits = run_alone(&machine, ports_alone(), async |mut system| {
        let raw = system
            .open("/dev/drive0", READ_WRITE.with_direct(true))
            .await
            .unwrap();
        let block = system.open("/dev/drive0", READ_WRITE).await.unwrap();
        let data: Vec<u8> = (0..5000).map(|byte| (byte % 251) as u8).collect();
        // Any bytes through the cache, whole sectors past it.
        system
            .lseek(block, 700, SeekOrigin::FileStart)
            .await
            .unwrap();
        assert_eq!(system.write(block, &data).await, Ok(5000));
        system.fsync(block).await.unwrap();
        let mut back = vec![0; 6144];
        assert_eq!(system.read(raw, &mut back).await, Ok(6144));
        assert_eq!(back[700..5700], data[..]);
        let odd = system.read(raw, &mut back[..100]).await.unwrap_err();
        assert_eq!(odd.errno(), Some(Errno::Invalid));
        let end = system.lseek(raw, 0, SeekOrigin::FileEnd).await.unwrap();
        assert_eq!(end, 615 * 4 * 23 * 512);
        assert_eq!(system.read(raw, &mut back).await, Ok(0));
        let beyond = system.write(raw, &back).await.unwrap_err();
        assert_eq!(beyond.errno(), Some(Errno::NoSpace));
        (system, true)
    });
    assert!(fits.unwrap());
}

#[test]
fn devices_without_data_are_at_their_end_and_a_mounted_drive_is_only_read() {
    let machine = modelled::machine(&specification(MINIX, &[]));
    let fits = run_alone(&machine, ports_alone(), async |mut system| {
        let mut buffer = [7; 4096];
        for path in ["/dev/null", "/dev/bnull"] {
            let file = system.open(path, OpenOptions::READ).await.unwrap();
            for _ in 0..3 {
                assert_eq!(system.read(file, &mut buffer).await, Ok(0));
            }
        }
        assert!(buffer.iter().all(|byte| *byte == 7));
        for direct in [true, false] {
            let how = READ_WRITE.with_direct(direct);
            let file = system.open("/dev/drive0", how).await.unwrap();
            let refused = system.write(file, &buffer).await.unwrap_err();
            assert_eq!(refused.errno(), Some(Errno::Busy));
            assert_eq!(system.read(file, &mut buffer).await, Ok(4096));
        }
        let file = system
            .open("/mnt0/file", OpenOptions::CREATE.with_direct(true))
            .await;
        assert_eq!(file.unwrap_err().errno(), Some(Errno::NotDirect));
        (system, true)
    });
    assert!(fits.unwrap());
    modelled::expect_sound(&machine, 1);
}

/// Every nanosecond of a call is booked to what somebody did for it: that the
/// ledger sums to the elapsed time is asserted when it is taken.
#[test]
fn the_time_of_a_call_is_that_of_all_who_worked_for_it() {
    let costs = [
        "kernel.call_ms=4",
        "kernel.message_ms=0.8",
        "kernel.task_ms=0.7",
        "kernel.cache_lookup_ms=0.1",
        "kernel.buffer_replace_ms=5.5",
        "driver.request_ms=3.5",
        "controller.command_poll_ms=4.6",
    ];
    let null = reading(&costs, "/dev/null", false, (100, 512));
    let stage =
        |measure: &WorkerMeasure, stage| measure.ledger.stage_duration(stage).0 as f64 / 1e6;
    // A call, its four messages, and a turn of the memory task.
    let ms = null.elapsed_time.0 as f64 / 1e6;
    assert!((ms - 100.0 * 7.9).abs() < 15.0, "{ms}");
    assert_eq!(stage(&null, Stage::CacheLookup), 0.0);
    assert!((stage(&null, Stage::Driver) - 70.0).abs() < 0.1);
    // What the block device adds is the cache's.
    let bnull = reading(&costs, "/dev/bnull", false, (100, 512));
    let added = (bnull.elapsed_time.0 - null.elapsed_time.0) as f64 / 1e6;
    assert!((added - 100.0 * 5.6).abs() < 0.1, "{added}");
    assert!((stage(&bnull, Stage::CacheLookup) - added).abs() < 0.1);
    // The processor is the program's all the time, whoever of Minix has it.
    assert!(
        null.cpu_time.0.abs_diff(null.elapsed_time.0) < 50_000_000,
        "{null:?}"
    );
    // A transfer's own time is in the ledger of who waits for it.
    let raw = reading(&costs, "/dev/drive0", true, (100, 1024));
    assert!(stage(&raw, Stage::MediaTransfer) > 100.0 * 1.9);
    let waits: f64 = raw
        .ledger
        .entries()
        .iter()
        .filter(|entry| {
            matches!(
                entry.stage,
                Stage::MissedRevolution(_) | Stage::RotationalLatency
            )
        })
        .map(|entry| entry.duration.0 as f64 / 1e6)
        .sum();
    assert!(waits > 100.0 * 7.0, "{waits}");
    assert!(raw.cpu_time.0 < raw.elapsed_time.0 * 6 / 10);
}

/// A block that was read is in the cache; 31 others put it out.
#[test]
fn the_cache_holds_thirty_blocks() {
    for (others, hits) in [(29, true), (30, false)] {
        let machine = modelled::machine(&specification(MINIX, &[]));
        let bytes = run_alone(&machine, ports_alone(), async move |mut system| {
            let file = system.open("/dev/drive0", OpenOptions::READ).await.unwrap();
            let mut block = [0; 1024];
            for _ in 0..=others {
                system.read(file, &mut block).await.unwrap();
            }
            system.lseek(file, 0, SeekOrigin::FileStart).await.unwrap();
            start(&mut system);
            system.read(file, &mut block).await.unwrap();
            let measure = system.finish_measuring().await.unwrap();
            (system, measure.storage_read_bytes)
        });
        assert_eq!(
            bytes.unwrap(),
            Some(if hits { 0 } else { 1024 }),
            "{others}"
        );
    }
}

/// What the author put into his driver, and what he proposed: fewer requests
/// for the same bytes.
#[test]
fn read_ahead_and_longer_requests_make_fewer_of_them() {
    let requests = |settings: &[&str], call_bytes: usize| {
        let machine = modelled::machine(&specification(MINIX, settings));
        let done = run_alone(&machine, ports_alone(), async move |mut system| {
            let calls = ((256 << 10) / call_bytes, call_bytes);
            read_all(&mut system, "/dev/drive0", OpenOptions::READ, calls).await;
            (system, ())
        });
        done.unwrap();
        machine.statistics().drive_statistics[0].request_count
    };
    assert_eq!(requests(&[], 16_384), 256);
    assert_eq!(requests(&[], 512), 256);
    assert_eq!(requests(&["driver.read_ahead_bytes=4096"], 1024), 64);
    assert_eq!(requests(&["kernel.read_ahead_blocks=3"], 1024), 64);
    assert_eq!(requests(&["kernel.blocks_per_request=4"], 16_384), 64);
    assert_eq!(requests(&["kernel.blocks_per_request=16"], 16_384), 16);
    // A call of one block wants no more.
    assert_eq!(requests(&["kernel.blocks_per_request=16"], 1024), 256);
}

/// Delayed writes go out with sync, or when their buffer is wanted; update
/// comes every thirty seconds.
#[test]
fn update_writes_what_was_delayed() {
    let machine = modelled::machine(&specification(MINIX, &[]));
    let written = run_alone(&machine, ports_alone(), async |mut system| {
        let file = system
            .open("/mnt0/file", OpenOptions::CREATE)
            .await
            .unwrap();
        system.write(file, &[1; 3000]).await.unwrap();
        system
            .sleep_until(Nanoseconds::from_millis(29_000))
            .await
            .unwrap();
        (system, ())
    });
    written.unwrap();
    assert_eq!(machine.statistics().drive_statistics[0].written_sectors, 0);
    let slept = run_alone(
        &machine,
        modelled::ports(1, &WorkerRendezvous::new(1)),
        async |mut system| {
            system
                .sleep_until(Nanoseconds::from_millis(40_000))
                .await
                .unwrap();
            (system, ())
        },
    );
    slept.unwrap();
    // Three blocks of data, the directory, the block of both inodes, two of the
    // inodes' map and four of the zones'.
    assert_eq!(
        machine.statistics().drive_statistics[0].written_sectors,
        2 * 11
    );
}

/// Three programs at once, each with files of its own, and one name that all
/// of them change.
fn mixture(circumstances: RunConditions) -> (Vec<WorkerMeasure>, String) {
    let machine = Machine::build(&specification(MINIX, &[]), circumstances);
    let meeting = WorkerRendezvous::new(3);
    let results = Rc::new(RefCell::new(Vec::new()));
    for number in 0..3 {
        modelled::start(&machine, ports(number, &meeting), &results, move |system| {
            worker(system, number)
        });
    }
    machine.run_to_end().unwrap();
    modelled::expect_sound(&machine, 1);
    let measures = results.take().into_iter().flatten().collect();
    let machine = format!(
        "{:?} {:?} {}",
        machine.statistics(),
        machine.drive_busy_times(),
        machine.current_time()
    );
    (measures, machine)
}

async fn worker(mut system: System, number: usize) -> (System, WorkerMeasure) {
    let path = format!("/mnt0/file{number}");
    let data: Vec<u8> = (0..50_000)
        .map(|byte| (byte * (number + 3) % 251) as u8)
        .collect();
    system.barrier().await.unwrap();
    start(&mut system);
    for round in 0..3 {
        let file = system.open(&path, OpenOptions::CREATE).await.unwrap();
        for piece in data.chunks(1000 * (number + 1)) {
            assert_eq!(system.write(file, piece).await, Ok(piece.len()));
            system
                .consume_cpu_time(Nanoseconds(1_000_000))
                .await
                .unwrap();
        }
        system.close(file).await.unwrap();
        let _ = system.rename(&path, &format!("/mnt0/shared{round}")).await;
        let shared = system
            .open(&format!("/mnt0/shared{round}"), OpenOptions::READ)
            .await
            .unwrap();
        let mut back = vec![0; 50_000];
        assert_eq!(system.read(shared, &mut back).await, Ok(50_000));
        system.close(shared).await.unwrap();
    }
    let measure = system.finish_measuring().await.unwrap();
    (system, measure)
}

#[test]
fn a_run_is_the_same_whenever_it_is_made_and_however_ties_are_broken() {
    let seeded = |seed, tie_break| {
        mixture(RunConditions {
            seed,
            tie_break,
            ..RunConditions::default()
        })
    };
    let first = seeded(1, TieBreak::InsertionOrder);
    assert!(first == seeded(1, TieBreak::InsertionOrder));
    assert!(
        first == seeded(1, TieBreak::ReversedOrder),
        "a tie moved the result"
    );
    assert!(
        first != seeded(2, TieBreak::InsertionOrder),
        "the poll is drawn"
    );
}
