//! Host writes per second of one core, 4 KiB at random with collection paced, in the steady
//! state of a drive of 1.92 TB (write amplification 4.5), and the memory that it takes:
//! with an address for each unit of the past, and with units that have one when they are
//! touched.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;

use criterion::{Criterion, Throughput};
use diskperf_ftl::{
    DataSeparation, Features, Ftl, Geometry, PreconditionState, ProgrammedUnits, Specification,
    UntimedFtl, VictimPolicy,
};
use measuring::{ThreadTime, measures, shortest, thread_time};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::hint::black_box;

/// Units of 4 KiB: 1.92 TB.
const LOGICAL: u32 = 468_750_000;
const WRITES: u64 = 1_000_000;
/// Writes per second that are aimed at: a device with time, which has the layer beneath,
/// is to serve 1 million.
const BAR: f64 = 2e6;
/// MiB of memory for each GiB of the host, at most.
const MEMORY_BAR: f64 = 2.2;

fn specification() -> Specification {
    // 32 dies of 2 planes, 24 units a program, 384 word lines: 1.1 GiB a superblock.
    let geometry = Geometry {
        superblock_count: 1812,
        die_count: 32,
        units_per_program: 24,
        rows_per_superblock: 384,
    };
    Specification {
        geometry,
        logical_units: LOGICAL,
        policy: VictimPolicy::Greedy,
        separation: DataSeparation::MovedApart,
        stream_count: 1,
        soft_free_superblocks: 10,
        hard_free_superblocks: 3,
        wear_threshold_erases: None,
        seed: 27,
    }
}

/// A drive that is written at random.
struct Written {
    drive: UntimedFtl,
    random: Pcg64Mcg,
}

impl Written {
    fn new(anonymous: bool) -> Self {
        let mut specification = specification();
        if !measures() {
            // Whether the code runs needs no full-size drive.
            specification.geometry.rows_per_superblock = 1;
            specification.logical_units /= 384;
        }
        let features = Features {
            anonymous_precondition: anonymous,
            ..Features::default()
        };
        let filled = specification.logical_units;
        let ftl = Ftl::new_preconditioned_with_features(
            specification,
            features,
            PreconditionState::Random,
            filled,
        );
        Self {
            drive: UntimedFtl::new(ftl.expect("the specification works")),
            random: Pcg64Mcg::seed_from_u64(27),
        }
    }

    fn write(&mut self, writes: u64) -> u32 {
        let units = u64::from(self.drive.ftl().specification().logical_units);
        for _ in 0..writes {
            let logical = ((self.random.next_u64() >> 32) * units) >> 32;
            self.drive.write_paced(logical as u32, 0);
        }
        self.drive.ftl().free_superblocks()
    }

    fn traffic(&self) -> ProgrammedUnits {
        *self.drive.ftl().traffic()
    }
}

/// Memory of this process, in MiB.
fn resident_mib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or(f64::NAN) * rustix::param::page_size() as f64 / f64::from(1 << 20)
}

fn main() {
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    for (name, anonymous) in [("with addresses", false), ("without addresses", true)] {
        let before_mib = resident_mib();
        let mut written = Written::new(anonymous);
        let mut group = criterion.benchmark_group("ftl");
        group
            .sample_size(10)
            .throughput(Throughput::Elements(WRITES));
        group.bench_function(format!("random writes of 1.92 TB {name}"), |bencher| {
            bencher.iter(|| black_box(written.write(WRITES)));
        });
        group.finish();
        if !measures() {
            continue;
        }
        let before = written.traffic();
        let seconds = shortest(10, || {
            let start = thread_time();
            black_box(written.write(WRITES));
            thread_time() - start
        });
        let (rate, traffic) = (
            WRITES as f64 / seconds,
            written.traffic().traffic_since(&before),
        );
        let gib = f64::from(LOGICAL) * 4096.0 / f64::from(1 << 30);
        let mib_per_gib = (resident_mib() - before_mib) / gib;
        println!(
            "{name}: {:.2} million writes/s at an amplification of {:.2}; the bar is {}. \
             {mib_per_gib:.3} MiB of memory per GiB; the bar is {MEMORY_BAR}",
            rate / 1e6,
            traffic.write_amplification(),
            BAR / 1e6,
        );
        assert!(rate >= BAR, "a layer writes too slowly");
        assert!(mib_per_gib <= MEMORY_BAR, "a layer takes too much memory");
    }
    criterion.final_summary();
}
