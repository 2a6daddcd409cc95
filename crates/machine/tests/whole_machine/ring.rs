//! Several requests of a process under way at once, on every kind of kernel. These fail
//! when time is booked twice or to nobody, when a request is lost or carried out twice,
//! when a drive's queue does not get to see what is under way, and when anything hangs on
//! an order that nobody set.

use super::*;
use diskperf_machine::RequestStatistics;
use diskperf_machine::{
    Errno, ProcessAccount, RandomStreams, RingCompletion, RingOperation, RingRequest, RingSize,
    TieBreak,
};
use diskperf_timeline::Stage;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

const RAW: OpenFlags = OpenFlags {
    read: true,
    write: true,
    direct_io: true,
    ..READ
};
const BOTH: OpenFlags = OpenFlags {
    read: true,
    write: true,
    ..READ
};

/// What a process does with its ring.
#[derive(Clone, Copy, Debug)]
struct Load {
    depth: u32,
    requests: u32,
    bytes: u32,
    /// Percent that read.
    reads: u64,
    /// Percent of them that are syncs instead.
    syncs: u64,
    /// Bytes of the file that they are in.
    range: u64,
    /// Completions that are waited for at once.
    at_least: usize,
    seed: u64,
}

const RANDOM_READS: Load = Load {
    depth: 1,
    requests: 300,
    bytes: 4096,
    reads: 100,
    syncs: 0,
    range: 64 << 20,
    at_least: 1,
    seed: 1,
};

impl Load {
    fn at_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    fn draw(
        &self,
        draws: &mut diskperf_machine::RandomStream,
        file: usize,
        slot: u32,
    ) -> RingRequest {
        let operation = match (draws.draw_below(100), draws.draw_below(100)) {
            (sync, _) if sync < self.syncs => RingOperation::Fsync,
            (_, read) if read < self.reads => RingOperation::Read,
            _ => RingOperation::Write,
        };
        let places = self.range / u64::from(self.bytes);
        RingRequest {
            operation,
            file_number: file,
            offset_bytes: draws.draw_below(places) * u64::from(self.bytes),
            bytes: self.bytes,
            slot,
        }
    }
}

/// What a process found of its load.
struct Found {
    elapsed: Time,
    account: ProcessAccount,
    moved: u64,
}

impl Found {
    fn stage(&self, stage: Stage) -> f64 {
        self.account.ledger.stage_duration(stage).0 as f64
    }
}

/// Keeps as many requests under way as the load is deep, in a timed part of its own.
async fn keep_under_way(session: &mut Session, file: usize, load: Load) -> Found {
    let mut draws = RandomStreams::new(load.seed).named_stream("load");
    let size = RingSize {
        queue_depth: load.depth,
        buffer_bytes: load.bytes,
    };
    session.open_ring(size, &[file]).await.expect("a ring");
    session.open_account();
    let from = session.current_time();
    let mut free: Vec<u32> = (0..load.depth).rev().collect();
    let mut completions = Vec::new();
    let (mut issued, mut moved) = (0, 0);
    let mut ended = 0;
    while ended < load.requests {
        let mut batch = Vec::new();
        while issued < load.requests
            && let Some(slot) = free.pop()
        {
            batch.push(load.draw(&mut draws, file, slot));
            issued += 1;
        }
        session.submit_requests(&batch).await.expect("a ring");
        assert!(session.in_flight_count() <= load.depth as usize);
        completions.clear();
        let reaped = session.reap_completions(load.at_least, None, &mut completions);
        reaped.await.expect("a ring");
        let left = (load.requests - ended) as usize;
        assert!(completions.len() >= load.at_least.min(left).min(load.depth as usize));
        for RingCompletion { slot, result } in &completions {
            moved += u64::from(result.expect("a request that is in order"));
            assert!(!free.contains(slot), "slot {slot} completes once");
            free.push(*slot);
            ended += 1;
        }
    }
    assert_eq!(
        (session.in_flight_count(), free.len()),
        (0, load.depth as usize)
    );
    let account = session.current_account();
    let elapsed = session.current_time() - from;
    assert_eq!(account.ledger.total_duration().0, elapsed.0, "the ledger");
    session.close_ring().await;
    let moved = moved;
    Found {
        elapsed,
        account,
        moved,
    }
}

/// Where a load is done.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A drive by itself.
    Drive,
    /// A file that is there already.
    File,
}

/// A system of the catalogue, and where its drives have no file system.
fn on(system: &str, place: Place, settings: &[(&str, &str)]) -> MachineSpecification {
    let none = [("filesystem", "none")];
    match place {
        Place::Drive if system.starts_with("bare-") => specification(system, settings),
        Place::Drive => specification(system, &[&none, settings].concat()),
        Place::File => specification(system, settings),
    }
}

async fn opened(session: &mut Session, (place, drive): (Place, usize), load: Load) -> usize {
    match place {
        Place::Drive => {
            let path = format!("/dev/drive{drive}");
            session.open_path(&path, RAW).await.expect("the drive")
        }
        Place::File => {
            let path = format!("/mnt{drive}/file");
            make(session, &path, load.range as usize / BLOCK).await;
            session.drop_all_caches().await;
            session.open_path(&path, BOTH).await.expect("the file")
        }
    }
}

/// A load of one process on one drive.
fn one(
    specification: &MachineSpecification,
    place: Place,
    load: Load,
) -> (Found, RequestStatistics) {
    let machine = machine(specification);
    let found = run(&machine, async move |session| {
        let file = opened(session, (place, 0), load).await;
        keep_under_way(session, file, load).await
    });
    (found, machine.statistics())
}

const MINIX: &str = "atarist-supra";
const XENIX: &str = "pcat-st251";
const SYSTEMS: [&str; 11] = [
    "bare-fixed",
    "bare-nvme-tlc",
    "bare-sas-10k",
    SC780,
    SC750,
    UDA50,
    "vax780-si9900-eagle",
    "sun3-rimfire-2344",
    "sun3-xy451-eagle",
    MINIX,
    XENIX,
];

/// A load for each of several processes, on drives of their own as far as there are any.
#[derive(Clone, Debug)]
struct Case {
    system: &'static str,
    place: Place,
    workers: usize,
    load: Load,
}

fn cases() -> impl Strategy<Value = Case> {
    let place = prop_oneof![Just(Place::Drive), Just(Place::File)];
    let load = (1..=64_u32, 0..=3_u32, 0..=100_u64, 0..=20_u64, 1..=64_usize);
    (0..SYSTEMS.len(), place, 1..=3_usize, load, any::<u64>()).prop_map(
        |(system, place, workers, (depth, doublings, reads, syncs, at_least), seed)| Case {
            system: SYSTEMS[system],
            place: match SYSTEMS[system].starts_with("bare-") {
                true => Place::Drive,
                false => place,
            },
            workers,
            load: Load {
                depth,
                requests: 2 * depth + 9,
                bytes: match SYSTEMS[system].starts_with("bare-") {
                    // Some have sectors of that size.
                    true => 4096,
                    false => 1024 << doublings,
                },
                reads,
                syncs,
                range: 256 << 10,
                at_least,
                seed,
            },
        },
    )
}

/// What the same case leaves each time: when each process began and ended, what it did, and
/// what was counted.
fn outcome(
    case: &Case,
    trace: bool,
    tie_break: TieBreak,
) -> (Vec<(Time, u64, String)>, RequestStatistics) {
    let specification = on(case.system, case.place, &[]);
    let volumes = specification.volumes.len().min(case.workers);
    let circumstances = RunConditions {
        volume_count: volumes,
        // Two drives that turn alike do the same at the same nanosecond.
        phase_step: 123_456_789,
        speed_difference_share: 0.003,
        records_trace: trace,
        tie_break,
        ..RunConditions::default()
    };
    let machine = Machine::build(&specification, circumstances);
    let results: Vec<_> = (0..case.workers)
        .map(|worker| {
            let (place, mut load) = (case.place, case.load);
            load.seed = load.seed.wrapping_add(worker as u64);
            start(&machine, worker, async move |session: &mut Session| {
                let drive = worker % volumes;
                let file = match place {
                    Place::Drive => opened(session, (place, drive), load).await,
                    Place::File => {
                        let path = format!("/mnt{drive}/file{worker}");
                        make(session, &path, load.range as usize / BLOCK).await;
                        session.open_path(&path, BOTH).await.expect("the file")
                    }
                };
                keep_under_way(session, file, load).await
            })
        })
        .collect();
    machine
        .run_to_end()
        .unwrap_or_else(|error| panic!("{error}"));
    if let Some(trace) = machine.take_trace() {
        assert_eq!(trace.processes.len(), case.workers);
        for process in &trace.processes {
            assert!((process.process_number as usize) < case.workers);
            for pair in process.processor_work.windows(2) {
                assert!(
                    pair[0].work_end <= pair[1].work_start,
                    "one processor: {pair:?}"
                );
            }
        }
        let users = trace
            .requests
            .iter()
            .flat_map(|request| &request.buffer_uses);
        for used in users {
            assert!(
                (used.process_number as usize) < case.workers || used.process_number == u32::MAX
            );
        }
    }
    if let Place::File = case.place {
        for drive in 0..volumes {
            machine
                .check_file_system(drive)
                .expect("a sound file system");
        }
    }
    let found = |result: &Rc<RefCell<Option<Found>>>| {
        let found = result.take().expect("it ended");
        assert!(found.account.system_cpu_time <= found.elapsed + Time(20_000_000));
        let ledger = format!("{:?}", found.account.ledger);
        (found.elapsed, found.moved, ledger)
    };
    (results.iter().map(found).collect(), machine.statistics())
}

/// Ledgers sum, no more is under way than the ring is deep, every request completes once,
/// and another time all is the same, recorded or not, whatever comes first at once.
#[test]
fn any_load_at_any_depth_is_accounted_for() {
    let seed = 1983;
    println!("seed {seed}");
    let config = Config {
        cases: 40,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(proptest::test_runner::contextualize_config(config));
    let checked = runner.run(&cases(), |case| {
        let first = outcome(&case, false, TieBreak::InsertionOrder);
        prop_assert_eq!(&first, &outcome(&case, true, TieBreak::InsertionOrder));
        prop_assert_eq!(&first, &outcome(&case, false, TieBreak::ReversedOrder));
        if case.load.syncs == 0 {
            let moved = u64::from(case.load.requests) * u64::from(case.load.bytes);
            for (_, found, _) in &first.0 {
                prop_assert_eq!(*found, moved);
            }
        }
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_kernel_says_that_it_had_no_such_call() {
    for (system, says) in [
        (SC780, Some("inode")),
        (XENIX, Some("seventh edition")),
        (MINIX, Some("one at a time")),
        ("bare-fixed", None),
    ] {
        let machine = machine(&specification(system, &[]));
        let note = machine.kernel().ring_emulation_note();
        match (note, says) {
            (Some(note), Some(says)) => assert!(note.contains(says), "{system}: {note}"),
            (note, says) => assert_eq!(note, says, "{system}"),
        }
    }
}

/// Requests under way at the drive, on average.
fn under_way(found: &Found, statistics: &RequestStatistics) -> f64 {
    statistics.drive_statistics[0].response_time_total.0 as f64 / found.elapsed.0 as f64
}

/// The mean time that the arm takes to where a request wants it.
fn mean_seek(statistics: &RequestStatistics) -> f64 {
    statistics.stage_ns[Stage::Seek.index()] as f64
        / statistics.drive_statistics[0].request_count as f64
}

/// The driver sorts what is under way by cylinder: with more to choose from, the arm has
/// less far to go. A first-come driver does not.
#[test]
fn a_drive_s_queue_sees_what_is_under_way() {
    for system in [SC780, "sun3-xy451-eagle", XENIX] {
        let load = Load {
            range: 80_000 << 9,
            ..RANDOM_READS
        };
        let drive = |depth, settings: &[(&str, &str)]| {
            one(
                &on(system, Place::Drive, settings),
                Place::Drive,
                load.at_depth(depth),
            )
        };
        let mut last: Option<(f64, Time)> = None;
        for depth in [1, 4, 16, 64] {
            let (found, statistics) = drive(depth, &[]);
            let deep = under_way(&found, &statistics);
            assert!(
                (0.5 * f64::from(depth)..=f64::from(depth) + 0.001).contains(&deep),
                "{system}: {deep} of {depth} under way"
            );
            let seek = mean_seek(&statistics);
            if let Some((shallow, longer)) = last {
                assert!(seek < 0.97 * shallow, "{system}: {seek} after {shallow} ns");
                assert!(found.elapsed < longer, "{system} at {depth}");
            }
            last = Some((seek, found.elapsed));
        }
    }
}

/// A controller with a queue of its own has more to choose from too.
#[test]
fn a_controller_s_queue_sees_what_is_under_way() {
    let drive = |depth| {
        one(
            &on(UDA50, Place::Drive, &[]),
            Place::Drive,
            RANDOM_READS.at_depth(depth),
        )
    };
    let (alone, _) = drive(1);
    for depth in [2, 8, 32] {
        let (found, _) = drive(depth);
        assert!(found.elapsed <= alone.elapsed, "depth {depth}");
    }
}

/// 4.2BSD and its like lock a file for as long as a call reads it, and Minix has one
/// server: no more than one request of a file comes to the drive, however many are under
/// way.
#[test]
fn requests_of_one_file_go_one_after_the_other() {
    for (system, settings) in [
        (SC780, &[("kernel.read_ahead_blocks", "0")][..]),
        (XENIX, &[("kernel.read_ahead_blocks", "0")]),
        (MINIX, &[]),
    ] {
        let load = Load {
            range: 2 << 20,
            requests: 100,
            ..RANDOM_READS
        };
        let specification = on(system, Place::File, settings);
        let machine = machine(&specification);
        run(&machine, async move |session| {
            make(session, "/mnt0/file", load.range as usize / BLOCK).await;
            session.drop_all_caches().await;
        });
        let before = machine.statistics().drive_statistics[0].response_time_total;
        let found = run(&machine, async move |session| {
            let file = session
                .open_path("/mnt0/file", BOTH)
                .await
                .expect("the file");
            keep_under_way(session, file, load.at_depth(16)).await
        });
        let response = machine.statistics().drive_statistics[0].response_time_total - before;
        assert!(response.0 <= found.elapsed.0, "{system}");
        assert!(response.0 * 4 > found.elapsed.0, "{system}: it reads");
    }
}

/// What the daemons do with the processor is the worker's: what it is charged with, and
/// where its time went when it had to wait for that.
#[test]
fn the_daemons_work_for_the_process() {
    let load = Load {
        range: 16 << 10,
        requests: 2000,
        ..RANDOM_READS
    };
    for system in [SC780, MINIX] {
        let (mut charged, mut elapsed, mut waited) = (0, 0, 0.0);
        let machine = machine(&on(system, Place::File, &[]));
        let found = run(&machine, async move |session| {
            make(session, "/mnt0/file", load.range as usize / BLOCK).await;
            let file = session
                .open_path("/mnt0/file", BOTH)
                .await
                .expect("the file");
            let mut into = [0; BLOCK];
            while session.read(file, &mut into).await.expect("it is open") > 0 {}
            keep_under_way(session, file, load.at_depth(8)).await
        });
        charged += (found.account.user_cpu_time + found.account.system_cpu_time).0;
        elapsed += found.elapsed.0;
        waited += found.stage(Stage::CpuWait) + found.stage(Stage::BufferWait);
        let (charged, waited) = (charged as f64 / elapsed as f64, waited / elapsed as f64);
        // All is in the cache, so that the processor is all that anybody waits for.
        assert!(charged > 0.95, "{system}: charged with {charged}");
        assert!(waited < 0.1, "{system}: waited {waited}");
        assert!(found.stage(Stage::Copy) > 0.0, "{system}");
    }
}

#[test]
fn a_wait_ends_at_its_moment() {
    for system in [SC780, MINIX, XENIX] {
        let machine = machine(&on(system, Place::Drive, &[]));
        run(&machine, async move |session| {
            let file = session
                .open_path("/dev/drive0", RAW)
                .await
                .expect("the drive");
            let size = RingSize {
                queue_depth: 2,
                buffer_bytes: 8192,
            };
            session.open_ring(size, &[file]).await.expect("a ring");
            session.open_account();
            let mut completions = Vec::new();
            // Nothing is under way.
            session
                .reap_completions(1, None, &mut completions)
                .await
                .expect("a ring");
            let until = session.current_time() + Time::from_millis(50);
            let reaped = session
                .reap_completions(1, Some(until), &mut completions)
                .await;
            reaped.expect("a ring");
            let over = session.current_time() - until;
            assert!(over < Time::from_millis(5), "{system}: {over} late");
            assert_eq!(completions, []);
            let read = |slot| RingRequest {
                operation: RingOperation::Read,
                file_number: file,
                offset_bytes: 8192 * 400 * u64::from(slot),
                bytes: 8192,
                slot,
            };
            // What it could not wait for stays under way.
            session
                .submit_requests(&[read(0), read(1)])
                .await
                .expect("a ring");
            let soon = session.current_time() + Time(1000);
            session
                .reap_completions(2, Some(soon), &mut completions)
                .await
                .expect("a ring");
            assert_eq!(
                (completions.len(), session.in_flight_count()),
                (0, 2),
                "{system}"
            );
            let late = session.current_time() + Time::from_millis(60_000);
            session
                .reap_completions(2, Some(late), &mut completions)
                .await
                .expect("a ring");
            assert_eq!(
                (completions.len(), session.in_flight_count()),
                (2, 0),
                "{system}"
            );
            assert!(session.current_time() < late, "{system}");
            let account = session.current_account();
            let slept = account.ledger.stage_duration(Stage::Think).0;
            assert!(
                (45_000_000..60_000_000).contains(&slept),
                "{system}: {slept}"
            );
        });
    }
}

#[test]
fn what_a_request_fails_with_is_its_own() {
    // A rig takes a discard to the drive, of a file that may be written to.
    for (system, discarded) in [
        (SC780, Errno::InvalidArgument),
        (XENIX, Errno::InvalidArgument),
        (MINIX, Errno::InvalidArgument),
        ("bare-sas-10k", Errno::BadFileDescriptor),
    ] {
        let direct = true;
        let machine = machine(&on(system, Place::Drive, &[]));
        run(&machine, async move |session| {
            let how = OpenFlags {
                direct_io: direct,
                ..READ
            };
            let file = session
                .open_path("/dev/drive0", how)
                .await
                .expect("the drive");
            let length = session.file_length(file).await.expect("it is open");
            let size = RingSize {
                queue_depth: 8,
                buffer_bytes: 8192,
            };
            assert_eq!(
                session.open_ring(size, &[file, 77]).await,
                Err(Errno::BadFileDescriptor)
            );
            session.open_ring(size, &[file]).await.expect("a ring");
            assert_eq!(
                session.open_ring(size, &[file]).await,
                Err(Errno::DeviceBusy)
            );
            let request = |slot, operation, file, offset| RingRequest {
                operation,
                file_number: file,
                offset_bytes: offset,
                bytes: 1024,
                slot,
            };
            let expected = [
                Ok(1024),
                Err(Errno::BadFileDescriptor),
                Err(Errno::BadFileDescriptor),
                Err(Errno::InvalidArgument),
                Ok(512),
                Ok(0),
                Err(discarded),
                Ok(0),
            ];
            let requests = [
                request(0, RingOperation::Read, file, 0),
                request(1, RingOperation::Write, file, 0),
                request(2, RingOperation::Read, file + 1, 0),
                request(3, RingOperation::Read, file, 100),
                request(4, RingOperation::Read, file, length - 512),
                request(5, RingOperation::Read, file, length),
                request(6, RingOperation::Discard, file, 0),
                request(7, RingOperation::Fsync, file, 0),
            ];
            session.submit_requests(&requests).await.expect("a ring");
            let mut completions = Vec::new();
            session
                .reap_completions(8, None, &mut completions)
                .await
                .expect("a ring");
            completions.sort_by_key(|completion| completion.slot);
            let found: Vec<_> = completions.iter().map(|one| one.result).collect();
            assert_eq!(found, expected, "{system}");
        });
    }
}

/// A ring holds its files open, and its end waits for what is under way.
#[test]
fn a_ring_outlives_its_files_and_is_closed_when_it_is_empty() {
    for system in [SC780, XENIX] {
        let machine = machine(&on(system, Place::File, &[]));
        let load = RANDOM_READS;
        run(&machine, async move |session| {
            make(session, "/mnt0/file", 64).await;
            session.drop_all_caches().await;
            let file = session
                .open_path("/mnt0/file", BOTH)
                .await
                .expect("the file");
            let size = RingSize {
                queue_depth: 64,
                buffer_bytes: 8192,
            };
            session.open_ring(size, &[file]).await.expect("a ring");
            let read = |slot| RingRequest {
                operation: RingOperation::Read,
                file_number: file,
                offset_bytes: 8192 * u64::from(slot),
                bytes: load.bytes,
                slot,
            };
            let requests: Vec<_> = (0..64).map(read).collect();
            session.submit_requests(&requests).await.expect("a ring");
            session.close(file).await.expect("it is open");
            assert!(session.in_flight_count() > 0);
            session.unlink("/mnt0/file").await.expect("its name");
            session.close_ring().await;
            assert_eq!(session.in_flight_count(), 0);
            let mut completions = Vec::new();
            let reaped = session.reap_completions(1, None, &mut completions).await;
            assert_eq!(reaped, Err(Errno::InvalidArgument));
            // Another one, which the end of the process closes.
            make(session, "/mnt0/other", 64).await;
            let file = session
                .open_path("/mnt0/other", BOTH)
                .await
                .expect("the file");
            session.open_ring(size, &[file]).await.expect("a ring");
            let write = |slot| RingRequest {
                operation: RingOperation::Write,
                file_number: file,
                ..read(slot)
            };
            let requests: Vec<_> = (0..64).map(write).collect();
            session.submit_requests(&requests).await.expect("a ring");
        });
        assert_eq!(
            machine.check_file_system(0),
            Ok(0),
            "{system}: nothing is left open"
        );
    }
}
