//! Preparation before each repetition of an arm of an A/B measurement: the hook, and a rest.

use diskperf_system::host::hook::{HookCommand, HookError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Latest durations of the hooks of both arms, in nanoseconds.
pub(crate) type HookTimes = [AtomicU64; 2];

const POLL: Duration = Duration::from_millis(50);

/// Hook of one arm, if any, followed by a rest, so that each arm prepares for as long as the longer
/// hook takes. While a hook sleeps, the machine catches up and its scheduler credits the measuring
/// process. An arm that rested longer would be faster for that reason alone.
pub(crate) struct Preparation<'a> {
    /// Index of the arm: 0 for A, 1 for B.
    pub(crate) arm: usize,
    pub(crate) hook: Option<&'a HookCommand>,
    pub(crate) took: &'a HookTimes,
}

impl Preparation<'_> {
    /// Runs the hook and then rests.
    ///
    /// # Errors
    ///
    /// Returns [`HookError`] if the hook fails or `stop` is set meanwhile.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<(), HookError> {
        let began = Instant::now();
        if let Some(hook) = self.hook {
            hook.run_hook(stop)?;
            let took_ns = began.elapsed().as_nanos() as u64;
            self.took[self.arm].store(took_ns, Ordering::Relaxed);
        }
        let took = self.took.iter().map(|one| one.load(Ordering::Relaxed));
        let longest = Duration::from_nanos(took.max().unwrap_or(0));
        while let Some(rest) = longest.checked_sub(began.elapsed()) {
            if stop.load(Ordering::Relaxed) {
                return Err(HookError::StoppedByUser);
            }
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(POLL));
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
        let took = HookTimes::default();
        let slow = HookCommand::new("--before-b", "sleep 0.2".to_owned());
        let arm = |arm, hook| Preparation {
            arm,
            hook,
            took: &took,
        };
        arm(1, Some(&slow)).run(&stop).unwrap();
        let began = Instant::now();
        arm(0, None).run(&stop).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(200));
    }

    #[test]
    fn nothing_rests_where_there_are_no_hooks_and_the_user_may_end_a_rest() {
        let stop = AtomicBool::new(true);
        let took = HookTimes::default();
        let arm = Preparation {
            arm: 0,
            hook: None,
            took: &took,
        };
        arm.run(&stop).unwrap();
        took[1].store(u64::MAX / 2, Ordering::Relaxed);
        assert!(matches!(arm.run(&stop), Err(HookError::StoppedByUser)));
    }
}
