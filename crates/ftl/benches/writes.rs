//! Host writes per second of one core, at random, with collection in the steady state of
//! a drive of 1.92 TB (write amplification 4.5 with a spare of 0.116).

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use diskperf_ftl::{Ftl, Geometry, Instant, Past, Policy, Separation, Specification};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use std::hint::black_box;

/// Units of 4 KiB.
const LOGICAL: u32 = 468_750_000;
const WRITES: u64 = 1_000_000;

fn specification() -> Specification {
    // 128 dies, 24 units a program, 384 word lines: 4.5 GiB a superblock.
    let geometry = Geometry {
        superblocks: 456,
        dies: 128,
        program_units: 24,
        rows: 384,
    };
    Specification {
        geometry,
        logical_units: LOGICAL,
        policy: Policy::Greedy,
        separation: Separation::Apart,
        streams: 1,
        soft_free: 5,
        hard_free: 3,
        wear_threshold: None,
        seed: 27,
    }
}

fn random_writes(criterion: &mut Criterion) {
    let ftl = Ftl::with_past(specification(), Past::Random).expect("the specification works");
    let mut drive = Instant::new(ftl);
    let mut random = Pcg64Mcg::seed_from_u64(27);
    let mut write = |drive: &mut Instant| {
        drive.write_paced((random.next_u64() % u64::from(LOGICAL)) as u32, 0);
    };
    // The past leaves a little more free than collection does.
    while drive.ftl().traffic().erases == 0 {
        write(&mut drive);
    }
    let before = *drive.ftl().traffic();
    let mut group = criterion.benchmark_group("ftl");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(WRITES));
    group.bench_function("random writes of 1.92 TB, collection paced", |bench| {
        bench.iter(|| {
            for _ in 0..WRITES {
                write(&mut drive);
            }
            black_box(drive.ftl().free_superblocks())
        });
    });
    group.finish();
    let traffic = drive.ftl().traffic().since(&before);
    println!(
        "write amplification {:.2} over {} writes",
        traffic.amplification(),
        traffic.host
    );
}

criterion_group!(benches, random_writes);
criterion_main!(benches);
