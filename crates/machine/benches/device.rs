//! How fast a disk of the catalogue is simulated, whole: reads that its buffer answers and
//! random 4 KiB reads at depth 1, and random ones at depth 32, ordered by the shortest
//! positioning time.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;

use criterion::{Criterion, Throughput};
use diskperf_machine::catalogue::{Catalogue, Setting};
use diskperf_machine::hardware::disk::device::Disk;
use diskperf_machine::hardware::disk::spindle::Turn;
use diskperf_machine::hardware::{Request, Requests, moment};
use diskperf_machine::specification::Specification;
use diskperf_sim::{Stream, Streams, Time};
use measuring::{ThreadTime, measures, shortest, thread_time};
use std::hint::black_box;

const REQUESTS: u64 = 50_000;

/// Name, depth, sectors that are read, and requests per second that are aimed at.
const LOADS: [(&str, u32, u64, f64); 3] = [
    ("cached", 1, 256, 5e6),
    ("random", 1, u64::MAX, 5e6),
    ("random", 32, u64::MAX, 0.5e6),
];

fn disk() -> Disk {
    let none: [Setting; 0] = [];
    let system = Catalogue::embedded().resolve("bare-sata-7200", &none);
    let (read, _) = Specification::read(system.expect("a system")).expect("a system");
    let of = read.drives[0].disk().expect("a disk").clone();
    Disk::new(&of, Turn::ZERO).expect("a disk")
}

/// A closed queue of one depth.
struct Closed {
    disk: Disk,
    requests: Requests,
    draws: Stream,
    range: u64,
    now: Time,
    /// One that is over, whose room the next one takes.
    spare: Request,
}

impl Closed {
    fn new(disk: &Disk, depth: u32, range: u64) -> Self {
        let mut closed = Self {
            range: range.min(disk.sectors()),
            disk: disk.clone(),
            requests: Requests::default(),
            draws: Streams::new(1).stream("places"),
            now: Time::ZERO,
            spare: Request::default(),
        };
        (0..depth).for_each(|_| closed.ask());
        closed
    }

    fn ask(&mut self) {
        let mut request = std::mem::take(&mut self.spare);
        request.sector = self.draws.below(self.range);
        request.sectors = 1;
        request.spans.issue(moment(self.now));
        let id = self.requests.issue(request);
        self.disk.take(self.now, &mut self.requests, id);
    }

    fn run(mut self, requests: u64) -> Time {
        for _ in 0..requests {
            while !self.disk.has_done() {
                self.now = self.disk.next_event().expect("a command is under way");
                self.disk.advance(self.now, &mut self.requests);
            }
            let id = self.disk.take_done().expect("one is done");
            self.spare = self.requests.take(id);
            self.ask();
        }
        self.now
    }
}

fn main() {
    let disk = disk();
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    let mut group = criterion.benchmark_group("device");
    group.throughput(Throughput::Elements(REQUESTS));
    for (name, depth, range, _) in LOADS {
        group.bench_function(
            format!("{name} 4 KiB reads, {depth} outstanding"),
            |bencher| {
                bencher.iter_batched(
                    || Closed::new(&disk, depth, range),
                    |closed| closed.run(REQUESTS),
                    criterion::BatchSize::LargeInput,
                );
            },
        );
    }
    group.finish();
    criterion.final_summary();
    for (name, depth, range, bar) in LOADS.into_iter().filter(|_| measures()) {
        let seconds = shortest(20, || {
            let closed = Closed::new(&disk, depth, range);
            let start = thread_time();
            black_box(closed.run(REQUESTS));
            thread_time() - start
        });
        let rate = REQUESTS as f64 / seconds;
        println!(
            "{:.2} million {name} requests/s at depth {depth}; the aim is {}",
            rate / 1e6,
            bar / 1e6
        );
    }
}
