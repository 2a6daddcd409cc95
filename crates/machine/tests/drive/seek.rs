//! The arm. This fails when the drive books another way than it goes.

use super::{EAGLE_RPM, drive, eagle};
use diskperf_sim::{RandomStreams, Time};

#[test]
fn random_cylinders_are_a_third_of_the_stroke_apart() {
    let mut arm = drive(eagle(), EAGLE_RPM);
    let cylinders = u64::from(arm.geometry().cylinders());
    let mut random = RandomStreams::new(1).named_stream("cylinders");
    let (mut way, mut distance, mut moves) = (0_u64, 0_u64, 0_u64);
    const PAIRS: u64 = 200_000;
    for _ in 0..PAIRS {
        let to = random.draw_below(cylinders) as u32;
        distance += u64::from(arm.cylinder().abs_diff(to));
        let span = arm.seek_to_cylinder(to, false);
        moves += u64::from(span.total_time() > Time::ZERO);
        way += span.seek_time.0;
        assert_eq!(arm.cylinder(), to);
    }
    // Of all ordered pairs, equal ones too, (n^2 - 1) / 3n.
    let n = cylinders as f64;
    let third = (n * n - 1.0) / (3.0 * n);
    let mean = distance as f64 / PAIRS as f64;
    assert!(
        (mean / third - 1.0).abs() < 0.01,
        "{mean} of {third} cylinders"
    );
    // The data sheet's average leaves out the pairs that need no seek.
    let mean = way as f64 / moves as f64;
    assert!((mean / 18e6 - 1.0).abs() < 0.005, "{mean} ns for a seek");
    assert_eq!(
        arm.busy_times().positioning_time,
        Time(way),
        "all of it is booked"
    );
}
