//! now, sleep_until, compute, and a barrier of one.

use super::World;
use diskperf_system::ProgramWork;
use diskperf_timeline::Nanoseconds;

pub(crate) async fn time_does_not_run_backwards(system: &mut World) {
    let mut last = system.now();
    for _ in 0..10_000 {
        let now = system.now();
        assert!(now >= last);
        last = now;
    }
}

pub(crate) async fn sleep_lasts_until_its_time(system: &mut World) {
    for sleep in [1, 1000, 1_000_000, 50_000_000] {
        let wake = Nanoseconds(system.now().0 + sleep);
        system.sleep_until(wake).await.unwrap();
        assert!(system.now() >= wake);
    }
}

pub(crate) async fn sleep_until_the_past_returns(system: &mut World) {
    system.sleep_until(Nanoseconds::ZERO).await.unwrap();
    let now = system.now();
    system.sleep_until(now).await.unwrap();
}

pub(crate) async fn compute_uses_its_span(system: &mut World) {
    for span in [0, 1000, 1_000_000, 10_000_000] {
        let begin = system.now();
        system.consume_cpu_time(Nanoseconds(span)).await.unwrap();
        let used = system.now().since(begin).0;
        // The clock of the call and that of `now` may differ by a little.
        assert!(
            used >= span - span / 100,
            "compute({span} ns) took {used} ns"
        );
    }
}

/// How long it takes is the machine's matter, but not longer than then.
pub(crate) async fn work_of_the_past_is_done(system: &mut World) {
    let begin = system.now();
    system
        .perform_program_work(ProgramWork::FsckInodeBlock)
        .await
        .unwrap();
    let used = system.now().since(begin).0;
    assert!(used < 1_000_000_000, "{used} ns");
    system
        .perform_program_work(ProgramWork::RestoreRecords(0))
        .await
        .unwrap();
}

pub(crate) async fn a_barrier_of_one_is_open(system: &mut World) {
    let mut last = system.now();
    for _ in 0..3 {
        let released = system.barrier().await.unwrap();
        assert!(released >= last);
        last = released;
    }
    assert!(system.now() >= last);
}
