//! A read or a write allocates nothing, timed or not: what the allocator does
//! in a call would be measured as the storage's time.
#![cfg(target_os = "linux")]

mod support;

use diskperf_system::host::{CallClock, DrivePort, HostPorts, HostWorker, WorkerControl};
use diskperf_system::{
    Buffer, EngineChoice, IoOperation, OpenOptions, RingOptions, SeekOrigin, Submission, System,
    run_ready,
};
use diskperf_timeline::Nanoseconds;
use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::cell::Cell;

const CALL_BYTES: usize = 8192;
const CALLS_OF_A_PASS: u64 = 100;
const PASSES: u64 = 100;

thread_local! {
    /// Requests that this thread made of the allocator; other tests have
    /// threads of their own.
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    REQUESTS.with(|requests| requests.set(requests.get() + 1));
}

// SAFETY: every request goes unchanged to the system's allocator. The counter
// is a constant-initialised thread-local without a destructor, so that counting
// neither allocates nor fails while a thread ends.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { Heap.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`; `memory` came
        // from the same allocator.
        unsafe { Heap.realloc(memory, layout, new_size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps the contract of `dealloc`; `memory` came
        // from the same allocator.
        unsafe { Heap.dealloc(memory, layout) }
    }
}

fn requests() -> u64 {
    REQUESTS.with(Cell::get)
}

fn host(scratch: &support::Scratch, time_calls: bool) -> System {
    let null = DrivePort::NullDrive {
        length_bytes: 1 << 20,
    };
    let ports = HostPorts {
        directories: vec![support::opened(&scratch.path())],
        drive_ports: vec![null],
        ..HostPorts::default()
    };
    let control = WorkerControl::for_single_worker(time_calls, CallClock::new_calibrated());
    System::HostWorker(Box::new(HostWorker::new(ports, control)))
}

#[test]
fn the_counter_counts() {
    let before = requests();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(requests() - before, 2);
}

#[test]
fn reads_and_writes_allocate_nothing() {
    let scratch = support::Scratch::new();
    for time_calls in [false, true] {
        for reading in [false, true] {
            let mut system = host(&scratch, time_calls);
            let mut buffer = Buffer::new(CALL_BYTES);
            let made = run_ready(async {
                let how = OpenOptions::READ_WRITE.with_create();
                let file = system.open("/mnt0/file", how).await.unwrap();
                system.start_measuring(system.now()).unwrap();
                let mut made = 0;
                for pass in 0..=PASSES {
                    // The first pass warms up.
                    if pass == 1 {
                        made = requests();
                    }
                    system.lseek(file, 0, SeekOrigin::FileStart).await.unwrap();
                    for _ in 0..CALLS_OF_A_PASS {
                        let count = if reading {
                            system.read(file, &mut buffer).await
                        } else {
                            system.write(file, &buffer).await
                        };
                        assert_eq!(count, Ok(CALL_BYTES));
                    }
                }
                made = requests() - made;
                let measure = system.finish_measuring().await.unwrap();
                let latencies =
                    measure.read_latency.latency_count() + measure.write_latency.latency_count();
                let calls = (PASSES + 1) * CALLS_OF_A_PASS;
                assert_eq!(
                    (measure.call_count, latencies),
                    (calls, u64::from(time_calls) * calls)
                );
                made
            });
            let calls = PASSES * CALLS_OF_A_PASS;
            assert_eq!(
                made, 0,
                "in {calls} calls; reading: {reading}, timed: {time_calls}"
            );
        }
    }
}

/// Also where intervals of the series begin in between.
#[test]
fn requests_under_way_allocate_nothing() {
    const DEPTH: u32 = 16;
    let scratch = support::Scratch::new();
    for path in ["/dev/drive0", "/mnt0/file"] {
        let mut system = host(&scratch, true);
        let made = run_ready(async {
            let how = OpenOptions::READ_WRITE.with_create();
            let file = system.open(path, how).await.unwrap();
            let options = RingOptions {
                queue_depth: DEPTH,
                buffer_bytes: 4096,
                seed: 1,
                compressible_percent: 0,
                engine_choice: EngineChoice::BestAvailable,
                polls_completions: false,
                has_verifiable_contents: false,
                series_interval: Nanoseconds::from_millis(1),
            };
            system.open_ring(options, &[file]).await.unwrap();
            let request = |slot: u32| Submission {
                operation: match slot % 3 {
                    0 => IoOperation::Write,
                    _ => IoOperation::Read,
                },
                file,
                offset_bytes: u64::from(slot) * 4096,
                bytes: 4096,
                slot,
                intended_start: Some(Nanoseconds(1)),
            };
            let batch: Vec<Submission> = (0..DEPTH).map(request).collect();
            let mut completions = Vec::with_capacity(DEPTH as usize);
            system.start_measuring(system.now()).unwrap();
            let mut made = 0;
            for pass in 0..=PASSES {
                if pass == 1 {
                    made = requests();
                }
                completions.clear();
                system.submit_requests(&batch).await.unwrap();
                let all = batch.len();
                system
                    .reap_requests(all, None, &mut completions)
                    .await
                    .unwrap();
                assert_eq!(completions.len(), all);
            }
            made = requests() - made;
            let load = system
                .finish_measuring()
                .await
                .unwrap()
                .load_measure
                .unwrap();
            assert_eq!(load.read_write_count(), (PASSES + 1) * u64::from(DEPTH));
            made
        });
        assert_eq!(made, 0, "{path}");
    }
}
