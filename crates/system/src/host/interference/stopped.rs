//! Detection of a stopped process or a sleeping machine.
//!
//! While the machine sleeps, its clocks stop, except the one that counts the time since it booted.
//! The difference is the duration of the sleep.
//!
//! A stopped thread cannot notice the stop: its clocks and the kernel's accounts look like those of
//! a thread that slept. So a thread without other work wakes up periodically and measures its
//! delay. Time that it was ready to run is subtracted, since that is processor contention.

use super::notable_share;
use crate::host::clock::{machine_sleep_time, monotonic};
use crate::host::usage::CpuWait;
use diskperf_timeline::{Interference, Nanoseconds, Repetition};
use std::time::Duration;

/// Detector of stops, which the main thread calls periodically while it waits for workers.
pub struct Roll {
    answered_at: Nanoseconds,
    missed_time: Nanoseconds,
    /// Time that the machine had slept before the detector started.
    slept_before: Nanoseconds,
    cpu_wait: Option<(CpuWait, Nanoseconds)>,
}

impl Roll {
    /// Interval between answers. It detects the shortest stop that would be reported for a
    /// repetition of a tenth of a second. An answer costs some microseconds, too little to affect
    /// the figures.
    pub const PERIOD: Duration = Duration::from_millis(10);

    /// Starts a detector of stops for the calling thread's process.
    pub fn begin() -> Self {
        let wait = CpuWait::of_current_thread();
        Self {
            cpu_wait: wait.and_then(|wait| {
                let now = wait.read()?;
                Some((wait, now))
            }),
            missed_time: Nanoseconds::ZERO,
            slept_before: machine_sleep_time(),
            answered_at: monotonic(),
        }
    }

    fn period() -> Nanoseconds {
        Nanoseconds(Self::PERIOD.as_nanos() as u64)
    }

    /// Records that the thread runs now. A delay beyond [`Self::PERIOD`] counts as missed time.
    pub fn answer(&mut self) {
        let now = monotonic();
        let late = now.since(self.answered_at).since(Self::period());
        self.missed_time = self.missed_time + late;
        self.answered_at = now;
    }

    /// Restarts the detector's interval after other work of this thread. The duration of that work
    /// does not count as missed time.
    pub fn resume(&mut self) {
        self.answered_at = monotonic();
    }

    /// Returns the time during which this process neither ran nor was ready to, including the
    /// machine's sleep.
    pub fn end(self) -> Nanoseconds {
        self.end_with_sleep(machine_sleep_time())
    }

    fn end_with_sleep(mut self, slept: Nanoseconds) -> Nanoseconds {
        self.answer();
        let waited = self.cpu_wait.and_then(|(wait, before)| {
            let now = wait.read()?;
            Some(now.since(before))
        });
        let awake = self.missed_time.since(waited.unwrap_or_default());
        awake + slept.since(self.slept_before)
    }
}

pub(super) fn detect(stopped: Nanoseconds, repetition: &Repetition) -> Option<Interference> {
    let elapsed = repetition.durable().unwrap_or(repetition.elapsed());
    // A timer may be late by less on a machine that saves power.
    if stopped < TIMER_DELAY_MAX {
        return None;
    }
    Some(Interference::Stopped {
        stopped_us: stopped.0 / 1000,
        // The time that passed does not have the machine's sleep in it.
        share: notable_share(stopped, elapsed)?.min(1.0),
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
                elapsed: Nanoseconds::from_millis(elapsed_ms),
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
            let found = detect(
                Nanoseconds::from_millis(stopped_ms),
                &repetition(elapsed_ms),
            );
            let named = found.as_ref().and_then(Interference::share);
            assert_eq!(named, share, "{stopped_ms} of {elapsed_ms} ms");
        }
    }

    #[test]
    fn a_sleep_of_the_machine_is_missed_too() {
        const NIGHT: Nanoseconds = Nanoseconds::from_millis(30_000_000);
        let roll = Roll::begin();
        let later = roll.slept_before + NIGHT;
        let missed_time = roll.end_with_sleep(later);
        assert!(missed_time >= NIGHT, "{missed_time:?}");
    }

    #[test]
    fn who_sleeps_for_longer_than_a_period_has_missed_the_rest() {
        let mut roll = Roll::begin();
        roll.answer();
        let sleep = Duration::from_millis(50);
        std::thread::sleep(sleep);
        let least = Nanoseconds(sleep.as_nanos() as u64).since(Roll::period());
        let missed_time = roll.missed_time;
        roll.answer();
        assert!(roll.missed_time.since(missed_time) >= least);
    }
}
