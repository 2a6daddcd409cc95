//! Rotation. These fail when the angle is accumulated, rounded, or forgotten
//! between two requests, or when a drive borrows the phase or the speed of
//! another.

use super::{EAGLE_SPEED, SPEED_3600};
use diskperf_machine::hardware::mechanism::{
    Angle, Geometry, Mechanics, Mechanism, Rotation, SeekCurve, Slots,
};
use diskperf_sim::{Streams, Time};
use proptest::prelude::*;

/// After this many nanoseconds each speed in hundredths of a revolution per
/// minute has made a whole number of revolutions.
const WHOLE: u64 = 6_000_000_000_000;

#[test]
fn nothing_drifts_in_a_trillion_revolutions() {
    let turns = 2_600_000;
    let revolutions = turns * EAGLE_SPEED;
    assert!(revolutions > 1_000_000_000_000);
    let spindle = Rotation::new(EAGLE_SPEED, Angle::of_share(12_345));
    let mut random = Streams::new(1).stream("moments");
    for _ in 0..1000 {
        let moment = Time(random.below(WHOLE));
        let later = Time(turns * WHOLE + moment.0);
        assert_eq!(spindle.angle(moment), spindle.angle(later));
        let target = Angle::of_slot(random.below(48) as u32, 48);
        assert_eq!(spindle.until(moment, target), spindle.until(later, target));
    }
}

#[test]
fn a_sector_is_half_a_revolution_away_on_average() {
    let spindle = Rotation::new(EAGLE_SPEED, Angle::ZERO);
    let mut random = Streams::new(1).stream("moments");
    let target = Angle::of_slot(17, 48);
    let mut quarters = [0_u32; 4];
    let mut sum = 0;
    const MOMENTS: u64 = 100_000;
    for _ in 0..MOMENTS {
        let wait = spindle.until(Time(random.below(1 << 50)), target);
        assert!(
            wait < spindle.period(),
            "a sector comes by every revolution"
        );
        sum += wait.0;
        quarters[(wait.0 * 4 / spindle.period().0) as usize] += 1;
    }
    let mean = sum as f64 / MOMENTS as f64;
    let half = spindle.period().0 as f64 / 2.0;
    assert!((mean / half - 1.0).abs() < 0.01, "{mean} of {half} ns");
    // And every wait is as likely as any other.
    assert!(
        quarters
            .iter()
            .all(|count| (24_000..26_000).contains(count)),
        "{quarters:?}"
    );
}

#[test]
fn drives_turn_for_themselves() {
    // 0.3 % slower, and a quarter ahead at the start.
    let (fast, slow) = (EAGLE_SPEED, EAGLE_SPEED - 1188);
    let one = Rotation::new(fast, Angle::ZERO);
    let other = Rotation::new(slow, Angle::of_share(1 << 30));
    assert_eq!(one.slot_at(Time::ZERO, 48), 0);
    assert_eq!(other.slot_at(Time::ZERO, 48), 12);
    // The faster one gains a revolution in this time; a quarter of it is gone
    // already.
    let gains = WHOLE / (fast - slow);
    let meet = Time(gains / 4);
    assert_eq!(
        one.slot_at(meet, 480).abs_diff(other.slot_at(meet, 480)) % 480,
        0
    );
    let apart = Time(gains / 4 + gains / 2);
    let distance = one.slot_at(apart, 48).abs_diff(other.slot_at(apart, 48));
    assert!(
        (23..=25).contains(&distance),
        "half a revolution apart, not {distance} slots"
    );
}

#[test]
fn slots_of_a_track_fill_a_revolution() {
    for (speed, slots) in [(EAGLE_SPEED, 48), (SPEED_3600, 52), (SPEED_3600, 17)] {
        let spindle = Rotation::new(speed, Angle::ZERO);
        assert_eq!(spindle.slots(slots, slots), spindle.period());
        // Longer than 2^64 parts of a revolution fit in a word, too.
        let long = 4_000_000_000 / slots * slots;
        let revolutions = u128::from(long / slots) * u128::from(WHOLE);
        let exact = revolutions.div_ceil(u128::from(speed));
        assert_eq!(u128::from(spindle.slots(long, slots).0), exact);
        for slot in 0..slots {
            let starts = spindle.until(Time::ZERO, Angle::of_slot(slot, slots));
            super::assert_near(starts, spindle.slots(slot, slots), 1);
        }
    }
}

#[test]
fn the_gap_before_the_index_is_no_sectors() {
    let spindle = Rotation::new(SPEED_3600, Angle::ZERO);
    let track = Slots::new(17).with_index_gap(0.1);
    let gap = Time(spindle.period().0 / 10);
    super::assert_near(spindle.slots(17, track) + gap, spindle.period(), 2);
    // From the end of the last sector to the first is the gap, and nothing
    // else.
    let wait = spindle.between(Angle::after_slot(16, track), Angle::of_slot(0, track));
    super::assert_near(wait, gap, 2);
    let within = spindle.slots(17, track) + Time(gap.0 / 2);
    assert_eq!(spindle.slot_at(within, track), 16);
    assert_eq!(spindle.slot_at(spindle.period() + Time(1), track), 0);
    let without = Slots::new(17);
    assert_eq!(Angle::after_slot(16, without), Angle::ZERO);
}

/// With skew a track's first sector is not its first slot: a run from it is
/// over the index, and the gap is in it.
#[test]
fn a_whole_track_takes_a_revolution_wherever_it_starts() {
    for skew in [0, 1, 8, 13] {
        let geometry = Geometry::new((1, 2, 17), (0, 1), 512).expect("a geometry");
        let geometry = geometry.skewed(skew, 0).with_index_gap(0.3);
        let still = SeekCurve::fit(1, (Time::ZERO, Time::ZERO, Time::ZERO));
        let mechanics = Mechanics {
            geometry,
            seek: still.expect("a curve"),
            settle: Time::ZERO,
            write_settle: Time::ZERO,
            head_switch: Time::ZERO,
        };
        let mut drive = Mechanism::new(mechanics, Rotation::new(SPEED_3600, Angle::ZERO));
        // From the start of the second track's first sector to the end of its
        // last.
        let passage = drive.transfer(Time::ZERO, 17, 17, false);
        let passed = Time((passage.total() - passage.to_first_sector()).0);
        let gap = if skew == 0 { 3 } else { 0 };
        let exact = Time(drive.rotation().period().0 * (10 - gap) / 10);
        super::assert_near(passed, exact, 40);
    }
}

proptest! {
    #[test]
    fn the_angle_is_time_by_speed(
        now in 0..u64::MAX,
        speed in 6_000_u64..3_000_000,
        share in any::<u32>(),
        slots in 1_u32..1 << 31,
    ) {
        let spindle = Rotation::new(speed, Angle::of_share(share));
        let phase = (u128::from(WHOLE) * u128::from(share)) >> 32;
        let angle = (u128::from(now) * u128::from(speed) + phase) % u128::from(WHOLE);
        let slot = angle * u128::from(slots) / u128::from(WHOLE);
        prop_assert_eq!(u128::from(spindle.slot_at(Time(now), slots)), slot);
    }

    /// Waiting ends in the nanosecond in which the slot begins: not before,
    /// and not one later.
    #[test]
    fn waiting_ends_when_the_slot_begins(
        now in 0..u64::MAX / 2,
        speed in 6_000_u64..3_000_000,
        share in any::<u32>(),
        (slots, slot) in (2_u32..200).prop_flat_map(|slots| (Just(slots), 0..slots)),
    ) {
        let spindle = Rotation::new(speed, Angle::of_share(share));
        let wait = spindle.until(Time(now), Angle::of_slot(slot, slots));
        prop_assert!(wait <= spindle.period());
        // A slot's start is cut to a whole part of a revolution; a moment
        // later is well inside the slot.
        prop_assert_eq!(spindle.slot_at(Time(now) + wait + Time(1), slots), slot);
        if wait.0 > 1 {
            let before = spindle.slot_at(Time(now + wait.0 - 2), slots);
            prop_assert_eq!(before, (slot + slots - 1) % slots);
        }
    }
}
