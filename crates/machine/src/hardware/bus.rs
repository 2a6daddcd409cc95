//! Bus between controllers and memory.

use super::SimulationContext;
use diskperf_sim::Time;

/// Bus between controllers and memory, with its current data streams.
#[derive(Clone, Debug)]
pub struct Bus {
    bytes_per_s: u64,
    /// Processor slowdown per MB/s (10^6 bytes) of bus traffic, in thousandths of full speed.
    /// Processor and bus compete for the memory.
    slowdown_millionths_per_mb_s: u64,
    /// Rate of the current data streams, in bytes per second.
    moving_bytes_per_s: u64,
    busy_since: Option<Time>,
    busy_time: Time,
}

/// Lower limit of the processor's speed, in thousandths of full speed.
const PROCESSOR_SPEED_THOUSANDTHS_MIN: u64 = 100;

impl Bus {
    /// Returns an idle bus with the given bandwidth. `contention_share` is the share of the
    /// processor's speed that a transfer of 1 MB/s costs.
    pub fn new(bytes_per_s: u64, contention_share: f64) -> Self {
        Self {
            bytes_per_s,
            slowdown_millionths_per_mb_s: (contention_share * 1000.0 + 0.5) as u64,
            moving_bytes_per_s: 0,
            busy_since: None,
            busy_time: Time::ZERO,
        }
    }

    /// Returns an idle copy of the bus with the same parameters.
    pub(crate) fn clone_idle(&self) -> Self {
        Self {
            moving_bytes_per_s: 0,
            busy_since: None,
            busy_time: Time::ZERO,
            ..self.clone()
        }
    }

    /// Returns the duration of a transfer over the bus.
    pub fn transfer_time(&self, bytes: u64) -> Time {
        Time((bytes * 1_000_000_000).div_ceil(self.bytes_per_s))
    }

    /// Returns the time in which data moved over the bus, up to now.
    pub fn busy_time(&self, now: Time) -> Time {
        self.busy_time + self.busy_since.map_or(Time::ZERO, |since| now - since)
    }

    /// Starts a data stream over the bus with the given rate, which slows the processors.
    pub fn start_stream(&mut self, context: &SimulationContext<'_>, bytes_per_s: u64) {
        if self.moving_bytes_per_s == 0 {
            self.busy_since = Some(context.now());
        }
        self.moving_bytes_per_s += bytes_per_s;
        self.slow_processor_for_traffic(context);
    }

    /// Ends a data stream over the bus with the given rate.
    ///
    /// # Panics
    ///
    /// If less than this rate is moving.
    pub fn end_stream(&mut self, context: &SimulationContext<'_>, bytes_per_s: u64) {
        assert!(
            self.moving_bytes_per_s >= bytes_per_s,
            "a stream ended twice"
        );
        self.moving_bytes_per_s -= bytes_per_s;
        if self.moving_bytes_per_s == 0 {
            let since = self.busy_since.take().expect("something moved");
            self.busy_time += context.now() - since;
        }
        self.slow_processor_for_traffic(context);
    }

    fn slow_processor_for_traffic(&self, context: &SimulationContext<'_>) {
        let lost = self.moving_bytes_per_s.min(self.bytes_per_s)
            * self.slowdown_millionths_per_mb_s
            / 1_000_000;
        let rate = 1000_u64
            .saturating_sub(lost)
            .max(PROCESSOR_SPEED_THOUSANDTHS_MIN);
        context.processors.set_rate(context.sim, rate);
    }
}
