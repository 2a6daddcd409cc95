//! The way between controllers and memory.

use super::Surroundings;
use diskperf_sim::Time;

/// A bus, with what moves over it now.
#[derive(Clone, Debug)]
pub struct Bus {
    /// The most that it moves, in bytes per second.
    bytes_per_s: u64,
    /// Thousandths of the processor's speed that each MB/s (10^6 bytes)
    /// costs it, for both want the same memory.
    contention: u64,
    /// What moves now, in bytes per second.
    moving: u64,
    busy_since: Option<Time>,
    busy: Time,
}

/// A processor is never slowed below this, in thousandths.
const SLOWEST: u64 = 100;

impl Bus {
    /// An idle bus of this rate; `contention_share` is the share of the
    /// processor's speed that moving 1 MB/s takes.
    pub fn new(bytes_per_s: u64, contention_share: f64) -> Self {
        Self {
            bytes_per_s,
            contention: (contention_share * 1000.0 + 0.5) as u64,
            moving: 0,
            busy_since: None,
            busy: Time::ZERO,
        }
    }

    /// Another one like it, that has done nothing.
    pub(crate) fn idle(&self) -> Self {
        Self {
            moving: 0,
            busy_since: None,
            busy: Time::ZERO,
            ..self.clone()
        }
    }

    /// How long it needs for this much.
    pub fn time(&self, bytes: u64) -> Time {
        Time((bytes * 1_000_000_000).div_ceil(self.bytes_per_s))
    }

    /// For how long something has moved over it up to now.
    pub fn busy(&self, now: Time) -> Time {
        self.busy + self.busy_since.map_or(Time::ZERO, |since| now - since)
    }

    /// A stream of this rate starts.
    pub fn start(&mut self, around: &Surroundings<'_>, bytes_per_s: u64) {
        if self.moving == 0 {
            self.busy_since = Some(around.now());
        }
        self.moving += bytes_per_s;
        self.slow_processor(around);
    }

    /// A stream of this rate ends.
    ///
    /// # Panics
    ///
    /// When less than that moves.
    pub fn stop(&mut self, around: &Surroundings<'_>, bytes_per_s: u64) {
        assert!(self.moving >= bytes_per_s, "a stream ended twice");
        self.moving -= bytes_per_s;
        if self.moving == 0 {
            let since = self.busy_since.take().expect("something moved");
            self.busy += around.now() - since;
        }
        self.slow_processor(around);
    }

    fn slow_processor(&self, around: &Surroundings<'_>) {
        let lost = self.moving.min(self.bytes_per_s) * self.contention / 1_000_000;
        let rate = 1000_u64.saturating_sub(lost).max(SLOWEST);
        around.processors.set_rate(around.sim, rate);
    }
}
