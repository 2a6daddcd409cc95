//! Bounds on the agreement of pairs with random directions.
//!
//! The sum of cosines over pairs is half the quadratic form of the pairs' graph in unit vectors. No
//! weight is negative, so its moments are at most those of complex Gaussians, for which the form is
//! a sum of exponentials weighted by the graph's eigenvalues. Bernstein's bound of that sum needs
//! only the number of pairs and the largest eigenvalue. It holds for all request times if the
//! angles are independent and uniform.

/// Maximum probability of accepting a phase that does not exist, over all trials of one search.
pub(super) const FALSE_ALARM_MAX: f64 = 1e-6;

/// Returns the negative logarithm of the bound of the probability that one trial reaches a sum.
pub(super) fn evidence_nats(sum: f64, pairs: usize, eigenvalue_max: f64) -> f64 {
    let (pairs, half) = (pairs as f64, eigenvalue_max / 2.0);
    if sum <= 0.0 || half <= 0.0 {
        return 0.0;
    }
    (((pairs + 4.0 * half * sum).sqrt() - pairs.sqrt()) / (2.0 * half)).powi(2)
}

/// Returns the mean cosine that the given number of trials exceeds with a probability of at most
/// [`FALSE_ALARM_MAX`]; 1 if no agreement is sufficient.
pub(super) fn chance_mean_cosine(pairs: usize, eigenvalue_max: f64, trials: f64) -> f64 {
    let nats = (trials / FALSE_ALARM_MAX).ln();
    let pairs = pairs.max(1) as f64;
    (((pairs * nats).sqrt() + eigenvalue_max / 2.0 * nats) / pairs).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_cosine_at_the_limit_has_the_nats_of_its_trials() {
        for (pairs, eigenvalue_max, trials) in [(64, 2.0, 1e3), (8192, 90.0, 1e7)] {
            let sum = chance_mean_cosine(pairs, eigenvalue_max, trials) * pairs as f64;
            let expected = (trials / FALSE_ALARM_MAX).ln();
            let found = evidence_nats(sum, pairs, eigenvalue_max);
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
        assert_eq!(evidence_nats(-3.0, 64, 2.0), 0.0);
    }
}
