//! How far a replay is from what was measured.

/// Figures of a replay, over the requests that are scored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// How many.
    pub requests: usize,
    /// Their mean service time as measured.
    pub mean_ms: f64,
    /// The root mean square of the horizontal distance between the distributions of the
    /// service times, at the shares 0.0001, 0.0002 .. 1 with linear interpolation.
    pub demerit_ms: f64,
    /// The mean of modelled less measured.
    pub bias_ms: f64,
    /// The root mean square of modelled less measured, request by request.
    pub rms_per_request_ms: f64,
    /// The share of requests within half a millisecond.
    pub within_half_ms_percent: f64,
    /// Quantiles 0.5, 0.9 and 0.99 as measured.
    pub measured_ms: [f64; 3],
    /// The same as modelled.
    pub modelled_ms: [f64; 3],
}

/// Shares at which distributions are compared.
const SHARES: usize = 10_000;

impl Score {
    /// Scores pairs of measured and modelled times in microseconds.
    pub fn of(pairs: &[(f64, f64)]) -> Score {
        let count = pairs.len().max(1) as f64;
        let errors_ms: Vec<f64> = pairs
            .iter()
            .map(|(measured, modelled)| (modelled - measured) / 1e3)
            .collect();
        let sorted = |times: Vec<f64>| {
            let mut times = times;
            times.sort_by(f64::total_cmp);
            times
        };
        let measured = sorted(pairs.iter().map(|pair| pair.0).collect());
        let modelled = sorted(pairs.iter().map(|pair| pair.1).collect());
        let apart = |step: usize| {
            let share = step as f64 / SHARES as f64;
            (quantile(&measured, share) - quantile(&modelled, share)).powi(2)
        };
        let within = errors_ms.iter().filter(|error| error.abs() <= 0.5).count();
        let quantiles = |times: &[f64]| [0.5, 0.9, 0.99].map(|share| quantile(times, share) / 1e3);
        Score {
            requests: pairs.len(),
            mean_ms: measured.iter().sum::<f64>() / count / 1e3,
            demerit_ms: ((1..=SHARES).map(apart).sum::<f64>() / SHARES as f64).sqrt() / 1e3,
            bias_ms: errors_ms.iter().sum::<f64>() / count,
            rms_per_request_ms: (errors_ms.iter().map(|error| error * error).sum::<f64>() / count)
                .sqrt(),
            within_half_ms_percent: 100.0 * within as f64 / count,
            measured_ms: quantiles(&measured),
            modelled_ms: quantiles(&modelled),
        }
    }

    /// The demerit as a share of the measured mean.
    pub fn demerit_percent(&self) -> f64 {
        match self.mean_ms > 0.0 {
            true => 100.0 * self.demerit_ms / self.mean_ms,
            false => 0.0,
        }
    }
}

/// A quantile of ascending times, linear between them.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let at = share * sorted.len() as f64 - 1.0;
    let below = (at.max(0.0) as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (at.max(0.0) - below as f64).min(1.0) * (sorted[above] - sorted[below])
}
