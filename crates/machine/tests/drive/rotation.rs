//! Rotation. These fail when a drive borrows the phase or the speed of another, or when the
//! slots of a track do not fill a revolution.

use super::{EAGLE_RPM, built, drive, format, mechanics};
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_machine::hardware::mechanism::{DiskFormat, Mechanism};
use diskperf_sim::Time;
use proptest::prelude::*;

/// A drive of one cylinder.
fn one_cylinder(slots: u32, gap: f64, spindle: Spindle) -> Mechanism {
    let format = DiskFormat {
        index_gap_share: gap,
        ..format((1, 2, slots), 0, 1)
    };
    Mechanism::new(mechanics(built(&format)), spindle)
}

#[test]
fn drives_turn_for_themselves() {
    // 0.3 % slower, and a quarter ahead at the start.
    let (fast, slow) = (EAGLE_RPM, EAGLE_RPM * 0.997);
    let quarter = RotationAngle::from_revolutions(0.25);
    for slots in [48, 480] {
        let one = one_cylinder(slots, 0.0, Spindle::from_rpm(fast, RotationAngle::ZERO));
        let other = one_cylinder(slots, 0.0, Spindle::from_rpm(slow, quarter));
        let ahead = |at: f64| {
            let at = Time(at as u64);
            (other.slot_under_head(at) + slots - one.slot_under_head(at)) % slots
        };
        assert_eq!(ahead(0.0), slots / 4);
        // The faster one gains a revolution in this time; a quarter of it is gone already.
        let gains = 60e9 / (fast - slow);
        assert!([0, slots - 1].contains(&ahead(gains / 4.0)));
        let half = ahead(gains * 0.75);
        assert!(half.abs_diff(slots / 2) <= 1, "{half} of {slots} slots");
    }
}

#[test]
fn slots_of_a_track_fill_a_revolution() {
    for (rpm, slots) in [(EAGLE_RPM, 48), (3600.0, 52), (3600.0, 17)] {
        let drive = one_cylinder(slots, 0.0, Spindle::from_rpm(rpm, RotationAngle::ZERO));
        let period = drive.spindle().revolution_time();
        super::assert_near(drive.time_of_slots(0, slots), period, 1);
        let revolutions = 4_000_000_000 / slots;
        let long = drive.time_of_slots(0, revolutions * slots).0 as f64;
        let exact = f64::from(revolutions) * 60e9 / rpm;
        assert!((long / exact - 1.0).abs() < 1e-7, "{long} and not {exact}");
        for slot in 0..slots {
            let starts = drive.time_until_slot(Time::ZERO, slot);
            super::assert_near(starts, drive.time_of_slots(0, slot), 1);
        }
    }
}

#[test]
fn the_gap_before_the_index_is_no_sectors() {
    let mut drive = one_cylinder(17, 0.1, Spindle::from_rpm(3600.0, RotationAngle::ZERO));
    let period = drive.spindle().revolution_time();
    let gap = Time(period.0 / 10);
    super::assert_near(drive.time_of_slots(0, 17) + gap, period, 2);
    let within = drive.time_of_slots(0, 17) + Time(gap.0 / 2);
    assert_eq!(drive.slot_under_head(within), 16);
    assert_eq!(drive.slot_under_head(period + Time(1)), 0);
    // From the end of the last sector to the first is the gap, and nothing else.
    let last = drive
        .transfer_sectors(Time::ZERO, 16, 1, false)
        .total_time();
    super::assert_near(drive.time_until_slot(last, 0), gap, 2);
    let without = one_cylinder(17, 0.0, Spindle::from_rpm(3600.0, RotationAngle::ZERO));
    assert_eq!(without.time_until_slot(period, 0), Time::ZERO);
}

/// With skew a track's first sector is not its first slot: a run from it is over the index,
/// and the gap is in it.
#[test]
fn a_whole_track_takes_a_revolution_wherever_it_starts() {
    for skew in [0, 1, 8, 13] {
        let format = DiskFormat {
            track_skew_slots: skew,
            index_gap_share: 0.3,
            ..format((1, 2, 17), 0, 1)
        };
        let mut drive = drive(mechanics(built(&format)), 3600.0);
        // From the start of the second track's first sector to the end of its last.
        let passage = drive.transfer_sectors(Time::ZERO, 17, 17, false);
        let passed = Time((passage.total_time() - passage.time_to_first_sector()).0);
        let gap = if skew == 0 { 3 } else { 0 };
        let exact = Time(drive.spindle().revolution_time().0 * (10 - gap) / 10);
        super::assert_near(passed, exact, 40);
    }
}

proptest! {
    /// Waiting ends when the slot begins: not two nanoseconds earlier, and not one later.
    #[test]
    fn waiting_ends_when_the_slot_begins(
        now in 0..u64::MAX / 2,
        rpm in 60.0..30_000.0,
        phase in any::<u64>(),
        (slots, slot) in (3_u32..200).prop_flat_map(|slots| (Just(slots), 0..slots)),
    ) {
        let drive = one_cylinder(slots, 0.0, Spindle::from_rpm(rpm, RotationAngle(phase)));
        let wait = drive.time_until_slot(Time(now), slot);
        prop_assert!(wait <= drive.spindle().revolution_time());
        prop_assert_eq!(drive.slot_under_head(Time(now) + wait + Time(1)), slot);
        if wait.0 > 1 {
            let before = drive.slot_under_head(Time(now + wait.0 - 2));
            prop_assert_eq!(before, (slot + slots - 1) % slots);
        }
    }

    /// A format's sectors follow each other without a lost slot, whatever the speed: a
    /// transfer of a whole drive turns as often as its tracks, but for their skews.
    #[test]
    fn nothing_is_lost_to_rounding_between_tracks(
        rpm in 60.0..30_000.0,
        now in 0..u64::MAX / 4,
        slots in 1_u32..200,
    ) {
        let mechanics = mechanics(built(&format((1, 100, slots), 0, 1)));
        let mut drive = drive(mechanics, rpm);
        let passage = drive.transfer_sectors(Time(now), 0, 100 * slots, false);
        let lost = passage.track_switch_rotational_latency + passage.track_switch_moves.total_time();
        prop_assert_eq!(lost, Time::ZERO);
        let exact = 100.0 * drive.spindle().exact_period_ns();
        prop_assert!((passage.media_transfer_time.0 as f64 - exact).abs() < 3.0, "{:?}", passage);
    }
}
