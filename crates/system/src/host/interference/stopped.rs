//! Detection of a stopped process or a sleeping machine.
//!
//! While the machine sleeps, its clocks stop, except the one that counts the time since it booted.
//! The difference is the duration of the sleep.
//!
//! A stopped thread cannot notice the stop: its clocks and the kernel's accounts look like those of
//! a thread that slept. So a thread without other work wakes up periodically and measures its
//! delay. Time that it was ready to run is subtracted, since that is processor contention.

use super::share_if_notable;
use crate::host::clock::{machine_sleep_time, monotonic_now};
use crate::host::usage::CpuWaitFile;
use diskperf_timeline::{Interference, Nanoseconds, Repetition};
use std::time::Duration;

/// Detector of stops, which the main thread calls periodically while it waits for workers.
pub struct StopDetector {
    last_run_time: Nanoseconds,
    stopped_time: Nanoseconds,
    /// Time that the machine had slept before the detector started.
    machine_sleep_before: Nanoseconds,
    cpu_wait: Option<(CpuWaitFile, Nanoseconds)>,
}

impl StopDetector {
    /// Interval between answers. It detects the shortest stop that would be reported for a
    /// repetition of a tenth of a second. An answer costs some microseconds, too little to affect
    /// the figures.
    pub const CHECK_PERIOD: Duration = Duration::from_millis(10);

    /// Starts a detector of stops for the calling thread's process.
    pub fn start_detector() -> Self {
        let wait = CpuWaitFile::of_current_thread();
        Self {
            cpu_wait: wait.and_then(|wait| {
                let now = wait.read_wait_time()?;
                Some((wait, now))
            }),
            stopped_time: Nanoseconds::ZERO,
            machine_sleep_before: machine_sleep_time(),
            last_run_time: monotonic_now(),
        }
    }

    fn check_period() -> Nanoseconds {
        Nanoseconds(Self::CHECK_PERIOD.as_nanos() as u64)
    }

    /// Records that the thread runs now. A delay beyond [`Self::CHECK_PERIOD`] counts as missed time.
    pub fn record_run(&mut self) {
        let now = monotonic_now();
        let late = now.since(self.last_run_time).since(Self::check_period());
        self.stopped_time = self.stopped_time + late;
        self.last_run_time = now;
    }

    /// Restarts the detector's interval after other work of this thread. The duration of that work
    /// does not count as missed time.
    pub fn restart_period(&mut self) {
        self.last_run_time = monotonic_now();
    }

    /// Returns the time during which this process neither ran nor was ready to, including the
    /// machine's sleep.
    pub fn stopped_time_total(self) -> Nanoseconds {
        self.stopped_time_with_sleep(machine_sleep_time())
    }

    fn stopped_time_with_sleep(mut self, slept: Nanoseconds) -> Nanoseconds {
        self.record_run();
        let waited = self.cpu_wait.and_then(|(wait, before)| {
            let now = wait.read_wait_time()?;
            Some(now.since(before))
        });
        let awake = self.stopped_time.since(waited.unwrap_or_default());
        awake + slept.since(self.machine_sleep_before)
    }
}

pub(super) fn detect_stop(stopped: Nanoseconds, repetition: &Repetition) -> Option<Interference> {
    let elapsed = repetition
        .durable_time()
        .unwrap_or(repetition.elapsed_time());
    // A timer may be late by less on a machine that saves power.
    if stopped < TIMER_DELAY_MAX {
        return None;
    }
    Some(Interference::ProcessStopped {
        stopped_us: stopped.0 / 1000,
        // The time that passed does not have the machine's sleep in it.
        share: share_if_notable(stopped, elapsed)?.min(1.0),
    })
}

const TIMER_DELAY_MAX: Nanoseconds = Nanoseconds::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::WorkerMeasure;

    #[test]
    fn a_tenth_of_the_time_is_named() {
        let repetition = |elapsed_ms| Repetition {
            workers: vec![WorkerMeasure {
                elapsed_time: Nanoseconds::from_millis(elapsed_ms),
                ..WorkerMeasure::default()
            }],
            ..Repetition::default()
        };
        for (stopped_ms, elapsed_ms, share) in [
            (0, 100, None),
            (4, 20, None),
            (9, 100, None),
            (300, 400, Some(0.75)),
            (300, 4000, None),
            // A night.
            (30_000_000, 4000, Some(1.0)),
        ] {
            let found = detect_stop(
                Nanoseconds::from_millis(stopped_ms),
                &repetition(elapsed_ms),
            );
            let named = found.as_ref().and_then(Interference::disturbed_share);
            assert_eq!(named, share, "{stopped_ms} of {elapsed_ms} ms");
        }
    }

    #[test]
    fn a_sleep_of_the_machine_is_missed_too() {
        const NIGHT: Nanoseconds = Nanoseconds::from_millis(30_000_000);
        let roll = StopDetector::start_detector();
        let later = roll.machine_sleep_before + NIGHT;
        let missed_time = roll.stopped_time_with_sleep(later);
        assert!(missed_time >= NIGHT, "{missed_time:?}");
    }

    #[test]
    fn who_sleeps_for_longer_than_a_period_has_missed_the_rest() {
        let mut roll = StopDetector::start_detector();
        roll.record_run();
        let sleep = Duration::from_millis(50);
        std::thread::sleep(sleep);
        let least = Nanoseconds(sleep.as_nanos() as u64).since(StopDetector::check_period());
        let missed_time = roll.stopped_time;
        roll.record_run();
        assert!(roll.stopped_time.since(missed_time) >= least);
    }
}
