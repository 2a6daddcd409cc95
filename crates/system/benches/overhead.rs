//! What a call through `System::Host` costs above the plain system call: 8 KiB
//! reads of a file in the page cache, by a plain loop of read(2), through the
//! host without timing its calls, and with each call timed.
//!
//! Criterion measures each way by itself. The machine drifts by more between
//! two such measurements than the difference between the ways, so the bars are
//! held against a paired measurement: all ways in turn, a few milliseconds
//! each, and the ratio within each round.

#[cfg(target_os = "linux")]
mod linux {
    use criterion::{Criterion, Throughput};
    use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};
    use diskperf_system::{Buffer, File, OpenOptions, SeekOrigin, System, run_ready};
    use diskperf_timeline::Nanoseconds;
    use rustix::fs::{Mode, OFlags, SeekFrom};
    use rustix::time::{ClockId, clock_gettime};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    const CALL_BYTES: usize = 8192;
    const FILE_BYTES: u64 = 64 << 20;
    /// Calls between two readings of the clocks: a few milliseconds.
    const BATCH_CALLS: u64 = 2048;
    const BATCH_BYTES: u64 = BATCH_CALLS * CALL_BYTES as u64;
    /// A multiple of the orders of the ways, so that none is favoured.
    const ROUNDS: usize = 600;
    /// Criterion is only asked for one pass, as by `cargo test`.
    const ROUNDS_OF_A_TEST: usize = 6;

    /// The ways to read, and the most that each may take of the first one's
    /// time.
    const WAYS: [(&str, Option<f64>); 3] = [
        ("read(2)", None),
        ("host, untimed", Some(1.02)),
        ("host, timed", Some(1.05)),
    ];
    const ORDERS: [[usize; 3]; 6] = [
        [0, 1, 2],
        [1, 2, 0],
        [2, 0, 1],
        [0, 2, 1],
        [2, 1, 0],
        [1, 0, 2],
    ];

    /// One way to read, with all that it needs.
    enum Reader {
        Plain(OwnedFd),
        Host(System, File),
    }

    impl Reader {
        fn host(directory: &Path, time_calls: bool, clock: CallClock) -> Self {
            let directory = rustix::fs::open(directory, OFlags::CLOEXEC, Mode::empty())
                .expect("the benchmark's directory is readable");
            let ports = HostPorts {
                directories: vec![directory],
                ..HostPorts::default()
            };
            let control = WorkerControl::for_single_worker(time_calls, clock);
            let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
            let file = run_ready(system.open("/mnt0/data", OpenOptions::READ));
            Self::Host(system, file.expect("the benchmark's file is readable"))
        }

        /// Goes to `start` and reads a batch. Never inlined, so that each way
        /// is compiled once and runs the same code whoever calls it.
        #[inline(never)]
        fn read_batch(&mut self, start: u64, buffer: &mut [u8]) {
            match self {
                Self::Plain(file) => plain(file, start, buffer),
                Self::Host(system, file) => run_ready(host(system, *file, start, buffer)),
            }
        }
    }

    #[inline(never)]
    fn plain(file: &OwnedFd, start: u64, buffer: &mut [u8]) {
        rustix::fs::seek(file, SeekFrom::Start(start)).expect("a file can be sought in");
        for _ in 0..BATCH_CALLS {
            let count = rustix::io::read(file, &mut *buffer).expect("the file is readable");
            assert_eq!(count, CALL_BYTES);
        }
    }

    async fn host(system: &mut System, file: File, start: u64, buffer: &mut [u8]) {
        let sought = system
            .lseek(file, start as i64, SeekOrigin::FileStart)
            .await;
        sought.expect("a file can be sought in");
        for _ in 0..BATCH_CALLS {
            let count = system
                .read(file, buffer)
                .await
                .expect("the file is readable");
            assert_eq!(count, CALL_BYTES);
        }
    }

    /// The file, all ways to read it, and where the next batch starts.
    struct Setup {
        readers: [Reader; 3],
        buffer: Buffer,
        next: u64,
        _directory: tempfile::TempDir,
    }

    impl Setup {
        fn new() -> Self {
            let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
                .expect("the build directory is writable");
            let path = directory.path().join("data");
            std::fs::write(&path, vec![0x55; FILE_BYTES as usize]).expect("there is room");
            let file =
                rustix::fs::open(&path, OFlags::CLOEXEC, Mode::empty()).expect("it was just made");
            // Pages that wait to be written out are no part of the question.
            rustix::fs::fsync(&file).expect("there is room");
            let clock = CallClock::new_calibrated();
            let untimed = Reader::host(directory.path(), false, clock);
            let timed = Reader::host(directory.path(), true, clock);
            Self {
                readers: [Reader::Plain(file), untimed, timed],
                buffer: Buffer::new(CALL_BYTES),
                next: 0,
                _directory: directory,
            }
        }

        /// Reads a batch. The ways go through the file together, so that each
        /// finds the same share of its pages in the processor's caches.
        fn read_batch(&mut self, way: usize) {
            self.readers[way].read_batch(self.next, &mut self.buffer);
            self.next = (self.next + BATCH_BYTES) % FILE_BYTES;
        }
    }

    /// How a batch's time is taken.
    #[derive(Clone, Copy)]
    enum Time {
        Wall,
        Cpu,
    }

    impl Time {
        fn name(self) -> &'static str {
            match self {
                Self::Wall => "wall time",
                Self::Cpu => "CPU time",
            }
        }
    }

    /// Wall time and CPU time of this thread.
    fn clocks() -> [Nanoseconds; 2] {
        [ClockId::Monotonic, ClockId::ThreadCPUTime].map(|id| {
            let time = clock_gettime(id);
            Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
        })
    }

    /// Measures the ways in turn and prints what each takes of the first.
    fn paired(setup: &mut Setup, rounds: usize) {
        let mut times = [[0.0; 2]; 3];
        // Per kind of time and way, of every round: ns per call, and the ratio.
        let mut calls_ns: [[Vec<f64>; 3]; 2] = Default::default();
        let mut ratios: [[Vec<f64>; 3]; 2] = Default::default();
        for way in 0..WAYS.len() {
            setup.read_batch(way);
        }
        for round in 0..rounds {
            for way in ORDERS[round % ORDERS.len()] {
                let begin = clocks();
                setup.read_batch(way);
                let end = clocks();
                for (time, (begin, end)) in times[way].iter_mut().zip(begin.into_iter().zip(end)) {
                    *time = end.since(begin).0 as f64;
                }
            }
            for kind in 0..2 {
                for way in 0..WAYS.len() {
                    calls_ns[kind][way].push(times[way][kind] / BATCH_CALLS as f64);
                    ratios[kind][way].push(times[way][kind] / times[0][kind]);
                }
            }
        }
        println!("paired: {rounds} rounds of {BATCH_CALLS} reads of {CALL_BYTES} bytes each way");
        for kind in [Time::Wall, Time::Cpu] {
            for (way, (name, bar)) in WAYS.iter().enumerate() {
                let [_, call_ns, _] = quartiles(&mut calls_ns[kind as usize][way]);
                let [low, median, high] = quartiles(&mut ratios[kind as usize][way]);
                print!("{:10} {name:14} {call_ns:7.1} ns per call", kind.name());
                match bar {
                    None => println!(),
                    Some(bar) => println!(
                        "   ratio {median:.4}, quartiles {low:.4} to {high:.4}, bar {bar:.2}"
                    ),
                }
            }
        }
    }

    fn quartiles(values: &mut [f64]) -> [f64; 3] {
        values.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
    }

    pub(crate) fn main() {
        let mut setup = Setup::new();
        let is_test = std::env::args().any(|argument| argument == "--test");
        paired(&mut setup, if is_test { ROUNDS_OF_A_TEST } else { ROUNDS });

        let mut criterion = Criterion::default().configure_from_args();
        let mut group = criterion.benchmark_group("cached reads of 8 KiB");
        group.throughput(Throughput::Bytes(BATCH_BYTES));
        for (way, (name, _)) in WAYS.iter().enumerate() {
            group.bench_function(*name, |bencher| bencher.iter(|| setup.read_batch(way)));
        }
        group.finish();
        criterion.final_summary();
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
