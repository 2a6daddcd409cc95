//! Measuring in processor time of this thread, which other load on the
//! machine does not stretch, and holding a bar.

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time of the thread that measures.
pub(crate) struct ThreadTime {
    format: WallTime,
}

impl ThreadTime {
    /// The measurement.
    pub(crate) fn new() -> Self {
        Self { format: WallTime }
    }
}

/// Processor time of this thread so far.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Measurement for ThreadTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        thread_time()
    }

    fn end(&self, start: Duration) -> Duration {
        thread_time() - start
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self.format.formatter()
    }
}

/// Whether this is a measurement; `cargo test` only asks whether the code
/// runs.
pub(crate) fn measures() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The shortest of several passes, in seconds of processor time: what the
/// code takes when nothing disturbs the caches.
pub(crate) fn shortest(passes: usize, mut pass: impl FnMut() -> Duration) -> f64 {
    let times = (0..passes).map(|_| pass());
    times.min().expect("at least one pass").as_secs_f64()
}
