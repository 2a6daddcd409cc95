//! A toy kernel with several processors: processes that work, sleep and take turns, and
//! interrupts for a chosen processor. It has no drives and no calls.

use super::*;
use crate::event::MachineEvent;
use crate::hardware::Hardware;
use crate::hardware::bus::Bus;
use crate::kernel::costs::KernelCosts;
use crate::kernel::serial::{SerialLines, SerialOutput};
use crate::records::RunRecords;
use crate::volumes::Volumes;
use diskperf_device::Requests;
use diskperf_sim::{RandomStreams, Simulation, TieBreak};

fn toy(processors: u32) -> Rc<Computer> {
    let sim = Rc::new(Simulation::new(TieBreak::InsertionOrder));
    Rc::new(Computer {
        cpus: Cpus::new(Rc::clone(&sim), processors),
        simulation: sim,
        hardware: RefCell::new(Hardware {
            drives: std::iter::empty().collect(),
            controllers: Default::default(),
            bus: Bus::new(1_000_000, 0.0),
            submitted_requests: Requests::default(),
        }),
        costs: KernelCosts {
            clock_tick_time: Time(50),
            clock_hz: 10_000,
            ..KernelCosts::default()
        },
        processor_speed: 1.0,
        volumes: Volumes::new(std::iter::empty()),
        serial_lines: SerialOutput::new(SerialLines {
            line_count: 0,
            output_interval: Time(1),
            interrupt_time_per_char: Time::ZERO,
            interrupt_time_per_buffer: Time::ZERO,
            buffer_chars: 1,
        }),
        records: RunRecords::new(0, (false, false)),
        halt_reason: RefCell::default(),
    })
}

impl Computer {
    /// Runs to the end. No processor idles while a process is ready.
    fn run_toy(self: &Rc<Self>, scenario: &str) {
        let kernel = Rc::clone(self);
        let ended = self.simulation.run_to_end(move |event| {
            match event {
                MachineEvent::ProcessorCompletion(completion) => {
                    kernel
                        .cpus
                        .processors
                        .complete_work(&kernel.simulation, completion);
                }
                MachineEvent::ClockTick => {
                    kernel.charge_tick(|found| Some((Rc::clone(found), false)))
                }
                MachineEvent::DaemonWakeUp(task) => kernel.simulation.wake_task(task),
                MachineEvent::ControllerPart(_) | MachineEvent::SerialCharacter(_) => {
                    panic!("there is no hardware")
                }
            }
            let mut all = kernel.cpus.processors.iter();
            let idles = all.any(|processor| processor.running_process().is_none());
            assert!(
                !(idles && kernel.cpus.has_ready_process()),
                "{scenario}: a processor idles at {} while a process is ready",
                kernel.simulation.now()
            );
        });
        assert_eq!(ended, Ok(()), "{scenario}");
        self.simulation.drop_all();
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
            kernel.simulation.spawn("process", true, async move {
                let process = Process::new(number);
                own.begin_process(&process).await;
                own.spend_processor_time(
                    ExecutionContext::InProcess(&process),
                    Stage::User,
                    Time(1000),
                )
                .await;
                own.end_process(&process);
            });
        }
        kernel.run_toy("no interrupts");
        let case = format!("{processes} processes on {processors} processors");
        assert_eq!(kernel.simulation.now(), Time(1000 * rounds), "{case}");
        assert_eq!(kernel.cpus.migration_count(), 0, "{case}: none ran twice");
    }
}

#[test]
fn no_processor_idles_and_interrupts_and_migrations_are_those_that_were_seen() {
    let seed = 5;
    let mut draws = RandomStreams::new(seed).named_stream("scenarios");
    let mut migrations = 0;
    for number in 0..100 {
        let scenario = format!("seed {seed}, scenario {number}");
        let kernel = toy(4);
        let ids: Vec<CpuId> = kernel.cpus.processors.cpu_ids().collect();
        let (seen, work) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(Time::ZERO)));
        for pid in 0..1 + draws.draw_below(12) as usize {
            let steps: Vec<_> = (0..20)
                .map(|_| (Time(1 + draws.draw_below(60_000)), draws.draw_below(3)))
                .collect();
            let (own, seen, work) = (Rc::clone(&kernel), Rc::clone(&seen), Rc::clone(&work));
            kernel
                .simulation
                .spawn(format!("process {pid}"), true, async move {
                    let process = Process::new(pid);
                    own.begin_process(&process).await;
                    process.open_account(own.simulation.now());
                    let mut cpu = process.current_cpu();
                    for (span, then) in steps {
                        own.spend_processor_time(
                            ExecutionContext::InProcess(&process),
                            Stage::User,
                            span,
                        )
                        .await;
                        work.set(work.get() + span);
                        match then {
                            0 => {
                                own.sleep_process_until(&process, own.simulation.now() + span)
                                    .await
                            }
                            _ => own.return_to_user_mode(&process).await,
                        }
                        seen.set(seen.get() + u64::from(process.current_cpu() != cpu));
                        cpu = process.current_cpu();
                    }
                    // Panics if its spans do not sum to the time that has passed.
                    process.account_until(own.simulation.now());
                    own.end_process(&process);
                });
        }
        let chosen = ids[draws.draw_below(4) as usize];
        let interrupts: Vec<_> = (0..10).map(|_| draws.draw_below(300_000)).collect();
        let handled = Time(7 * interrupts.len() as u64);
        let own = Rc::clone(&kernel);
        kernel.simulation.spawn("handler", true, async move {
            let mut at = own.simulation.now();
            for after in interrupts {
                at += Time(after);
                own.simulation.sleep_until(at).await;
                let processor = &own.cpus.processors[chosen];
                processor.enter_handler(&own.simulation, BIO_LEVEL).await;
                own.spend_processor_time(
                    ExecutionContext::InHandler(chosen),
                    Stage::Interrupt,
                    Time(7),
                )
                .await;
                processor.leave_handler(&own.simulation);
            }
        });
        let tick = Time(1_000_000_000 / kernel.costs.clock_hz);
        kernel
            .simulation
            .schedule_background(tick, MachineEvent::ClockTick);
        kernel.run_toy(&scenario);
        assert_eq!(kernel.cpus.migration_count(), seen.get(), "{scenario}");
        migrations += seen.get();
        let (busy, _) = kernel.cpus.processors.busy_times(&kernel.simulation);
        let ticks = Time(kernel.costs.clock_tick_time.0 * (kernel.simulation.now().0 / tick.0));
        assert_eq!(busy, work.get() + handled + ticks, "{scenario}");
        for id in ids {
            let (_, handling) = kernel.cpus.processors[id].busy_times(&kernel.simulation);
            let mut own = if id == chosen { handled } else { Time::ZERO };
            if id == CpuId::default() {
                own += ticks;
            }
            assert_eq!(handling, own, "{scenario}, {id:?}");
        }
    }
    assert!(migrations > 100, "seed {seed}: {migrations} migrations");
}
