//! Preparation before each repetition of an arm of an A/B measurement: the hook, and a rest.

use diskperf_system::host::hook::{HookCommand, HookError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Latest durations of the hooks of both arms, in nanoseconds.
pub(crate) type HookTimesNs = [AtomicU64; 2];

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Hook of one arm, if any, followed by a rest, so that each arm prepares for as long as the longer
/// hook takes. While a hook sleeps, the machine catches up and its scheduler credits the measuring
/// process. An arm that rested longer would be faster for that reason alone.
pub(crate) struct HookPreparation<'a> {
    /// Index of the arm: 0 for A, 1 for B.
    pub(crate) variant_index: usize,
    pub(crate) hook: Option<&'a HookCommand>,
    pub(crate) times_taken: &'a HookTimesNs,
}

impl HookPreparation<'_> {
    /// Runs the hook and then rests.
    ///
    /// # Errors
    ///
    /// Returns [`HookError`] if the hook fails or `stop` is set meanwhile.
    pub(crate) fn run_hook(&self, stop: &AtomicBool) -> Result<(), HookError> {
        let began = Instant::now();
        if let Some(hook) = self.hook {
            hook.run_hook(stop)?;
            let took_ns = began.elapsed().as_nanos() as u64;
            self.times_taken[self.variant_index].store(took_ns, Ordering::Relaxed);
        }
        let took = self
            .times_taken
            .iter()
            .map(|one| one.load(Ordering::Relaxed));
        let longest = Duration::from_nanos(took.max().unwrap_or(0));
        while let Some(rest) = longest.checked_sub(began.elapsed()) {
            if stop.load(Ordering::Relaxed) {
                return Err(HookError::StoppedByUser);
            }
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(POLL_INTERVAL));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arms_rest_as_long_as_the_longer_hook_takes() {
        let stop = AtomicBool::new(false);
        let took = HookTimesNs::default();
        let slow = HookCommand::new("--before-b", "sleep 0.2".to_owned());
        let arm = |arm, hook| HookPreparation {
            variant_index: arm,
            hook,
            times_taken: &took,
        };
        arm(1, Some(&slow)).run_hook(&stop).unwrap();
        let began = Instant::now();
        arm(0, None).run_hook(&stop).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(200));
    }

    #[test]
    fn nothing_rests_where_there_are_no_hooks_and_the_user_may_end_a_rest() {
        let stop = AtomicBool::new(true);
        let took = HookTimesNs::default();
        let arm = HookPreparation {
            variant_index: 0,
            hook: None,
            times_taken: &took,
        };
        arm.run_hook(&stop).unwrap();
        took[1].store(u64::MAX / 2, Ordering::Relaxed);
        assert!(matches!(arm.run_hook(&stop), Err(HookError::StoppedByUser)));
    }
}
