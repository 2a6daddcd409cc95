//! Orders of service against text-book queues, against an exhaustive optimum, and against
//! the means of a closed queue. These fail when a policy measures from the wrong place,
//! turns at the wrong moment, or predicts another angle than the disk then waits for.

use super::{assert_close, built, one_zone, plain};
use diskperf_device::disk::closed::{ClosedLoopLoad, ClosedLoopResult, positioning_bounds_ms};
use diskperf_device::disk::layout::SectorPosition;
use diskperf_device::disk::mechanism::{Mechanism, MediaAccess};
use diskperf_device::disk::queue::{QueuePolicy, QueueSpecification, QueueView, WaitingCommand};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_sim::{RandomStreams, Time};

fn policy(policy: QueuePolicy) -> QueueSpecification {
    QueueSpecification {
        order: policy,
        ..QueueSpecification::default()
    }
}

fn waiting(cylinder: u32, start: RotationAngle, number: u64) -> WaitingCommand {
    WaitingCommand {
        sector: u64::from(cylinder),
        position: SectorPosition {
            cylinder,
            head: 0,
            sector: 0,
            sectors_per_track: 1,
            start_angle: start,
            sector_angle: u64::MAX,
        },
        is_write: false,
        arrival: Time::ZERO,
        sequence_number: number,
    }
}

fn view(mechanism: &Mechanism, now: Time, rising: bool) -> QueueView {
    QueueView {
        now,
        arm_position: u64::from(mechanism.arm_cylinder()),
        stroke_length: u64::from(mechanism.layout().cylinder_count()),
        moving_inward: rising,
    }
}

/// The cylinders in the order of service, and the way over all of them.
fn order(policy_of: QueuePolicy, rising: bool) -> (Vec<u32>, u32) {
    let cylinders = [98, 183, 37, 122, 14, 124, 65, 67];
    let mut queue: Vec<WaitingCommand> = (0..)
        .zip(cylinders)
        .map(|(n, c)| waiting(c, RotationAngle::ZERO, n))
        .collect();
    let (mut at, mut rising, mut way, mut order) = (53, rising, 0, Vec::new());
    loop {
        let view = QueueView {
            now: Time::ZERO,
            arm_position: u64::from(at),
            stroke_length: 200,
            moving_inward: rising,
        };
        let Some(choice) = policy(policy_of).choose_command(&view, &queue, |_| Time::ZERO) else {
            return (order, way);
        };
        let next = queue.swap_remove(choice.command_index).position.cylinder;
        way += u32::abs_diff(at, next);
        (at, rising) = (next, choice.moving_inward);
        order.push(next);
    }
}

#[test]
fn the_queue_of_the_text_books() {
    for (policy, rising, way) in [
        (QueuePolicy::Fcfs, true, 640),
        (QueuePolicy::Sstf, true, 236),
        (QueuePolicy::Look, true, 299),
        (QueuePolicy::Look, false, 208),
        (QueuePolicy::CLook, true, 322),
        (QueuePolicy::VScan { share: 0.2 }, true, 299),
        (QueuePolicy::VScan { share: 0.0 }, true, 236),
        (QueuePolicy::VScan { share: 1.0 }, false, 208),
    ] {
        let (order, found) = order(policy, rising);
        assert_eq!(found, way, "{policy:?}: {order:?}");
    }
}

/// One revolution is 8 ms, a cylinder 1 ms, a sector 1 ms.
fn clockwork() -> Mechanism {
    let mut of = plain(one_zone((4, 1, 8)));
    of.period_ns = 8e6;
    of.seek = SeekSpecification::Hpl {
        line_from_cylinders: 0,
        root_constant_ms: 0.0,
        root_factor_ms: 0.0,
        line_constant_ms: 0.0,
        line_factor_ms: 1.0,
        single_cylinder_ms: None,
    };
    built(&of)
}

/// Serves these sectors by a policy; in which order, and when all are done.
fn serve_all(mut mechanism: Mechanism, sectors: &[u64], of: QueuePolicy) -> (Vec<u64>, Time) {
    let place = |(number, sector): (u64, &u64)| WaitingCommand {
        sector: *sector,
        ..WaitingCommand {
            position: mechanism.layout().position_of(*sector),
            ..waiting(0, RotationAngle::ZERO, number)
        }
    };
    let mut queue: Vec<WaitingCommand> = (0..).zip(sectors).map(place).collect();
    let (mut now, mut rising, mut order) = (Time::ZERO, true, Vec::new());
    loop {
        let view = view(&mechanism, now, rising);
        let positioning =
            |of: &WaitingCommand| mechanism.positioning_time(now, &of.position, of.is_write);
        let Some(choice) = policy(of).choose_command(&view, &queue, positioning) else {
            return (order, now);
        };
        let next = queue.remove(choice.command_index);
        rising = choice.moving_inward;
        now += one(&mut mechanism, now, next.sector);
        order.push(next.sector);
    }
}

fn one(mechanism: &mut Mechanism, now: Time, sector: u64) -> Time {
    let access = MediaAccess {
        first_sector: sector,
        sector_count: 1,
        ..MediaAccess::default()
    };
    mechanism.access_media(now, &access, |_| ()).total()
}

#[test]
fn the_shortest_positioning_is_not_the_best_order() {
    let [a, b, c] = [8 + 5, 3 * 8 + 3, 2 * 8 + 1];
    let all = [a, b, c];
    for (policy, order, done_ms) in [
        (QueuePolicy::Fcfs, all, 18.0),
        (QueuePolicy::Sptf, [b, c, a], 14.0),
        (QueuePolicy::Sstf, [a, c, b], 12.0),
    ] {
        let (found, done) = serve_all(clockwork(), &all, policy);
        assert_eq!(found, order, "{policy:?}");
        assert!(
            (done.as_millis() - done_ms).abs() < 1e-4,
            "{policy:?}: {done}"
        );
    }
}

/// When the last of these is done in the best of all orders.
fn optimum(mechanism: &Mechanism, now: Time, left: &[u64]) -> Time {
    let ends = |(at, sector): (usize, &u64)| {
        let mut mechanism = mechanism.clone();
        let now = now + one(&mut mechanism, now, *sector);
        let others = [&left[..at], &left[at + 1..]].concat();
        optimum(&mechanism, now, &others)
    };
    left.iter().enumerate().map(ends).min().unwrap_or(now)
}

#[test]
fn no_order_beats_the_optimum_and_sptf_comes_near_it() {
    let mut of = plain(one_zone((400, 2, 50)));
    of.seek = SeekSpecification::ThreePoints {
        single_cylinder_ms: 0.8,
        average_ms: 8.0,
        full_stroke_ms: 16.0,
    };
    let mechanism = built(&of);
    let mut draws = RandomStreams::new(5).named_stream("six requests");
    let mut ratios = [0.0; 4];
    let policies = [
        QueuePolicy::Sptf,
        QueuePolicy::Sstf,
        QueuePolicy::Look,
        QueuePolicy::Fcfs,
    ];
    const ROUNDS: u32 = 60;
    for _ in 0..ROUNDS {
        let sectors: Vec<u64> = (0..6).map(|_| draws.draw_below(40_000)).collect();
        let best = optimum(&mechanism, Time::ZERO, &sectors);
        for (ratio, policy) in ratios.iter_mut().zip(policies) {
            let (_, done) = serve_all(mechanism.clone(), &sectors, policy);
            assert!(
                done >= best,
                "{policy:?} {done}, the best {best}: {sectors:?}"
            );
            *ratio += done.0 as f64 / best.0 as f64 / f64::from(ROUNDS);
        }
    }
    let [sptf, sstf, look, fcfs] = ratios;
    assert!(
        sptf < 1.2 && sptf < sstf && sptf < look && look < fcfs,
        "{ratios:?}"
    );
}

/// The disk of the tables: s = 0.5 + 15 sqrt(x) ms, T = 8.333 ms.
fn tabled() -> Mechanism {
    const CYLINDERS: u32 = 1_000_000;
    let mut of = plain(one_zone((CYLINDERS, 1, 1)));
    of.seek = SeekSpecification::Hpl {
        line_from_cylinders: CYLINDERS,
        root_constant_ms: 0.5,
        root_factor_ms: 15.0 / f64::from(CYLINDERS).sqrt(),
        line_constant_ms: 15.5,
        line_factor_ms: 0.0,
        single_cylinder_ms: None,
    };
    built(&of)
}

fn closed(mechanism: &mut Mechanism, order: QueueSpecification, depth: u32) -> ClosedLoopResult {
    let mut draws = RandomStreams::new(11).named_stream("places");
    let draw = |number| {
        let cylinder = draws.draw_below(1_000_000) as u32;
        waiting(cylinder, RotationAngle(draws.draw_bits()), number)
    };
    let of = ClosedLoopLoad {
        queue_policy: order,
        queue_depth: depth,
        request_count: 30_000,
    };
    of.serve_requests(mechanism, draw, |mechanism, now, next| {
        let taken = mechanism.positioning_time(now, &next.position, false);
        mechanism.place_arm(next.position.cylinder, 0);
        taken
    })
}

const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

#[test]
fn closed_queues_have_the_means_of_the_tables() {
    let mut mechanism = tabled();
    for (of, means) in [
        (
            QueuePolicy::CLook,
            [12.66, 12.10, 10.25, 8.58, 7.37, 6.52, 5.95],
        ),
        (
            QueuePolicy::Look,
            [12.68, 11.31, 9.67, 8.27, 7.24, 6.48, 5.96],
        ),
        (
            QueuePolicy::Sstf,
            [12.66, 11.01, 9.53, 8.30, 7.29, 6.52, 5.97],
        ),
        (
            QueuePolicy::Sptf,
            [12.67, 10.54, 8.80, 7.32, 6.03, 4.93, 4.05],
        ),
        (QueuePolicy::Fcfs, [12.67; 7]),
    ] {
        for (depth, mean) in DEPTHS.into_iter().zip(means) {
            let found = closed(&mut mechanism, policy(of), depth).mean_service_ms();
            let off = (found / mean - 1.0).abs();
            assert!(
                off < 0.03,
                "{of:?} at {depth}: {found} ms, and {mean} in the table"
            );
        }
    }
}

/// A(q) of the tables.
const BOUNDS_MS: [f64; 7] = [12.667, 10.391, 8.450, 6.845, 5.544, 4.501, 3.673];

/// Expectation 35.
#[test]
fn shortest_positioning_gains_what_the_tables_have() {
    let mut mechanism = tabled();
    let alone = closed(&mut mechanism, policy(QueuePolicy::Fcfs), 1).mean_service_ms();
    let gains = [1.20, 1.44, 1.73, 2.10, 2.57, 3.13];
    for (depth, gain) in DEPTHS[1..].iter().zip(gains) {
        let found =
            alone / closed(&mut mechanism, policy(QueuePolicy::Sptf), *depth).mean_service_ms();
        assert_close(found, gain, 0.03);
    }
}

#[test]
fn the_bound_is_that_of_the_tables() {
    for (found, bound) in positioning_bounds_ms(&tabled(), &DEPTHS)
        .iter()
        .zip(BOUNDS_MS)
    {
        assert!(
            (found / bound - 1.0).abs() < 0.003,
            "{found}, and {bound} in the table"
        );
    }
    // A queue of eight that empties takes at least what its bounds sum to.
    let of_flush = positioning_bounds_ms(&tabled(), &[1, 2, 3, 4, 5, 6, 7, 8]);
    let sum: f64 = of_flush.iter().sum();
    assert!((sum / 70.06 - 1.0).abs() < 0.003, "{sum}");
}

/// A(q) from below, and each policy from the next one.
#[test]
fn policies_are_in_order() {
    let mut mechanism = tabled();
    let bounds = BOUNDS_MS;
    for (depth, bound) in DEPTHS.into_iter().zip(bounds).skip(1) {
        let mut mean = |of| closed(&mut mechanism, policy(of), depth).mean_service_ms();
        let [sptf, sstf, fcfs] = [
            mean(QueuePolicy::Sptf),
            mean(QueuePolicy::Sstf),
            mean(QueuePolicy::Fcfs),
        ];
        let in_order = bound * 0.99 <= sptf && sptf <= sstf && sstf <= fcfs;
        assert!(in_order, "{bound} {sptf} {sstf} {fcfs} at {depth}");
    }
}

#[test]
fn age_decides_between_positioning_and_arrival() {
    let mut mechanism = tabled();
    let mut aged = |ms_per_s| {
        let of = policy(QueuePolicy::AgedSptf { ms_per_s });
        closed(&mut mechanism, of, 16)
    };
    let (none, some, all) = (aged(0.0), aged(20.0), aged(1e9));
    let sptf = closed(&mut tabled(), policy(QueuePolicy::Sptf), 16);
    assert_eq!(none.mean_service_ms(), sptf.mean_service_ms());
    assert_close(all.mean_service_ms(), 12.67, 0.01);
    assert!(
        sptf.mean_service_ms() < some.mean_service_ms()
            && some.mean_service_ms() < all.mean_service_ms()
    );
    assert!(some.response_quantile_ms(1.0) < sptf.response_quantile_ms(1.0));
}

#[test]
fn nothing_waits_longer_than_the_age_limit_and_what_is_overdue() {
    let limited = |age_limit_ms| {
        let of = QueueSpecification {
            age_limit_ms,
            ..policy(QueuePolicy::Sptf)
        };
        closed(&mut tabled(), of, 32)
    };
    let (without, with) = (limited(None), limited(Some(400.0)));
    assert!(
        without.response_quantile_ms(1.0) > 1000.0,
        "{}",
        without.response_quantile_ms(1.0)
    );
    // Behind at most the others that are overdue too, each served in a seek and a turn.
    assert!(with.response_quantile_ms(1.0) < 400.0 + 32.0 * 24.0);
    assert!(with.response_quantile_ms(1.0) < without.response_quantile_ms(1.0));
    assert!(
        with.mean_service_ms() > without.mean_service_ms(),
        "fairness has its price"
    );
}
