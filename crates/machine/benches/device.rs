//! How fast a device of the catalogue is simulated, whole. Of a disk: reads that its buffer
//! answers and random 4 KiB reads at depth 1, and random ones at depth 32, ordered by the
//! shortest positioning time. Of a flash drive of 1.92 TB with a random past: random 4 KiB
//! reads, and random 4 KiB writes in the steady state, with collection.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;

use criterion::{Criterion, Throughput};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::Device;
use diskperf_device::disk::device::Disk;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::flash::device::Flash;
use diskperf_device::{Operation, Request, Requests, moment};
use diskperf_machine::specification::MachineSpecification;
use diskperf_sim::{RandomStream, RandomStreams, Time};
use measuring::{ThreadTime, measures, shortest, thread_time};
use std::hint::black_box;

const REQUESTS: u64 = 50_000;

/// What is measured.
struct Load {
    name: &'static str,
    drive: &'static str,
    operation: Operation,
    depth: u32,
    /// Sectors of the range, at most.
    range: u64,
    /// Requests before.
    before: u64,
    /// Requests of which the fastest are told: in a steady state all that comes round.
    measured: u64,
    /// Requests per second that are aimed at.
    aim: f64,
}

const LOADS: [Load; 5] = [
    Load {
        name: "cached 4 KiB reads of a disk",
        drive: "sata-7200",
        operation: Operation::Read,
        depth: 1,
        range: 256,
        before: 0,
        measured: REQUESTS,
        aim: 5e6,
    },
    Load {
        name: "random 4 KiB reads of a disk",
        drive: "sata-7200",
        operation: Operation::Read,
        depth: 1,
        range: u64::MAX,
        before: 0,
        measured: REQUESTS,
        aim: 5e6,
    },
    Load {
        name: "random 4 KiB reads of a disk",
        drive: "sata-7200",
        operation: Operation::Read,
        depth: 32,
        range: u64::MAX,
        before: 0,
        measured: REQUESTS,
        aim: 0.5e6,
    },
    Load {
        name: "random 4 KiB reads of a flash drive",
        drive: "nvme-tlc-plp",
        operation: Operation::Read,
        depth: 32,
        range: u64::MAX,
        before: 0,
        measured: REQUESTS,
        aim: 5e6,
    },
    Load {
        name: "random 4 KiB writes of a flash drive",
        drive: "nvme-tlc-plp",
        operation: Operation::Write { fua: false },
        depth: 32,
        range: u64::MAX,
        // Collections of four superblocks of 294,912 units, at an amplification of 4.5.
        before: 300_000,
        measured: 600_000,
        aim: 1e6,
    },
];

fn device(drive: &str) -> Device {
    let past = Setting::new("drive.past", "random");
    let system = format!("bare-{drive}");
    let system = match drive {
        "nvme-tlc-plp" => Catalogue::embedded().resolve(&system, &[past]),
        _ => Catalogue::embedded().resolve(&system, &[]),
    };
    let (read, _) =
        MachineSpecification::read_machine(system.expect("a system")).expect("a system");
    let of = &read.drives[0];
    if let Some(disk) = of.disk_specification() {
        return Device::Disk(Box::new(
            Disk::new(disk, RotationAngle::ZERO).expect("a disk"),
        ));
    }
    let retries = RandomStreams::new(1).named_stream("retries");
    let flash = Flash::new(of.flash_specification().expect("a device"), (1, retries));
    Device::Flash(Box::new(flash.expect("a flash drive")))
}

/// A closed queue of one depth.
struct Closed {
    device: Device,
    operation: Operation,
    requests: Requests,
    draws: RandomStream,
    range: u64,
    now: Time,
    /// One that is over, whose room the next one takes.
    spare: Request,
}

impl Closed {
    fn new(load: &Load) -> Self {
        let device = device(load.drive);
        // Of 4 KiB in both.
        let whole = match &device {
            Device::Disk(disk) => disk.sectors(),
            Device::Flash(flash) => flash.sectors(),
            _ => unreachable!("no load is of one"),
        };
        let mut closed = Self {
            device,
            operation: load.operation,
            requests: Requests::default(),
            draws: RandomStreams::new(1).named_stream("places"),
            range: load.range.min(whole),
            now: Time::ZERO,
            spare: Request::default(),
        };
        (0..load.depth).for_each(|_| closed.ask());
        if measures() {
            closed.run(load.before);
        }
        closed
    }

    fn ask(&mut self) {
        let mut request = std::mem::take(&mut self.spare);
        request.operation = self.operation;
        request.sector = self.draws.draw_below(self.range);
        request.sectors = 1;
        request.spans.begin_at(moment(self.now));
        let id = self.requests.issue(request);
        self.device.accept_request(self.now, &mut self.requests, id);
    }

    fn run(&mut self, requests: u64) -> Time {
        for _ in 0..requests {
            while !self.device.has_completed_requests() {
                self.now = self.device.next_event().expect("a command is under way");
                self.device.advance(self.now, &mut self.requests);
            }
            let id = self.device.take_completed_request().expect("one is done");
            self.spare = self.requests.take_request(id);
            self.ask();
        }
        self.now
    }
}

/// Whether the command line names it, or nothing.
fn is_wanted(load: &Load) -> bool {
    let mut words = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    words.all(|word| load.name.contains(&word))
}

fn main() {
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    let mut group = criterion.benchmark_group("device");
    group.throughput(Throughput::Elements(REQUESTS));
    for load in &LOADS {
        let mut closed = Closed::new(load);
        let name = format!("{}, {} outstanding", load.name, load.depth);
        group.bench_function(name, |bencher| bencher.iter(|| closed.run(REQUESTS)));
    }
    group.finish();
    criterion.final_summary();
    for load in LOADS.iter().filter(|load| measures() && is_wanted(load)) {
        let mut closed = Closed::new(load);
        let rounds = (20 * REQUESTS / load.measured).max(3) as usize;
        let seconds = shortest(rounds, || {
            let start = thread_time();
            black_box(closed.run(load.measured));
            thread_time() - start
        });
        println!(
            "{:.2} million {}/s at depth {}; the aim is {}",
            load.measured as f64 / seconds / 1e6,
            load.name,
            load.depth,
            load.aim / 1e6
        );
    }
}
