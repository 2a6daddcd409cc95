//! A MASSBUS adaptor alone. These fail when the channel is let go too early
//! or taken too late, when a deadline costs anything but whole revolutions,
//! and when time is booked to a stage that did not spend it.

use super::*;
use crate::hardware::bench::*;
use diskperf_timeline::Deadline;

fn config() -> MassbusConfig {
    MassbusConfig {
        attention_timing: AttentionTiming::WhileTransferring,
        search_poll_time_per_drive: Time::ZERO,
        search_command_delay: Time::ZERO,
        command_delay: Time::ZERO,
        reads_whole_sectors: false,
        data_late_probability: 0.0,
        data_late_idle_share: 0.0,
        repeats_data_late: true,
    }
}

const MISSED: Stage = Stage::MissedRevolution(Deadline::TransferCommand);
const CHANNEL_HELD: Stage = Stage::MissedRevolution(Deadline::ChannelHeld);
const DATA_LATE: Stage = Stage::MissedRevolution(Deadline::DataLate);

/// An adaptor with drives at these phases.
fn adaptor(config: MassbusConfig, phases: &[u32]) -> Rc<Bench<Massbus>> {
    let massbus = |id, drives| Massbus::new(id, config, drives, RandomStreams::new(1));
    let drives = phases.iter().map(|phase| bench_drive(*phase)).collect();
    Bench::with_controller(drives, massbus, Bus::new(10_000_000, 0.0))
}

/// Report of the adaptor to the driver.
#[derive(Debug, PartialEq)]
enum Notification {
    Done(MassbusCompletion),
    Found(usize),
}

impl Bench<Massbus> {
    async fn next_notification(&self) -> Notification {
        loop {
            let notification = self.with_controller_parts(|controller, _, _| {
                let massbus = controller;
                let done = massbus.take_completion().map(Notification::Done);
                done.or_else(|| massbus.take_attention().map(Notification::Found))
            });
            match notification {
                Some(notification) => return notification,
                None => self.sim.wait_for_wake_up("the adaptor").await,
            }
        }
    }

    /// Waits for the end of a transfer.
    async fn next_completion(&self) -> MassbusCompletion {
        match self.next_notification().await {
            Notification::Done(done) => done,
            Notification::Found(place) => panic!("drive {place} was not to search"),
        }
    }

    fn submit_transfer(&self, id: RequestId, searched: Option<Time>) {
        self.mark_request(id);
        self.with_controller_parts(|controller, context, parts| {
            controller.start_transfer(context, parts, id, searched, false);
        });
    }

    fn submit_repeated_transfer(&self, id: RequestId) {
        self.with_controller_parts(|controller, context, parts| {
            controller.start_transfer(context, parts, id, None, true);
        });
    }

    fn search(&self, id: RequestId, slot: u32) {
        self.mark_request(id);
        self.with_controller_parts(|controller, context, parts| {
            controller.start_search(context, parts, id, slot);
        });
    }

    fn is_idle(&self) -> bool {
        self.with_controller_parts(|controller, _, _| controller.is_idle())
    }

    fn channel_busy(&self) -> Time {
        self.with_controller_parts(|controller, _, _| controller.channel_busy_until(self.now()))
    }
}

#[test]
fn the_channel_is_held_through_the_rotational_wait() {
    let bench = adaptor(config(), &[0]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        on.sim.sleep_until(slots_time(12)).await;
        let id = on.issue_request(0, (0, 10, 16, false));
        on.submit_transfer(id, None);
        assert!(!on.is_idle(), "from the command on");
        on.sim.sleep_until(slots_time(50)).await;
        assert!(!on.is_idle(), "while the drive waits for its sector");
        on.next_completion().await;
        assert!(on.is_idle());
        assert_near(on.now(), slots_time(48 + 10 + 16), 3);
        assert_eq!(on.channel_busy(), on.now() - slots_time(12));
        let bus = on.hardware.borrow().bus.busy_time(on.now());
        assert_near(bus, slots_time(16), 1);
        assert_near(on.stage_time(id, Stage::MediaTransfer), slots_time(16), 1);
    });
}

/// Written data reach the drive before their sector passes; read data go to memory after it.
#[test]
fn a_sector_read_as_a_whole_reaches_memory_a_sector_later() {
    for (write, behind) in [(false, 1), (true, 0)] {
        let config = MassbusConfig {
            reads_whole_sectors: true,
            ..config()
        };
        let bench = adaptor(config, &[0]);
        let on = Rc::clone(&bench);
        bench.run_script(async move {
            on.sim.sleep_until(slots_time(5)).await;
            let id = on.issue_request(0, (0, 10, 16, write));
            on.submit_transfer(id, None);
            on.next_completion().await;
            assert_near(on.now(), slots_time(10 + 16 + behind), 3);
            assert_eq!(on.channel_busy(), on.now() - slots_time(5));
            let bus = on.hardware.borrow().bus.busy_time(on.now());
            assert_near(bus, slots_time(16), 1);
            assert_near(on.stage_time(id, Stage::MediaTransfer), slots_time(16), 1);
            assert_near(on.stage_time(id, Stage::BusTransfer), slots_time(behind), 1);
        });
    }
}

#[test]
#[should_panic(expected = "one transfer at a time")]
fn the_channel_takes_no_second_transfer() {
    let bench = adaptor(config(), &[0, 0]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        for drive in [0, 1] {
            let id = on.issue_request(drive as u32, (drive, 10, 16, false));
            on.submit_transfer(id, None);
        }
    });
}

#[test]
fn arms_seek_and_search_in_parallel() {
    let bench = adaptor(config(), &[0, 1 << 31]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        // 5 ms and 15 ms; nobody holds the channel for it.
        let near = on.issue_request(0, (0, CYLINDER_SECTORS, 16, true));
        let far = on.issue_request(1, (1, 99 * CYLINDER_SECTORS, 16, true));
        on.search(near, 4);
        on.search(far, 4);
        assert!(on.is_idle());
        assert_eq!(on.next_notification().await, Notification::Found(0));
        let first = on.now();
        assert!(first >= Time::from_millis(5) && first < Time::from_millis(5) + revolution_time());
        assert_eq!(on.next_slot_under_head(0), 4);
        assert_eq!(on.stage_time(near, Stage::Seek), Time::from_millis(5));
        assert_eq!(on.next_notification().await, Notification::Found(1));
        // Beside each other: from the start, not from where the first ended.
        assert!(
            on.now() >= Time::from_millis(15)
                && on.now() < Time::from_millis(15) + revolution_time()
        );
        assert_eq!(on.next_slot_under_head(1), 4);
        assert_eq!(on.channel_busy(), Time::ZERO);
    });
}

#[test]
fn a_search_ends_in_the_nanosecond_of_its_slot() {
    let bench = adaptor(config(), &[12_345]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let mut random = random_stream("places");
        for number in 0..200 {
            let slot = random.draw_below(u64::from(SLOTS_PER_TRACK)) as u32;
            let cylinder = random.draw_below(u64::from(CYLINDER_COUNT));
            let id = on.issue_request(number % 64, (0, cylinder * CYLINDER_SECTORS, 1, false));
            on.search(id, slot);
            assert_eq!(on.next_notification().await, Notification::Found(0));
            let hardware = on.hardware.borrow();
            let at = |time| hardware.drives.mechanisms()[0].slot_under_head(time);
            assert_eq!(at(on.now() + Time(1)), slot);
            assert_eq!(
                at(Time(on.now().0 - 2)),
                (slot + SLOTS_PER_TRACK - 1) % SLOTS_PER_TRACK
            );
            assert_eq!(
                u64::from(hardware.drives.mechanisms()[0].cylinder()),
                cylinder
            );
        }
    });
}

/// Writes a block at slots 0 to 15 and the next one at slots 32 to 47, whose command arrives `late`
/// slots after slot 32 began to pass. Returns the wait and the stage to which it is booked.
fn wait_after_late_command(late: u32) -> (Time, Stage) {
    let bench = adaptor(config(), &[0]);
    let on = Rc::clone(&bench);
    let out = Rc::new(RefCell::new(None));
    let result = Rc::clone(&out);
    bench.run_script(async move {
        let first = on.issue_request(0, (0, 0, 16, true));
        on.submit_transfer(first, None);
        on.next_completion().await;
        let next = on.issue_request(1, (0, 32, 16, true));
        let comes = on.now() + on.time_until_slot(0, 32);
        // A nanosecond before, so that "no slot late" is in time.
        on.sim
            .sleep_until(Time((comes + slots_time(late)).0 - 1))
            .await;
        on.submit_transfer(next, None);
        on.next_completion().await;
        let started = Time(on.now().0 - slots_time(16).0);
        let waited = on.list_stage_times(next)[1];
        assert_near(comes + (started - comes), on.now() - slots_time(16), 0);
        *result.borrow_mut() = Some((Time(started.0.saturating_sub(comes.0)), waited.0));
    });
    out.take().expect("it ran")
}

/// A command in time costs nothing. A late one costs one revolution, whether it is late by one
/// sector or by all but one sector of a track.
#[test]
fn sectors_late_cost_exactly_one_revolution() {
    let (lost, stage) = wait_after_late_command(0);
    assert_near(lost, Time::ZERO, 2);
    assert_eq!(stage, Stage::RotationalLatency);
    for late in 1..SLOTS_PER_TRACK {
        let (lost, stage) = wait_after_late_command(late);
        assert_near(lost, revolution_time(), 2);
        assert_eq!(stage, MISSED, "{late} sectors late");
    }
}

/// As [`sectors_late_cost_exactly_one_revolution`], for the search: with a
/// lead of 7 sectors it has to be commanded within 9 of a gap of 16.
#[test]
fn a_search_that_is_late_costs_exactly_one_revolution() {
    for after in 0..SLOTS_PER_TRACK {
        let bench = adaptor(config(), &[0, 0]);
        let on = Rc::clone(&bench);
        bench.run_script(async move {
            let first = on.issue_request(0, (0, 0, 16, false));
            on.submit_transfer(first, None);
            on.next_completion().await;
            let next = on.issue_request(1, (0, 32, 16, false));
            let ended = on.now();
            let comes = ended + on.time_until_slot(0, 32);
            on.sim
                .sleep_until(Time((ended + slots_time(after)).0.max(2) - 1).max(ended))
                .await;
            on.search(next, 32 - 7);
            assert_eq!(on.next_notification().await, Notification::Found(0));
            on.submit_transfer(next, Some(on.now()));
            on.next_completion().await;
            let late = after > 16 - 7;
            let lost = if late { revolution_time() } else { Time::ZERO };
            assert_near(on.now(), comes + lost + slots_time(16), 4);
            let missed = Stage::MissedRevolution(Deadline::Search);
            assert_eq!(
                on.stage_time(next, missed) > Time::ZERO,
                late,
                "{after} slots after"
            );
        });
    }
}

#[test]
fn a_transfer_after_its_search_has_the_lead_and_no_more() {
    for (after, missed) in [(0, false), (6, false), (7, false), (8, true), (20, true)] {
        let bench = adaptor(config(), &[0, 0]);
        let on = Rc::clone(&bench);
        bench.run_script(async move {
            let id = on.issue_request(0, (0, 32, 16, false));
            on.search(id, 25);
            on.next_notification().await;
            let found = on.now();
            on.sim
                .sleep_until(Time((found + slots_time(after)).0 - 2).max(found))
                .await;
            on.submit_transfer(id, Some(found));
            on.next_completion().await;
            let lost = if missed {
                revolution_time()
            } else {
                Time::ZERO
            };
            assert_near(on.now(), found + slots_time(7 + 16) + lost, 4);
            assert_eq!(
                on.stage_time(id, MISSED) > Time::ZERO,
                missed,
                "{after} slots after"
            );
        });
    }
}

#[test]
fn a_request_that_was_not_there_yet_blames_nobody_else() {
    let bench = adaptor(config(), &[0]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let first = on.issue_request(0, (0, 0, 16, false));
        on.submit_transfer(first, None);
        on.next_completion().await;
        on.sim.sleep_until(on.now() + slots_time(20)).await;
        let next = on.issue_request(1, (0, 32, 16, false));
        on.submit_transfer(next, None);
        on.next_completion().await;
        let stage = Stage::MissedRevolution(Deadline::ReadAhead);
        assert_near(on.stage_time(next, stage), slots_time(48 - 4), 3);
    });
}

/// Drive 1 finds its sector while drive 0 holds the channel for this many
/// revolutions more; when attention was raised, and what it was booked to.
fn attention_during_a_transfer(attention: AttentionTiming, revolutions: u32) -> (Time, Time) {
    let bench = adaptor(
        MassbusConfig {
            attention_timing: attention,
            ..config()
        },
        &[0, 0],
    );
    let on = Rc::clone(&bench);
    let out = Rc::new(RefCell::new(None));
    let result = Rc::clone(&out);
    bench.run_script(async move {
        // From slot 0 on; drive 1 finds slot 10 while that goes on.
        let long = on.issue_request(0, (0, 0, SLOTS_PER_TRACK * revolutions + 20, false));
        on.submit_transfer(long, None);
        let id = on.issue_request(1, (1, 17, 16, false));
        on.search(id, 10);
        loop {
            if on.next_notification().await == Notification::Found(1) {
                break;
            }
        }
        *result.borrow_mut() = Some((on.now(), on.stage_time(id, CHANNEL_HELD)));
        while !on.is_idle() {
            on.next_notification().await;
        }
    });
    out.take().expect("it ran")
}

#[test]
fn attention_while_another_drive_transfers() {
    let (found, held) = attention_during_a_transfer(AttentionTiming::WhileTransferring, 0);
    assert_near(found, slots_time(10), 1);
    assert_eq!(held, Time::ZERO);
    // Whole revolutions, until the channel is free as the slot comes by.
    for revolutions in 0..2 {
        let (found, held) = attention_during_a_transfer(AttentionTiming::WhenIdle, revolutions);
        let waits = Time(revolution_time().0 * u64::from(revolutions + 1));
        assert_near(found, slots_time(10) + waits, 4);
        assert_near(held, waits, 4);
    }
}

#[test]
fn a_channel_that_is_held_past_the_sector_costs_a_revolution() {
    let bench = adaptor(config(), &[0, 0]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let other = on.issue_request(0, (0, 0, 30, false));
        on.submit_transfer(other, None);
        let id = on.issue_request(1, (1, 17, 16, false));
        on.search(id, 10);
        assert_eq!(on.next_notification().await, Notification::Found(1));
        let found = on.now();
        // Ready at slot 10, its sector at 17, the channel free at 30.
        on.next_completion().await;
        on.submit_transfer(id, Some(found));
        on.next_completion().await;
        assert_near(on.now(), slots_time(48 + 17 + 16), 4);
        assert_near(on.stage_time(id, CHANNEL_HELD), slots_time(48 + 17 - 30), 4);
        assert_eq!(
            on.stage_time(id, MISSED),
            Time::ZERO,
            "it is not the driver's fault"
        );
    });
}

#[test]
fn late_data_cost_whole_revolutions() {
    // While the processor works every sector is late; how many revolutions
    // that is, and how many errors.
    for (write, busy, errors) in [(true, 3, 4), (false, 3, 4), (true, 0, 1)] {
        let late = MassbusConfig {
            data_late_probability: 1.0,
            ..config()
        };
        let bench = adaptor(late, &[0]);
        let on = Rc::clone(&bench);
        // The processor uses the memory as each of these first sectors goes.
        bench.run_busy_process(Time(revolution_time().0 * busy) + slots_time(5 + 2));
        bench.run_script(async move {
            let id = on.issue_request(0, (0, 5, 16, write));
            on.submit_transfer(id, None);
            let mut repeats = 0;
            while on.next_completion().await.is_data_late {
                repeats += 1;
                assert!(on.is_idle(), "the channel is free until the driver repeats");
                on.submit_repeated_transfer(id);
            }
            assert_eq!(repeats, errors);
            let lost = Time(revolution_time().0 * errors);
            assert_near(on.now(), slots_time(5 + 16) + lost, 3 + 2 * errors);
            assert_near(on.stage_time(id, DATA_LATE), lost, 3 + 2 * errors);
            assert_near(on.stage_time(id, Stage::MediaTransfer), slots_time(16), 2);
            let counted =
                on.with_controller_parts(|controller, _, _| controller.data_late_error_count());
            assert_eq!(counted, errors);
            let hardware = on.hardware.borrow();
            let moved = hardware.drives.mechanisms()[0].busy_times();
            let passed = slots_time(16) + Time(slots_time(1).0 * errors);
            assert_near(moved.transfer_time, passed, 2 + 2 * errors);
        });
    }
}

/// Use of the processor during a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProcessorUse {
    Process,
    Handler,
    Nothing,
}

/// Returns the share of transfers of 16 sectors that succeed at the first attempt.
fn share_without_late_data(config: MassbusConfig, processor_use: ProcessorUse, write: bool) -> f64 {
    const TRANSFERS: u32 = 2000;
    let bench = adaptor(config, &[0]);
    let all = Time(revolution_time().0 * u64::from(TRANSFERS) * 4);
    match processor_use {
        ProcessorUse::Process => bench.run_busy_process(all),
        ProcessorUse::Handler => bench.run_busy_handler(all),
        ProcessorUse::Nothing => {}
    }
    let on = Rc::clone(&bench);
    let first_time = Rc::new(RefCell::new(0));
    let count = Rc::clone(&first_time);
    bench.run_script(async move {
        for _ in 0..TRANSFERS {
            let id = on.issue_request(0, (0, 0, 16, write));
            on.submit_transfer(id, None);
            let mut tries = 1;
            while on.next_completion().await.is_data_late {
                tries += 1;
                on.submit_repeated_transfer(id);
            }
            *count.borrow_mut() += u32::from(tries == 1);
        }
    });
    f64::from(first_time.take()) / f64::from(TRANSFERS)
}

#[test]
fn data_are_late_as_often_as_the_shares_say() {
    let late = MassbusConfig {
        data_late_probability: 0.04,
        data_late_idle_share: 0.25,
        ..config()
    };
    for (processor_use, write, share) in [
        (ProcessorUse::Process, true, 0.04),
        (ProcessorUse::Process, false, 0.04),
        (ProcessorUse::Handler, true, 0.01),
        (ProcessorUse::Handler, false, 0.0),
        (ProcessorUse::Nothing, true, 0.01),
        (ProcessorUse::Nothing, false, 0.0),
    ] {
        let share_without_late_data = share_without_late_data(late.clone(), processor_use, write);
        // The last sector has nothing behind it that it could delay.
        let expected = f64::powi(1.0 - share, 15);
        let said =
            format!("{share_without_late_data} of {expected}: {processor_use:?}, write: {write}");
        assert!((share_without_late_data - expected).abs() < 0.04, "{said}");
        assert!(share > 0.0 || share_without_late_data == 1.0, "{said}");
    }
}

#[test]
fn a_search_begins_when_the_controller_looks() {
    let interval = Time::from_millis(4);
    let config = MassbusConfig {
        search_poll_time_per_drive: interval,
        ..config()
    };
    let bench = adaptor(config, &[0]);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let mut sum = Time::ZERO;
        let (mut least, mut most) = (interval, Time::ZERO);
        const SEARCHES: u64 = 400;
        for _ in 0..SEARCHES {
            let id = on.issue_request(0, (0, 0, 16, false));
            on.search(id, 0);
            assert_eq!(on.next_notification().await, Notification::Found(0));
            assert_eq!(on.next_slot_under_head(0), 0, "it still finds its slot");
            let noticed = on.stage_time(id, Stage::Command);
            assert!(noticed < interval, "{noticed} after the command");
            sum += noticed;
            least = least.min(noticed);
            most = most.max(noticed);
        }
        let mean = sum.0 as f64 / SEARCHES as f64;
        assert!(
            (mean / 2e6 - 1.0).abs() < 0.1,
            "half an interval on average, not {mean} ns"
        );
        assert!(least.0 * 20 < interval.0 && most.0 * 20 > interval.0 * 19);
    });
}

#[test]
fn spans_tile_whatever_happens() {
    let config = MassbusConfig {
        attention_timing: AttentionTiming::WhenIdle,
        search_poll_time_per_drive: Time(750_000),
        search_command_delay: Time(700_000),
        command_delay: Time(20_000),
        reads_whole_sectors: true,
        data_late_probability: 0.05,
        data_late_idle_share: 0.2,
        repeats_data_late: true,
    };
    let bench = adaptor(config, &[0, 1 << 30]);
    let on = Rc::clone(&bench);
    bench.run_busy_process(Time::from_millis(20_000));
    bench.run_script(async move {
        let mut random = random_stream("mix");
        let sectors = CYLINDER_SECTORS * u64::from(CYLINDER_COUNT) - 64;
        for _ in 0..400 {
            let drive = random.draw_below(2) as usize;
            let write = random.draw_with_probability(0.5);
            let count = 1 + random.draw_below(60) as u32;
            let id = on.issue_request(0, (drive, random.draw_below(sectors), count, write));
            on.sim
                .sleep_until(on.now() + Time(random.draw_below(30_000_000)))
                .await;
            let mut found = None;
            if random.draw_with_probability(0.5) {
                on.search(id, random.draw_below(u64::from(SLOTS_PER_TRACK)) as u32);
                assert_eq!(on.next_notification().await, Notification::Found(drive));
                found = Some(on.now());
                on.list_stage_times(id);
                on.sim
                    .sleep_until(on.now() + Time(random.draw_below(5_000_000)))
                    .await;
            }
            on.submit_transfer(id, found);
            while on.next_completion().await.is_data_late {
                on.list_stage_times(id);
                on.submit_repeated_transfer(id);
            }
            // Asserts that the spans are all of its time, none of it twice.
            on.list_stage_times(id);
            // But for the two nanoseconds in which a sector is still caught.
            assert!(on.stage_time(id, Stage::MediaTransfer) + Time(2) >= slots_time(count.min(47)));
        }
    });
}
