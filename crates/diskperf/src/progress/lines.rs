//! Progress where there is no terminal: a line now and then, as a log wants it.

use crate::output::say;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long nothing is said: most commands are over before.
const SILENT: Duration = Duration::from_secs(10);

/// From a line to the next: a log of an hour has 120.
const APART: Duration = Duration::from_secs(30);

/// How often it is looked whether a line is due: rarely, so that no measurement is disturbed.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Stack of the thread that shows progress.
const STACK_BYTES: usize = 256 << 10;

/// When lines are due.
pub(super) struct Lines {
    start: Instant,
    /// When the next one is due, after the start.
    due: Duration,
}

impl Lines {
    pub(super) fn from_now() -> Self {
        Self {
            start: Instant::now(),
            due: SILENT,
        }
    }

    /// Prints a line if one is due, with how long it has lasted.
    pub(super) fn print(&mut self, line: impl FnOnce() -> String) {
        let elapsed = self.start.elapsed();
        if self.is_due(elapsed) {
            say(&format!("{} ({} s)", line(), elapsed.as_secs()));
        }
    }

    /// Whether a line is due after so long. Lines that were missed are not made up for.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.due;
        if is_due {
            self.due = elapsed + APART;
        }
        is_due
    }
}

/// A thread that does something at intervals, until this is dropped.
pub(super) struct Ticker {
    is_over: Arc<AtomicBool>,
    /// There until it is joined.
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// `None` where no thread can be had: then nothing moves, and nothing else is lost.
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
        Some(Self { is_over, thread })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
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
        let mut lines = Lines::from_now();
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
                lines.is_due(Duration::from_secs(seconds)),
                is_due,
                "{seconds} s"
            );
        }
    }
}
