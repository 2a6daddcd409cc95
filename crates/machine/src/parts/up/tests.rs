//! The controller alone. These fail when a sector is lost that the buffer has room for,
//! or kept that it has none for, when a read ends before its data is in memory, and when
//! any part of a request's time is lost.

use super::*;
use crate::controllers::Controller;
use crate::hardware::bench::*;
use diskperf_timeline::Deadline;

const FAST: u64 = 1_000_000_000;

fn controller(buffer_sectors: u32, bus_grant_delay_max: Time, bytes_per_s: u64) -> Rc<Bench<Up>> {
    let config = UpHardwareConfig {
        buffer_sectors,
        command_delay: Time::ZERO,
        bus_grant_delay_max,
    };
    Bench::with_controller(
        vec![bench_drive(0), bench_drive(0)],
        |id, drives| Up::new(id, config, drives, RandomStreams::new(1)),
        Bus::new(bytes_per_s, 0.0),
    )
}

impl Bench<Up> {
    async fn transfer(&self, id: u32, sectors: (u64, u32), write: bool) -> UpCompletion {
        let id = self.issue_request(id, (0, sectors.0, sectors.1, write));
        self.with_controller_parts(|up, context, parts| {
            up.start_transfer(context, parts, id, None, false)
        });
        let done = loop {
            match self.with_controller_parts(|up, _, _| up.take_completion()) {
                Some(done) => break done,
                None => self.sim.wait_for_wake_up("the controller").await,
            }
        };
        self.list_stage_times(id);
        done
    }
}

/// Runs a script on a controller.
fn script<F: Future<Output = ()> + 'static>(
    bench: &Rc<Bench<Up>>,
    script: impl FnOnce(Rc<Bench<Up>>) -> F,
) {
    bench.run_script(script(Rc::clone(bench)));
}

#[test]
fn a_read_ends_when_its_last_sector_is_in_memory() {
    // A sector needs half a slot more over the bus than it takes to pass.
    let bytes_per_s = 512 * 1_000_000_000 / (slots_time(3).0 / 2);
    let bench = controller(3, Time::ZERO, bytes_per_s);
    script(&bench, async |on| {
        let done = on.transfer(0, (0, 4), false).await;
        assert!(!done.is_data_late);
        // Four pass in four slots, and take six over the bus.
        let on_bus = on.stage_time(done.request, Stage::BusTransfer);
        assert_near(on_bus, slots_time(2), 10);
        assert!(!on.transfer(1, (20, 4), true).await.is_data_late);
    });
}

#[test]
fn a_bus_that_is_slower_than_the_drive_loses_what_the_buffer_cannot_hold() {
    let bytes_per_s = 512 * 1_000_000_000 / (slots_time(3).0 / 2);
    for write in [false, true] {
        let bench = controller(3, Time::ZERO, bytes_per_s);
        script(&bench, async move |on| {
            let whole = on.transfer(0, (0, 6), write).await;
            assert!(!whole.is_data_late, "a buffer of three holds the backlog");
            let long = on.transfer(1, (0, 40), write).await;
            assert!(long.is_data_late);
            let lost = Stage::MissedRevolution(Deadline::DataLate);
            assert!(on.stage_time(long.request, lost) > Time::ZERO);
            let moved = on.hardware.borrow().drives.mechanisms()[0]
                .busy_times()
                .transferred_bytes;
            assert!((5 * 512..=20 * 512).contains(&(moved - 6 * 512)), "{moved}");
        });
    }
}

#[test]
fn grants_that_come_late_lose_sectors_at_times() {
    let slow = controller(1, Time(slots_time(1).0 - 2_000), FAST);
    script(&slow, async |on| {
        let mut late = 0;
        for number in 0..200 {
            let done = on.transfer(number, (0, 16), false).await;
            late += u32::from(done.is_data_late);
        }
        assert!(late == 0, "a sector is over the bus within a slot: {late}");
    });
    let slower = controller(1, slots_time(2), FAST);
    script(&slower, async |on| {
        let mut late = 0;
        for number in 0..200 {
            let done = on.transfer(number, (0, 3), false).await;
            late += u32::from(done.is_data_late);
        }
        assert!((20..180).contains(&late), "{late}");
    });
}

#[test]
fn a_drive_that_searches_raises_attention_at_its_sector() {
    let bench = controller(3, Time::ZERO, FAST);
    script(&bench, async |on| {
        let id = on.issue_request(0, (1, 10, 4, false));
        on.with_controller_parts(|up, context, parts| up.start_search(context, parts, id, 5));
        while !on.with_controller_parts(|up, _, parts| up.has_pending_interrupt(parts)) {
            on.sim.wait_for_wake_up("the controller").await;
        }
        assert_eq!(
            on.with_controller_parts(|up, _, _| up.take_attention()),
            Some(1)
        );
        assert_eq!(on.next_slot_under_head(1), 5);
        assert!(on.with_controller_parts(|up, _, _| up.is_idle()));
    });
}
