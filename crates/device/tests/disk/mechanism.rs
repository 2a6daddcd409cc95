//! Arm and platters against exact arithmetic. These fail when a part of the time is lost
//! or counted twice, when a sector that follows at once is missed, or when phase drifts.

use super::{PERIOD_7200_NS, assert_close, built, one_zone, plain};
use diskperf_device::disk::layout::Layout;
use diskperf_device::disk::mechanism::{AccessTimes, Mechanism, MediaAccess, PassingRun};
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_sim::{RandomStreams, Time};
use proptest::prelude::*;

fn read(sector: u64, sectors: u32) -> MediaAccess {
    MediaAccess {
        first_sector: sector,
        sector_count: sectors,
        ..MediaAccess::default()
    }
}

fn serve(
    mechanism: &mut Mechanism,
    now: Time,
    access: &MediaAccess,
) -> (AccessTimes, Vec<PassingRun>) {
    let mut passed = Vec::new();
    let parts = mechanism.access_media(now, access, |passing| passed.push(passing));
    (parts, passed)
}

/// A year in ns, and the angle by exact arithmetic.
#[test]
fn phase_does_not_drift() {
    for (period_ns, phase) in [(8_299_390.0, 0.25), (6_000_207.0, 0.0), (1e7, 0.5)] {
        let spindle = Spindle::new(period_ns, RotationAngle::from_revolutions(phase));
        let exact = spindle.exact_period_ns();
        assert!((exact / period_ns - 1.0).abs() < 1e-11, "{exact}");
        for revolutions in [1_u64, 1000, 60_000_000, 3_000_000_000] {
            let now = Time((period_ns as u64) * revolutions);
            let turned = spindle.angle_at(now) - RotationAngle::from_revolutions(phase);
            let turned = turned.0 as i64 as f64 / 2_f64.powi(64);
            assert!(turned.abs() < 1e-2, "{turned} after {revolutions}");
            let until = spindle.time_until(now + Time(1000), spindle.angle_at(now));
            assert!(until.0.abs_diff(period_ns as u64 - 1000) <= 1);
        }
        let turned = spindle.with_angle_at(Time(12_345_678), RotationAngle::from_revolutions(0.75));
        assert_eq!(
            turned.angle_at(Time(12_345_678)),
            RotationAngle::from_revolutions(0.75)
        );
    }
}

#[test]
fn latency_is_uniform_over_a_revolution() {
    let mut mechanism = built(&plain(one_zone((1000, 1, 100))));
    let mut draws = RandomStreams::new(1).named_stream("places");
    let (mut now, mut sum, mut squares) = (Time::ZERO, 0.0, 0.0);
    const COUNT: u32 = 100_000;
    for _ in 0..COUNT {
        let sector = draws.draw_below(mechanism.layout().sectors());
        let (parts, _) = serve(&mut mechanism, now, &read(sector, 1));
        let latency = parts.rotational_latency.as_millis();
        sum += latency;
        squares += latency * latency;
        now += parts.total();
    }
    let mean = sum / f64::from(COUNT);
    let deviation = (squares / f64::from(COUNT) - mean * mean).sqrt();
    assert_close(mean, 4.1667, 0.01);
    assert_close(deviation, 2.4056, 0.01);
}

/// T ceil((n T/spt + g)/T), and T + n T/spt for what follows after a pause.
#[test]
fn what_has_just_passed_takes_a_revolution() {
    let period = PERIOD_7200_NS;
    for (sectors, gap_ns) in [
        (1_u32, 1_000_u64),
        (50, 3_000_000),
        (100, 100),
        (100, 0),
        (10, 9_000_000),
    ] {
        let mut mechanism = built(&plain(one_zone((10, 1, 100))));
        let (parts, _) = serve(&mut mechanism, Time(777), &read(0, sectors));
        let first = Time(777) + parts.total();
        let (parts, _) = serve(&mut mechanism, first + Time(gap_ns), &read(0, sectors));
        let apart = (parts.total().0 + gap_ns) as f64;
        let transfer = f64::from(sectors) * period / 100.0;
        let expected = period * ((transfer + gap_ns as f64) / period - 1e-6).ceil();
        assert!((apart - expected).abs() <= 4.0, "{apart} for {expected}");
    }
    let mut mechanism = built(&plain(one_zone((10, 1, 100))));
    let (parts, _) = serve(&mut mechanism, Time::ZERO, &read(0, 8));
    let gap = Time(5_000);
    let (next, _) = serve(&mut mechanism, parts.total() + gap, &read(8, 8));
    let apart = (next.total() + gap).0 as f64;
    assert!((apart - period * 1.08).abs() <= 4.0, "{apart}");
    // At once, nothing is missed.
    let (follows, _) = serve(
        &mut mechanism,
        parts.total() + gap + next.total(),
        &read(16, 8),
    );
    assert_eq!(follows.rotational_latency, Time::ZERO);
}

/// (1 - f^2)/2 + f revolutions against 1/2 + f.
#[test]
fn zero_latency_gains_half_the_square_of_the_share() {
    const SECTORS: u32 = 1000;
    for (share, zero, usual) in [(0.5, 0.875, 1.0), (1.0, 1.0, 1.5)] {
        for (zero_latency, expected) in [(true, zero), (false, usual)] {
            let mut of = plain(one_zone((4, 1, SECTORS)));
            of.zero_latency_reads = zero_latency;
            let mut mechanism = built(&of);
            let access = read(0, (f64::from(SECTORS) * share) as u32);
            let (mut sum, phases) = (0.0, 4000);
            for phase in 0..phases {
                let now = Time(PERIOD_7200_NS as u64 * 2 / phases * phase + 1);
                let (parts, passed) = serve(&mut mechanism, now, &access);
                assert_eq!(passed.len(), 1);
                assert_eq!(passed[0].end, now + parts.total());
                sum += parts.total().0 as f64;
            }
            let mean = sum / phases as f64 / PERIOD_7200_NS;
            assert_close(mean, expected, 2e-3);
        }
    }
}

/// ceil(switch spt / T) sectors of skew; one less costs almost a revolution.
#[test]
fn the_skew_covers_the_switch() {
    for (switch_ms, enough) in [(1.2, 144_u32), (1.5, 180)] {
        let latency = |skew: u32| {
            let mut layout = one_zone((1, 2, 1000));
            layout.zones[0].track_skew_rev = f64::from(skew) / 1000.0;
            let mut of = plain(layout);
            of.head_switch_ms = switch_ms;
            let (parts, passed) = serve(&mut built(&of), Time(5), &read(900, 200));
            assert_eq!(passed.len(), 2);
            let gap = passed[1].start - passed[0].end;
            assert_eq!(parts.head_switch_time, Time((switch_ms * 1e6) as u64));
            gap - parts.head_switch_time
        };
        assert!(latency(enough) < Time(PERIOD_7200_NS as u64 / 1000));
        let missed = latency(enough - 1).0 as f64;
        assert!(missed > 0.998 * PERIOD_7200_NS, "{missed}");
    }
}

/// H spt 512 / (H T + ((H - 1) k_t + k_c) T/spt).
#[test]
fn sequential_reading_loses_the_skews() {
    let mut layout = one_zone((300, 4, 1000));
    layout.zones[0].track_skew_rev = 0.144;
    layout.zones[0].cylinder_skew_rev = 0.180;
    let mut of = plain(layout);
    of.head_switch_ms = 1.2;
    of.seek = diskperf_device::disk::seek::SeekSpecification::Constant { time_ms: 1.5 };
    let mut mechanism = built(&of);
    let end = mechanism.layout().sectors();
    let begins = Time(0);
    let (reached, ends) = mechanism.read_ahead(begins, (0, end), Time::NEVER);
    assert_eq!(reached, end);
    let mb_per_s = end as f64 * 512.0 / ends.as_seconds() / 1e6;
    assert_close(mb_per_s, 53.287, 1e-3);
    let (parts, _) = serve(&mut built(&of), begins, &read(0, end as u32));
    assert_eq!(parts.total(), ends, "one access takes as long");
}

/// (spt - 1) T/spt each.
#[test]
fn reverse_reading_turns_nearly_once() {
    let mut mechanism = built(&plain(one_zone((1, 1, 100))));
    let mut now = Time::ZERO;
    let mut last = None;
    for sector in (0..50).rev() {
        let (parts, _) = serve(&mut mechanism, now, &read(sector, 1));
        now += parts.total();
        if let Some(last) = last.replace(now) {
            let apart = (now - last).0 as f64;
            assert!((apart - 0.99 * PERIOD_7200_NS).abs() <= 4.0, "{apart}");
        }
    }
}

#[test]
fn a_part_of_a_sector_costs_a_revolution_more() {
    let write = |part_of_first, part_of_last, sector| {
        let mut mechanism = built(&plain(one_zone((10, 2, 100))));
        let access = MediaAccess {
            first_sector: sector,
            sector_count: 9,
            is_write: true,
            is_first_partial: part_of_first,
            is_last_partial: part_of_last,
            ..MediaAccess::default()
        };
        let (parts, _) = serve(&mut mechanism, Time(99), &access);
        parts
    };
    let whole = write(false, false, 20).total();
    for (first, last) in [(true, false), (false, true), (true, true)] {
        let more = write(first, last, 20).total() - whole;
        assert!(more.0.abs_diff(PERIOD_7200_NS as u64) <= 1, "{more}");
        assert_eq!(write(first, last, 20).rewrite_time.0 > 0, first || last);
    }
}

#[test]
fn a_head_switch_goes_on_during_a_seek_and_a_write_settles() {
    let mut of = plain(one_zone((10, 2, 100)));
    of.head_switch_ms = 3.0;
    let arm = |of: &_, write, sector| {
        let access = MediaAccess {
            first_sector: sector,
            sector_count: 1,
            is_write: write,
            ..MediaAccess::default()
        };
        let (parts, _) = serve(&mut built(of), Time::ZERO, &access);
        [parts.seek_time, parts.head_switch_time, parts.settle_time].map(|part| part.0 / 1000)
    };
    assert_eq!(arm(&of, false, 600), [2000, 0, 0]);
    assert_eq!(arm(&of, false, 700), [2000, 1000, 0]);
    assert_eq!(arm(&of, false, 100), [0, 3000, 0]);
    of.write_settle_ms = 0.5;
    assert_eq!(arm(&of, true, 600), [2000, 0, 500]);
    assert_eq!(arm(&of, true, 5), [0, 0, 0], "nothing has moved");
    of.write_settle_ms = -0.642;
    assert_eq!(arm(&of, true, 600), [1358, 0, 0]);
    assert_eq!(arm(&of, true, 700), [2000, 358, 0]);
}

/// A disk with all that turns a track: two zones, skews, serpentine, slips.
fn rich(zero_latency: bool) -> Mechanism {
    let mut layout = one_zone((60, 3, 37));
    let mut inner = layout.zones[0].clone();
    layout.cylinder_count = 110;
    (inner.first_cylinder, inner.last_cylinder) = (61, 109);
    inner.sectors_per_track = 29;
    layout.zones.push(inner);
    layout.sparing = diskperf_device::disk::layout::Sparing::Zone;
    for zone in &mut layout.zones {
        zone.spare_sectors = 5;
        zone.slipped_sectors = vec![40, 41, 90];
        (zone.track_skew_rev, zone.cylinder_skew_rev) = (0.13, 0.31);
    }
    let mut of = plain(layout);
    of.head_switch_ms = 0.9;
    of.write_settle_ms = 0.4;
    (of.zero_latency_reads, of.zero_latency_writes) = (zero_latency, zero_latency);
    built(&of)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The parts are the whole, sectors pass one after the other, and each sector's angle
    /// is under the head when it begins.
    #[test]
    fn the_parts_are_the_whole(
        seed: u64,
        zero_latency: bool,
        accesses in prop::collection::vec((0_u64..9000, 1_u32..300, any::<bool>(), 0_u64..20_000_000), 1..20),
    ) {
        let mut mechanism = rich(zero_latency);
        let mut now = Time(seed % (1 << 50));
        for (sector, sectors, write, pause) in accesses {
            let overhead = Time(pause % 1000);
            let access = MediaAccess { first_sector: sector, sector_count: sectors, is_write: write, overhead, ..MediaAccess::default() };
            let whole = mechanism.layout().sectors();
            prop_assume!(sector + u64::from(sectors) <= whole);
            let (parts, passed) = serve(&mut mechanism, now, &access);
            prop_assert_eq!(passed.iter().map(|of| of.sector_count).sum::<u32>(), sectors);
            let ends = now + parts.total();
            prop_assert_eq!(passed.last().map(|of| of.end), Some(ends));
            let mut at = now + overhead;
            for run in passed {
                prop_assert!(run.start >= at && run.end > run.start);
                let place = mechanism.layout().position_of(run.first_sector);
                let off = (mechanism.spindle().angle_at(run.start) - place.start_angle).0 as i64;
                prop_assert!(off.unsigned_abs() < 1 << 44, "{} parts off", off);
                at = run.end;
            }
            now = ends + Time(pause);
        }
    }

    /// However often reading on is stopped, it comes as far as without.
    #[test]
    fn reading_on_in_steps_comes_as_far(stops in prop::collection::vec(1_u64..30_000_000, 1..30)) {
        let (mut whole, mut steps) = (rich(false), rich(false));
        let end = Layout::sectors(whole.layout());
        let stop: u64 = stops.iter().sum();
        let (mut at, mut sector) = (Time::ZERO, 0);
        let mut until = 0;
        for step in stops {
            until += step;
            (sector, at) = steps.read_ahead(at, (sector, end), Time(until));
        }
        let (reached, _) = whole.read_ahead(Time::ZERO, (0, end), Time(stop));
        prop_assert_eq!(sector, reached);
    }
}
