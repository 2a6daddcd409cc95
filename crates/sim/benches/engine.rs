//! What the engine's own steps cost: an event, and a task that is woken.

#[allow(dead_code, reason = "other benchmarks hold bars")]
mod support;

use criterion::{Criterion, Throughput};
use diskperf_sim::{Simulation, TieBreak, Time};
use std::cell::Cell;
use std::rc::Rc;
use support::ThreadTime;

const STEPS: u64 = 100_000;

/// Schedules `STEPS` events, with this many in the queue at any time.
fn events(queued: u64) -> u64 {
    let sim: Simulation<u64> = Simulation::new(TieBreak::InsertionOrder);
    for number in 0..queued {
        sim.schedule(Time(1 + number), number);
    }
    let mut handled = 0;
    sim.run_until(Time(u64::MAX - 1), |number| {
        handled += 1;
        if handled + queued <= STEPS {
            // Not in the order of the numbers, so that the heap has to work.
            sim.schedule(sim.now() + Time(1 + (number * 7919) % 1009), number + 1);
        }
    });
    handled
}

/// Two tasks that wake each other in turn, `STEPS` times.
fn switches() -> u64 {
    let sim: Rc<Simulation<()>> = Rc::new(Simulation::new(TieBreak::InsertionOrder));
    let turn = Rc::new(Cell::new(0_u64));
    let ids = Rc::new(Cell::new([None, None]));
    for number in 0..2 {
        let (inner, turn, ids_inner) = (Rc::clone(&sim), Rc::clone(&turn), Rc::clone(&ids));
        let id = sim.spawn("one of two", true, async move {
            let other = ids_inner.get()[1 - number].expect("both were spawned");
            while turn.get() < STEPS {
                if turn.get() % 2 == number as u64 {
                    turn.set(turn.get() + 1);
                    inner.wake_task(other);
                }
                if turn.get() < STEPS {
                    inner.wait_for_wake_up("its turn").await;
                }
            }
            inner.wake_task(other);
        });
        let mut both = ids.get();
        both[number] = Some(id);
        ids.set(both);
    }
    // Waking a task keeps nothing alive; the tasks themselves do.
    sim.run_to_end(|()| {}).expect("both end");
    sim.drop_all();
    turn.get()
}

/// A task that sleeps `STEPS` times; alone, so that no sleep reaches the
/// queue, or beside another one.
fn sleeps(beside: bool) -> Time {
    let sim: Rc<Simulation<()>> = Rc::new(Simulation::new(TieBreak::InsertionOrder));
    for step in if beside { 2..4 } else { 3..4 } {
        let inner = Rc::clone(&sim);
        sim.spawn("sleeper", true, async move {
            for _ in 0..STEPS {
                inner.sleep_until(inner.now() + Time(step)).await;
            }
        });
    }
    sim.run_to_end(|()| {}).expect("all end");
    let now = sim.now();
    sim.drop_all();
    now
}

fn main() {
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime::new())
        .configure_from_args();
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Elements(STEPS));
    for queued in [1, 16, 256] {
        group.bench_function(format!("events, {queued} queued"), |bencher| {
            bencher.iter(|| assert_eq!(events(queued), STEPS));
        });
    }
    group.bench_function("task switches", |bencher| {
        bencher.iter(|| assert_eq!(switches(), STEPS));
    });
    group.bench_function("sleeps that nothing disturbs", |bencher| {
        bencher.iter(|| assert_eq!(sleeps(false), Time(3 * STEPS)));
    });
    group.throughput(Throughput::Elements(2 * STEPS));
    group.bench_function("sleeps of two tasks", |bencher| {
        bencher.iter(|| assert_eq!(sleeps(true), Time(3 * STEPS)));
    });
    group.finish();
    criterion.final_summary();
}
