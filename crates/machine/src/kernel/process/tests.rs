//! A toy kernel with several processors: processes that work, sleep and take turns, and
//! interrupts for a chosen processor. It has no drives and no calls.

use super::*;
use crate::event::Event;
use crate::hardware::Hardware;
use crate::hardware::bus::Bus;
use crate::kernel::costs::Costs;
use crate::kernel::serial::{Serial, SerialLines};
use crate::records::Records;
use crate::volumes::Volumes;
use diskperf_device::Requests;
use diskperf_sim::{Sim, Streams, TieBreak};

fn toy(processors: u32) -> Rc<Computer> {
    let sim = Rc::new(Sim::new(TieBreak::Insertion));
    Rc::new(Computer {
        cpus: Cpus::new(Rc::clone(&sim), processors),
        sim,
        hardware: RefCell::new(Hardware {
            drives: std::iter::empty().collect(),
            controllers: Default::default(),
            bus: Bus::new(1_000_000, 0.0),
            requests: Requests::default(),
        }),
        costs: Costs {
            clock: Time(50),
            clock_hz: 10_000,
            ..Costs::default()
        },
        speed: 1.0,
        volumes: Volumes::new(std::iter::empty()),
        serial: Serial::new(SerialLines {
            lines: 0,
            interval: Time(1),
            per_char: Time::ZERO,
            per_buffer: Time::ZERO,
            buffer_chars: 1,
        }),
        records: Records::new(0, (false, false)),
        halted: RefCell::default(),
    })
}

impl Computer {
    /// Runs to the end. No processor idles while a process is ready.
    fn run_toy(self: &Rc<Self>, scenario: &str) {
        let kernel = Rc::clone(self);
        let ended = self.sim.run(move |event| {
            match event {
                Event::Processor(completion) => {
                    kernel.cpus.processors.complete(&kernel.sim, completion);
                }
                Event::Tick => kernel.tick(|found| Some((Rc::clone(found), false))),
                Event::Daemon(task) => kernel.sim.wake(task),
                Event::Part(_) | Event::Character(_) => panic!("there is no hardware"),
            }
            let mut all = kernel.cpus.processors.iter();
            let idles = all.any(|processor| processor.process().is_none());
            assert!(
                !(idles && kernel.cpus.has_ready()),
                "{scenario}: a processor idles at {} while a process is ready",
                kernel.sim.now()
            );
        });
        assert_eq!(ended, Ok(()), "{scenario}");
        self.sim.clear();
    }
}

/// Processes that only work share the processors evenly, to the nanosecond.
#[test]
fn work_takes_as_many_rounds_as_processes_share_a_processor() {
    // Processors, processes, and rounds of work until the last has ended.
    for (processors, processes, rounds) in [(1, 1, 1), (1, 4, 4), (4, 4, 1), (4, 8, 2), (4, 9, 3)] {
        let kernel = toy(processors);
        for number in 0..processes {
            let own = Rc::clone(&kernel);
            kernel.sim.spawn("process", true, async move {
                let process = Process::new(number);
                own.begin(&process).await;
                own.spend(Context::Process(&process), Stage::User, Time(1000))
                    .await;
                own.end(&process);
            });
        }
        kernel.run_toy("no interrupts");
        let case = format!("{processes} processes on {processors} processors");
        assert_eq!(kernel.sim.now(), Time(1000 * rounds), "{case}");
        assert_eq!(kernel.cpus.migrations(), 0, "{case}: none ran twice");
    }
}

#[test]
fn no_processor_idles_and_interrupts_and_migrations_are_those_that_were_seen() {
    let seed = 5;
    let mut draws = Streams::new(seed).stream("scenarios");
    let mut migrations = 0;
    for number in 0..100 {
        let scenario = format!("seed {seed}, scenario {number}");
        let kernel = toy(4);
        let ids: Vec<CpuId> = kernel.cpus.processors.ids().collect();
        let (seen, work) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(Time::ZERO)));
        for pid in 0..1 + draws.below(12) as usize {
            let steps: Vec<_> = (0..20)
                .map(|_| (Time(1 + draws.below(60_000)), draws.below(3)))
                .collect();
            let (own, seen, work) = (Rc::clone(&kernel), Rc::clone(&seen), Rc::clone(&work));
            kernel
                .sim
                .spawn(format!("process {pid}"), true, async move {
                    let process = Process::new(pid);
                    own.begin(&process).await;
                    process.open_account(own.sim.now());
                    let mut cpu = process.cpu();
                    for (span, then) in steps {
                        own.spend(Context::Process(&process), Stage::User, span)
                            .await;
                        work.set(work.get() + span);
                        match then {
                            0 => own.sleep_until(&process, own.sim.now() + span).await,
                            _ => own.return_to_user_mode(&process).await,
                        }
                        seen.set(seen.get() + u64::from(process.cpu() != cpu));
                        cpu = process.cpu();
                    }
                    // Panics if its spans do not sum to the time that has passed.
                    process.account(own.sim.now());
                    own.end(&process);
                });
        }
        let chosen = ids[draws.below(4) as usize];
        let interrupts: Vec<_> = (0..10).map(|_| draws.below(300_000)).collect();
        let handled = Time(7 * interrupts.len() as u64);
        let own = Rc::clone(&kernel);
        kernel.sim.spawn("handler", true, async move {
            let mut at = own.sim.now();
            for after in interrupts {
                at += Time(after);
                own.sim.sleep_until(at).await;
                let processor = &own.cpus.processors[chosen];
                processor.enter(&own.sim, BIO_LEVEL).await;
                own.spend(Context::Handler(chosen), Stage::Interrupt, Time(7))
                    .await;
                processor.leave(&own.sim);
            }
        });
        let tick = Time(1_000_000_000 / kernel.costs.clock_hz);
        kernel.sim.schedule_background(tick, Event::Tick);
        kernel.run_toy(&scenario);
        assert_eq!(kernel.cpus.migrations(), seen.get(), "{scenario}");
        migrations += seen.get();
        let (busy, _) = kernel.cpus.processors.busy(&kernel.sim);
        let ticks = Time(kernel.costs.clock.0 * (kernel.sim.now().0 / tick.0));
        assert_eq!(busy, work.get() + handled + ticks, "{scenario}");
        for id in ids {
            let (_, handling) = kernel.cpus.processors[id].busy(&kernel.sim);
            let mut own = if id == chosen { handled } else { Time::ZERO };
            if id == CpuId::default() {
                own += ticks;
            }
            assert_eq!(handling, own, "{scenario}, {id:?}");
        }
    }
    assert!(migrations > 100, "seed {seed}: {migrations} migrations");
}
