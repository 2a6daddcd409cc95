//! Finds the size at which a repetition lasts about half a second.

use crate::measured::Task;
use crate::observer::{Event, Observer};
use crate::repetition::Bench;
use diskperf_battery::ProgramError;
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{Nanoseconds, Repetition, WorkerMeasure};

/// 1983's size: no repetition moves less.
pub(crate) const SMALLEST_BYTES: u64 = 8 * MIB;
/// No repetition moves more, unless the user says so.
pub(crate) const LARGEST_BYTES: u64 = GIB;
/// How long a repetition should last.
const WANTED: Nanoseconds = Nanoseconds::from_millis(500);
/// A pilot at least this long is extrapolated from; a shorter one tells more
/// about the first calls than about the rate.
const TELLING: Nanoseconds = Nanoseconds::from_millis(60);
/// A pilot that is too short is followed by one of this many times its size.
const GROWTH: u64 = 8;

/// The size for a task, whose own size is not looked at. `fits` tells whether
/// every program that will move as much has the room for it.
pub(crate) fn size(
    bench: &Bench<'_>,
    task: Task<'_>,
    fits: impl Fn(u64) -> bool,
    observer: &mut dyn Observer,
) -> Result<u64, ProgramError> {
    let whole_calls = |bytes: u64| {
        let call_bytes = task.program.call_bytes();
        bytes.max(call_bytes) / call_bytes * call_bytes
    };
    let mut size_bytes = SMALLEST_BYTES.max(task.program.call_bytes());
    // A file of the user's may be smaller than that.
    while size_bytes > task.program.call_bytes() && !fits(size_bytes) {
        size_bytes /= 2;
    }
    loop {
        observer.event(Event::Pilot { size_bytes });
        let tried = Task {
            size_bytes: whole_calls(size_bytes),
            ..task
        };
        let elapsed = longest(&bench.repetition(tried, (0, 1), observer)?);
        let grown = size_bytes * GROWTH;
        if elapsed < TELLING && grown <= LARGEST_BYTES && fits(grown) {
            size_bytes = grown;
            continue;
        }
        let mut best = extrapolated(size_bytes, elapsed);
        while best > task.program.call_bytes() && !fits(best) {
            best /= 2;
        }
        return Ok(whole_calls(best));
    }
}

/// How long the slowest worker took, until its data was durable: the time that
/// a size has a bearing on. When the workers started has none.
fn longest(repetition: &Repetition) -> Nanoseconds {
    let took = |worker: &WorkerMeasure| worker.durable.unwrap_or(worker.elapsed);
    repetition
        .workers
        .iter()
        .map(took)
        .max()
        .unwrap_or_default()
}

/// The power of two between the limits at which a repetition is nearest to
/// what is wanted. Powers of two keep the sizes of two runs the same although
/// their pilots differ.
fn extrapolated(size_bytes: u64, elapsed: Nanoseconds) -> u64 {
    let wanted = size_bytes as f64 * WANTED.0 as f64 / elapsed.0.max(1) as f64;
    let mut best = SMALLEST_BYTES;
    while best < LARGEST_BYTES && (best as f64) * std::f64::consts::SQRT_2 < wanted {
        best *= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_second_between_the_limits() {
        for (size_mib, elapsed_ms, expected_mib) in [
            (8, 500, 8),
            (8, 5000, 8),
            (8, 60, 64),
            (64, 100, 256),
            (512, 60, 1024),
            (64, 490, 64),
            (64, 360, 64),
        ] {
            let size = extrapolated(size_mib * MIB, Nanoseconds::from_millis(elapsed_ms));
            assert_eq!(
                size / MIB,
                expected_mib,
                "{size_mib} MiB in {elapsed_ms} ms"
            );
        }
    }
}
