//! The host's clocks: one for elapsed times, a cheaper one for single calls.
//!
//! Timing a call takes two readings. `clock_gettime` costs about 20 ns, which
//! is a visible share of a cached read; the processor's time stamp counter
//! costs half of it or less. It is used only where the kernel itself keeps
//! time by it, which is the kernel's word that it is constant and synchronous
//! over the CPUs.

use diskperf_timeline::Nanoseconds;
use rustix::time::{ClockId, clock_gettime};

/// Ticks are turned into nanoseconds by `ticks * scale >> SHIFT`.
const SHIFT: u32 = 32;

/// How long the counter is held against the clock: long enough for an error
/// below the histogram's resolution, short enough not to delay a run.
const CALIBRATION: Nanoseconds = Nanoseconds::from_millis(2);

/// The clock that times single calls.
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

/// A reading of a [`Clock`], in its own unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks(u64);

impl Clock {
    /// The cheapest clock that the kernel vouches for. Takes about 2 ms where
    /// it has to be calibrated: make one per run and copy it.
    pub fn calibrated() -> Self {
        #[cfg(target_arch = "x86_64")]
        if kernel_keeps_time_by_tsc() {
            let (begin, begin_ticks) = both_clocks(time_stamp_counter, |_| false);
            while monotonic().since(begin) < CALIBRATION {}
            let (end, end_ticks) = both_clocks(time_stamp_counter, |_| false);
            let ticks = u128::from(end_ticks.saturating_sub(begin_ticks).max(1));
            let scale = (u128::from(end.since(begin).0) << SHIFT) / ticks;
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

    /// `tsc` or `clock_gettime`.
    pub fn name(&self) -> &'static str {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::TimeStampCounter { .. } => "tsc",
            Source::Gettime => "clock_gettime",
        }
    }

    /// Reads the clock.
    #[inline]
    pub(crate) fn ticks(&self) -> Ticks {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::TimeStampCounter { .. } => Ticks(time_stamp_counter()),
            Source::Gettime => Ticks(monotonic().0),
        }
    }

    /// The time between two readings.
    #[inline]
    pub(crate) fn span(&self, begin: Ticks, end: Ticks) -> Nanoseconds {
        let ticks = end.0.saturating_sub(begin.0);
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::TimeStampCounter { scale } => {
                Nanoseconds(((u128::from(ticks) * u128::from(scale)) >> SHIFT) as u64)
            }
            Source::Gettime => Nanoseconds(ticks),
        }
    }
}

/// Tells the time that [`monotonic`] tells, at the cost of a [`Clock`]: it is set by that
/// again and again, so that it errs by a hundredth of a microsecond or so, by
/// [`SET_WITHIN`] at most unless the thread keeps losing the processor, and never runs
/// backwards.
#[derive(Clone, Debug)]
pub(crate) struct SteadyClock {
    clock: Clock,
    set_at: Nanoseconds,
    set_at_ticks: Ticks,
    latest: Nanoseconds,
}

/// How long it goes on by itself.
const SET_FOR: Nanoseconds = Nanoseconds::from_millis(1);

/// Between the two readings of the counter around one of the clock there is nothing else:
/// else the thread lost the processor meanwhile, and another attempt is better.
const SET_WITHIN: Nanoseconds = Nanoseconds(500);
const ATTEMPTS_TO_SET: usize = 8;

impl SteadyClock {
    pub(crate) fn new(clock: Clock) -> Self {
        let mut steady = Self {
            clock,
            set_at: Nanoseconds::ZERO,
            set_at_ticks: clock.ticks(),
            latest: Nanoseconds::ZERO,
        };
        steady.set();
        steady
    }

    /// Time since the arbitrary moment of [`monotonic`].
    #[inline]
    pub(crate) fn now(&mut self) -> Nanoseconds {
        self.now_within(SET_FOR)
    }

    /// The same, where there is time to set it: half of what it goes on by itself is left
    /// for readings that are to be quick.
    #[inline]
    pub(crate) fn now_and_set(&mut self) -> Nanoseconds {
        self.now_within(Nanoseconds(SET_FOR.0 / 2))
    }

    #[inline]
    fn now_within(&mut self, set_for: Nanoseconds) -> Nanoseconds {
        let ticks = self.clock.ticks();
        let since = self.clock.span(self.set_at_ticks, ticks);
        // On some machines the counter begins anew after a sleep.
        if since > set_for || ticks.0 < self.set_at_ticks.0 {
            self.set();
        } else {
            self.latest = self.latest.max(self.set_at + since);
        }
        self.latest
    }

    #[cold]
    fn set(&mut self) {
        let clock = self.clock;
        let near = |took| clock.span(Ticks(0), Ticks(took)) <= SET_WITHIN;
        let (now, ticks) = both_clocks(|| clock.ticks().0, near);
        (self.set_at, self.set_at_ticks) = (now, Ticks(ticks));
        let since = self.clock.span(self.set_at_ticks, self.clock.ticks());
        self.latest = self.latest.max(self.set_at + since);
    }
}

/// Time since an arbitrary moment, the same for all threads; does not jump.
#[inline]
pub(crate) fn monotonic() -> Nanoseconds {
    let time = clock_gettime(ClockId::Monotonic);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// A reading of [`monotonic`] and the counter's at the same moment. Of several attempts it is
/// the one that took the least ticks, or the first that is `near` enough: a thread that loses
/// the processor between the two would pair readings that are milliseconds apart.
fn both_clocks(mut counter: impl FnMut() -> u64, near: impl Fn(u64) -> bool) -> (Nanoseconds, u64) {
    let mut best = (u64::MAX, Nanoseconds::ZERO, 0);
    for _ in 0..ATTEMPTS_TO_SET {
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

/// What the machine has slept since it booted: [`monotonic`] stands still meanwhile.
pub(crate) fn asleep() -> Nanoseconds {
    let reading = || {
        let before = monotonic();
        let booted = clock_gettime(ClockId::Boottime);
        let booted = Nanoseconds(booted.tv_sec as u64 * 1_000_000_000 + booted.tv_nsec as u64);
        // A thread that lost the processor between the two would seem to have slept.
        (monotonic().since(before), booted.since(before))
    };
    let readings = (0..ATTEMPTS_TO_SET).map(|_| reading());
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
        let (now, ticks) = both_clocks(counter, |_| false);
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
