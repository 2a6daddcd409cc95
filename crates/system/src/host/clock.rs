//! Clocks of the host: one for elapsed times, and a cheaper one for single calls.
//!
//! Timing a call takes two readings. `clock_gettime` costs about 20 ns, a visible share of a cached
//! read; the processor's time stamp counter costs half of it or less. The counter is used only if
//! the kernel itself keeps time by it. The kernel then vouches that the counter is constant and
//! synchronous over the CPUs.

use diskperf_timeline::Nanoseconds;
use rustix::time::{ClockId, clock_gettime};

/// Shift of the conversion from ticks to nanoseconds: `ticks * scale >> SCALE_SHIFT`.
const SCALE_SHIFT: u32 = 32;

/// Duration of the comparison of the counter with the clock. It is long enough for an error below
/// the histogram's resolution, and too short to delay a run.
const CALIBRATION_TIME: Nanoseconds = Nanoseconds::from_millis(2);

/// Clock that times single calls.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    #[cfg(target_arch = "x86_64")]
    TimeStampCounter {
        scale: u64,
    },
    Gettime,
}

/// Reading of a [`Clock`], in the clock's own unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks(u64);

impl Clock {
    /// Returns the cheapest clock that the kernel vouches for. Calibration, where it is needed,
    /// takes about 2 ms: make one clock per run and copy it.
    pub fn calibrated() -> Self {
        #[cfg(target_arch = "x86_64")]
        if kernel_keeps_time_by_tsc() {
            let (begin, begin_ticks) = read_simultaneously(time_stamp_counter, |_| false);
            while monotonic().since(begin) < CALIBRATION_TIME {}
            let (end, end_ticks) = read_simultaneously(time_stamp_counter, |_| false);
            let ticks = u128::from(end_ticks.saturating_sub(begin_ticks).max(1));
            let scale = (u128::from(end.since(begin).0) << SCALE_SHIFT) / ticks;
            return Self {
                source: Source::TimeStampCounter {
                    scale: scale as u64,
                },
            };
        }
        Self {
            source: Source::Gettime,
        }
    }

    /// Returns the clock's name, `tsc` or `clock_gettime`.
    pub fn name(&self) -> &'static str {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::TimeStampCounter { .. } => "tsc",
            Source::Gettime => "clock_gettime",
        }
    }

    /// Returns a reading of the clock in ticks.
    #[inline]
    pub(crate) fn ticks(&self) -> Ticks {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::TimeStampCounter { .. } => Ticks(time_stamp_counter()),
            Source::Gettime => Ticks(monotonic().0),
        }
    }

    /// Returns the time between two readings of the clock.
    #[inline]
    pub(crate) fn span(&self, begin: Ticks, end: Ticks) -> Nanoseconds {
        let ticks = end.0.saturating_sub(begin.0);
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::TimeStampCounter { scale } => {
                Nanoseconds(((u128::from(ticks) * u128::from(scale)) >> SCALE_SHIFT) as u64)
            }
            Source::Gettime => Nanoseconds(ticks),
        }
    }
}

/// Clock with the time of [`monotonic`] at the cost of a [`Clock`]. It is set by `monotonic`
/// regularly and never runs backwards. Its error is about a hundredth of a microsecond, and at most
/// [`SET_ERROR_MAX`] unless the thread keeps losing the processor.
#[derive(Clone, Debug)]
pub(crate) struct SteadyClock {
    clock: Clock,
    set_at: Nanoseconds,
    set_at_ticks: Ticks,
    latest: Nanoseconds,
}

/// Interval after which a steady clock is set by [`monotonic`] again.
const SET_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1);

/// Maximum time between the two counter readings around a clock reading. A longer time means that
/// the thread lost the processor, and another attempt is better.
const SET_ERROR_MAX: Nanoseconds = Nanoseconds(500);
const SET_ATTEMPTS_MAX: usize = 8;

impl SteadyClock {
    pub(crate) fn new(clock: Clock) -> Self {
        let mut steady = Self {
            clock,
            set_at: Nanoseconds::ZERO,
            set_at_ticks: clock.ticks(),
            latest: Nanoseconds::ZERO,
        };
        steady.set_by_monotonic();
        steady
    }

    /// Returns the time since the arbitrary start of [`monotonic`].
    #[inline]
    pub(crate) fn now(&mut self) -> Nanoseconds {
        self.now_set_within(SET_INTERVAL)
    }

    /// Returns the current time, and sets the clock early, after half the usual interval. It serves
    /// callers that have time for it, so that later readings are quick.
    #[inline]
    pub(crate) fn now_setting_early(&mut self) -> Nanoseconds {
        self.now_set_within(Nanoseconds(SET_INTERVAL.0 / 2))
    }

    #[inline]
    fn now_set_within(&mut self, set_for: Nanoseconds) -> Nanoseconds {
        let ticks = self.clock.ticks();
        let since = self.clock.span(self.set_at_ticks, ticks);
        // On some machines the counter begins anew after a sleep.
        if since > set_for || ticks.0 < self.set_at_ticks.0 {
            self.set_by_monotonic();
        } else {
            self.latest = self.latest.max(self.set_at + since);
        }
        self.latest
    }

    #[cold]
    fn set_by_monotonic(&mut self) {
        let clock = self.clock;
        let near = |took| clock.span(Ticks(0), Ticks(took)) <= SET_ERROR_MAX;
        let (now, ticks) = read_simultaneously(|| clock.ticks().0, near);
        (self.set_at, self.set_at_ticks) = (now, Ticks(ticks));
        let since = self.clock.span(self.set_at_ticks, self.clock.ticks());
        self.latest = self.latest.max(self.set_at + since);
    }
}

/// Returns the time since an arbitrary start that is the same for all threads. The clock does not
/// jump.
#[inline]
pub(crate) fn monotonic() -> Nanoseconds {
    let time = clock_gettime(ClockId::Monotonic);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns simultaneous readings of [`monotonic`] and the counter. Of several attempts it takes the
/// one with the fewest ticks, or the first that is `near` enough. If the thread lost the processor
/// between the two readings, they would be milliseconds apart.
fn read_simultaneously(
    mut counter: impl FnMut() -> u64,
    near: impl Fn(u64) -> bool,
) -> (Nanoseconds, u64) {
    let mut best = (u64::MAX, Nanoseconds::ZERO, 0);
    for _ in 0..SET_ATTEMPTS_MAX {
        let before = counter();
        let now = monotonic();
        let took = counter().saturating_sub(before);
        if took < best.0 {
            // The clock was read halfway between the two.
            best = (took, now, before + took / 2);
        }
        if near(took) {
            break;
        }
    }
    (best.1, best.2)
}

/// Returns the time that the machine has slept since it booted. [`monotonic`] does not count it.
pub(crate) fn machine_sleep_time() -> Nanoseconds {
    let reading = || {
        let before = monotonic();
        let booted = clock_gettime(ClockId::Boottime);
        let booted = Nanoseconds(booted.tv_sec as u64 * 1_000_000_000 + booted.tv_nsec as u64);
        // A thread that lost the processor between the two would seem to have slept.
        (monotonic().since(before), booted.since(before))
    };
    let readings = (0..SET_ATTEMPTS_MAX).map(|_| reading());
    readings.min().map_or(Nanoseconds::ZERO, |(_, slept)| slept)
}

#[cfg(target_arch = "x86_64")]
fn kernel_keeps_time_by_tsc() -> bool {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn time_stamp_counter() -> u64 {
    // SAFETY: the instruction exists on every x86_64 processor and touches no
    // memory. It traps only where a process has asked for that by prctl, in
    // which case the kernel's own clock could not be read either.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_keeps_to_the_slow_one() {
        let mut steady = SteadyClock::new(Clock::calibrated());
        let end = monotonic() + Nanoseconds::from_millis(30);
        let mut latest = Nanoseconds::ZERO;
        let mut least_error = u64::MAX;
        while monotonic() < end {
            let (before, now, after) = (monotonic(), steady.now(), monotonic());
            assert!(now >= latest, "{now:?} after {latest:?}");
            latest = now;
            // A reading between two others lies between them, but for the error.
            least_error = least_error.min(before.since(now).0 + now.since(after).0);
        }
        assert!(least_error < 2_000, "never closer than {least_error} ns");
    }

    #[test]
    fn a_steady_clock_goes_on_when_the_counter_begins_anew() {
        let mut steady = SteadyClock::new(Clock::calibrated());
        let later = monotonic() + Nanoseconds::from_millis(5);
        while monotonic() < later {}
        steady.set_at_ticks = Ticks(u64::MAX);
        let now = steady.now();
        assert!(
            now + Nanoseconds::from_millis(1) >= later,
            "{now:?}, {later:?}"
        );
    }

    /// A thread that loses the processor between the readings of the two clocks.
    #[test]
    fn a_pause_between_the_clocks_is_not_taken_for_the_counters_speed() {
        let mut readings = 0;
        let counter = || {
            readings += 1;
            // Before the first attempt's reading of the clock, and after the second's.
            if matches!(readings, 2 | 3) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            monotonic().0
        };
        let (now, ticks) = read_simultaneously(counter, |_| false);
        let apart = now.0.abs_diff(ticks);
        assert!(apart < 10_000_000, "{apart} ns apart");
    }

    #[test]
    fn both_clocks_agree_on_a_span() {
        let clock = Clock::calibrated();
        let (begin, begin_ticks) = (monotonic(), clock.ticks());
        while monotonic().since(begin) < Nanoseconds::from_millis(20) {}
        let (ticks_span, span) = (
            clock.span(begin_ticks, clock.ticks()),
            monotonic().since(begin),
        );
        // A preemption between the two readings only makes one of them
        // longer; it takes a wrong scale to make both orders differ by 10 %.
        let ratio = ticks_span.0 as f64 / span.0 as f64;
        assert!(
            (0.9..1.1).contains(&ratio),
            "{} says {ratio} of clock_gettime",
            clock.name()
        );
    }
}
