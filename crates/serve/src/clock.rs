//! Virtual time of a served drive.

use diskperf_sim::Time;
use std::time::{Duration, Instant};

/// Relation of the drive's virtual time to the monotonic clock. It never changes while a drive
/// is served.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// Virtual seconds per elapsed second.
    speed: f64,
}

impl Clock {
    /// Returns a clock that shows zero now.
    ///
    /// # Panics
    ///
    /// When the speed is not a positive number.
    pub fn start(speed: f64) -> Self {
        assert!(speed.is_finite() && speed > 0.0, "a speed of {speed}");
        Self {
            start: Instant::now(),
            speed,
        }
    }

    /// Returns the present virtual time.
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// Returns the virtual time at an instant, rounded down; zero before the start.
    pub fn at(&self, instant: Instant) -> Time {
        let elapsed_ns = instant.saturating_duration_since(self.start).as_nanos() as u64;
        match self.speed == 1.0 {
            true => Time(elapsed_ns),
            false => Time((elapsed_ns as f64 * self.speed) as u64),
        }
    }

    /// Returns an instant at which this virtual time has come, within a nanosecond of the
    /// earliest one.
    pub fn instant(&self, time: Time) -> Instant {
        self.start + self.elapsed(time)
    }

    /// Returns the elapsed time that a virtual duration takes, rounded up.
    pub fn elapsed(&self, time: Time) -> Duration {
        match self.speed == 1.0 {
            true => Duration::from_nanos(time.0),
            false => Duration::from_nanos((time.0 as f64 / self.speed).ceil() as u64),
        }
    }

    /// Virtual seconds per elapsed second.
    pub fn speed(&self) -> f64 {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_is_elapsed_time_multiplied_by_the_speed() {
        for speed in [0.1, 1.0, 3.0, 10.0] {
            let clock = Clock::start(speed);
            let after = clock.at(clock.start + Duration::from_millis(30));
            let expected_ns = 30e6 * speed;
            assert!((after.0 as f64 - expected_ns).abs() <= 1.0, "{after}");
        }
    }

    #[test]
    fn an_instant_is_within_a_nanosecond_of_its_virtual_time() {
        for speed in [0.1, 1.0, 3.0, 10.0] {
            let clock = Clock::start(speed);
            for ns in [0, 1, 7, 123_456_789, 98_765_432_109] {
                let shown = clock.at(clock.instant(Time(ns)) + Duration::from_nanos(1));
                assert!(shown >= Time(ns), "{speed}: {shown} before {ns} ns");
                let later_ns = shown.0 - ns;
                assert!(
                    later_ns as f64 <= 2.0 * speed + 1.0,
                    "{speed}: {later_ns} ns"
                );
            }
        }
    }

    #[test]
    fn no_time_has_passed_before_the_start() {
        let clock = Clock::start(1.0);
        let earlier = clock.start.checked_sub(Duration::from_millis(1));
        assert_eq!(clock.at(earlier.unwrap_or(clock.start)), Time::ZERO);
    }
}
