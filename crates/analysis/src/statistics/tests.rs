//! Against scipy 1.17.1 (`scipy.stats.t.ppf`, `norm`, `bootstrap` and
//! `ttest_ind(equal_var=False)`), whose numbers are written down here.

use super::student::{normal_cdf, student_quantile};
use super::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn close(name: &str, got: f64, expected: f64, tolerance: f64) {
    let error = (got - expected).abs() / expected.abs().max(1.0);
    assert!(error <= tolerance, "{name}: {got}, scipy has {expected}");
}

#[test]
fn student_quantiles_and_the_normal_distribution() {
    for (degrees, at_975, at_995) in [
        (1.0, 12.706204736174694, 63.656741162871526),
        (1.5, 6.016663104427929, 17.820310514462804),
        (2.0, 4.302652729749462, 9.924843200918287),
        (3.0, 3.1824463052837078, 5.840909309733355),
        (4.0, 2.7764451051977934, 4.604094871349992),
        (7.3, 2.345066736547703, 3.451031655622185),
        (10.0, 2.228138851986274, 3.16927267261695),
        (30.0, 2.0422724563012378, 2.7499956535672254),
        (100.0, 1.9839715185235518, 2.6258905214380173),
    ] {
        close("t 97.5 %", student_quantile(0.975, degrees), at_975, 1e-11);
        close("t 99.5 %", student_quantile(0.995, degrees), at_995, 1e-11);
    }
    for (z, p) in [
        (-3.0, 0.0013498980316300933),
        (-2.5, 0.006209665325776132),
        (1.96, 0.9750021048517795),
    ] {
        close("normal", normal_cdf(z), p, 1e-14);
    }
}

#[test]
fn quantiles_as_numpy_takes_them() {
    let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
    for (q, expected) in [
        (0.0, 1.0),
        (0.1, 1.0),
        (0.25, 1.75),
        (0.5, 3.5),
        (0.9, 6.9),
        (1.0, 9.0),
    ] {
        close("quantile", quantile(&values, q).unwrap(), expected, 1e-12);
    }
    assert_eq!(median(&values), Some(3.5));
    assert_eq!(median(&values[..7]), Some(3.0));
    assert_eq!(minimum(&values), Some(1.0));
    assert_eq!(
        (median(&[]), quantile(&[], 0.5), minimum(&[])),
        (None, None, None)
    );
}

#[test]
fn two_to_five_values_get_student_t_on_logarithms() {
    for (values, low, high) in [
        (
            vec![100.0, 104.0, 97.0],
            91.95650291141617,
            109.38411790978861,
        ),
        (vec![500.0, 510.0], 445.27910762548316, 572.6745217394661),
        (
            vec![80.0, 95.0, 91.0, 85.0, 88.0],
            80.79806316700837,
            95.08273876916671,
        ),
    ] {
        let interval = median_interval(&values).unwrap();
        assert_eq!(interval.method, IntervalMethod::StudentLog);
        let narrowed = |end: f64| {
            let logs = take_logarithms(&values).unwrap();
            let center = mean(&logs).unwrap();
            libm::exp(center + (libm::log(end) - center) / interval.widening_factor)
        };
        close("low", narrowed(interval.min), low, 1e-11);
        close("high", narrowed(interval.max), high, 1e-11);
    }
}

#[test]
fn six_or_more_get_a_bootstrap() {
    let values = [
        412.0, 398.0, 405.0, 430.0, 401.0, 417.0, 409.0, 395.0, 420.0, 403.0,
    ];
    for (n, center, low, high) in [
        (6, 408.5, 398.0, 430.0),
        (7, 409.0, 398.0, 430.0),
        (9, 409.0, 398.0, 420.0),
        (10, 407.0, 399.5, 418.5),
    ] {
        let values = &values[..n];
        assert_eq!(median(values), Some(center));
        let interval = median_interval(values).unwrap();
        assert_eq!(interval.method, IntervalMethod::BootstrapMedian);
        assert_eq!(interval.widening_factor, 1.0, "this series alternates");
        // The median of an even number is that of the logarithms: half a
        // thousandth beside the arithmetic one.
        close("low", interval.min, low, 5e-4);
        close("high", interval.max, high, 5e-4);
        assert_eq!(median_interval(values), Some(interval), "the seed is fixed");
    }
}

#[test]
fn invalid_samples_have_no_interval() {
    for values in [
        vec![],
        vec![1.0],
        vec![1.0, 0.0],
        vec![1.0, f64::NAN],
        vec![1.0, f64::INFINITY],
        vec![-1.0, 1.0],
    ] {
        assert_eq!(median_interval(&values), None, "{values:?}");
    }
    assert_eq!(median_interval(&[1e300, 1e-300]), None);
    for n in [2, 5, 6, 30] {
        let interval = median_interval(&vec![7.0; n]).unwrap();
        assert_eq!((interval.min, interval.max), (7.0, 7.0));
    }
}

#[test]
fn drift_widens_and_alternation_does_not_narrow() {
    let drifting: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
    let alternating: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i % 2)).collect();
    assert_eq!(drift::lag_one_autocorrelation(&[&drifting]), 0.9);
    // Twenty count for two at least.
    assert!((drift::widening_factor(&[&drifting]) - 10f64.sqrt()).abs() < 1e-12);
    let long: Vec<f64> = (0..60).map(|i| 100.0 + f64::from(i)).collect();
    assert!((drift::widening_factor(&[&long]) - 19f64.sqrt()).abs() < 1e-12);
    assert_eq!(drift::widening_factor(&[&alternating]), 1.0);
    assert_eq!(
        drift::widening_factor(&[&[5.0, 7.0]]),
        1.0,
        "two tell nothing of drift"
    );
    assert_eq!(drift::widening_factor(&[&[], &[5.0]]), 1.0);
    assert_eq!(drift::widening_factor(&[]), 1.0);
}

/// Standard normal values.
struct Normal(Pcg64Mcg);

impl Normal {
    fn draw(&mut self) -> f64 {
        let uniform = |random: &mut Pcg64Mcg| f64::from(random.next_u32()) / 4_294_967_296.0;
        // The sum of twelve uniform values, whose variance is 1.
        (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
    }
}

/// Repetitions about 130 with a deviation of 12 %, each correlated with the one before.
fn repetitions(count: usize, correlation: f64, normal: &mut Normal) -> Vec<f64> {
    let mut level = normal.draw();
    let fresh = (1.0 - correlation * correlation).sqrt();
    let next = |_| {
        let value = 130.0 * libm::exp(0.12 * level);
        level = correlation * level + fresh * normal.draw();
        value
    };
    (0..count).map(next).collect()
}

/// The widening of few repetitions for what they share is bounded: their correlation cannot be
/// told from noise. Neither may it be so narrow that correlated ones are taken for sure.
#[test]
fn intervals_of_eight_repetitions_hold_the_median_as_often_as_they_say() {
    const SEED: u64 = 46;
    const TRIALS: usize = 200;
    let mut normal = Normal(Pcg64Mcg::seed_from_u64(SEED));
    // Four deviations of the count below what more trials come to.
    for (correlation, covered_min) in [(0.0, 0.91), (0.3, 0.87), (0.5, 0.84), (0.7, 0.735)] {
        let mut covered = 0;
        let mut wide = 0;
        for _ in 0..TRIALS {
            let values = repetitions(8, correlation, &mut normal);
            let interval = median_interval(&values).unwrap();
            let span = |ends: (f64, f64)| libm::log(ends.1 / ends.0);
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(0.0, f64::max);
            covered += usize::from(interval.contains(130.0));
            wide += usize::from(span((interval.min, interval.max)) > 2.0 * span((min, max)));
        }
        let share = covered as f64 / TRIALS as f64;
        assert!(share >= covered_min, "{correlation}, seed {SEED}: {share}");
        assert_eq!(wide, 0, "{correlation}, seed {SEED}");
    }
}
