//! A controller for the VMEbus alone. These fail when what is in the cache is
//! read from the drive, when what was written over is served from it, when
//! reading ahead goes where its bits forbid or holds the arm from a write that
//! may interrupt it, and when any part of a request's time is lost.

use super::*;
use crate::hardware::bench::*;
use proptest::prelude::*;
use std::cell::Cell;

const COMMAND: Time = Time(1_000_000);
const MOVE: Time = Time(300_000);

fn controller(caching: CachingScheme) -> Rc<Bench<Vme>> {
    let config = VmeConfig {
        command_delay: COMMAND,
        command_poll_interval: Time::ZERO,
        move_time_per_sector: MOVE,
        write_lead_sectors: 1,
        caching,
        maintenance: None,
    };
    let vme = |id, drives| Vme::new(id, config, drives, RandomStreams::new(1));
    Bench::with_controller(vec![bench_drive(0)], vme, Bus::new(1_000_000_000, 0.0))
}

fn sectors(bits: &str, ahead_sectors: u32) -> Rc<Bench<Vme>> {
    let policy = CachePolicy::parse_policy(bits, ahead_sectors).expect("bits");
    controller(CachingScheme::SectorCache {
        capacity_sectors: 1000,
        policies: [policy; 3],
        adaptive: false,
    })
}

fn tracks(flushed_by_writes: bool) -> Rc<Bench<Vme>> {
    controller(CachingScheme::TrackCache {
        capacity_sectors: 1000,
        flushed_by_writes,
    })
}

impl Bench<Vme> {
    fn submit(&self, id: RequestId) {
        self.mark_request(id);
        self.with_controller_parts(|controller, context, parts| {
            controller.accept_command(context, parts, id)
        });
    }

    async fn next_completion(&self) -> RequestId {
        loop {
            match self.with_controller_parts(|controller, _, _| controller.take_completion()) {
                Some(done) => return done,
                None => self.sim.wait_for_wake_up("the controller").await,
            }
        }
    }

    /// Executes one command. Returns the time from its submission to its end.
    async fn execute_command(&self, id: u32, sector: u64, count: u32, write: bool) -> Time {
        let begin = self.now();
        let id = self.issue_request(id, (0, sector, count, write));
        self.submit(id);
        assert_eq!(self.next_completion().await, id);
        // All of its time is accounted for.
        self.list_stage_times(id);
        self.now() - begin
    }

    async fn stay_idle(&self, span: Time) {
        self.sim.sleep_until(self.now() + span).await;
    }

    fn drive_transfer_count(&self) -> u64 {
        self.hardware.borrow().drives.mechanisms()[0]
            .busy_times()
            .transfer_count
    }
}

/// Returns the time of a read from the cache: the command, and the move of each sector.
fn cache_transfer_time(count: u32) -> Time {
    COMMAND + Time(MOVE.0 * u64::from(count))
}

#[test]
fn cached_sectors_are_served_without_the_drive() {
    let bench = sectors("SEA|CRD", 0);
    let inner = Rc::clone(&bench);
    bench.run_script(async move {
        let first = inner.execute_command(0, 100, 16, false).await;
        let transfers = inner.drive_transfer_count();
        assert_eq!(
            inner.execute_command(1, 100, 16, false).await,
            cache_transfer_time(16)
        );
        assert_eq!(inner.drive_transfer_count(), transfers);
        assert!(first > cache_transfer_time(16) || first > slots_time(16));
        // A part that is there and a part that is not.
        let longer = inner.execute_command(2, 108, 16, false).await;
        assert!(longer > cache_transfer_time(8), "{longer}");
        assert_eq!(inner.drive_transfer_count(), transfers + 1);
        assert_eq!(
            inner.execute_command(3, 100, 24, false).await,
            cache_transfer_time(24)
        );
    });
}

#[test]
fn without_a_search_nothing_is_served_from_the_cache() {
    let bench = sectors("0", 60);
    let inner = Rc::clone(&bench);
    bench.run_script(async move {
        for id in 0..3 {
            inner.execute_command(id, 100, 16, false).await;
        }
        assert_eq!(inner.drive_transfer_count(), 3);
    });
}

#[test]
fn read_ahead_stops_where_the_policy_bits_say() {
    // The track of sector 0 ends at 48, its cylinder at 96.
    for (bits, end) in [("SEA", 48), ("SEA|XHD", 96), ("SEA|XHD|XCY", 116)] {
        let bench = sectors(bits, 100);
        let inner = Rc::clone(&bench);
        bench.run_script(async move {
            inner.execute_command(0, 0, 16, false).await;
            inner.stay_idle(Time::from_millis(100)).await;
            let bytes = inner.hardware.borrow().drives.mechanisms()[0]
                .busy_times()
                .transferred_bytes;
            assert_eq!(bytes / 512, end, "{bits}");
            let count = (end - 16) as u32;
            assert_eq!(
                inner.execute_command(1, 16, count, false).await,
                cache_transfer_time(count)
            );
        });
    }
}

#[test]
fn unsaved_sectors_stay_cached_until_the_next_read_elsewhere() {
    let bench = sectors("SEA|XHD", 20);
    let inner = Rc::clone(&bench);
    bench.run_script(async move {
        inner.execute_command(0, 0, 16, false).await;
        inner.stay_idle(Time::from_millis(100)).await;
        assert_eq!(
            inner.execute_command(1, 16, 10, false).await,
            cache_transfer_time(10)
        );
        inner.stay_idle(Time::from_millis(100)).await;
        inner.execute_command(2, 5000, 16, false).await;
        inner.stay_idle(Time::from_millis(100)).await;
        assert!(inner.execute_command(3, 16, 10, false).await > cache_transfer_time(10));
    });
}

#[test]
fn a_write_evicts_its_sectors_or_clears_a_track_cache() {
    let cases = [
        (sectors("SEA|CRD", 0), true),
        (tracks(false), true),
        (tracks(true), false),
    ];
    for (bench, others_stay) in cases {
        let inner = Rc::clone(&bench);
        bench.run_script(async move {
            inner.execute_command(0, 96, 16, false).await;
            inner.stay_idle(Time::from_millis(100)).await;
            assert_eq!(
                inner.execute_command(1, 96, 16, false).await,
                cache_transfer_time(16)
            );
            inner.execute_command(2, 100, 4, true).await;
            inner.stay_idle(Time::from_millis(100)).await;
            let before = inner.execute_command(3, 96, 4, false).await;
            assert_eq!(before == cache_transfer_time(4), others_stay);
            inner.stay_idle(Time::from_millis(100)).await;
            if others_stay {
                assert!(inner.execute_command(4, 100, 4, false).await > cache_transfer_time(4));
            }
        });
    }
}

#[test]
fn sectors_saved_by_a_write_are_served_from_the_cache() {
    let bench = sectors("SEA|CWT", 0);
    let inner = Rc::clone(&bench);
    bench.run_script(async move {
        inner.execute_command(0, 500, 8, true).await;
        assert_eq!(
            inner.execute_command(1, 500, 8, false).await,
            cache_transfer_time(8)
        );
    });
}

#[test]
fn a_write_ends_reading_ahead_across_cylinders_and_waits_for_the_rest() {
    let until_written = |bits: &'static str| {
        let bench = sectors(bits, 240);
        let inner = Rc::clone(&bench);
        let took = Rc::new(RefCell::new(Time::ZERO));
        let result = Rc::clone(&took);
        bench.run_script(async move {
            inner.execute_command(0, 0, 16, false).await;
            *result.borrow_mut() = inner.execute_command(1, 4000, 16, true).await;
        });
        took.take()
    };
    let interrupted = until_written("SEA|XHD|XCY");
    let waited = until_written("SEA|RAP|XHD|XCY");
    // Two hundred and forty sectors are five revolutions.
    assert!(
        waited.0 > interrupted.0 + 3 * revolution_time().0,
        "{waited} {interrupted}"
    );
}

#[test]
fn a_track_is_read_from_whatever_sector_comes_first() {
    for rest in 0..20 {
        let bench = tracks(true);
        let inner = Rc::clone(&bench);
        bench.run_script(async move {
            inner.stay_idle(Time(rest * 1_111_111)).await;
            let took = inner.execute_command(0, 0, 48, false).await;
            let most = COMMAND + revolution_time() + slots_time(1) + Time(100_000);
            assert!(took <= most, "{took} and at most {most}");
        });
    }
}

#[test]
fn reads_in_sequence_have_the_next_track_read() {
    let bench = tracks(true);
    let inner = Rc::clone(&bench);
    bench.run_script(async move {
        inner.execute_command(0, 0, 24, false).await;
        inner.stay_idle(Time::from_millis(50)).await;
        assert_eq!(
            inner.execute_command(1, 24, 24, false).await,
            cache_transfer_time(24)
        );
        inner.stay_idle(Time::from_millis(50)).await;
        assert_eq!(
            inner.execute_command(2, 48, 24, false).await,
            cache_transfer_time(24)
        );
    });
}

/// Returns the time of the last 96 of `reads` sequential reads, each submitted after `think` from
/// the end of the previous one.
fn time_of_last_reads(caching: CachingScheme, reads: u32, think: Time) -> Time {
    let bench = controller(caching);
    let inner = Rc::clone(&bench);
    let took = Rc::new(Cell::new(Time::ZERO));
    let set = Rc::clone(&took);
    bench.run_script(async move {
        let mut since = Time::ZERO;
        for number in 0..reads {
            if number == reads - 96 {
                since = inner.now();
            }
            inner.stay_idle(think).await;
            let sector = 4 * u64::from(number);
            let id = inner.issue_request(number, (0, sector, 4, false));
            inner.submit(id);
            inner.next_completion().await;
        }
        set.set(inner.now() - since);
    });
    took.get()
}

/// For every think time of the program, the chosen policy is as good as the best fixed read-ahead
/// distance.
#[test]
fn an_adaptive_controller_finds_the_best_policy_for_a_sequence() {
    for think_ms in [0, 3, 12, 40] {
        let took = |policy, adaptive| {
            let caching = CachingScheme::SectorCache {
                capacity_sectors: 1000,
                policies: [policy; 3],
                adaptive,
            };
            time_of_last_reads(caching, 400, Time::from_millis(think_ms))
        };
        let fixed = |ahead| {
            took(
                CachePolicy::parse_policy("SEA|CRD|XHD|XCY", ahead).expect("bits"),
                false,
            )
        };
        let all = [0, 10, 30, 60, 100, 244].map(fixed);
        let best = *all.iter().min().expect("there are some");
        let adaptive = took(CachePolicy::default(), true);
        assert!(
            adaptive.0 as f64 <= best.0 as f64 * 1.02,
            "thinking {think_ms} ms: {adaptive}; fixed {all:?}"
        );
    }
}

/// A command of a random sequence: sector, sectors, whether it writes, and the
/// pause before it in parts of ten milliseconds.
fn any_command() -> impl Strategy<Value = (u64, u32, bool, u64)> {
    let near = prop_oneof![
        0..200_u64,
        0..(CYLINDER_SECTORS * u64::from(CYLINDER_COUNT) - 130)
    ];
    (near, 1..130_u32, any::<bool>(), 0..100_u64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// For any sequence of commands, every command ends, all of its time is accounted for, and none
    /// ends before its data can have arrived.
    #[test]
    fn every_command_ends_and_is_accounted_for(
        commands in prop::collection::vec(any_command(), 1..30),
        kind in 0..6_usize,
        at_once in 1..4_usize,
    ) {
        let bench = match kind {
            0 => sectors("0", 0),
            1 => sectors("SEA|CRD|XHD|XCY", 244),
            2 => sectors("SEA|CRD|RAP|CWT|SRD|SWT|XHD", 60),
            3 => tracks(true),
            4 => tracks(false),
            _ => controller(CachingScheme::SectorCache {
                capacity_sectors: 300,
                policies: [CachePolicy::default(); 3],
                adaptive: true,
            }),
        };
        let inner = Rc::clone(&bench);
        bench.run_script(async move {
            let mut under_way = 0;
            for (number, (sector, count, write, pause)) in commands.iter().enumerate() {
                inner.stay_idle(Time(pause * 100_000)).await;
                let id = inner.issue_request(number as u32, (0, *sector, *count, *write));
                inner.submit(id);
                under_way += 1;
                while under_way >= at_once {
                    let done = inner.next_completion().await;
                    let hardware = inner.hardware.borrow();
                    let request = &hardware.submitted_requests[done].spans;
                    assert!(request.marked_until().0 <= inner.now().0);
                    assert!(request.marked_until().0 >= request.issued_at().0 + COMMAND.0);
                    under_way -= 1;
                }
            }
            for _ in 0..under_way {
                inner.next_completion().await;
            }
            inner.stay_idle(Time::from_millis(1000)).await;
            let busy = inner.hardware.borrow().drives.mechanisms()[0].busy_times();
            assert!(busy.positioning_time + busy.rotational_latency_time + busy.transfer_time <= inner.now());
        });
    }
}
