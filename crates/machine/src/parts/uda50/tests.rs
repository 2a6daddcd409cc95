//! A UDA50 alone. These fail when its processor, its bus or its buffer serves
//! two at once, when a drive's second command overtakes the first, and when
//! time is booked to a stage that did not spend it.

use super::*;
use crate::controllers::Controller;
use crate::hardware::bench::*;

fn config() -> Uda50Config {
    Uda50Config {
        buffer_sectors: 52,
        command_credits: 16,
        decode_time: Time::from_millis(1),
        finish_time: Time::from_millis(2),
        finish_time_per_sector: Time(10_000),
        time_spread_share: 0.0,
        command_order: CommandOrder::ArrivalOrder,
        overlaps_decode: false,
    }
}

/// Processor time of the controller to finish a block of 16 sectors.
const FINISH: Time = Time(2_160_000);

/// A controller with this many drives, and a bus of this many bytes per
/// second.
fn controller(config: Uda50Config, drives: usize, bytes_per_s: u64) -> Rc<Bench<Uda50>> {
    let uda50 = |(id, _), drives| Uda50::new(id, config, drives, random_stream("spread"));
    let drives = (0..drives).map(|_| bench_drive(0)).collect();
    Bench::with_controller(drives, uda50, Bus::new(bytes_per_s, 0.0))
}

const FAST: u64 = 1_000_000_000;

/// For how long the controller's processor has worked.
fn engine_busy(bench: &Bench<Uda50>) -> Time {
    let busy = bench.with_controller_parts(|controller, _, _| controller.busy_time(Time::ZERO));
    busy.expect("it is counted").1
}

impl Bench<Uda50> {
    fn submit(&self, id: RequestId) {
        self.mark_request(id);
        self.with_controller_parts(|controller, context, parts| {
            controller.accept_command(context, parts, id)
        });
    }

    async fn next_completion(&self) -> RequestId {
        loop {
            match self.with_controller_parts(|controller, _, _| controller.take_completion()) {
                Some(id) => return id,
                None => self.sim.wait_for_wake_up("the controller").await,
            }
        }
    }

    /// Commands blocks of 16 sectors, each (drive, sector, write), at once;
    /// in which order they end, and when.
    async fn execute_commands(&self, commands: &[(usize, u64, bool)]) -> Vec<(RequestId, Time)> {
        for (number, (drive, sector, write)) in commands.iter().enumerate() {
            let id = self.issue_request(number as u32, (*drive, *sector, 16, *write));
            self.submit(id);
        }
        let mut ended = Vec::new();
        for _ in commands {
            let id = self.next_completion().await;
            self.list_stage_times(id);
            ended.push((id, self.now()));
        }
        ended
    }

    /// Returns the spans of a completed request: stage, start and end.
    fn stage_spans(&self, id: RequestId) -> Vec<(Stage, u64, u64)> {
        let hardware = self.hardware.borrow();
        let request = &hardware.submitted_requests[id].spans;
        let mut at = request.issued_at().0;
        let spans = request.spans().iter().map(|span| {
            let from = std::mem::replace(&mut at, span.stage_end.0);
            (span.stage, from, at)
        });
        spans.collect()
    }

    /// Returns the first start and the last end of a stage of a request.
    fn stage_times(&self, id: RequestId, stage: Stage) -> (Time, Time) {
        let spans = self.stage_spans(id);
        let mut of = spans.iter().filter(|(what, ..)| *what == stage);
        let first = of
            .next()
            .unwrap_or_else(|| panic!("no {stage:?} in {spans:?}"));
        let last = of.next_back().unwrap_or(first);
        (Time(first.1), Time(last.2))
    }
}

#[test]
fn a_read_is_decoded_moved_and_finished() {
    // 512 bytes in 0.512 ms.
    let bench = controller(config(), 1, 1_000_000);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let ended = on.execute_commands(&[(0, 32, false)]).await;
        let (id, at) = ended[0];
        let media = on.stage_times(id, Stage::MediaTransfer);
        assert_near(media.1, slots_time(48), 2);
        // The bus begins with the first sector and takes 8.192 ms; the medium
        // takes 5.05 ms, so it is the bus that is waited for.
        let bus = on.stage_times(id, Stage::BusTransfer);
        assert_near(bus.1, slots_time(32) + Time(8_192_000), 2);
        assert_eq!(at, bus.1 + FINISH);
        let busy = engine_busy(&on);
        assert_eq!(busy, Time::from_millis(1) + FINISH);
    });
}

#[test]
fn the_last_sector_crosses_the_bus_after_it_was_read() {
    let bench = controller(config(), 1, FAST);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let ended = on.execute_commands(&[(0, 32, false)]).await;
        assert_near(ended[0].1, slots_time(48) + Time(512) + FINISH, 3);
    });
}

/// How long a block is fetched over a bus that takes 8.192 ms for it before
/// the drive may start: the rest then comes in time for the medium, with a
/// sector to spare.
fn bus_head_start() -> Time {
    Time(8_192_000 - slots_time(16).0 + 512_000)
}

#[test]
fn a_write_moves_when_the_rest_of_its_data_will_be_in_time() {
    let bench = controller(config(), 1, 1_000_000);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let (id, at) = on
            .execute_commands(&[(0, 40 * CYLINDER_SECTORS, true)])
            .await[0];
        let bus = on.stage_times(id, Stage::BusTransfer);
        let ms = Time::from_millis;
        assert_eq!(bus, (ms(1), ms(1) + bus_head_start()));
        let seek = on.stage_times(id, Stage::Seek);
        assert_eq!(seek.0, bus.1);
        let media = on.stage_times(id, Stage::MediaTransfer);
        assert_near(media.1 - media.0, slots_time(16), 2);
        assert!(
            media.1 > ms(1) + Time(8_192_000),
            "the last sector was there"
        );
        assert_eq!(at, media.1 + FINISH);
        assert_eq!(
            on.hardware.borrow().bus.busy_time(on.now()),
            Time(8_192_000)
        );
    });
}

#[test]
fn a_bus_faster_than_the_medium_needs_the_start_of_a_sector() {
    let bench = controller(config(), 1, FAST);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let (id, _) = on.execute_commands(&[(0, 0, true)]).await[0];
        let bus = on.stage_times(id, Stage::BusTransfer);
        assert_eq!(bus.1 - bus.0, Time(512));
    });
}

#[test]
fn a_drive_has_one_command_at_a_time() {
    let run = |overlap_decode| {
        let bench = controller(
            Uda50Config {
                overlaps_decode: overlap_decode,
                ..config()
            },
            1,
            FAST,
        );
        let on = Rc::clone(&bench);
        let out = Rc::new(RefCell::new(Vec::new()));
        let result = Rc::clone(&out);
        bench.run_script(async move {
            let ended = on.execute_commands(&[(0, 0, false), (0, 20, false)]).await;
            let decoded = on.stage_times(ended[1].0, Stage::Command).0;
            *result.borrow_mut() = vec![ended[0].1, decoded, ended[1].1];
        });
        out.take()
    };
    // The second one is looked at when the first one has been reported.
    let one = run(false);
    assert_eq!(one[1], one[0]);
    // Decoded beside the first one, as soon as the processor has time: and
    // so in time for a slot that it otherwise misses.
    let both = run(true);
    assert_eq!(both[1], Time::from_millis(1));
    assert_near(one[2] - both[2], revolution_time(), 8);
}

#[test]
fn drives_share_the_processor() {
    let bench = controller(config(), 2, FAST);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let ended = on.execute_commands(&[(0, 32, false), (1, 32, false)]).await;
        // Both are decoded before slot 32 comes by, one after the other.
        let ms = Time::from_millis;
        assert_eq!(
            on.stage_times(RequestId::first_of_slot(0), Stage::Command)
                .0,
            Time::ZERO
        );
        assert_eq!(
            on.stage_spans(RequestId::first_of_slot(1))[0],
            (Stage::ControllerQueue, 0, 1_000_000)
        );
        assert_eq!(
            on.stage_spans(RequestId::first_of_slot(1))[1],
            (Stage::Command, 1_000_000, 2_000_000)
        );
        // They come in at the same moment and are finished one by one.
        assert_eq!(ended[1].1 - ended[0].1, FINISH);
        let busy = engine_busy(&on);
        assert_eq!(busy, ms(2) + FINISH + FINISH);
        let media: Vec<(Time, Time)> = [0, 1]
            .map(|id| on.stage_times(RequestId::first_of_slot(id), Stage::MediaTransfer))
            .into();
        assert_eq!(media[0].1, media[1].1, "both drives move at once");
    });
}

#[test]
fn drives_share_the_bus() {
    let bench = controller(config(), 2, 1_000_000);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        on.execute_commands(&[(0, 0, true), (1, 0, true)]).await;
        // The second waits until the first block is over, though its drive
        // has long begun to move.
        let ms = Time::from_millis;
        let free = ms(1) + Time(8_192_000);
        let first = on.stage_times(RequestId::first_of_slot(0), Stage::BusTransfer);
        assert_eq!(first, (ms(1), ms(1) + bus_head_start()));
        assert_eq!(
            on.stage_times(RequestId::first_of_slot(1), Stage::BusWait),
            (ms(2), free)
        );
        let second = on.stage_times(RequestId::first_of_slot(1), Stage::BusTransfer);
        assert_eq!(second, (free, free + bus_head_start()));
        assert_eq!(
            on.hardware.borrow().bus.busy_time(on.now()),
            Time(2 * 8_192_000)
        );
    });
}

#[test]
fn a_command_waits_until_its_data_fit_into_the_buffer() {
    let bench = controller(config(), 4, FAST);
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        // Three blocks of 16 sectors are 48 of 52.
        let commands: Vec<_> = (0..4).map(|drive| (drive, 32, false)).collect();
        let ended = on.execute_commands(&commands).await;
        let decoded: Vec<Time> = (0..4)
            .map(|id| {
                on.stage_times(RequestId::first_of_slot(id), Stage::Command)
                    .0
            })
            .collect();
        let ms = Time::from_millis;
        assert_eq!(decoded[..3], [ms(0), ms(1), ms(2)]);
        assert_eq!(ended[0].0, RequestId::first_of_slot(0));
        assert!(decoded[3] >= ended[0].1, "{decoded:?}");
        assert_eq!(
            on.stage_spans(RequestId::first_of_slot(3))[0].0,
            Stage::ControllerQueue
        );
    });
}

#[test]
fn the_host_keeps_a_credit_back() {
    let bench = controller(
        Uda50Config {
            command_credits: 5,
            ..config()
        },
        1,
        FAST,
    );
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let takes = || on.with_controller_parts(|controller, _, _| controller.accepts_commands());
        for number in 0..4 {
            assert!(takes());
            let id = on.issue_request(number, (0, 0, 16, false));
            on.submit(id);
        }
        assert!(!takes(), "four of five credits are in use");
        for _ in 0..4 {
            on.next_completion().await;
            assert!(takes());
        }
    });
}

#[test]
fn commands_run_in_order_of_arrival_or_nearest_first() {
    let order_of = |order| {
        let bench = controller(
            Uda50Config {
                command_order: order,
                ..config()
            },
            1,
            FAST,
        );
        let on = Rc::clone(&bench);
        let out = Rc::new(RefCell::new(Vec::new()));
        let result = Rc::clone(&out);
        bench.run_script(async move {
            let cylinders = [40, 90, 10, 45];
            let commands = cylinders.map(|cylinder| (0, cylinder * CYLINDER_SECTORS, false));
            let ended = on.execute_commands(&commands).await;
            *result.borrow_mut() = ended.iter().map(|(id, _)| cylinders[id.slot()]).collect();
        });
        out.take()
    };
    assert_eq!(order_of(CommandOrder::ArrivalOrder), [40, 90, 10, 45]);
    // The first is taken when it comes; from 40 on it is 45, then 10, 90.
    assert_eq!(order_of(CommandOrder::NearestFirst), [40, 45, 10, 90]);
}

#[test]
fn processor_times_vary_within_the_spread() {
    let spread = 0.5;
    let bench = controller(
        Uda50Config {
            time_spread_share: spread,
            ..config()
        },
        1,
        FAST,
    );
    let on = Rc::clone(&bench);
    bench.run_script(async move {
        let mut decodes = Vec::new();
        for _ in 0..400 {
            let id = on.issue_request(0, (0, 0, 16, true));
            on.submit(id);
            on.next_completion().await;
            let commands: Vec<u64> = on
                .stage_spans(id)
                .iter()
                .filter(|(stage, ..)| *stage == Stage::Command)
                .map(|(_, from, to)| to - from)
                .collect();
            let [decode, finish] = commands[..] else {
                panic!("a command is decoded and finished")
            };
            assert!((500_000..=1_500_000).contains(&decode), "{decode}");
            assert!(
                (FINISH.0 / 2..=FINISH.0 / 2 * 3).contains(&finish),
                "{finish}"
            );
            decodes.push(decode);
        }
        let mean = decodes.iter().sum::<u64>() as f64 / decodes.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.05, "{mean}");
        let (least, most) = (decodes.iter().min(), decodes.iter().max());
        assert!(
            least < Some(&600_000) && most > Some(&1_400_000),
            "{least:?} {most:?}"
        );
    });
}

#[test]
fn spans_tile_whatever_happens() {
    for (order, overlap_decode) in [
        (CommandOrder::ArrivalOrder, false),
        (CommandOrder::NearestFirst, true),
    ] {
        let config = Uda50Config {
            time_spread_share: 0.9,
            command_order: order,
            overlaps_decode: overlap_decode,
            ..config()
        };
        let bench = controller(config, 3, 1_000_000);
        let on = Rc::clone(&bench);
        bench.run_script(async move {
            let mut random = random_stream("mix");
            let sectors = CYLINDER_SECTORS * u64::from(CYLINDER_COUNT) - 64;
            let mut under_way = 0;
            for number in 0..600 {
                let drive = random.draw_below(3) as usize;
                let write = random.draw_with_probability(0.5);
                let count = 1 + random.draw_below(26) as u32;
                let id =
                    on.issue_request(number, (drive, random.draw_below(sectors), count, write));
                on.sim
                    .sleep_until(on.now() + Time(random.draw_below(3_000_000)))
                    .await;
                on.submit(id);
                under_way += 1;
                while under_way > 8 {
                    let id = on.next_completion().await;
                    under_way -= 1;
                    // It may have ended while the script slept.
                    assert!(on.stage_spans(id).iter().all(|(_, from, to)| from < to));
                }
            }
            for _ in 0..under_way {
                on.next_completion().await;
            }
            let drives = &on.hardware.borrow().drives;
            let moved: u64 = drives
                .iter_drives()
                .map(|drive| drive.busy_times().transfer_count)
                .sum();
            assert_eq!(moved, 600, "each command once");
        });
    }
}
