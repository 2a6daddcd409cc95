//! Replays of traces, on a directory and in virtual time: the same requests on both worlds,
//! and on a model the same moments to the nanosecond.
#![cfg(target_os = "linux")]

use diskperf_battery::replay::{ReplayPlan, ReplayTrace, RequestIterator};
use diskperf_battery::{Medium, Program, ProgramError, Worker, WorkerGroupMember};
use diskperf_blocktrace::{DeviceIndex, TraceRecord, TracedOperation};
use diskperf_catalogue::Catalogue;
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, RunConditions, WorkerRendezvous as Meeting};
use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};
use diskperf_system::model::{ModelPorts, ModelWorker};
use diskperf_system::{
    EngineChoice, IoOperation, OpenOptions, RingOptions, Submission, System, run_ready,
};
use diskperf_timeline::trace::TracedRequest;
use diskperf_timeline::{
    CacheMode, LoadMeasure, Nanoseconds, ReplayPace, TraceFacts, TraceOperation, WorkerMeasure,
};
use rand_core::Rng;
use rand_pcg::Pcg64;
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

const SEED: u64 = 1983;

/// A trace in memory.
#[derive(Debug)]
struct List(Vec<Result<TraceRecord, String>>);

impl ReplayTrace for List {
    fn read_requests(&self) -> RequestIterator {
        Box::new(self.0.clone().into_iter())
    }
}

/// A request of 4 KiB.
fn request(
    operation: TracedOperation,
    block: u64,
    (issued_ns, completed_ns): (u64, u64),
) -> TraceRecord {
    let length_bytes = match operation {
        TracedOperation::Flush => 0,
        _ => 4096,
    };
    TraceRecord {
        issued_ns,
        completed_ns: Some(completed_ns),
        think_ns: None,
        operation,
        fua: false,
        sync: false,
        device: DeviceIndex(0),
        offset_bytes: block * 4096,
        length_bytes,
        errno: 0,
    }
}

const SPACE_BYTES: u64 = 1 << 20;

fn replay(requests: &[TraceRecord], pace: ReplayPace, slots: u32) -> ReplayPlan {
    let of = |wanted: TracedOperation| {
        let some = requests.iter().filter(|one| one.operation == wanted);
        TraceOperation {
            request_count: some.clone().count() as u64,
            bytes: some.map(|one| one.length_bytes).sum(),
            ..TraceOperation::default()
        }
    };
    ReplayPlan {
        trace_start: None,
        replay_trace: Arc::new(List(requests.iter().copied().map(Ok).collect())),
        trace_facts: TraceFacts {
            read: of(TracedOperation::Read),
            write: of(TracedOperation::Write),
            flush: of(TracedOperation::Flush),
            discard: of(TracedOperation::Discard),
            transfer_bytes_max: 4096,
            ..TraceFacts::default()
        },
        replay_pace: pace,
        slot_count: slots,
        address_space_bytes: SPACE_BYTES,
        unit_bytes: 4096,
        cache_mode: CacheMode::Direct,
        issues_discards: false,
        keeps_durable_writes: false,
    }
}

fn worker(medium: Medium) -> Worker {
    Worker {
        worker_index: 0,
        drive_index: 0,
        medium,
        file_folder: "",
        second_target: None,
        size_bytes: 1 << 20,
        direct_io: medium == Medium::Device,
        random_seed: SEED,
        think_time: Nanoseconds::ZERO,
        worker_group: WorkerGroupMember::default(),
    }
}

/// What a worker does in a repetition, on either world.
async fn work(
    system: &mut System,
    program: &Program,
    worker: &Worker,
) -> Result<WorkerMeasure, ProgramError> {
    let mut program = program.clone();
    let mut buffer = program.new_buffer(worker);
    program.prepare_target(system, worker).await?;
    program.survey_target(system, worker).await?;
    let origin = system.now();
    system.start_measuring(origin)?;
    let run = program.run_timed_part(system, worker, &mut buffer).await;
    let measure = system.finish_measuring().await?;
    system.close_all().await;
    run.map(|()| measure)
}

fn on_host(program: &Program) -> Result<WorkerMeasure, ProgramError> {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = OwnedFd::from(std::fs::File::open(folder.path()).expect("a folder"));
    let ports = HostPorts {
        directories: vec![directory],
        ..HostPorts::default()
    };
    let control = WorkerControl::for_single_worker(true, CallClock::new_calibrated());
    let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
    let worker = worker(Medium::Directory);
    run_ready(work(&mut system, program, &worker))
}

/// Runs a body on a modelled rig; what it came to, and what the drive was asked for.
fn on_model<T: 'static>(
    name: &str,
    body: impl AsyncFnOnce(&mut System) -> T + 'static,
) -> (T, Vec<TracedRequest>) {
    let resolved = Catalogue::embedded().resolve(name, &[]);
    let resolved = resolved.unwrap_or_else(|problem| panic!("{problem}"));
    let read =
        MachineSpecification::read_machine(resolved).unwrap_or_else(|problem| panic!("{problem}"));
    let circumstances = RunConditions {
        records_trace: true,
        ..RunConditions::default()
    };
    let machine = Machine::build(&read.0, circumstances);
    let ports = ModelPorts {
        process_number: 0,
        pipe_ends: Vec::new(),
        rendezvous: Meeting::new(1),
        times_calls: false,
        stop_requested: Default::default(),
        progress: Default::default(),
    };
    let kernel = machine.kernel().clone();
    let result: Rc<RefCell<Option<T>>> = Rc::default();
    let kept = Rc::clone(&result);
    machine.spawn_process("worker", async move {
        let mut system =
            System::ModelWorker(Box::new(ModelWorker::begin_session(&kernel, ports).await));
        let found = body(&mut system).await;
        system.end_session().await;
        *kept.borrow_mut() = Some(found);
    });
    machine.run_to_end().expect("the worker ends");
    let trace = machine.take_trace().expect("it was asked for");
    (result.take().expect("it ended"), trace.requests)
}

type Replayed = (Result<WorkerMeasure, ProgramError>, Vec<TracedRequest>);

fn replayed_on(system: &str, program: &Program) -> Replayed {
    let program = program.clone();
    on_model(system, async move |system: &mut System| {
        work(system, &program, &worker(Medium::Device)).await
    })
}

const PACES: [ReplayPace; 4] = [
    ReplayPace::OpenLoop { speed: 1.0 },
    ReplayPace::OpenLoop { speed: 4.0 },
    ReplayPace::ClosedLoop { depth: 3 },
    ReplayPace::Dependent,
];

/// Reads, writes and flushes, some of which overlap.
fn mixed() -> Vec<TraceRecord> {
    let kind = |number: u64| match number % 7 {
        2 | 5 => TracedOperation::Write,
        6 => TracedOperation::Flush,
        _ => TracedOperation::Read,
    };
    let times = |number: u64| (number * 50_000, number * 50_000 + 120_000);
    let one = |number: u64| request(kind(number), number * 37 % 256, times(number));
    (0..140).map(one).collect()
}

/// One body for each pace, on both worlds.
#[test]
fn all_requests_are_made_on_both_worlds() {
    for pace in PACES {
        let program = Program::from_replay(replay(&mixed(), pace, 8));
        let worlds = [
            ("host", on_host(&program)),
            ("model", replayed_on("bare-fixed", &program).0),
        ];
        for (world, measure) in worlds {
            let measure = measure.unwrap_or_else(|error| panic!("{pace:?}, {world}: {error}"));
            let load = measure.load_measure.expect("it has a ring");
            let counts = [&load.read, &load.write, &load.sync].map(|one| one.request_count());
            assert_eq!(counts, [80, 40, 20], "{pace:?}, {world}");
            assert_eq!(measure.read_bytes, 80 * 4096, "{pace:?}, {world}");
            assert_eq!(measure.written_bytes, 40 * 4096, "{pace:?}, {world}");
            let issued = load
                .arrival_lag
                .as_ref()
                .map_or(0, |lag| lag.latency_count());
            let is_closed = matches!(pace, ReplayPace::ClosedLoop { .. });
            assert_eq!(issued, if is_closed { 0 } else { 140 }, "{pace:?}, {world}");
            assert_eq!(load.unfinished_count, 0, "{pace:?}, {world}");
        }
    }
}

fn load_of(replayed: &Replayed) -> &LoadMeasure {
    let measure = replayed.0.as_ref().expect("it came to its end");
    measure.load_measure.as_ref().expect("it has a ring")
}

#[test]
fn in_open_loop_each_request_is_issued_at_its_moment() {
    let requests: Vec<TraceRecord> = (0..500)
        .map(|number: u64| {
            let at_ns = number * number * 1001 + 13;
            request(TracedOperation::Read, number % 256, (at_ns, at_ns + 1))
        })
        .collect();
    for speed in [1.0, 2.5] {
        let pace = ReplayPace::OpenLoop { speed };
        let program = Program::from_replay(replay(&requests, pace, 512));
        let found = replayed_on("bare-fixed", &program);
        let mut issued: Vec<u64> = found.1.iter().map(|one| one.issued_at.0).collect();
        issued.sort_unstable();
        let first = issued[0];
        let gap = |one: &TraceRecord| {
            let since_ns = one.issued_ns - requests[0].issued_ns;
            first + (since_ns as f64 / speed) as u64
        };
        let wanted: Vec<u64> = requests.iter().map(gap).collect();
        assert_eq!(issued, wanted, "{speed}");
        let load = load_of(&found);
        assert_eq!(
            load.arrival_lag.as_ref().map(|lag| lag.latency_max().0),
            Some(0)
        );
        assert_eq!(load.slot_wait_count, 0);
    }
}

/// What is due goes out at once, however near the next request is: to have that ready is no
/// reason to keep what is due. A busy machine delays some of the runs, and not all.
#[test]
fn on_a_host_what_is_due_does_not_wait_for_what_is_near() {
    const GAP_NS: u64 = 900_000;
    let at = |issued_ns| request(TracedOperation::Read, 0, (issued_ns, issued_ns + 1));
    let pace = ReplayPace::OpenLoop { speed: 1.0 };
    let program = Program::from_replay(replay(&[at(0), at(GAP_NS)], pace, 8));
    let lag_ns = |_| {
        let measure = on_host(&program).expect("it came to its end");
        let load = measure.load_measure.expect("it has a ring");
        load.arrival_lag.expect("of an open loop").latency_max().0
    };
    let all_ns: Vec<u64> = (0..100).map(lag_ns).collect();
    assert!(
        all_ns.iter().any(|lag_ns| *lag_ns < GAP_NS / 2),
        "{all_ns:?}"
    );
}

/// A storage that is slower than the trace's keeps requests waiting, which count from when
/// they were to be issued.
#[test]
fn requests_that_wait_for_a_slot_are_counted() {
    let requests: Vec<TraceRecord> = (0..100)
        .map(|number| request(TracedOperation::Read, number, (number, number + 1)))
        .collect();
    let pace = ReplayPace::OpenLoop { speed: 1.0 };
    let program = Program::from_replay(replay(&requests, pace, 4));
    let found = replayed_on("bare-fixed", &program);
    let load = load_of(&found);
    assert_eq!((load.slot_wait_count, load.in_flight_max), (96, 4));
    let lag = load.arrival_lag.as_ref().expect("arrivals do not wait");
    assert_eq!(lag.latency_count(), 100);
    assert!(load.read.response_times.latency_max() > lag.latency_max());
}

/// Random reads, so many under way, with pauses after completions; and the trace that a
/// recorder makes of them.
async fn recorded(
    system: &mut System,
    (depth, count): (u32, usize),
    pause: fn(u32) -> u64,
) -> Vec<TraceRecord> {
    let file = system
        .open("/dev/drive0", OpenOptions::READ.with_direct(true))
        .await;
    let file = file.expect("the drive");
    let options = RingOptions {
        queue_depth: depth,
        buffer_bytes: 4096,
        seed: SEED,
        compressible_percent: 0,
        engine_choice: EngineChoice::BestAvailable,
        polls_completions: false,
        has_verifiable_contents: false,
        series_interval: Nanoseconds(1_000_000_000),
    };
    system.open_ring(options, &[file]).await.expect("a ring");
    let mut random = Pcg64::new(u128::from(SEED), 1);
    let mut trace: Vec<TraceRecord> = Vec::new();
    // When each slot may issue next, and what it issued last.
    let mut ready: Vec<Option<u64>> = vec![Some(system.now().0); depth as usize];
    let mut last = vec![0; depth as usize];
    loop {
        let now = system.now().0;
        let mut due: Vec<(u64, usize)> = Vec::new();
        for (slot, at) in ready.iter().enumerate() {
            due.extend(at.map(|at| (at, slot)));
        }
        due.sort_unstable();
        for (_, slot) in due.iter().filter(|(at, _)| *at <= now) {
            if trace.len() == count {
                break;
            }
            let block = random.next_u64() % (SPACE_BYTES / 4096);
            let submission = Submission {
                operation: IoOperation::Read,
                file,
                offset_bytes: block * 4096,
                bytes: 4096,
                slot: *slot as u32,
                intended_start: None,
            };
            last[*slot] = trace.len();
            ready[*slot] = None;
            trace.push(request(TracedOperation::Read, block, (now, now)));
            system
                .submit_requests(&[submission])
                .await
                .expect("submitted");
        }
        let under_way = ready.iter().filter(|at| at.is_none()).count();
        let is_over = trace.len() == count;
        if is_over && under_way == 0 {
            return trace;
        }
        let next = ready.iter().flatten().min().filter(|_| !is_over);
        let until = next.map(|at| Nanoseconds(*at));
        let mut completions = Vec::new();
        let reaped = system.reap_requests(1, until, &mut completions).await;
        let now = reaped.expect("reaped").0;
        for completion in completions {
            let slot = completion.slot as usize;
            trace[last[slot]].completed_ns = Some(now);
            ready[slot] = Some(now + pause(completion.slot));
        }
    }
}

#[test]
fn what_was_recorded_on_a_model_is_replayed_there_to_the_nanosecond() {
    let no_pause: fn(u32) -> u64 = |_| 0;
    let pauses: fn(u32) -> u64 = |slot| 1_000_003 * u64::from(slot + 1);
    for system in ["bare-fixed", "bare-sata-7200"] {
        for (depth, pause, paces) in [
            (
                1,
                no_pause,
                vec![ReplayPace::ClosedLoop { depth: 1 }, ReplayPace::Dependent],
            ),
            (
                8,
                no_pause,
                vec![ReplayPace::ClosedLoop { depth: 8 }, ReplayPace::Dependent],
            ),
            (
                1,
                pauses,
                vec![ReplayPace::Dependent, ReplayPace::OpenLoop { speed: 1.0 }],
            ),
            (
                5,
                pauses,
                vec![ReplayPace::Dependent, ReplayPace::OpenLoop { speed: 1.0 }],
            ),
        ] {
            let (trace, done) = on_model(system, async move |system: &mut System| {
                recorded(system, (depth, 400), pause).await
            });
            for pace in paces {
                let program = Program::from_replay(replay(&trace, pace, depth));
                let (_, again) = replayed_on(system, &program);
                assert_eq!(done.len(), 400);
                let moments = |all: &[TracedRequest]| -> Vec<(u64, u64, u64)> {
                    let one =
                        |one: &TracedRequest| (one.issued_at.0, one.completed_at().0, one.sector);
                    all.iter().map(one).collect()
                };
                let (done, again) = (moments(&done), moments(&again));
                assert_eq!(again, done, "{system}, {depth} under way, {pace:?}");
            }
        }
    }
}

#[test]
fn a_trace_that_cannot_be_read_on_ends_the_replay() {
    for pace in PACES {
        let mut replay = replay(&mixed(), pace, 8);
        let mut some: Vec<_> = mixed()[..10].iter().copied().map(Ok).collect();
        some.push(Err("line 11 is torn".to_owned()));
        replay.replay_trace = Arc::new(List(some));
        let found = replayed_on("bare-fixed", &Program::from_replay(replay)).0;
        let error = found.expect_err("it cannot go on").to_string();
        assert_eq!(error, "line 11 is torn", "{pace:?}");
    }
}

#[test]
fn replays_are_the_same_by_their_trace_and_their_pace() {
    let of = |pace| Program::from_replay(replay(&mixed(), pace, 8));
    assert_eq!(of(ReplayPace::Dependent), of(ReplayPace::Dependent));
    assert_ne!(of(ReplayPace::Dependent), of(ReplayPace::default()));
}
