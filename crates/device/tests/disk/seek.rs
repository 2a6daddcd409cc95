//! Seek times against exact means. These fail when a curve misses its points, or when an
//! average is taken over distances instead of over pairs of cylinders.

use super::assert_close;
use diskperf_device::disk::seek::{SeekCurve, SeekCurveError, SeekSpecification};
use diskperf_sim::Time;

fn curve(specification: &SeekSpecification, cylinders: u32) -> SeekCurve {
    SeekCurve::new(specification, cylinders).expect("a curve")
}

#[test]
fn a_table_is_linear_between_its_points() {
    let points = vec![(1, 1.0), (10, 3.0), (100, 8.0)];
    let curve = curve(&SeekSpecification::Table { points }, 200);
    for (distance, ms) in [
        (0, 0.0),
        (1, 1.0),
        (4, 1.0 + 2.0 / 3.0),
        (100, 8.0),
        (190, 13.0),
    ] {
        let expected = Time((ms * 1e6 + 0.5) as u64);
        assert_eq!(curve.time_over(distance), expected, "over {distance}");
    }
}

#[test]
fn a_table_may_begin_late_jump_and_fall() {
    let points = vec![(4, 2.0), (5, 5.0), (6, 4.0)];
    let curve = curve(&SeekSpecification::Table { points }, 20);
    let times = [1, 2, 4, 5, 6, 7, 10, 15].map(|far| curve.time_over(far).as_millis());
    assert_eq!(times, [0.5, 1.0, 2.0, 5.0, 4.0, 3.0, 0.0, 0.0]);
}

/// The mean over pairs of cylinders of V1..V6, integrated.
#[test]
fn the_root_and_the_line_have_their_mean() {
    let hpl = SeekSpecification::Hpl {
        line_from_cylinders: 600,
        root_constant_ms: 1.5,
        root_factor_ms: 0.25,
        line_constant_ms: 4.0,
        line_factor_ms: 0.003,
        single_cylinder_ms: None,
    };
    let curve = curve(&hpl, 2000);
    assert_close(curve.average_time().as_millis(), 6.30158, 1e-3);
    assert_eq!(curve.time_over(100), Time(4_000_000));
    assert_eq!(curve.time_over(600), Time(5_800_000));
}

#[test]
fn three_points_have_their_average() {
    for (cylinders, times) in [
        (165_800, (0.23, 7.5, 17.06)),
        (147_620, (0.30, 3.8, 7.81)),
        (100_000, (1.0, 12.0, 22.0)),
    ] {
        let (single_cylinder_ms, average_ms, full_stroke_ms) = times;
        let specification = SeekSpecification::ThreePoints {
            single_cylinder_ms,
            average_ms,
            full_stroke_ms,
        };
        let curve = curve(&specification, cylinders);
        assert_close(curve.average_time().as_millis(), average_ms, 1e-3);
        assert_close(curve.time_over(1).as_millis(), single_cylinder_ms, 1e-6);
        assert_close(
            curve.time_over(cylinders - 1).as_millis(),
            full_stroke_ms,
            1e-3,
        );
        let rises = (1..cylinders - 1).all(|far| curve.time_over(far) <= curve.time_over(far + 1));
        assert!(rises, "a longer way takes no less time");
    }
}

fn data_sheet(
    cylinders: u32,
    [single, average, full]: [f64; 3],
) -> Result<SeekCurve, SeekCurveError> {
    let specification = SeekSpecification::DataSheet {
        single_cylinder_ms: single,
        average_ms: average,
        full_stroke_ms: full,
    };
    SeekCurve::new(&specification, cylinders)
}

/// Cylinders, and the three times of data sheets of 1980 to 1986.
#[test]
fn a_data_sheet_has_its_three_times_to_the_nanosecond() {
    for (cylinders, times) in [
        (842, [5.0, 18.0, 35.0]),
        (1248, [6.0, 28.0, 52.0]),
        (815, [10.0, 30.0, 55.0]),
        (559, [6.0, 25.0, 50.0]),
    ] {
        let curve = data_sheet(cylinders, times).expect("a curve");
        let [single, average, full] = times.map(|ms| Time((ms * 1e6) as u64));
        let near = |one: Time, other: Time| one.0.abs_diff(other.0) <= 2;
        assert_eq!(
            [curve.time_over(0), curve.time_over(1)],
            [Time::ZERO, single]
        );
        assert!(near(curve.time_over(cylinders - 1), full), "{times:?}");
        assert!(
            near(curve.average_time(), average),
            "{}",
            curve.average_time()
        );
        let rises = (1..cylinders - 1).all(|far| curve.time_over(far) <= curve.time_over(far + 1));
        assert!(rises, "a longer way takes no less time");
    }
    // Minimum above average, average above maximum, faster over a longer way, and the same
    // at its beginning.
    for times in [
        [18.0, 5.0, 35.0],
        [5.0, 36.0, 35.0],
        [5.0, 35.0, 35.0],
        [5.0, 6.0, 35.0],
    ] {
        assert_eq!(
            data_sheet(842, times).err(),
            Some(SeekCurveError::NotMonotonic)
        );
    }
}

#[test]
fn a_data_sheet_of_few_cylinders_leaves_no_choice() {
    for (cylinders, times, expected) in [
        (1, [5.0, 18.0, 35.0], [0.0, 0.0]),
        (2, [5.0, 18.0, 35.0], [5.0, 5.0]),
        (3, [5.0, 18.0, 35.0], [5.0, 35.0]),
        (100, [7.0, 7.0, 7.0], [7.0, 7.0]),
    ] {
        let curve = data_sheet(cylinders, times).expect("a curve");
        let far = cylinders - 1;
        let times = [far.min(1), far].map(|far| curve.time_over(far).as_millis());
        assert_eq!(times, expected, "{cylinders} cylinders");
    }
}

#[test]
fn a_third_of_the_stroke_is_the_mean_distance() {
    // 0.003 ms a cylinder and nothing else: the mean is that of the distance, (C + 1)/3.
    let line = SeekSpecification::Hpl {
        line_from_cylinders: 0,
        root_constant_ms: 0.0,
        root_factor_ms: 0.0,
        line_constant_ms: 0.0,
        line_factor_ms: 0.003,
        single_cylinder_ms: None,
    };
    let average = curve(&line, 2500).average_time();
    assert_eq!(average, Time((2501.0 / 3.0 * 3000.0) as u64));
}

#[test]
fn no_arm_moves_like_that() {
    let refused = |of: SeekSpecification| SeekCurve::new(&of, 1000).expect_err("refused");
    let points = |points: &[(u32, f64)]| SeekSpecification::Table {
        points: points.to_vec(),
    };
    assert_eq!(refused(points(&[])), SeekCurveError::EmptyTable);
    assert_eq!(
        refused(points(&[(5, 1.0), (5, 2.0)])),
        SeekCurveError::TableOutOfOrder(5)
    );
    assert_eq!(
        refused(points(&[(5, -1.0)])),
        SeekCurveError::TimeOutOfRange(-1.0, 5)
    );
    let falls = SeekSpecification::ThreePoints {
        single_cylinder_ms: 1.0,
        average_ms: 12.0,
        full_stroke_ms: 15.0,
    };
    assert_eq!(refused(falls), SeekCurveError::NotMonotonic);
    let endless = SeekSpecification::Constant {
        time_ms: f64::INFINITY,
    };
    assert!(matches!(
        refused(endless),
        SeekCurveError::TimeOutOfRange(..)
    ));
}
