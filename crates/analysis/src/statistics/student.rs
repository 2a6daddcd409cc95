//! Student's t and the normal distribution, as far as intervals need them.

use super::{CenteredInterval, mean, variance};

/// Returns P(Z <= z) of the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// Returns the t with P(T <= t) = `p` for `degrees` of freedom, which need not be whole (Welch's
/// are not). `p` lies between 0.5 and 1.
pub fn student_quantile(p: f64, degrees: f64) -> f64 {
    let below = |t: f64| student_cdf(t, degrees) < p;
    let mut high = 1.0;
    while below(high) && high < 1e12 {
        high *= 2.0;
    }
    bisect_root(below, 0.0, high)
}

/// Returns P(T <= t) for t >= 0, by Abramowitz and Stegun 26.7.1 with the incomplete beta function.
fn student_cdf(t: f64, degrees: f64) -> f64 {
    let x = degrees / (degrees + t * t);
    1.0 - 0.5 * incomplete_beta(x, 0.5 * degrees, 0.5)
}

/// Returns the smallest value of [low, high] at which `below` turns false.
fn bisect_root(below: impl Fn(f64) -> bool, mut low: f64, mut high: f64) -> f64 {
    // 200 halvings exhaust the 53 bits of any bracket used here.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns the regularised incomplete beta function I_x(a, b), by Abramowitz and Stegun 26.5.8. Its
/// continued fraction is evaluated by Lentz's method.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
            + a * libm::log(x)
            + b * libm::log1p(-x),
    );
    // The fraction converges fast only below the mean of the distribution.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const DENOMINATOR_MIN: f64 = 1e-300;
    let away_from_zero = |value: f64| {
        if value.abs() < DENOMINATOR_MIN {
            DENOMINATOR_MIN
        } else {
            value
        }
    };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// Returns the t interval of the mean; `None` for fewer than two values.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<CenteredInterval> {
    let variance = variance(values)?;
    let n = values.len() as f64;
    let t = student_quantile(0.5 + 0.5 * confidence, n - 1.0);
    let half = t * (variance / n).sqrt();
    let mean = mean(values)?;
    Some(CenteredInterval {
        center: mean,
        low: mean - half,
        high: mean + half,
    })
}

/// Returns the interval of mean(`other`) - mean(`base`) by Welch's t, which does not
/// assume equal variances (Welch 1947; degrees of freedom of Welch and Satterthwaite). `None` if
/// either sample has fewer than two values.
pub fn welch_interval(base: &[f64], other: &[f64], confidence: f64) -> Option<CenteredInterval> {
    let error = |values: &[f64]| Some(variance(values)? / values.len() as f64);
    let (base_error, other_error) = (error(base)?, error(other)?);
    let difference = mean(other)? - mean(base)?;
    let total = base_error + other_error;
    if total == 0.0 {
        return Some(CenteredInterval {
            center: difference,
            low: difference,
            high: difference,
        });
    }
    // Shares instead of squares of tiny variances, which would underflow.
    let (base_share, other_share) = (base_error / total, other_error / total);
    let degrees = 1.0
        / (base_share.powi(2) / (base.len() - 1) as f64
            + other_share.powi(2) / (other.len() - 1) as f64);
    let half = student_quantile(0.5 + 0.5 * confidence, degrees) * total.sqrt();
    Some(CenteredInterval {
        center: difference,
        low: difference - half,
        high: difference + half,
    })
}
