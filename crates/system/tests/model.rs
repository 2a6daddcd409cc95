//! What is true of the model alone: the same seed gives the same run, every
//! nanosecond is booked, every byte is accounted for, and the clock charges
//! whom it charged in 1983.

mod modelled;

use diskperf_machine::specification::Software;
use diskperf_machine::{Machine, RunConditions, TieBreak, WorkerRendezvous};
use diskperf_system::{Errno, Error, OpenOptions, System};
use diskperf_timeline::{Ledger, Nanoseconds, Stage, Trace, WorkerMeasure};
use modelled::{ANY_SYSTEM, SYSTEMS, ports, ports_alone, specification};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

const BLOCK_BYTES: usize = 8192;
/// Of a file of 8 MiB.
const BLOCKS: usize = 1024;
/// Of a file that a partition of 8 MB has room for.
const BLOCKS_OF_A_SMALL_FILE: usize = 512;
const SECTOR_BYTES: u64 = 512;
const SECOND: Nanoseconds = Nanoseconds::from_millis(1000);

/// Everything that a run leaves behind.
#[derive(Debug, PartialEq)]
struct History {
    measures: Vec<WorkerMeasure>,
    statistics: diskperf_machine::RequestStatistics,
    busy: String,
    ended: Nanoseconds,
    trace: Option<Trace>,
}

impl History {
    fn of(machine: &Machine, measures: Vec<WorkerMeasure>) -> Self {
        Self {
            measures,
            statistics: machine.statistics(),
            busy: format!(
                "{:?} {:?}",
                machine.drive_busy_times(),
                machine.processor_busy_times()
            ),
            ended: Nanoseconds(machine.current_time().0),
            trace: machine.take_trace(),
        }
    }
}

fn circumstances(drives: usize) -> RunConditions {
    RunConditions {
        volume_count: drives,
        phase_step: 1 << 30,
        speed_difference_share: 0.003,
        ..RunConditions::default()
    }
}

/// How long a file is measured on this system.
fn blocks(system: &str) -> usize {
    if system == "vax780-si9900-cdc9775" {
        BLOCKS_OF_A_SMALL_FILE
    } else {
        BLOCKS
    }
}

/// The bytes of a block of a drive's file.
fn block(drive: usize, number: usize) -> Vec<u8> {
    (0..BLOCK_BYTES)
        .map(|offset| (drive * 31 + number * 7 + offset + offset / 251) as u8)
        .collect()
}

/// Writes a file in calls of 8 KiB; its measure.
async fn write_8192(system: &mut System, drive: usize, blocks: usize) -> WorkerMeasure {
    let blocks: Vec<_> = (0..blocks).map(|number| block(drive, number)).collect();
    let origin = system.barrier().await.unwrap();
    system.start_measuring(origin).unwrap();
    let path = format!("/mnt{drive}/file");
    let file = system.open(&path, OpenOptions::CREATE).await.unwrap();
    for block in &blocks {
        assert_eq!(system.write(file, block).await, Ok(BLOCK_BYTES));
    }
    system.close(file).await.unwrap();
    system.finish_measuring().await.unwrap()
}

/// Reads it back from the drive; its measure.
async fn read_8192(system: &mut System, drive: usize, blocks: usize) -> WorkerMeasure {
    system.drop_all_caches().await.unwrap();
    let origin = system.barrier().await.unwrap();
    system.start_measuring(origin).unwrap();
    let path = format!("/mnt{drive}/file");
    let file = system.open(&path, OpenOptions::READ).await.unwrap();
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut intact = true;
    for number in 0..blocks {
        assert_eq!(system.read(file, &mut buffer).await, Ok(BLOCK_BYTES));
        intact &= buffer == block(drive, number);
    }
    assert!(intact, "other bytes came back than were written");
    system.close(file).await.unwrap();
    system.finish_measuring().await.unwrap()
}

/// Runs `program` on each of the drives at once.
fn run_on_drives<F>(
    machine: &Machine,
    drives: usize,
    program: impl Fn(System, usize) -> F + Copy + 'static,
) -> Vec<WorkerMeasure>
where
    F: Future<Output = (System, WorkerMeasure)> + 'static,
{
    let meeting = WorkerRendezvous::new(drives);
    let results = Rc::new(RefCell::new(Vec::new()));
    for drive in 0..drives {
        modelled::start(machine, ports(drive, &meeting), &results, move |system| {
            program(system, drive)
        });
    }
    if let Err(standstill) = machine.run_to_end() {
        panic!("{standstill}");
    }
    results.take().into_iter().flatten().collect()
}

fn write_on_drives(machine: &Machine, drives: usize, blocks: usize) -> Vec<WorkerMeasure> {
    run_on_drives(machine, drives, move |mut system, drive| async move {
        let measure = write_8192(&mut system, drive, blocks).await;
        system.drop_all_caches().await.unwrap();
        (system, measure)
    })
}

fn read_on_drives(machine: &Machine, drives: usize, blocks: usize) -> Vec<WorkerMeasure> {
    run_on_drives(machine, drives, move |mut system, drive| async move {
        let measure = read_8192(&mut system, drive, blocks).await;
        (system, measure)
    })
}

/// Writes, then reads back, on each drive; twice the measures.
fn write_then_read(name: &str, circumstances: RunConditions) -> History {
    let drives = circumstances.volume_count;
    let machine = Machine::build(&specification(name, &[]), circumstances);
    let mut measures = write_on_drives(&machine, drives, blocks(name));
    measures.extend(read_on_drives(&machine, drives, blocks(name)));
    modelled::expect_sound(&machine, drives);
    History::of(&machine, measures)
}

#[test]
fn the_same_seed_gives_the_same_run_in_one_thread_and_in_two() {
    let run = || write_then_read(ANY_SYSTEM, circumstances(2));
    let first = run();
    assert_eq!(run(), first);
    let threads = [std::thread::spawn(run), std::thread::spawn(run)];
    for thread in threads {
        assert_eq!(thread.join().unwrap(), first);
    }
}

#[test]
fn two_machines_in_one_thread_do_not_touch_each_other() {
    let specification = specification(ANY_SYSTEM, &[]);
    let alone = write_then_read(ANY_SYSTEM, circumstances(1));
    // One machine runs inside the other: between two calls of a process of
    // the one, a process of the other comes to its end.
    let inner = Rc::new(Machine::build(&specification, circumstances(1)));
    let measures = Rc::new(RefCell::new(Vec::new()));
    let outer = Machine::build(&specification, circumstances(1));
    let (machine, kept) = (Rc::clone(&inner), Rc::clone(&measures));
    let outside = run_in_turns(&outer, move |turn| {
        if turn == 1 || turn == 3 {
            let measured = if turn == 1 {
                write_on_drives(&machine, 1, BLOCKS)
            } else {
                read_on_drives(&machine, 1, BLOCKS)
            };
            kept.borrow_mut().extend(measured);
        }
    });
    assert_eq!(History::of(&inner, measures.take()), alone);
    let undisturbed = Machine::build(&specification, circumstances(1));
    assert_eq!(run_in_turns(&undisturbed, |_| ()), outside);
}

/// Writes the blocks of a file, with something else between its quarters.
fn run_in_turns(machine: &Machine, mut between: impl FnMut(usize) + 'static) -> History {
    let measure = modelled::run_alone(machine, ports_alone(), async move |mut system| {
        system.start_measuring(system.now()).unwrap();
        let file = system
            .open("/mnt0/file", OpenOptions::CREATE)
            .await
            .unwrap();
        for number in 0..BLOCKS {
            if number % (BLOCKS / 4) == 0 {
                between(number / (BLOCKS / 4));
            }
            let data = block(0, number);
            assert_eq!(system.write(file, &data).await, Ok(BLOCK_BYTES));
        }
        let measure = system.finish_measuring().await.unwrap();
        (system, measure)
    });
    History::of(machine, vec![measure.unwrap()])
}

#[test]
fn nothing_depends_on_the_order_of_what_happens_at_one_moment() {
    for name in SYSTEMS {
        for drives in 1..=specification(name, &[]).volumes.len().min(2) {
            let run = |tie_break| {
                let around = RunConditions {
                    tie_break,
                    ..circumstances(drives)
                };
                write_then_read(name, around)
            };
            let (forward, reversed) = (run(TieBreak::InsertionOrder), run(TieBreak::ReversedOrder));
            assert_eq!(forward, reversed, "{name}, {drives} drives");
        }
    }
}

#[test]
fn every_nanosecond_of_a_worker_is_booked() {
    for name in SYSTEMS {
        for drives in 1..=specification(name, &[]).volumes.len().min(2) {
            let history = write_then_read(name, circumstances(drives));
            assert_eq!(history.measures.len(), 2 * drives);
            for measure in &history.measures {
                assert!(measure.elapsed_time > Nanoseconds::ZERO);
                assert_eq!(
                    measure.ledger.total_duration(),
                    measure.elapsed_time,
                    "{name}"
                );
                let moved = measure.read_bytes + measure.written_bytes;
                assert_eq!(moved, (blocks(name) * BLOCK_BYTES) as u64);
            }
        }
    }
}

/// Recording changes nothing, and what is recorded of a program is its ledger
/// laid out in time.
#[test]
fn a_trace_is_the_ledger_in_time() {
    for name in SYSTEMS {
        let drives = specification(name, &[]).volumes.len().min(2);
        let traced = RunConditions {
            records_trace: true,
            ..circumstances(drives)
        };
        let mut history = write_then_read(name, traced);
        let trace = history.trace.take().expect("it was asked for");
        assert_eq!(
            history,
            write_then_read(name, circumstances(drives)),
            "{name}"
        );
        let mut recorded: Vec<_> = trace
            .processes
            .iter()
            .map(|process| {
                let mut table = [0; Stage::COUNT];
                for part in process.stage_intervals() {
                    table[part.stage.index()] += part.duration().0;
                }
                Ledger::from_table(&table).entries().to_vec()
            })
            .collect();
        for measure in &history.measures {
            let place = recorded
                .iter()
                .position(|one| one == measure.ledger.entries());
            recorded.remove(place.unwrap_or_else(|| panic!("{name}: no such process")));
        }
        for request in &trace.requests {
            let on = request.disk_position().expect("a disk");
            assert!(on.slot < on.slots && request.completed_at() > request.issued_at);
            assert!(
                request
                    .buffer_uses
                    .iter()
                    .all(|used| used.use_time >= request.completed_at())
            );
        }
        let brought = trace
            .requests
            .iter()
            .filter(|request| !request.buffer_uses.is_empty());
        let software = specification(name, &[]).software;
        let minix = matches!(software, Software::Minix(_));
        assert!(
            minix || brought.count() > blocks(name) / 2,
            "{name}: blocks are used"
        );
    }
}

/// What the program wrote and read crossed the drive once, and beside it only
/// the blocks that say where it is.
#[test]
fn bytes_in_are_bytes_out() {
    /// Inodes, directories, maps of cylinder groups, indirect blocks, the
    /// superblock.
    const METADATA_MOST: u64 = 64 * BLOCK_BYTES as u64;
    for name in SYSTEMS {
        let machine = Machine::build(&specification(name, &[]), circumstances(1));
        let payload = (blocks(name) * BLOCK_BYTES) as u64;
        write_on_drives(&machine, 1, blocks(name));
        let after_write = machine.statistics().drive_statistics[0];
        let written = after_write.written_sectors * SECTOR_BYTES;
        assert!(
            (payload..payload + 2 * METADATA_MOST).contains(&written),
            "{name}: {written} bytes were written"
        );
        let read_for_it = after_write.read_sectors * SECTOR_BYTES;
        assert!(
            read_for_it < METADATA_MOST,
            "{name}: {read_for_it} bytes were read"
        );
        read_on_drives(&machine, 1, blocks(name));
        let read = machine.statistics().drive_statistics[0].read_sectors - after_write.read_sectors;
        let beside = read * SECTOR_BYTES - payload;
        // The inode's block, the directory's, and the indirect ones: four bytes
        // for each block, which on Xenix is of 512.
        let least = if name == modelled::XENIX { 1024 } else { 2048 };
        assert!(
            (least..=4 * BLOCK_BYTES as u64 + payload / 100).contains(&beside),
            "{name}: {beside} bytes were read beside the file"
        );
    }
}

/// A tick of the clock charges whoever has the processor, with all of it.
#[test]
fn the_clock_charges_who_has_the_processor_and_nobody_when_it_idles() {
    let machine = modelled::machine(&specification(ANY_SYSTEM, &[]));
    let tick = Nanoseconds::from_millis(10);
    let measures = modelled::run_alone(&machine, ports_alone(), async |mut system| {
        system.start_measuring(system.now()).unwrap();
        let wake = system.now() + Nanoseconds(10 * SECOND.0);
        system.sleep_until(wake).await.unwrap();
        let asleep = system.finish_measuring().await.unwrap();
        system.start_measuring(system.now()).unwrap();
        system.consume_cpu_time(SECOND).await.unwrap();
        let computing = system.finish_measuring().await.unwrap();
        (system, [asleep, computing])
    });
    let [asleep, computing] = measures.unwrap();
    assert_eq!(asleep.cpu_time, Nanoseconds::ZERO);
    assert!(asleep.elapsed_time >= Nanoseconds(10 * SECOND.0));
    // The clock's own interrupts are charged to whom they interrupt.
    assert!(computing.elapsed_time > SECOND);
    assert_eq!(computing.system_cpu_time, Nanoseconds::ZERO);
    assert!(computing.user_cpu_time <= computing.elapsed_time + tick);
    assert!(
        computing.user_cpu_time + tick >= computing.elapsed_time,
        "{computing:?}"
    );
}

/// While one process waits for the drive nobody is charged for the drive's
/// interrupts, and one that sleeps is not charged for the other's calls.
#[test]
fn who_sleeps_is_not_charged_for_others() {
    let machine = modelled::machine(&specification(ANY_SYSTEM, &[]));
    let meeting = WorkerRendezvous::new(2);
    let results = Rc::new(RefCell::new(Vec::new()));
    modelled::start(
        &machine,
        ports(0, &meeting),
        &results,
        async |mut system| {
            let measure = write_8192(&mut system, 0, BLOCKS).await;
            (system, measure)
        },
    );
    modelled::start(
        &machine,
        ports(1, &meeting),
        &results,
        async |mut system| {
            let origin = system.barrier().await.unwrap();
            system.start_measuring(origin).unwrap();
            let wake = origin + Nanoseconds(5 * SECOND.0);
            system.sleep_until(wake).await.unwrap();
            let measure = system.finish_measuring().await.unwrap();
            (system, measure)
        },
    );
    machine.run_to_end().unwrap();
    let measures: Vec<_> = results.take().into_iter().flatten().collect();
    let (writer, sleeper) = (&measures[0], &measures[1]);
    assert_eq!(sleeper.cpu_time, Nanoseconds::ZERO);
    assert!(writer.cpu_time > Nanoseconds::ZERO && writer.cpu_time < writer.elapsed_time);
    let (processor, _) = machine.processor_busy_times();
    assert!(
        writer.cpu_time.0 < processor.0,
        "the clock charges no more than there was"
    );
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let machine = modelled::machine(&specification(ANY_SYSTEM, &[]));
    let meeting = WorkerRendezvous::new(2);
    let deadlock = modelled::run_alone(&machine, ports(0, &meeting), async |mut system| {
        let released = system.barrier().await;
        (system, released)
    });
    let deadlock = deadlock.unwrap_err();
    let text = deadlock.to_string();
    assert!(
        text.contains("worker 0 waits for the other workers"),
        "{text}"
    );
}

#[test]
fn a_run_that_the_user_ends_fails_every_call() {
    let machine = modelled::machine(&specification(ANY_SYSTEM, &[]));
    let given = ports_alone();
    let stop = std::sync::Arc::clone(&given.stop_requested);
    let ended = modelled::run_alone(&machine, given, async move |mut system| {
        let file = system
            .open("/mnt0/file", OpenOptions::CREATE)
            .await
            .unwrap();
        system.write(file, b"data").await.unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(system.write(file, b"data").await, Err(Error::Interrupted));
        assert_eq!(system.read(file, &mut [0]).await, Err(Error::Interrupted));
        assert_eq!(system.barrier().await, Err(Error::Interrupted));
        assert_eq!(
            system.sleep_until(Nanoseconds(u64::MAX)).await,
            Err(Error::Interrupted)
        );
        assert_eq!(
            system.open("/mnt0/file", OpenOptions::READ).await,
            Err(Error::Interrupted)
        );
        (system, ())
    });
    ended.unwrap();
    modelled::expect_sound(&machine, 1);
}

#[test]
fn a_worker_that_fails_fails_the_others() {
    let machine = modelled::machine(&specification(ANY_SYSTEM, &[]));
    let meeting = WorkerRendezvous::new(2);
    let results = Rc::new(RefCell::new(Vec::new()));
    modelled::start(
        &machine,
        ports(0, &meeting),
        &results,
        async |mut system| {
            let waited = system.barrier().await;
            let called = system.mkdir("/mnt0/directory").await;
            (system, (waited, called))
        },
    );
    modelled::start(
        &machine,
        ports(1, &meeting),
        &results,
        async |mut system| {
            let missing = system.open("/mnt0/missing", OpenOptions::READ).await;
            assert_eq!(missing.unwrap_err().errno(), Some(Errno::NoEntry));
            system.abandon_run();
            (
                system,
                (Err(Error::OtherWorkerFailed), Err(Error::OtherWorkerFailed)),
            )
        },
    );
    machine.run_to_end().unwrap();
    let failed = (Err(Error::OtherWorkerFailed), Err(Error::OtherWorkerFailed));
    assert_eq!(results.take(), [Some(failed.clone()), Some(failed)]);
}

#[test]
fn there_is_no_way_past_the_cache() {
    let machine = modelled::machine(&specification(ANY_SYSTEM, &[]));
    let refused = modelled::run_alone(&machine, ports_alone(), async |mut system| {
        let how = OpenOptions::READ_WRITE.with_create().with_direct(true);
        let refused = system.open("/mnt0/file", how).await;
        (system, refused.unwrap_err())
    });
    assert_eq!(refused.unwrap().errno(), Some(Errno::NotDirect));
}

/// A name that does not fit is no loss: what was there before stays sound.
#[test]
fn a_volume_without_inodes_left_is_sound() {
    for file_system in ["filesystem=8k", "filesystem=4k"] {
        let small = [file_system, "drive.partition_sectors=3000"];
        let machine = modelled::machine(&specification(ANY_SYSTEM, &small));
        let made = modelled::run_alone(&machine, ports_alone(), async |mut system| {
            let mut made = 0;
            let errno = loop {
                let name = format!("/mnt0/{}{made}", "n".repeat(200));
                match system.open(&name, OpenOptions::CREATE).await {
                    Ok(file) => system.close(file).await.unwrap(),
                    Err(error) => break error.errno(),
                }
                made += 1;
            };
            assert_eq!(errno, Some(Errno::NoSpace));
            refused_for_space(&mut system).await;
            (system, made)
        });
        assert!(made.unwrap() > 100);
        modelled::expect_sound(&machine, 1);
    }
}

async fn refused_for_space(system: &mut System) {
    let refused = system.mkdir("/mnt0/directory").await;
    assert_eq!(refused.unwrap_err().errno(), Some(Errno::NoSpace));
    let name = format!("/mnt0/{}0", "n".repeat(200));
    system.unlink(&name).await.unwrap();
    system.mkdir("/mnt0/directory").await.unwrap();
}
