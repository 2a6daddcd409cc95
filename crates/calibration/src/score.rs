//! Accuracy of a replay compared with the measured service times.

/// Accuracy figures of a replay over the scored requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Number of scored requests.
    pub request_count: usize,
    /// Mean measured service time, in milliseconds.
    pub mean_ms: f64,
    /// Demerit figure in milliseconds: root mean square of the horizontal distance between the
    /// measured and modelled service time distributions, at the shares 0.0001, 0.0002 .. 1 with
    /// linear interpolation.
    pub demerit_ms: f64,
    /// Mean of modelled minus measured service time, in milliseconds.
    pub bias_ms: f64,
    /// Root mean square of modelled minus measured service time by request, in milliseconds.
    pub request_rms_ms: f64,
    /// Share of requests predicted within half a millisecond, in percent.
    pub within_half_ms_percent: f64,
    /// Measured quantiles 0.5, 0.9 and 0.99 of the service time, in milliseconds.
    pub measured_ms: [f64; 3],
    /// Modelled quantiles 0.5, 0.9 and 0.99 of the service time, in milliseconds.
    pub modelled_ms: [f64; 3],
}

/// Largest error of a correctly predicted request, in microseconds.
pub(crate) const PREDICTED_US_MAX: f64 = 500.0;

/// Requests that a replay predicts within half a millisecond.
#[derive(Clone, Debug)]
pub(crate) struct Predictions {
    is_met: Vec<bool>,
}

/// Requests that one of two replays predicts and the other does not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PredictionGain {
    pub(crate) gained: usize,
    pub(crate) lost: usize,
}

impl Predictions {
    /// Compares pairs of measured and modelled service times in microseconds.
    pub(crate) fn new(pairs: &[(f64, f64)]) -> Predictions {
        let is_met =
            |(measured, modelled): &(f64, f64)| (measured - modelled).abs() <= PREDICTED_US_MAX;
        Predictions {
            is_met: pairs.iter().map(is_met).collect(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.is_met.iter().filter(|is_met| **is_met).count()
    }

    pub(crate) fn gain_over(&self, other: &Predictions) -> PredictionGain {
        let mut gain = PredictionGain::default();
        for (own, other) in self.is_met.iter().zip(&other.is_met) {
            gain.gained += usize::from(*own && !*other);
            gain.lost += usize::from(!*own && *other);
        }
        gain
    }
}

impl PredictionGain {
    /// Returns the number of requests gained beyond those lost.
    pub(crate) fn excess(self) -> f64 {
        self.gained as f64 - self.lost as f64
    }

    /// Returns the excess that chance gives in either direction: two standard deviations, because
    /// of the requests that only one replay predicts, each has half of them by chance.
    pub(crate) fn chance(self) -> f64 {
        2.0 * ((self.gained + self.lost) as f64).sqrt()
    }

    /// Tests whether the gain is significant: beyond chance by a few requests, because errors come
    /// in groups.
    pub(crate) fn exceeds_chance(self) -> bool {
        self.excess() > self.chance() + 3.0
    }
}

/// Number of shares at which the distributions are compared.
const QUANTILE_STEPS: usize = 10_000;

impl Score {
    /// Scores pairs of measured and modelled service times in microseconds.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Score {
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
            let share = step as f64 / QUANTILE_STEPS as f64;
            (quantile(&measured, share) - quantile(&modelled, share)).powi(2)
        };
        let within = errors_ms.iter().filter(|error| error.abs() <= 0.5).count();
        let quantiles = |times: &[f64]| [0.5, 0.9, 0.99].map(|share| quantile(times, share) / 1e3);
        Score {
            request_count: pairs.len(),
            mean_ms: measured.iter().sum::<f64>() / count / 1e3,
            demerit_ms: ((1..=QUANTILE_STEPS).map(apart).sum::<f64>() / QUANTILE_STEPS as f64)
                .sqrt()
                / 1e3,
            bias_ms: errors_ms.iter().sum::<f64>() / count,
            request_rms_ms: (errors_ms.iter().map(|error| error * error).sum::<f64>() / count)
                .sqrt(),
            within_half_ms_percent: 100.0 * within as f64 / count,
            measured_ms: quantiles(&measured),
            modelled_ms: quantiles(&modelled),
        }
    }

    /// Returns the demerit as a percentage of the mean measured service time.
    pub fn demerit_percent(&self) -> f64 {
        match self.mean_ms > 0.0 {
            true => 100.0 * self.demerit_ms / self.mean_ms,
            false => 0.0,
        }
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let at = share * sorted.len() as f64 - 1.0;
    let below = (at.max(0.0) as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (at.max(0.0) - below as f64).min(1.0) * (sorted[above] - sorted[below])
}
