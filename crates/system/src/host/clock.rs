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
            let (begin, begin_ticks) = (monotonic(), time_stamp_counter());
            let mut end = begin;
            let mut end_ticks = begin_ticks;
            while end.since(begin) < CALIBRATION {
                (end, end_ticks) = (monotonic(), time_stamp_counter());
            }
            let ticks = u128::from((end_ticks - begin_ticks).max(1));
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

/// Time since an arbitrary moment, the same for all threads; does not jump.
#[inline]
pub(crate) fn monotonic() -> Nanoseconds {
    let time = clock_gettime(ClockId::Monotonic);
    Nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
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
