//! How fast one drive is simulated: random 8 KiB reads through a first-come
//! queue on the engine, without spans.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;
#[path = "../tests/support/queueing.rs"]
#[allow(dead_code, reason = "the tests look at more of it")]
mod queueing;

use criterion::{Criterion, Throughput};
use diskperf_catalogue::Catalogue;
use diskperf_machine::hardware::mechanism::Mechanism;
use diskperf_machine::specification::MachineSpecification;
use measuring::{ThreadTime, measures, shortest, thread_time};
use queueing::{Load, Service, Station};

const REQUESTS: u64 = 100_000;
const SECTORS: u32 = 16;
/// Requests per second that must be simulated.
const BAR: f64 = 10e6;

fn eagle() -> Mechanism {
    let system = Catalogue::embedded().resolve("vax780-sc780-eagle", &[]);
    let (specification, _) =
        MachineSpecification::read_machine(system.expect("a system")).expect("a sound one");
    let disk = specification.drives[0]
        .mechanism_specification()
        .expect("a disk");
    disk.new_mechanism()
}

fn station(drive: &Mechanism, outstanding: u32) -> Station {
    let service = Service::Random {
        drive: Box::new(drive.clone()),
        sectors: SECTORS,
    };
    Station::new(service, Load::Closed(outstanding), 1)
}

fn main() {
    let drive = eagle();
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    let mut group = criterion.benchmark_group("drive");
    group.throughput(Throughput::Elements(REQUESTS));
    for outstanding in [1, 8] {
        group.bench_function(
            format!("random 8 KiB reads, {outstanding} outstanding"),
            |bencher| {
                bencher.iter_batched(
                    || station(&drive, outstanding),
                    |station| station.run(REQUESTS),
                    criterion::BatchSize::LargeInput,
                );
            },
        );
    }
    group.finish();
    criterion.final_summary();
    if measures() {
        let seconds = shortest(50, || {
            let station = station(&drive, 8);
            let start = thread_time();
            station.run(REQUESTS);
            thread_time() - start
        });
        let rate = REQUESTS as f64 / seconds;
        println!(
            "{:.2} million requests/s; the bar is {}",
            rate / 1e6,
            BAR / 1e6
        );
        assert!(rate >= BAR, "a drive is simulated too slowly");
    }
}
