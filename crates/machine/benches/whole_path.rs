//! How long `write_8192` of 8 MB takes to simulate on the VAX 11/780 with an
//! SC780 and an Eagle: 1024 blocks through system calls, allocator, buffer
//! cache, driver, adaptor and drive, with the process's ledger. The machine
//! is built outside of what is measured, and so is the removal of the file.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;

use criterion::{Criterion, Throughput};
use diskperf_catalogue::Catalogue;
use diskperf_machine::specification::Specification;
use diskperf_machine::{Circumstances, How, Machine, Rendezvous, Session, Written};
use measuring::{ThreadTime, measures, shortest, thread_time};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const BLOCK_BYTES: usize = 8192;
const BLOCKS: usize = 1024;
/// Seconds that one run of the program may take.
const BAR: f64 = 1.5e-3;

fn specification() -> Specification {
    let system = Catalogue::embedded().resolve("vax780-sc780-eagle", &[]);
    let (specification, _) = Specification::read(system.expect("a system")).expect("a sound one");
    specification
}

async fn write_8192(session: &mut Session) {
    session.open_account();
    let how = How {
        write: true,
        create: true,
        truncate: true,
        ..How::default()
    };
    let file = session.open("/mnt0/file", how).await.expect("a new file");
    // As the programs do.
    let kept = Rc::from([7_u8; BLOCK_BYTES]);
    let data = Written::kept(&kept);
    for _ in 0..BLOCKS {
        assert_eq!(session.write(file, data).await, Ok(BLOCK_BYTES));
    }
    session.close(file).await.expect("an open file");
    assert!(!session.account().ledger.is_empty(), "the ledger is on");
}

/// The processor time of some runs of the program on one machine, the file
/// being removed in between.
fn runs(specification: &Specification, count: u64) -> Vec<Duration> {
    let machine = Machine::build(specification, Circumstances::default());
    let times = Rc::new(Cell::new(Vec::new()));
    let (kernel, inner) = (machine.kernel().clone(), Rc::clone(&times));
    machine.spawn("writer", async move {
        let mut session = Session::begin(&kernel, 0, Vec::new(), &Rendezvous::new(1)).await;
        let mut all = Vec::new();
        for _ in 0..count {
            let start = thread_time();
            write_8192(&mut session).await;
            all.push(thread_time() - start);
            session.flush(0).await;
            session.unlink("/mnt0/file").await.expect("the file");
        }
        inner.set(all);
        session.end().await;
    });
    machine.run().expect("the writer ends");
    times.take()
}

fn main() {
    let specification = specification();
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    let mut group = criterion.benchmark_group("whole path");
    group.throughput(Throughput::Elements(BLOCKS as u64));
    group.bench_function("write_8192", |bencher| {
        bencher.iter_custom(|count| runs(&specification, count).into_iter().sum());
    });
    group.finish();
    criterion.final_summary();
    if measures() {
        let seconds = shortest(5, || {
            let times = runs(&specification, 20);
            times.into_iter().min().expect("some runs")
        });
        println!(
            "{:.3} ms for a run; the bar is {} ms",
            seconds * 1e3,
            BAR * 1e3
        );
        assert!(seconds <= BAR, "the whole path is simulated too slowly");
    }
}
