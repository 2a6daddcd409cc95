//! A disk on the DMA port alone. These fail when a sector that was just missed
//! costs no revolution, when a poll is later than it may be, and when the port
//! moves more than it can.

use super::*;
use crate::controllers::Controller;
use crate::hardware::bench::*;
use diskperf_timeline::Deadline;

fn controller(command_poll: Time, bus_bytes_per_s: u64) -> Rc<Bench<Acsi>> {
    let config = AcsiConfig {
        command_delay: Time::ZERO,
        command_poll_interval: command_poll,
    };
    let acsi = |id, drives| Acsi::new(id, config, drives, RandomStreams::new(1));
    Bench::with_controller(vec![bench_drive(0)], acsi, Bus::new(bus_bytes_per_s, 0.0))
}

impl Bench<Acsi> {
    /// Executes one command now. Returns the time until its interrupt.
    async fn acsi(&self, id: u32, sectors: (u64, u32), write: bool) -> Time {
        let from = self.now();
        let id = self.issue_request(id, (0, sectors.0, sectors.1, write));
        self.with_controller_parts(|controller, context, parts| {
            controller.start_command(context, parts, id)
        });
        while !self
            .with_controller_parts(|controller, _, parts| controller.has_pending_interrupt(parts))
        {
            self.sim.wait_for_wake_up("the controller").await;
        }
        self.with_controller_parts(|controller, _, _| controller.acknowledge_interrupt());
        self.list_stage_times(id);
        self.now() - from
    }
}

#[test]
fn the_next_sector_is_missed_and_costs_a_revolution() {
    let bench = controller(Time::ZERO, 1_000_000_000);
    let script = Rc::clone(&bench);
    bench.run_script(async move {
        let bench = script;
        bench.acsi(0, (0, 2), false).await;
        let later = bench.acsi(1, (2, 2), false).await;
        // The port takes the last sector while the next one begins to pass.
        assert_near(later, revolution_time() + slots_time(2), 1000);
        // It passed before it was asked for: the port was still busy.
        let missed = bench.stage_time(
            RequestId::first_of_slot(1),
            Stage::MissedRevolution(Deadline::ReadAhead),
        );
        assert!(missed > slots_time(SLOTS_PER_TRACK - 2), "{missed}");
        // A write is over when its last sector has passed.
        let written = bench.acsi(2, (10, 1), true).await;
        assert!(written < revolution_time(), "{written}");
        assert_eq!(
            bench.stage_time(RequestId::first_of_slot(2), Stage::BusTransfer),
            Time::ZERO
        );
    });
}

#[test]
fn a_command_is_seen_within_the_poll() {
    let poll = Time::from_millis(4);
    let bench = controller(poll, 1_000_000_000);
    let script = Rc::clone(&bench);
    bench.run_script(async move {
        let bench = script;
        let mut seen = Vec::new();
        for id in 0..200 {
            bench.acsi(id, (u64::from(id), 1), false).await;
            seen.push(bench.stage_time(RequestId::first_of_slot(id), Stage::Command));
        }
        let most = *seen.iter().max().unwrap();
        let mean = seen.iter().map(|span| span.0).sum::<u64>() / 200;
        assert!(most <= poll && most.0 > poll.0 * 9 / 10, "{most}");
        assert!(mean.abs_diff(poll.0 / 2) < poll.0 / 10, "{mean}");
    });
}

#[test]
fn the_port_limits_a_faster_drive() {
    // Slower than a track passes.
    let bytes_per_s = 500_000;
    let bench = controller(Time::ZERO, bytes_per_s);
    let script = Rc::clone(&bench);
    bench.run_script(async move {
        let bench = script;
        let took = bench.acsi(0, (0, SLOTS_PER_TRACK), false).await;
        let port = Time(u64::from(SLOTS_PER_TRACK) * 512 * 1_000_000_000 / bytes_per_s);
        assert!(
            took >= port && took < port + revolution_time(),
            "{took}, {port}"
        );
        let on_bus = bench.stage_time(RequestId::first_of_slot(0), Stage::BusTransfer);
        assert_near(on_bus, port - slots_time(SLOTS_PER_TRACK), 1000);
    });
}
