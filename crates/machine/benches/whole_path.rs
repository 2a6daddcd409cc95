//! How long `write_8192` of 8 MB takes to simulate on the VAX 11/780 with an
//! SC780 and an Eagle: 1024 blocks through system calls, allocator, buffer
//! cache, driver, adaptor and drive, with the process's ledger. The machine
//! is built outside of what is measured, and so is the removal of the file.

#[path = "../../sim/benches/support/mod.rs"]
mod measuring;

use criterion::{Criterion, Throughput};
use diskperf_catalogue::Catalogue;
use diskperf_machine::specification::MachineSpecification;
use diskperf_machine::{Machine, OpenFlags, RunConditions, Session, WorkerRendezvous, WriteData};
use measuring::{ThreadTime, measures, shortest, thread_time};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const BLOCK_BYTES: usize = 8192;
const BLOCKS: usize = 1024;
/// Seconds that one run of the program may take.
const BAR: f64 = 1.5e-3;

fn specification() -> MachineSpecification {
    let system = Catalogue::embedded().resolve("vax780-sc780-eagle", &[]);
    let (specification, _) =
        MachineSpecification::read_machine(system.expect("a system")).expect("a sound one");
    specification
}

async fn write_8192(session: &mut Session) {
    session.open_account();
    let how = OpenFlags {
        write: true,
        create: true,
        truncate: true,
        ..OpenFlags::default()
    };
    let file = session
        .open_path("/mnt0/file", how)
        .await
        .expect("a new file");
    // As the programs do.
    let kept = Rc::from([7_u8; BLOCK_BYTES]);
    let data = WriteData::from_kept_buffer(&kept);
    for _ in 0..BLOCKS {
        assert_eq!(session.write(file, data).await, Ok(BLOCK_BYTES));
    }
    session.close(file).await.expect("an open file");
    assert!(
        !session.current_account().ledger.is_empty(),
        "the ledger is on"
    );
}

/// The processor time of some runs of the program on one machine, the file
/// being removed in between.
fn runs(specification: &MachineSpecification, count: u64) -> Vec<Duration> {
    let machine = Machine::build(specification, RunConditions::default());
    let times = Rc::new(Cell::new(Vec::new()));
    let (kernel, inner) = (machine.kernel().clone(), Rc::clone(&times));
    machine.spawn_process("writer", async move {
        let mut session =
            Session::begin_session(&kernel, 0, Vec::new(), &WorkerRendezvous::new(1)).await;
        let mut all = Vec::new();
        for _ in 0..count {
            let start = thread_time();
            write_8192(&mut session).await;
            all.push(thread_time() - start);
            session.flush_volume(0).await;
            session.unlink("/mnt0/file").await.expect("the file");
        }
        inner.set(all);
        session.end_session().await;
    });
    machine.run_to_end().expect("the writer ends");
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
