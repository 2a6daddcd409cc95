//! The engine's rules, each shown at work.

use super::*;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Debug)]
enum Event {
    Number(u32),
    Work(WorkCompletion),
    Rate(u64),
    Raise(TaskId),
    Tick,
}

impl From<WorkCompletion> for Event {
    fn from(completion: WorkCompletion) -> Self {
        Self::Work(completion)
    }
}

type Log<T> = Rc<RefCell<Vec<T>>>;

fn event_order(tie_break: TieBreak) -> Vec<u32> {
    let sim: Rc<Simulation<Event>> = Rc::new(Simulation::new(tie_break));
    for (at, number) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
        sim.schedule(Time(at), Event::Number(number));
    }
    let mut seen = Vec::new();
    sim.run_until(Time(10), |event| {
        if let Event::Number(number) = event {
            seen.push(number);
        }
    });
    seen
}

#[test]
fn equal_times_go_by_insertion_or_the_reverse() {
    assert_eq!(event_order(TieBreak::InsertionOrder), [2, 4, 1, 3]);
    assert_eq!(event_order(TieBreak::ReversedOrder), [4, 2, 3, 1]);
}

/// Who runs a simulation in step with something else asks when it has to come back.
#[test]
fn the_next_event_is_known_and_runs_when_its_time_has_come() {
    let sim: Rc<Simulation<Event>> = Rc::new(Simulation::new(TieBreak::InsertionOrder));
    let seen: Log<(u64, u32)> = Log::default();
    let run_until = |until| {
        sim.run_until(Time(until), |event| {
            if let Event::Number(number) = event {
                seen.borrow_mut().push((sim.now().0, number));
            }
        });
    };
    assert_eq!(sim.next_due_time(), Time::NEVER);
    sim.schedule(Time(5), Event::Number(1));
    sim.schedule_background(Time(9), Event::Number(2));
    assert_eq!(sim.next_due_time(), Time(5));
    run_until(4);
    assert_eq!((sim.now(), sim.next_due_time()), (Time(4), Time(5)));
    run_until(5);
    assert_eq!((sim.now(), sim.next_due_time()), (Time(5), Time(9)));
    let sleeper = Rc::clone(&sim);
    sim.spawn("sleeper", true, async move {
        sleeper.sleep_until(Time(7)).await;
    });
    assert_eq!(
        sim.next_due_time(),
        Time(5),
        "a task that is ready is due now"
    );
    run_until(5);
    assert_eq!(sim.next_due_time(), Time(7));
    run_until(20);
    assert_eq!((sim.now(), sim.next_due_time()), (Time(20), Time::NEVER));
    assert_eq!(*seen.borrow(), [(5, 1), (9, 2)]);
    sim.schedule(Time(30), Event::Number(3));
    sim.halt_run();
    run_until(40);
    assert_eq!(sim.now(), Time(20), "who is halted stands still");
    sim.drop_all();
}

#[test]
fn sleeping_tasks_wake_in_time() {
    let sim: Rc<Simulation<Event>> = Rc::new(Simulation::new(TieBreak::InsertionOrder));
    let log: Log<(u32, u64)> = Log::default();
    for (name, step) in [(1, 30), (2, 20)] {
        let (sim, log) = (Rc::clone(&sim), Rc::clone(&log));
        sim.clone()
            .spawn(format!("sleeper {name}"), true, async move {
                for _ in 0..3 {
                    sim.sleep_until(sim.now() + Time(step)).await;
                    log.borrow_mut().push((name, sim.now().0));
                }
            });
    }
    sim.run_to_end(|_| {}).expect("nobody waits for ever");
    // At 60 both are due; the one that was queued first goes first.
    assert_eq!(
        *log.borrow(),
        [(2, 20), (1, 30), (2, 40), (1, 60), (2, 60), (1, 90)]
    );
    sim.drop_all();
}

/// Who sleeps until a moment finds done what hardware does at that moment,
/// whichever of the two was scheduled first.
#[test]
fn a_sleep_ends_after_the_events_of_its_time() {
    for tie_break in [TieBreak::InsertionOrder, TieBreak::ReversedOrder] {
        for asleep_since in [0, 5] {
            let sim: Rc<Simulation<Event>> = Rc::new(Simulation::new(tie_break));
            let log: Log<&str> = Log::default();
            for background in [false, true] {
                let (inner, log) = (Rc::clone(&sim), Rc::clone(&log));
                sim.spawn("sleeper", true, async move {
                    inner.sleep_until(Time(asleep_since)).await;
                    if background {
                        let until = inner.sleep_in_background_until(Time(10), Event::Raise);
                        until.await;
                    } else {
                        inner.sleep_until(Time(10)).await;
                    }
                    log.borrow_mut().push("sleeper");
                });
            }
            sim.schedule_background(Time(3), Event::Number(10));
            sim.run_until(Time(20), |event| match event {
                Event::Number(0) => log.borrow_mut().push("event"),
                Event::Number(at) => {
                    sim.schedule_background(Time(at.into()), Event::Number(0));
                }
                Event::Raise(task) => sim.wake_task(task),
                _ => {}
            });
            assert_eq!(*log.borrow(), ["event", "sleeper", "sleeper"]);
            sim.drop_all();
        }
    }
}

#[test]
fn a_deadlock_names_each_waiting_task() {
    let sim: Rc<Simulation<Event>> = Rc::new(Simulation::new(TieBreak::InsertionOrder));
    let inner = Rc::clone(&sim);
    sim.spawn("reader", true, async move {
        inner.wait_for_wake_up("a block that nobody reads").await;
    });
    sim.schedule_background(Time(100), Event::Number(0));
    let deadlock = sim.run_to_end(|_| {}).unwrap_err();
    assert_eq!(
        deadlock.to_string(),
        "deadlock at 0.000000 ms: reader waits for a block that nobody reads;"
    );
    sim.drop_all();
}

struct Bench {
    sim: Rc<Simulation<Event>>,
    processors: Rc<Processors>,
    /// Processor on which the processes and interrupts of the bench run.
    cpu: CpuId,
}

impl Bench {
    fn new() -> Self {
        Self::with_processors(1).remove(0)
    }

    /// Returns a bench for each of `count` processors, all in one simulation.
    fn with_processors(count: u32) -> Vec<Self> {
        let sim = Rc::new(Simulation::new(TieBreak::InsertionOrder));
        let processors = Rc::new(Processors::new(count));
        let bench = |cpu| Self {
            sim: Rc::clone(&sim),
            processors: Rc::clone(&processors),
            cpu,
        };
        processors.cpu_ids().map(bench).collect()
    }

    fn busy(&self) -> (Time, Time) {
        self.processors[self.cpu].busy_times(&self.sim)
    }

    fn handler(&self) -> impl Fn(Event) + 'static {
        let (sim, processors) = (Rc::clone(&self.sim), Rc::clone(&self.processors));
        move |event| match event {
            Event::Work(completion) => processors.complete_work(&sim, completion),
            Event::Rate(rate) => processors.set_rate(&sim, rate),
            Event::Raise(task) => sim.wake_task(task),
            Event::Tick => {
                processors[CpuId::default()].run_interrupts(&sim, &[(6, Time(5)), (1, Time(3))])
            }
            Event::Number(_) => {}
        }
    }

    fn run(&self) {
        let ended = self.sim.run_to_end(self.handler());
        ended.expect("nobody waits for ever");
    }

    /// Starts a process that works once. Returns the log of its end and its time breakdown.
    fn process(&self, cost: u64, mask: InterruptLevel) -> Log<(u64, Usage)> {
        let log: Log<(u64, Usage)> = Log::default();
        let (sim, processors, inner) = (
            Rc::clone(&self.sim),
            Rc::clone(&self.processors),
            Rc::clone(&log),
        );
        let cpu = self.cpu;
        self.sim.spawn("process", true, async move {
            let processor = &processors[cpu];
            processor.give_processor_to(sim.expect_current_task());
            processor.mask_interrupts(&sim, mask);
            let usage = processor.spend_work(&sim, Time(cost)).await;
            inner.borrow_mut().push((sim.now().0, usage));
            let masked = processor.unmask_interrupts(&sim, 0).await;
            inner.borrow_mut().push((masked.0, Usage::default()));
            let usage = processor.spend_work(&sim, Time(10)).await;
            inner.borrow_mut().push((sim.now().0, usage));
            processor.release_processor(&sim);
        });
        log
    }

    fn interrupt(&self, at: u64, level: InterruptLevel, cost: u64) -> Log<(u64, u64)> {
        let log: Log<(u64, u64)> = Log::default();
        let (sim, processors, inner) = (
            Rc::clone(&self.sim),
            Rc::clone(&self.processors),
            Rc::clone(&log),
        );
        let cpu = self.cpu;
        let task = self.sim.spawn("handler", true, async move {
            let processor = &processors[cpu];
            sim.wait_for_wake_up("an interrupt").await;
            processor.enter_handler(&sim, level).await;
            let entered = sim.now().0;
            processor.spend_work(&sim, Time(cost)).await;
            processor.leave_handler(&sim);
            inner.borrow_mut().push((entered, sim.now().0));
        });
        self.sim.schedule(Time(at), Event::Raise(task));
        log
    }
}

/// Interrupts that nothing comes in between pass in one step; they take what
/// they take when something does.
#[test]
fn interrupts_cost_the_same_in_one_step_and_in_several() {
    let run = |mask: InterruptLevel, rate: u64, in_between: Option<u64>| {
        let bench = Bench::new();
        let process = bench.process(100, mask);
        bench.sim.schedule(Time(10), Event::Rate(rate));
        for at in [30, 60, 260] {
            bench.sim.schedule(Time(at), Event::Tick);
            if let Some(after) = in_between {
                bench.sim.schedule(Time(at + after), Event::Number(0));
            }
        }
        bench.run();
        let log = process.borrow().clone();
        (log, bench.busy())
    };
    for rate in [1000, 500, 300] {
        for mask in [0, 5] {
            let alone = run(mask, rate, None);
            assert!(alone.0[0].1.interrupted_time > Time::ZERO);
            for after in [0, 1, 4, 5, 8, 20] {
                assert_eq!(run(mask, rate, Some(after)), alone, "{mask} {rate} {after}");
            }
        }
    }
}

/// Work that waits for its end on the spot is disturbed by the same things at the same
/// moments, in whatever order they are due.
#[test]
fn nested_waits_change_no_result() {
    let seed = 7;
    let mut draws = RandomStreams::new(seed).named_stream("moments");
    for scenario in 0..200 {
        let mut at = || draws.draw_below(160);
        let moments: [u64; 6] = std::array::from_fn(|_| at());
        let run = |on_the_spot: bool| {
            let bench = Bench::new();
            let process = bench.process(100, (scenario % 3) * 3);
            let [low, high] = [(moments[0], 2), (moments[1], 5)]
                .map(|(at, level)| bench.interrupt(at, level, 20));
            for at in &moments[2..4] {
                bench.sim.schedule(Time(*at), Event::Tick);
            }
            bench.sim.schedule(Time(moments[4]), Event::Rate(500));
            bench.sim.schedule(Time(moments[5]), Event::Rate(1000));
            let ended = match on_the_spot {
                true => bench.sim.run_nested(bench.handler()),
                false => bench.sim.run_to_end(bench.handler()),
            };
            assert_eq!(ended, Ok(()), "seed {seed}, scenario {scenario}");
            let logs = (process.take(), low.take(), high.take());
            let busy = bench.busy();
            (logs, busy, bench.sim.now(), bench.sim.event_count())
        };
        assert_eq!(run(true), run(false), "seed {seed}, scenario {scenario}");
    }
}

/// Each of several processors does what it does alone, whatever the others are at, and
/// takes the interrupts that are for it.
#[test]
fn processors_work_side_by_side_as_each_does_alone() {
    let seed = 11;
    let mut draws = RandomStreams::new(seed).named_stream("moments");
    for scenario in 0..200 {
        let moments: [[u64; 3]; 4] =
            std::array::from_fn(|_| std::array::from_fn(|_| draws.draw_below(160)));
        let start = |bench: &Bench, moments: [u64; 3]| {
            let level = (moments[2] % 3) as InterruptLevel * 3;
            let process = bench.process(50 + moments[2], level);
            let handlers = [(moments[0], 2), (moments[1], 5)]
                .map(|(at, level)| bench.interrupt(at, level, 20));
            (process, handlers)
        };
        let alone = moments.map(|moments| {
            let bench = Bench::new();
            let (process, handlers) = start(&bench, moments);
            bench.run();
            (process.take(), handlers.map(|log| log.take()), bench.busy())
        });
        for on_the_spot in [false, true] {
            let benches = Bench::with_processors(4);
            let started: Vec<_> = benches
                .iter()
                .zip(moments)
                .map(|(bench, of)| start(bench, of))
                .collect();
            let ended = match on_the_spot {
                true => benches[0].sim.run_nested(benches[0].handler()),
                false => benches[0].sim.run_to_end(benches[0].handler()),
            };
            assert_eq!(ended, Ok(()), "seed {seed}, scenario {scenario}");
            for ((bench, (process, handlers)), alone) in benches.iter().zip(started).zip(&alone) {
                let together = (process.take(), handlers.map(|log| log.take()), bench.busy());
                assert_eq!(&together, alone, "seed {seed}, scenario {scenario}");
            }
        }
    }
}

/// A task that was woken before it ran for the first time is told so at its first wait, be
/// that the end of its work.
#[test]
fn an_earlier_wake_up_ends_one_nested_wait() {
    let run = |on_the_spot: bool| {
        let bench = Bench::new();
        let (sim, processors) = (Rc::clone(&bench.sim), Rc::clone(&bench.processors));
        let log: Log<u64> = Log::default();
        let inner = Rc::clone(&log);
        let task = bench.sim.spawn("process", true, async move {
            let processor = &processors[CpuId::default()];
            processor.give_processor_to(sim.expect_current_task());
            processor.spend_work(&sim, Time(10)).await;
            sim.wake_current_task_at(sim.now() + Time(30));
            sim.wait_in_place("its wake-up").await;
            inner.borrow_mut().push(sim.now().0);
            processor.release_processor(&sim);
        });
        bench.sim.wake_task(task);
        bench.sim.schedule(Time(5), Event::Number(0));
        let ended = match on_the_spot {
            true => bench.sim.run_nested(bench.handler()),
            false => bench.sim.run_to_end(bench.handler()),
        };
        assert_eq!(ended, Ok(()));
        log.take()
    };
    assert_eq!(run(false), [40]);
    assert_eq!(run(true), [40]);
}

/// Tasks that wait on top of each other, more of them than may be polled so, go on in the
/// order in which the loop would have polled them.
#[test]
fn nested_tasks_resume_in_the_order_of_the_event_loop() {
    let seed = 19;
    let mut draws = RandomStreams::new(seed).named_stream("tasks");
    for scenario in 0..100 {
        let mut draw = |below| draws.draw_below(below);
        let tasks = 2 + draw(14) as usize;
        let steps: Vec<Vec<(u64, usize, bool)>> = (0..tasks)
            .map(|_| {
                let step = |_| (draw(4), draw(tasks as u64) as usize, draw(3) == 0);
                (0..12).map(step).collect()
            })
            .collect();
        let run = |on_the_spot: bool| {
            let sim: Rc<Simulation<Event>> = Rc::new(Simulation::new(TieBreak::InsertionOrder));
            let log: Log<(u64, usize, usize)> = Log::default();
            for (number, steps) in steps.iter().cloned().enumerate() {
                let (own, log) = (Rc::clone(&sim), Rc::clone(&log));
                sim.spawn(number.to_string(), true, async move {
                    for (at, (after, other, waits)) in steps.into_iter().enumerate() {
                        log.borrow_mut().push((own.now().0, number, at));
                        own.wake_task(TaskId::from_index(other));
                        own.wake_current_task_at(own.now() + Time(after));
                        match waits {
                            true => own.wait_for_wake_up("its turn").await,
                            false => own.wait_in_place("its turn").await,
                        }
                    }
                });
            }
            let ended = match on_the_spot {
                true => sim.run_nested(|_| {}),
                false => sim.run_to_end(|_| {}),
            };
            assert_eq!(ended, Ok(()), "seed {seed}, scenario {scenario}");
            let (log, now, events) = (log.take(), sim.now(), sim.event_count());
            sim.drop_all();
            (log, now, events)
        };
        assert_eq!(run(true), run(false), "seed {seed}, scenario {scenario}");
    }
}

#[test]
fn a_nested_deadlock_is_reported_like_any_other() {
    let bench = Bench::new();
    let (sim, processors) = (Rc::clone(&bench.sim), Rc::clone(&bench.processors));
    bench.sim.spawn("stopped", true, async move {
        let processor = &processors[CpuId::default()];
        processor.give_processor_to(sim.expect_current_task());
        sim.schedule(Time(3), Event::Number(1));
        processor.spend_work(&sim, Time(10)).await;
        sim.wait_for_wake_up("what never comes").await;
    });
    let deadlock = bench.sim.run_nested(bench.handler()).unwrap_err();
    assert_eq!(deadlock.deadlock_time, Time(10));
    assert_eq!(deadlock.waiting_tasks[0].wait_reason, "what never comes");
    bench.sim.drop_all();
}

#[test]
fn many_events_come_in_the_order_of_their_time() {
    let seed = 11;
    let mut draws = RandomStreams::new(seed).named_stream("times");
    let sim: Simulation<u64> = Simulation::new(TieBreak::InsertionOrder);
    let mut expected: Vec<u64> = (0..500).map(|_| draws.draw_below(10_000)).collect();
    for at in &expected {
        sim.schedule(Time(*at), *at);
    }
    expected.sort_unstable();
    let mut seen = Vec::new();
    sim.run_until(Time(10_000), |at| seen.push(at));
    assert_eq!(seen, expected, "seed {seed}");
}

#[test]
fn an_interrupt_preempts_and_delays_the_process() {
    let bench = Bench::new();
    let process = bench.process(100, 0);
    let low = bench.interrupt(40, 1, 20);
    let high = bench.interrupt(50, 5, 7);
    bench.run();
    assert_eq!(*high.borrow(), [(50, 57)]);
    assert_eq!(*low.borrow(), [(40, 67)]);
    let (at, usage) = process.borrow()[0];
    assert_eq!(at, 127);
    assert_eq!(
        (usage.work_time, usage.interrupted_time, usage.slowdown_time),
        (Time(100), Time(27), Time::ZERO)
    );
    assert_eq!(
        bench.busy(),
        (Time(137), Time(27)),
        "busy time is the sum of all work"
    );
    bench.sim.drop_all();
}

#[test]
fn a_mask_holds_an_interrupt_back() {
    let bench = Bench::new();
    let process = bench.process(100, 5);
    let masked = bench.interrupt(40, 5, 20);
    bench.run();
    assert_eq!(*masked.borrow(), [(100, 120)]);
    let process = process.borrow();
    assert_eq!(process[0].0, 100);
    assert_eq!(process[1].0, 20, "what was masked has its turn first");
    assert_eq!(
        process[2],
        (
            130,
            Usage {
                work_time: Time(10),
                ..Usage::default()
            }
        )
    );
    bench.sim.drop_all();
}

#[test]
fn a_slower_rate_stretches_the_remaining_work() {
    let bench = Bench::new();
    let process = bench.process(100, 0);
    bench.sim.schedule(Time(20), Event::Rate(800));
    bench.sim.schedule(Time(70), Event::Rate(1000));
    bench.run();
    // 20 at full speed, 50 that do 40, 40 at full speed.
    let (at, usage) = process.borrow()[0];
    assert_eq!(at, 110);
    assert_eq!(
        (usage.work_time, usage.slowdown_time),
        (Time(100), Time(10))
    );
    bench.sim.drop_all();
}

#[test]
fn exponential_times_have_their_mean_and_no_memory() {
    let mut stream = RandomStreams::new(11).named_stream("arrivals");
    let mean = Time(1_000_000);
    let times: Vec<f64> = (0..40_000)
        .map(|_| stream.draw_exponential(mean).0 as f64 / mean.0 as f64)
        .collect();
    let found = times.iter().sum::<f64>() / times.len() as f64;
    assert!((found - 1.0).abs() < 0.02, "{found}");
    // Of those that last longer than some time, as many last that much longer again.
    let beyond = |limit: f64| times.iter().filter(|time| **time > limit).count() as f64;
    let (once, twice) = (beyond(0.7) / beyond(0.0), beyond(1.4) / beyond(0.7));
    assert!((once - twice).abs() < 0.02, "{once} {twice}");
}

#[test]
fn streams_are_named_and_repeat() {
    let streams = RandomStreams::new(7);
    let mut first = streams.named_stream("drive.0");
    let mut again = streams.named_stream("drive.0");
    let mut other = streams.named_stream("drive.1");
    let numbers: Vec<u64> = (0..8).map(|_| first.draw_bits()).collect();
    assert!(numbers.iter().all(|number| *number == again.draw_bits()));
    assert!(numbers.iter().any(|number| *number != other.draw_bits()));
    let mut below = streams.named_stream("below");
    let mut counts = [0_u32; 4];
    for _ in 0..4000 {
        counts[below.draw_below(4) as usize] += 1;
    }
    assert!(
        counts.iter().all(|count| (800..1200).contains(count)),
        "{counts:?}"
    );
}
