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
pub struct CallClock {
    clock_source: ClockSource,
}

#[derive(Clone, Copy, Debug)]
enum ClockSource {
    #[cfg(target_arch = "x86_64")]
    TimeStampCounter {
        scale: u64,
    },
    ClockGettime,
}

/// Reading of a [`CallClock`], in the clock's own unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockTicks(u64);

impl CallClock {
    /// Returns the cheapest clock that the kernel vouches for. Calibration, where it is needed,
    /// takes about 2 ms: make one clock per run and copy it.
    pub fn new_calibrated() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_tsc_kernel_clock_source() {
            let (begin, begin_ticks) = read_simultaneously(read_time_stamp_counter, |_| false);
            while monotonic_now().since(begin) < CALIBRATION_TIME {}
            let (end, end_ticks) = read_simultaneously(read_time_stamp_counter, |_| false);
            let ticks = u128::from(end_ticks.saturating_sub(begin_ticks).max(1));
            let scale = (u128::from(end.since(begin).0) << SCALE_SHIFT) / ticks;
            return Self {
                clock_source: ClockSource::TimeStampCounter {
                    scale: scale as u64,
                },
            };
        }
        Self {
            clock_source: ClockSource::ClockGettime,
        }
    }

    /// Returns the clock's name, `tsc` or `clock_gettime`.
    pub fn clock_name(&self) -> &'static str {
        match self.clock_source {
            #[cfg(target_arch = "x86_64")]
            ClockSource::TimeStampCounter { .. } => "tsc",
            ClockSource::ClockGettime => "clock_gettime",
        }
    }

    #[inline]
    pub(crate) fn read_ticks(&self) -> ClockTicks {
        match self.clock_source {
            #[cfg(target_arch = "x86_64")]
            ClockSource::TimeStampCounter { .. } => ClockTicks(read_time_stamp_counter()),
            ClockSource::ClockGettime => ClockTicks(monotonic_now().0),
        }
    }

    /// Returns the time between two readings of the clock.
    #[inline]
    pub(crate) fn time_between(&self, begin: ClockTicks, end: ClockTicks) -> Nanoseconds {
        let ticks = end.0.saturating_sub(begin.0);
        match self.clock_source {
            #[cfg(target_arch = "x86_64")]
            ClockSource::TimeStampCounter { scale } => {
                Nanoseconds(((u128::from(ticks) * u128::from(scale)) >> SCALE_SHIFT) as u64)
            }
            ClockSource::ClockGettime => Nanoseconds(ticks),
        }
    }
}

/// Clock with the time of [`monotonic_now`] at the cost of a [`CallClock`]. It is set by `monotonic_now`
/// regularly and never runs backwards. Its error is about a hundredth of a microsecond, and at most
/// [`SYNCHRONIZATION_ERROR_MAX`] unless the thread keeps losing the processor.
#[derive(Clone, Debug)]
pub(crate) struct MonotonicClock {
    clock: CallClock,
    set_time: Nanoseconds,
    set_ticks: ClockTicks,
    latest_time: Nanoseconds,
}

/// Interval after which a steady clock is set by [`monotonic_now`] again.
const RESYNCHRONIZATION_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1);

/// Maximum time between the two counter readings around a clock reading. A longer time means that
/// the thread lost the processor, and another attempt is better.
const SYNCHRONIZATION_ERROR_MAX: Nanoseconds = Nanoseconds(500);
const SYNCHRONIZATION_ATTEMPTS_MAX: usize = 8;

impl MonotonicClock {
    pub(crate) fn new(clock: CallClock) -> Self {
        let mut steady = Self {
            clock,
            set_time: Nanoseconds::ZERO,
            set_ticks: clock.read_ticks(),
            latest_time: Nanoseconds::ZERO,
        };
        steady.synchronize_with_monotonic();
        steady
    }

    /// Returns the time since the arbitrary start of [`monotonic_now`].
    #[inline]
    pub(crate) fn now(&mut self) -> Nanoseconds {
        self.now_synchronized_within(RESYNCHRONIZATION_INTERVAL)
    }

    /// Returns the current time, and sets the clock early, after half the usual interval. It serves
    /// callers that have time for it, so that later readings are quick.
    #[inline]
    pub(crate) fn now_with_early_synchronization(&mut self) -> Nanoseconds {
        self.now_synchronized_within(Nanoseconds(RESYNCHRONIZATION_INTERVAL.0 / 2))
    }

    #[inline]
    fn now_synchronized_within(&mut self, set_for: Nanoseconds) -> Nanoseconds {
        let ticks = self.clock.read_ticks();
        let since = self.clock.time_between(self.set_ticks, ticks);
        // On some machines the counter begins anew after a sleep.
        if since > set_for || ticks.0 < self.set_ticks.0 {
            self.synchronize_with_monotonic();
        } else {
            self.latest_time = self.latest_time.max(self.set_time + since);
        }
        self.latest_time
    }

    #[cold]
    fn synchronize_with_monotonic(&mut self) {
        let clock = self.clock;
        let near =
            |took| clock.time_between(ClockTicks(0), ClockTicks(took)) <= SYNCHRONIZATION_ERROR_MAX;
        let (now, ticks) = read_simultaneously(|| clock.read_ticks().0, near);
        (self.set_time, self.set_ticks) = (now, ClockTicks(ticks));
        let since = self
            .clock
            .time_between(self.set_ticks, self.clock.read_ticks());
        self.latest_time = self.latest_time.max(self.set_time + since);
    }
}

/// Returns the time since an arbitrary start that is the same for all threads. The clock does not
/// jump.
#[inline]
pub(crate) fn monotonic_now() -> Nanoseconds {
    let time = clock_gettime(ClockId::Monotonic);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns simultaneous readings of [`monotonic_now`] and the counter. Of several attempts it takes the
/// one with the fewest ticks, or the first that is `near` enough. If the thread lost the processor
/// between the two readings, they would be milliseconds apart.
fn read_simultaneously(
    mut counter: impl FnMut() -> u64,
    near: impl Fn(u64) -> bool,
) -> (Nanoseconds, u64) {
    let mut best = (u64::MAX, Nanoseconds::ZERO, 0);
    for _ in 0..SYNCHRONIZATION_ATTEMPTS_MAX {
        let before = counter();
        let now = monotonic_now();
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

/// Returns the time that the machine has slept since it booted. [`monotonic_now`] does not count it.
pub(crate) fn machine_sleep_time() -> Nanoseconds {
    let reading = || {
        let before = monotonic_now();
        let booted = clock_gettime(ClockId::Boottime);
        let booted = Nanoseconds(booted.tv_sec as u64 * 1_000_000_000 + booted.tv_nsec as u64);
        // A thread that lost the processor between the two would seem to have slept.
        (monotonic_now().since(before), booted.since(before))
    };
    let readings = (0..SYNCHRONIZATION_ATTEMPTS_MAX).map(|_| reading());
    readings.min().map_or(Nanoseconds::ZERO, |(_, slept)| slept)
}

#[cfg(target_arch = "x86_64")]
fn is_tsc_kernel_clock_source() -> bool {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn read_time_stamp_counter() -> u64 {
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
        let mut steady = MonotonicClock::new(CallClock::new_calibrated());
        let end = monotonic_now() + Nanoseconds::from_millis(30);
        let mut latest = Nanoseconds::ZERO;
        let mut least_error = u64::MAX;
        while monotonic_now() < end {
            let (before, now, after) = (monotonic_now(), steady.now(), monotonic_now());
            assert!(now >= latest, "{now:?} after {latest:?}");
            latest = now;
            // A reading between two others lies between them, but for the error.
            least_error = least_error.min(before.since(now).0 + now.since(after).0);
        }
        assert!(least_error < 2_000, "never closer than {least_error} ns");
    }

    #[test]
    fn a_steady_clock_goes_on_when_the_counter_begins_anew() {
        let mut steady = MonotonicClock::new(CallClock::new_calibrated());
        let later = monotonic_now() + Nanoseconds::from_millis(5);
        while monotonic_now() < later {}
        steady.set_ticks = ClockTicks(u64::MAX);
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
            monotonic_now().0
        };
        let (now, ticks) = read_simultaneously(counter, |_| false);
        let apart = now.0.abs_diff(ticks);
        assert!(apart < 10_000_000, "{apart} ns apart");
    }

    #[test]
    fn both_clocks_agree_on_a_span() {
        let clock = CallClock::new_calibrated();
        let (begin, begin_ticks) = (monotonic_now(), clock.read_ticks());
        while monotonic_now().since(begin) < Nanoseconds::from_millis(20) {}
        let (ticks_span, span) = (
            clock.time_between(begin_ticks, clock.read_ticks()),
            monotonic_now().since(begin),
        );
        // A preemption between the two readings only makes one of them
        // longer; it takes a wrong scale to make both orders differ by 10 %.
        let ratio = ticks_span.0 as f64 / span.0 as f64;
        assert!(
            (0.9..1.1).contains(&ratio),
            "{} says {ratio} of clock_gettime",
            clock.clock_name()
        );
    }
}
