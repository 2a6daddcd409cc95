//! Expectations of the facts, section 7, by their numbers, that no other file has: distances,
//! curves and phases by exact arithmetic, and a queue with arrivals by the formula of
//! Pollaczek and Khinchine.

use super::{PERIOD_7200_NS, assert_close, built, one_zone, plain};
use diskperf_device::disk::layout::{DataSheet, Layout};
use diskperf_device::disk::mechanism::{Mechanism, MediaAccess};
use diskperf_device::disk::seek::{SeekCurve, SeekSpecification};
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_sim::{RandomStream, RandomStreams, Time};

const SEED: u64 = 7;
const PAIRS: u32 = 400_000;

fn draws() -> RandomStream {
    println!("seed {SEED}");
    RandomStreams::new(SEED).named_stream("expectations")
}

/// Mean and standard deviation of what is drawn.
fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..PAIRS {
        let one = draw();
        sum += one;
        squares += one * one;
    }
    let mean = sum / f64::from(PAIRS);
    (mean, (squares / f64::from(PAIRS) - mean * mean).sqrt())
}

/// 1 and 2: pairs of 2500 cylinders, with repeats, are 833.333 apart in the mean; of
/// different ones, 2 (C - d)/(C (C - 1)) are d apart.
#[test]
fn distances_are_those_of_uniform_pairs() {
    const C: u64 = 2500;
    let mut draws = draws();
    let mut near = 0;
    let (mean, _) = moments(|| {
        let distance = draws.draw_below(C).abs_diff(draws.draw_below(C));
        near += u32::from((1..=250).contains(&distance));
        distance as f64
    });
    assert_close(mean, 833.333, 0.005);
    let share = |distance: u64| 2.0 * (C - distance) as f64 / (C * C) as f64;
    let theory: f64 = (1..=250).map(share).sum();
    assert_close(f64::from(near) / f64::from(PAIRS), theory, 0.01);
}

/// 3 and 9: 0.5 + 15 sqrt(x) takes 8.5 ms in the mean, with a deviation of 3.3166; over a
/// share u of the stroke a + 8 b sqrt(u C)/15.
#[test]
fn a_root_of_the_distance_has_its_moments() {
    const CYLINDERS: u32 = 100_000;
    let root_factor_ms = 15.0 / f64::from(CYLINDERS).sqrt();
    let of = SeekSpecification::Hpl {
        line_from_cylinders: CYLINDERS,
        root_constant_ms: 0.5,
        root_factor_ms,
        line_constant_ms: 15.5,
        line_factor_ms: 0.0,
        single_cylinder_ms: None,
    };
    let curve = SeekCurve::new(&of, CYLINDERS).expect("a curve");
    let mut draws = draws();
    for share in [1.0, 0.25] {
        let stroke = (f64::from(CYLINDERS) * share) as u64;
        let (mean, deviation) = moments(|| {
            let distance = draws.draw_below(stroke).abs_diff(draws.draw_below(stroke));
            curve.time_over(distance as u32).as_millis()
        });
        let theory = 0.5 + 8.0 * root_factor_ms * (stroke as f64).sqrt() / 15.0;
        assert_close(mean, theory, 0.005);
        if share == 1.0 {
            assert_close(theory, 8.5, 1e-9);
            assert_close(deviation, 3.3166, 0.005);
        }
    }
}

/// A disk of so many zones whose rate falls to `inner` of the outermost one's.
fn zoned(inner: f64) -> Layout {
    let sheet = DataSheet {
        capacity_bytes: 2_000_000_000_000,
        sector_bytes: 4096,
        head_count: 4,
        outer_track_bytes: 2e6,
        inner_to_outer_ratio: inner,
        zone_count: 200,
        tracks_per_band: 200,
        track_skew_rev: 0.1,
        head_skew_rev: 0.2,
    };
    Layout::new(&sheet.build_layout().expect("a disk")).expect("a disk")
}

/// 6: uniform over sectors, which are denser outside, places are closer than uniform ones.
#[test]
fn uniform_sectors_are_closer_than_uniform_tracks() {
    let mut draws = draws();
    for (beta, wanted) in [(0.3, 0.33126), (0.5, 0.32593), (0.6, 0.32109)] {
        let layout = zoned(1.0 - beta);
        let cylinders = f64::from(layout.cylinder_count());
        let mut place = || {
            f64::from(
                layout
                    .position_of(draws.draw_below(layout.sectors()))
                    .cylinder,
            )
        };
        let (mean, _) = moments(|| (place() - place()).abs() / cylinders);
        assert_close(mean, wanted, 0.005);
    }
}

/// 7: half of the sectors in, the rate is sqrt(1 - y (1 - rho^2)) of the outermost: 0.7906 of
/// it, of half the rate inside; and a scan takes 2 capacity/(R0 (1 + rho)).
#[test]
fn the_rate_over_sectors_is_a_root() {
    let layout = zoned(0.5);
    let per_track = |sector| f64::from(layout.position_of(sector).sectors_per_track);
    let outer = 2e6 / 4096.0;
    assert_close(per_track(layout.sectors() / 2) / outer, 0.7906, 0.005);
    // Turns of a scan without skews: each track one.
    let tracks = f64::from(layout.cylinder_count()) * f64::from(layout.surface_count());
    let theory = 2.0 * layout.sectors() as f64 / (outer * 1.5);
    assert_close(tracks, theory, 0.005);
}

/// 11: latencies of two free phases differ by T/sqrt(6): 3.402 ms at 7200, 2.449 at 10,000.
#[test]
fn two_free_phases_differ_by_a_root_of_a_sixth() {
    let mut draws = draws();
    for (period_ns, wanted) in [(PERIOD_7200_NS, 3.402), (6e6, 2.449)] {
        let mut square = 0.0;
        for _ in 0..PAIRS {
            let mut latency = || {
                let spindle = Spindle::new(period_ns, RotationAngle(draws.draw_bits()));
                spindle
                    .time_until(
                        Time(draws.draw_below(1 << 40)),
                        RotationAngle(draws.draw_bits()),
                    )
                    .as_millis()
            };
            square += (latency() - latency()).powi(2);
        }
        assert_close((square / f64::from(PAIRS)).sqrt(), wanted, 0.005);
    }
}

/// 47: a period that is wrong by 100 ppm has lost a quarter of a revolution after 20.8 s.
#[test]
fn a_wrong_period_loses_phase() {
    let right = Spindle::new(PERIOD_7200_NS, RotationAngle::ZERO);
    let wrong = Spindle::new(PERIOD_7200_NS * 1.0001, RotationAngle::ZERO);
    let at = Time(20_833_000_000);
    let lost = (right.angle_at(at) - wrong.angle_at(at)).to_revolutions();
    assert_close(lost, 0.25, 0.001);
}

/// The disk of the tables: s = 0.5 + 15 sqrt(x) ms, T = 8.333 ms.
fn tabled() -> Mechanism {
    const CYLINDERS: u32 = 1_000_000;
    let mut of = plain(one_zone((CYLINDERS, 1, 100)));
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

/// 40: 60 requests a second, served as they come: a mean service of 12.667 ms, a squared
/// coefficient of variation of 0.1046, and a wait of 22.15 ms.
#[test]
fn arrivals_wait_as_pollaczek_and_khinchine_say() {
    const REQUESTS: u32 = 200_000;
    let mut mechanism = tabled();
    let mut draws = draws();
    let (mut arrived, mut free) = (Time::ZERO, Time::ZERO);
    let (mut waited, mut served, mut squares) = (0.0, 0.0, 0.0);
    for _ in 0..REQUESTS {
        arrived += draws.draw_exponential(Time(1_000_000_000 / 60));
        let begins = arrived.max(free);
        let access = MediaAccess {
            first_sector: draws.draw_below(mechanism.layout().sectors()),
            sector_count: 1,
            ..MediaAccess::default()
        };
        let parts = mechanism.access_media(begins, &access, |_| ());
        // Without the transfer, as the table has it.
        let service = (parts.total() - parts.transfer_time).as_millis();
        free = begins + parts.total() - parts.transfer_time;
        waited += (begins - arrived).as_millis();
        served += service;
        squares += service * service;
    }
    let count = f64::from(REQUESTS);
    let mean = served / count;
    let variation = squares / count / mean / mean - 1.0;
    assert_close(mean, 12.667, 0.005);
    assert_close(variation, 0.1046, 0.02);
    assert_close(waited / count, 22.15, 0.04);
}
