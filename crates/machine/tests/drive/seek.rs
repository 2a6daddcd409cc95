//! Seek times. These fail when the fitted curve misses one of its three
//! times, when the average is taken over distances instead of over pairs of
//! cylinders, or when the drive books another way than it goes.

use super::{EAGLE_SPEED, drive, eagle};
use diskperf_machine::hardware::mechanism::{SeekCurve, SeekError};
use diskperf_sim::{Streams, Time};

fn fit(cylinders: u32, times: [u64; 3]) -> Result<SeekCurve, SeekError> {
    let [minimum, average, maximum] = times.map(Time::from_millis);
    SeekCurve::fit(cylinders, (minimum, average, maximum))
}

/// Cylinders, and the three times in ms, of data sheets of the time.
const SHEETS: [(u32, [u64; 3]); 4] = [
    (842, [5, 18, 35]),
    (1248, [6, 28, 52]),
    (815, [10, 30, 55]),
    (559, [6, 25, 50]),
];

#[test]
fn the_curve_takes_its_three_times() {
    for (cylinders, times) in SHEETS {
        let curve = fit(cylinders, times).expect("a curve");
        let [minimum, average, maximum] = times.map(Time::from_millis);
        assert_eq!(curve.time(0), Time::ZERO, "no way takes no time");
        assert_eq!(curve.time(1), minimum);
        super::assert_near(curve.time(cylinders - 1), maximum, 1);
        super::assert_near(curve.average(), average, 2);
        let rises = (1..cylinders - 1).all(|far| curve.time(far) <= curve.time(far + 1));
        assert!(rises, "a longer way takes no less time");
    }
}

#[test]
fn times_that_no_arm_has_are_refused() {
    assert_eq!(fit(842, [18, 5, 35]), Err(SeekError::Order));
    assert_eq!(fit(842, [5, 36, 35]), Err(SeekError::Order));
    // The average at the maximum: the arm would be faster over a longer way.
    assert_eq!(fit(842, [5, 35, 35]), Err(SeekError::Shape));
}

#[test]
fn drives_without_a_choice_of_ways() {
    let one = fit(1, [5, 18, 35]).expect("a curve");
    assert_eq!(one.time(0), Time::ZERO);
    let two = fit(2, [5, 18, 35]).expect("a curve");
    assert_eq!(two.time(1), Time::from_millis(5));
    let three = fit(3, [5, 18, 35]).expect("a curve");
    assert_eq!(
        [1, 2].map(|far| three.time(far)),
        [5, 35].map(Time::from_millis)
    );
    let flat = fit(100, [7, 7, 7]).expect("a curve");
    assert_eq!(flat.average(), Time::from_millis(7));
}

#[test]
fn random_cylinders_are_a_third_of_the_stroke_apart() {
    let mut arm = drive(eagle(), EAGLE_SPEED);
    let cylinders = u64::from(arm.geometry().cylinders());
    let mut random = Streams::new(1).stream("cylinders");
    let (mut way, mut distance, mut moves) = (0_u64, 0_u64, 0_u64);
    const PAIRS: u64 = 200_000;
    for _ in 0..PAIRS {
        let to = random.below(cylinders) as u32;
        distance += u64::from(arm.cylinder().abs_diff(to));
        let span = arm.seek(to, false);
        moves += u64::from(span.total() > Time::ZERO);
        way += span.seek.0;
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
    assert_eq!(arm.busy().positioning, Time(way), "all of it is booked");
}
