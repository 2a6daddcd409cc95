//! Progress without a terminal: occasional lines, suitable for a log.

use crate::output::print_message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time before the first line; most commands end earlier.
const FIRST_LINE_DELAY: Duration = Duration::from_secs(10);

/// Interval between lines, so that a log of one hour has 120.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// Interval between checks for a due line, long enough not to disturb a measurement.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

const STACK_BYTES: usize = 256 << 10;

pub(super) struct LineSchedule {
    start: Instant,
    /// Time of the next line, relative to the start.
    next_due: Duration,
}

impl LineSchedule {
    pub(super) fn from_now() -> Self {
        Self {
            start: Instant::now(),
            next_due: FIRST_LINE_DELAY,
        }
    }

    /// Prints a line with the elapsed time, if one is due.
    pub(super) fn print_if_due(&mut self, line: impl FnOnce() -> String) {
        let elapsed = self.start.elapsed();
        if self.advance_if_due(elapsed) {
            print_message(&format!("{} ({} s)", line(), elapsed.as_secs()));
        }
    }

    /// Tests whether a line is due at this elapsed time, and schedules the next one. Missed lines
    /// are not repeated.
    fn advance_if_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.next_due;
        if is_due {
            self.next_due = elapsed + LINE_INTERVAL;
        }
        is_due
    }
}

/// Thread that calls a function at regular intervals until it is dropped.
pub(super) struct Ticker {
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread; `None` if no thread can be created, in which case only the progress
    /// display is lost.
    pub(super) fn new(period: Duration, mut tick: impl FnMut() + Send + 'static) -> Option<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let ticks = move || {
            while !ends.load(Ordering::Relaxed) {
                tick();
                std::thread::park_timeout(period);
            }
        };
        let thread = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(ticks)
            .ok()?;
        let thread = Some(thread);
        Some(Self {
            has_ended: is_over,
            thread,
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked has only stopped to show progress.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_now_and_then() {
        let mut lines = LineSchedule::from_now();
        for (seconds, is_due) in [
            (0, false),
            (9, false),
            (10, true),
            (11, false),
            (39, false),
            (41, true),
            // Three are missed.
            (150, true),
            (151, false),
            (180, true),
        ] {
            assert_eq!(
                lines.advance_if_due(Duration::from_secs(seconds)),
                is_due,
                "{seconds} s"
            );
        }
    }
}
