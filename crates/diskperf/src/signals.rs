//! Signal handling that ends a run in order.

use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::clean::{has_any_workspace, write_answer};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::flag::register;
use signal_hook::low_level;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Signals with which users and terminals end a program.
const STOP_SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Signals that end a process by default, unless the caller set them to be ignored (`nohup`).
/// Ignored signals remain ignored.
const STOP_SIGNALS_UNLESS_IGNORED: [i32; 7] = [
    SIGHUP, SIGQUIT, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2,
];

/// Interval within which a repeated signal counts as the same request. `timeout` sends its signal
/// to the process and immediately again to the process group.
const SAME_REQUEST_WINDOW: Duration = Duration::from_secs(1);

const INTERRUPTED_CODE: i32 = 130;

/// Message after the first signal while a run has files, because removing many files takes a while.
const STOPPING_MESSAGE: &str = "diskperf: interrupted: the run's folder is being removed; a second signal leaves it to `diskperf clean`\n";

/// Message after a second signal while a run has files.
const KILLED_MESSAGE: &str =
    "diskperf: ended at once: the run's folder is left; `diskperf clean` removes it\n";

/// Installs handlers so that the first signal ends the run in order, and a second one ends the
/// process immediately and leaves the files to `diskperf clean`. The CPU time limit never ends the
/// process immediately, because the kernel repeats its signal every second. Each signal is
/// acknowledged if the run has a folder.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, LaboratoryError> {
    let wish = Arc::new(StopRequest::new());
    let ignored = ignored_signals();
    let others = STOP_SIGNALS_UNLESS_IGNORED
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0);
    for signal in STOP_SIGNALS.into_iter().chain(others) {
        watch_signal(signal, &wish).map_err(|error| signal_error(signal, &error))?;
    }
    let stop = Arc::clone(&wish.stop);
    register(SIGXCPU, Arc::clone(&stop)).map_err(|error| signal_error(SIGXCPU, &error))?;
    Ok(stop)
}

struct StopRequest {
    stop: Arc<AtomicBool>,
    watch_start: Instant,
    /// Number of the first signal in the low byte, and the milliseconds until its arrival above it;
    /// 0 before any signal.
    first_signal_ms: AtomicU64,
}

impl StopRequest {
    fn new() -> Self {
        Self {
            stop: Arc::new(AtomicBool::new(false)),
            watch_start: Instant::now(),
            first_signal_ms: AtomicU64::new(0),
        }
    }

    fn is_repeated(&self, signal: i32) -> bool {
        let now_ms = self.watch_start.elapsed().as_millis() as u64;
        let this = (now_ms << 8) | signal as u64;
        let first =
            self.first_signal_ms
                .compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst);
        match first {
            Ok(_) => false,
            Err(first) => {
                let is_same = first & 0xff == this & 0xff;
                let after_ms = now_ms.saturating_sub(first >> 8);
                !is_same || after_ms >= SAME_REQUEST_WINDOW.as_millis() as u64
            }
        }
    }
}

#[allow(unsafe_code)]
fn watch_signal(signal: i32, wish: &Arc<StopRequest>) -> io::Result<()> {
    let wish = Arc::clone(wish);
    // A progress bar, which is drawn again below the line.
    let clear = if io::stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    };
    let say = move |line| {
        if has_any_workspace() {
            write_answer(&[clear, line]);
        }
    };
    let act = move || match wish.is_repeated(signal) {
        true => {
            say(KILLED_MESSAGE);
            low_level::exit(INTERRUPTED_CODE);
        }
        false if !wish.stop.swap(true, Ordering::SeqCst) => say(STOPPING_MESSAGE),
        false => {}
    };
    // SAFETY: what is done in the handler is allowed there (signal-safety(7)): operations of
    // atomics, clock_gettime(2), poll(2), write(2) and _exit(2).
    unsafe { low_level::register(signal, act) }.map(|_| ())
}

/// Makes a write beyond the user's file size limit fail like any other failed write, where it would
/// otherwise end the process.
pub(crate) fn outlive_file_size_limit() -> Result<(), LaboratoryError> {
    let reached = Arc::new(AtomicBool::new(false));
    match register(SIGXFSZ, reached) {
        Ok(_) => Ok(()),
        Err(error) => Err(signal_error(SIGXFSZ, &error)),
    }
}

fn signal_error(signal: i32, error: &io::Error) -> LaboratoryError {
    LaboratoryError::Failure(format!("cannot watch for signal {signal}: {error}"))
}

/// Returns the signals that this process has ignored since its start, as a bit mask; 0 if the
/// kernel does not report them.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_twice_at_once_is_one_wish() {
        let wish = StopRequest::new();
        assert!(!wish.is_repeated(SIGTERM));
        assert!(!wish.is_repeated(SIGTERM));
        assert!(wish.is_repeated(SIGINT));
    }

    #[test]
    fn a_signal_that_comes_again_later_insists() {
        let earlier = Instant::now().checked_sub(2 * SAME_REQUEST_WINDOW);
        let mut wish = StopRequest::new();
        assert!(!wish.is_repeated(SIGTERM));
        wish.watch_start = earlier.expect("a machine that was not just started");
        assert!(wish.is_repeated(SIGTERM));
    }
}
