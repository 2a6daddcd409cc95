//! Orders of service against text-book queues, against an exhaustive optimum, and against
//! the means of a closed queue. These fail when a policy measures from the wrong place,
//! turns at the wrong moment, or predicts another angle than the disk then waits for.

use super::{assert_close, built, one_zone, plain};
use diskperf_device::disk::closed::{Closed, Served, positioning_bounds_ms};
use diskperf_device::disk::layout::Place;
use diskperf_device::disk::mechanism::{Access, Mechanism};
use diskperf_device::disk::queue::{Policy, QueueSpecification, View, Waiting};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::Turn;
use diskperf_sim::{RandomStreams, Time};

fn policy(policy: Policy) -> QueueSpecification {
    QueueSpecification {
        policy,
        ..QueueSpecification::default()
    }
}

fn waiting(cylinder: u32, start: Turn, number: u64) -> Waiting {
    Waiting {
        sector: u64::from(cylinder),
        place: Place {
            cylinder,
            head: 0,
            sector: 0,
            sectors_per_track: 1,
            start,
            arc: u64::MAX,
        },
        write: false,
        came: Time::ZERO,
        number,
    }
}

fn view(mechanism: &Mechanism, now: Time, rising: bool) -> View {
    View {
        now,
        at: u64::from(mechanism.cylinder()),
        stroke: u64::from(mechanism.layout().cylinders()),
        rising,
    }
}

/// The cylinders in the order of service, and the way over all of them.
fn order(policy_of: Policy, rising: bool) -> (Vec<u32>, u32) {
    let cylinders = [98, 183, 37, 122, 14, 124, 65, 67];
    let mut queue: Vec<Waiting> = (0..)
        .zip(cylinders)
        .map(|(n, c)| waiting(c, Turn::ZERO, n))
        .collect();
    let (mut at, mut rising, mut way, mut order) = (53, rising, 0, Vec::new());
    loop {
        let view = View {
            now: Time::ZERO,
            at: u64::from(at),
            stroke: 200,
            rising,
        };
        let Some(choice) = policy(policy_of).choose(&view, &queue, |_| Time::ZERO) else {
            return (order, way);
        };
        let next = queue.swap_remove(choice.index).place.cylinder;
        way += u32::abs_diff(at, next);
        (at, rising) = (next, choice.rising);
        order.push(next);
    }
}

#[test]
fn the_queue_of_the_text_books() {
    for (policy, rising, way) in [
        (Policy::Fcfs, true, 640),
        (Policy::Sstf, true, 236),
        (Policy::Look, true, 299),
        (Policy::Look, false, 208),
        (Policy::CLook, true, 322),
        (Policy::VScan { share: 0.2 }, true, 299),
        (Policy::VScan { share: 0.0 }, true, 236),
        (Policy::VScan { share: 1.0 }, false, 208),
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
fn serve_all(mut mechanism: Mechanism, sectors: &[u64], of: Policy) -> (Vec<u64>, Time) {
    let place = |(number, sector): (u64, &u64)| Waiting {
        sector: *sector,
        ..Waiting {
            place: mechanism.layout().locate(*sector),
            ..waiting(0, Turn::ZERO, number)
        }
    };
    let mut queue: Vec<Waiting> = (0..).zip(sectors).map(place).collect();
    let (mut now, mut rising, mut order) = (Time::ZERO, true, Vec::new());
    loop {
        let view = view(&mechanism, now, rising);
        let positioning = |of: &Waiting| mechanism.positioning(now, &of.place, of.write);
        let Some(choice) = policy(of).choose(&view, &queue, positioning) else {
            return (order, now);
        };
        let next = queue.remove(choice.index);
        rising = choice.rising;
        now += one(&mut mechanism, now, next.sector);
        order.push(next.sector);
    }
}

fn one(mechanism: &mut Mechanism, now: Time, sector: u64) -> Time {
    let access = Access {
        sector,
        sectors: 1,
        ..Access::default()
    };
    mechanism.serve(now, &access, |_| ()).total()
}

#[test]
fn the_shortest_positioning_is_not_the_best_order() {
    let [a, b, c] = [8 + 5, 3 * 8 + 3, 2 * 8 + 1];
    let all = [a, b, c];
    for (policy, order, done_ms) in [
        (Policy::Fcfs, all, 18.0),
        (Policy::Sptf, [b, c, a], 14.0),
        (Policy::Sstf, [a, c, b], 12.0),
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
    let policies = [Policy::Sptf, Policy::Sstf, Policy::Look, Policy::Fcfs];
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

fn closed(mechanism: &mut Mechanism, order: QueueSpecification, depth: u32) -> Served {
    let mut draws = RandomStreams::new(11).named_stream("places");
    let draw = |number| {
        let cylinder = draws.draw_below(1_000_000) as u32;
        waiting(cylinder, Turn(draws.draw_bits()), number)
    };
    let of = Closed {
        order,
        depth,
        requests: 30_000,
    };
    of.serve(mechanism, draw, |mechanism, now, next| {
        let taken = mechanism.positioning(now, &next.place, false);
        mechanism.place_arm(next.place.cylinder, 0);
        taken
    })
}

const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

#[test]
fn closed_queues_have_the_means_of_the_tables() {
    let mut mechanism = tabled();
    for (of, means) in [
        (Policy::CLook, [12.66, 12.10, 10.25, 8.58, 7.37, 6.52, 5.95]),
        (Policy::Look, [12.68, 11.31, 9.67, 8.27, 7.24, 6.48, 5.96]),
        (Policy::Sstf, [12.66, 11.01, 9.53, 8.30, 7.29, 6.52, 5.97]),
        (Policy::Sptf, [12.67, 10.54, 8.80, 7.32, 6.03, 4.93, 4.05]),
        (Policy::Fcfs, [12.67; 7]),
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
    let alone = closed(&mut mechanism, policy(Policy::Fcfs), 1).mean_service_ms();
    let gains = [1.20, 1.44, 1.73, 2.10, 2.57, 3.13];
    for (depth, gain) in DEPTHS[1..].iter().zip(gains) {
        let found = alone / closed(&mut mechanism, policy(Policy::Sptf), *depth).mean_service_ms();
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
        let [sptf, sstf, fcfs] = [mean(Policy::Sptf), mean(Policy::Sstf), mean(Policy::Fcfs)];
        let in_order = bound * 0.99 <= sptf && sptf <= sstf && sstf <= fcfs;
        assert!(in_order, "{bound} {sptf} {sstf} {fcfs} at {depth}");
    }
}

#[test]
fn age_decides_between_positioning_and_arrival() {
    let mut mechanism = tabled();
    let mut aged = |ms_per_s| {
        let of = policy(Policy::AgedSptf { ms_per_s });
        closed(&mut mechanism, of, 16)
    };
    let (none, some, all) = (aged(0.0), aged(20.0), aged(1e9));
    let sptf = closed(&mut tabled(), policy(Policy::Sptf), 16);
    assert_eq!(none.mean_service_ms(), sptf.mean_service_ms());
    assert_close(all.mean_service_ms(), 12.67, 0.01);
    assert!(
        sptf.mean_service_ms() < some.mean_service_ms()
            && some.mean_service_ms() < all.mean_service_ms()
    );
    assert!(some.response_ms(1.0) < sptf.response_ms(1.0));
}

#[test]
fn nothing_waits_longer_than_the_age_limit_and_what_is_overdue() {
    let limited = |age_limit_ms| {
        let of = QueueSpecification {
            age_limit_ms,
            ..policy(Policy::Sptf)
        };
        closed(&mut tabled(), of, 32)
    };
    let (without, with) = (limited(None), limited(Some(400.0)));
    assert!(
        without.response_ms(1.0) > 1000.0,
        "{}",
        without.response_ms(1.0)
    );
    // Behind at most the others that are overdue too, each served in a seek and a turn.
    assert!(with.response_ms(1.0) < 400.0 + 32.0 * 24.0);
    assert!(with.response_ms(1.0) < without.response_ms(1.0));
    assert!(
        with.mean_service_ms() > without.mean_service_ms(),
        "fairness has its price"
    );
}
