//! A controller of the PC-AT's kind alone. These fail when a sector is read
//! into a full buffer, when a processor that is in time loses a revolution or
//! one that is late loses none, and when what is written passes before it was
//! brought.

use super::*;
use crate::hardware::bench::*;

fn config(buffer_sectors: u32) -> Wd1003Config {
    Wd1003Config {
        buffer_sectors,
        command_delay: Time::ZERO,
        command_poll_interval: Time::ZERO,
    }
}

fn controller(config: Wd1003Config) -> Rc<Bench<Wd1003>> {
    let wd1003 = |id, drives| Wd1003::new(id, config, drives, RandomStreams::new(1));
    Bench::with_controller(vec![bench_drive(0)], wd1003, Bus::new(1_000_000_000, 0.0))
}

impl Bench<Wd1003> {
    fn submit(&self, id: RequestId) {
        self.mark_request(id);
        self.with_controller_parts(|controller, context, parts| {
            controller.start_command(context, parts, id)
        });
    }

    async fn next_action(&self) -> ProcessorAction {
        loop {
            match self
                .with_controller_parts(|controller, _, parts| controller.requested_action(parts))
            {
                Some(action) => return action,
                None => self.sim.wait_for_wake_up("the controller").await,
            }
        }
    }

    /// Serves one command, each sector in this time; when it has ended.
    async fn execute_command(&self, id: RequestId, time_per_sector: Time) -> Time {
        self.submit(id);
        loop {
            match self.next_action().await {
                ProcessorAction::FetchSector { last, .. } => {
                    self.sim.sleep_until(self.now() + time_per_sector).await;
                    self.with_controller_parts(|controller, context, parts| {
                        controller.note_fetched_sector(context, parts);
                    });
                    if last {
                        break;
                    }
                }
                ProcessorAction::SupplySector { .. } => {
                    self.sim.sleep_until(self.now() + time_per_sector).await;
                    self.with_controller_parts(|controller, context, parts| {
                        controller.note_supplied_sector(context, parts);
                    });
                }
                ProcessorAction::AcknowledgeWrite { .. } => {
                    self.with_controller_parts(|controller, _, _| {
                        controller.acknowledge_interrupt()
                    });
                    break;
                }
            }
        }
        let now = moment(self.now());
        let mut hardware = self.hardware.borrow_mut();
        hardware.submitted_requests[id].book_stage(Stage::Completion, now);
        self.now()
    }
}

/// Half a slot.
fn half_slot_time() -> Time {
    Time(slots_time(1).0 / 2)
}

#[test]
fn a_processor_that_fetches_in_time_reads_at_the_speed_of_the_track() {
    let bench = controller(config(2));
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let id = on.issue_request(0, (0, 0, 17, false));
        let ended = on.execute_command(id, half_slot_time()).await;
        assert_near(ended, slots_time(17) + half_slot_time(), 2);
    });
}

#[test]
fn one_sector_of_buffer_loses_a_revolution_for_each_sector() {
    let bench = controller(config(1));
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let id = on.issue_request(0, (0, 0, 4, false));
        let ended = on.execute_command(id, half_slot_time()).await;
        // Each of the three that follow comes round again, a slot later.
        let exact = slots_time(4)
            + revolution_time()
            + revolution_time()
            + revolution_time()
            + half_slot_time();
        assert_near(ended, exact, 8);
        let missed = Stage::MissedRevolution(diskperf_timeline::Deadline::Interleave);
        let spans = on.list_stage_times(id);
        assert_eq!(
            spans.iter().filter(|(stage, _)| *stage == missed).count(),
            3,
            "{spans:?}"
        );
    });
}

#[test]
fn a_processor_that_fetches_late_loses_a_revolution_when_the_buffer_is_full() {
    let bench = controller(config(2));
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let id = on.issue_request(0, (0, 0, 3, false));
        // Two fill the buffer before the first is fetched: the third passes.
        let ended = on.execute_command(id, slots_time(3)).await;
        assert_near(ended, slots_time(3) + revolution_time() + slots_time(3), 8);
    });
}

#[test]
fn a_sector_is_written_when_it_comes_round_after_it_was_brought() {
    for (buffer, revolutions) in [(1, 1), (2, 0)] {
        let bench = controller(config(buffer));
        let on = Rc::clone(&bench);
        bench.run_script(async move {
            let id = on.issue_request(0, (0, 4, 2, true));
            let ended = on.execute_command(id, half_slot_time()).await;
            // With one sector of buffer the second is brought while its place
            // passes; with two it waits there.
            let lost: Time = (0..revolutions).map(|_| revolution_time()).sum();
            assert_near(ended, slots_time(6) + lost, 8);
        });
    }
}
