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
    let acsi = |id, drives| Acsi::new(id, config, drives, Streams::new(1));
    Bench::with_controller(vec![drive(0)], acsi, Bus::new(bus_bytes_per_s, 0.0))
}

impl Bench<Acsi> {
    /// Executes one command now. Returns the time until its interrupt.
    async fn acsi(&self, id: u32, sectors: (u64, u32), write: bool) -> Time {
        let from = self.now();
        let id = self.issue(id, (0, sectors.0, sectors.1, write));
        self.ask(|controller, context, parts| controller.command(context, parts, id));
        while !self.ask(|controller, _, parts| controller.interrupts(parts)) {
            self.sim.wait("the controller").await;
        }
        self.ask(|controller, _, _| controller.acknowledge());
        self.spans(id);
        self.now() - from
    }
}

#[test]
fn the_next_sector_is_missed_and_costs_a_revolution() {
    let bench = controller(Time::ZERO, 1_000_000_000);
    let script = Rc::clone(&bench);
    bench.run(async move {
        let bench = script;
        bench.acsi(0, (0, 2), false).await;
        let later = bench.acsi(1, (2, 2), false).await;
        // The port takes the last sector while the next one begins to pass.
        assert_near(later, period() + slots(2), 1000);
        // It passed before it was asked for: the port was still busy.
        let missed = bench.span(
            RequestId::first_of_slot(1),
            Stage::MissedRevolution(Deadline::ReadAhead),
        );
        assert!(missed > slots(SLOTS - 2), "{missed}");
        // A write is over when its last sector has passed.
        let written = bench.acsi(2, (10, 1), true).await;
        assert!(written < period(), "{written}");
        assert_eq!(
            bench.span(RequestId::first_of_slot(2), Stage::BusTransfer),
            Time::ZERO
        );
    });
}

#[test]
fn a_command_is_seen_within_the_poll() {
    let poll = Time::from_millis(4);
    let bench = controller(poll, 1_000_000_000);
    let script = Rc::clone(&bench);
    bench.run(async move {
        let bench = script;
        let mut seen = Vec::new();
        for id in 0..200 {
            bench.acsi(id, (u64::from(id), 1), false).await;
            seen.push(bench.span(RequestId::first_of_slot(id), Stage::Command));
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
    bench.run(async move {
        let bench = script;
        let took = bench.acsi(0, (0, SLOTS), false).await;
        let port = Time(u64::from(SLOTS) * 512 * 1_000_000_000 / bytes_per_s);
        assert!(took >= port && took < port + period(), "{took}, {port}");
        let on_bus = bench.span(RequestId::first_of_slot(0), Stage::BusTransfer);
        assert_near(on_bus, port - slots(SLOTS), 1000);
    });
}
