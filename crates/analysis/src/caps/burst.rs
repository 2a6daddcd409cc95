//! End of a burst: one step of the rate from one window to the next.

use super::{CappedUnit, EndedBurst};
use crate::statistics::median;
use diskperf_timeline::ProbeWindow;

/// Share of the rate before the step that the rate of every window after it must not reach.
const STEP_SHARE_MAX: f64 = 0.8;

/// Windows after a step. If windows are exchangeable, that many consecutive ones are low with a
/// probability of at most T / 2^n: 0.5 % for 600 windows.
const WINDOWS_AFTER_MIN: usize = 17;

/// Windows before a step, whose median is the rate of the burst.
const WINDOWS_BEFORE_MIN: usize = 5;

/// Step of the rate to a lower one, which holds until the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BurstStep {
    /// Index of the first window that is wholly after the step.
    pub(super) first_after: usize,
    /// Rate before the step, per second.
    burst_per_s: f64,
}

impl BurstStep {
    /// Finds the step of a burst's end; `None` if there is none.
    pub(super) fn find(windows: &[ProbeWindow], unit: CappedUnit) -> Option<Self> {
        let rates: Vec<f64> = windows.iter().map(|one| unit.rate(one)).collect();
        let last_start = rates.len().checked_sub(WINDOWS_AFTER_MIN)?;
        let first_low = (WINDOWS_BEFORE_MIN..=last_start).find(|&start| {
            let before = median(&rates[..start]).unwrap_or(0.0);
            let after = rates[start..].iter().copied().fold(0.0, f64::max);
            after < STEP_SHARE_MAX * before
        })?;
        let after = median(&rates[first_low..])?;
        // The window in which the burst ended has a part of both rates.
        let is_mixed = rates[first_low] > after * 1.01;
        Some(Self {
            first_after: first_low + usize::from(is_mixed),
            burst_per_s: median(&rates[..first_low])?,
        })
    }

    /// Returns the end of the burst and its credits, given the rate after the step. A bucket that
    /// was served `n` units until a time `t` after its end had `n - base t` credits.
    pub(super) fn describe_end(
        self,
        windows: &[ProbeWindow],
        unit: CappedUnit,
        base_per_s: f64,
    ) -> EndedBurst {
        let window = &windows[self.first_after];
        let served = match unit {
            CappedUnit::Requests => window.work_before.requests,
            CappedUnit::Bytes => window.work_before.bytes,
        };
        let credits = served as f64 - base_per_s * window.start.seconds();
        EndedBurst {
            burst_per_s: self.burst_per_s,
            end_s: credits / (self.burst_per_s - base_per_s),
            credits,
        }
    }
}
