//! Signals: what ends a run in order.

use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::clean::{answer, has_workspace};
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

/// What people and their terminals end a program with.
const ENDING: [i32; 2] = [SIGINT, SIGTERM];

/// Those whose default is to end the process as well, but that whoever started
/// this may have had it ignore (`nohup`), which is then to be left so.
const ENDING_UNLESS_IGNORED: [i32; 7] = [
    SIGHUP, SIGQUIT, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2,
];

/// A signal that comes again within this is the same wish: `timeout` sends its signal to
/// the process, and at once again to the process's group.
const SAME_WISH: Duration = Duration::from_secs(1);

/// The exit code of a run that a signal ended.
const INTERRUPTED: i32 = 130;

/// Answer to the first signal while a run has files. Removing many of them takes a while.
const ENDING_IN_ORDER: &str = "diskperf: interrupted: the run's folder is being removed; a second signal leaves it to `diskperf clean`\n";

/// Answer to the second signal then.
const ENDED_AT_ONCE: &str =
    "diskperf: ended at once: the run's folder is left; `diskperf clean` removes it\n";

/// The first signal ends the run in order; a second one ends the process at
/// once, and leaves the rest to `diskperf clean`. Not so the end of the CPU time
/// that the process may take, which the kernel says every second from then on.
/// Each is answered at once where the run has a folder.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, LaboratoryError> {
    let wish = Arc::new(Wish::new());
    let ignored = ignored_signals();
    let others = ENDING_UNLESS_IGNORED
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0);
    for signal in ENDING.into_iter().chain(others) {
        watch(signal, &wish).map_err(|error| cannot_watch(signal, &error))?;
    }
    let stop = Arc::clone(&wish.stop);
    register(SIGXCPU, Arc::clone(&stop)).map_err(|error| cannot_watch(SIGXCPU, &error))?;
    Ok(stop)
}

/// What signals have asked for so far.
struct Wish {
    stop: Arc<AtomicBool>,
    watched_since: Instant,
    /// The number of the first signal in the low byte, and above it milliseconds until it
    /// came; 0 before.
    first: AtomicU64,
}

impl Wish {
    fn new() -> Self {
        Self {
            stop: Arc::new(AtomicBool::new(false)),
            watched_since: Instant::now(),
            first: AtomicU64::new(0),
        }
    }

    /// Whether this signal asks for the end at once.
    fn insists(&self, signal: i32) -> bool {
        let now_ms = self.watched_since.elapsed().as_millis() as u64;
        let this = (now_ms << 8) | signal as u64;
        let first = self
            .first
            .compare_exchange(0, this, Ordering::SeqCst, Ordering::SeqCst);
        match first {
            Ok(_) => false,
            Err(first) => {
                let is_same = first & 0xff == this & 0xff;
                let after_ms = now_ms.saturating_sub(first >> 8);
                !is_same || after_ms >= SAME_WISH.as_millis() as u64
            }
        }
    }
}

#[allow(unsafe_code)]
fn watch(signal: i32, wish: &Arc<Wish>) -> io::Result<()> {
    let wish = Arc::clone(wish);
    // A progress bar, which is drawn again below the line.
    let clear = if io::stderr().is_terminal() {
        "\r\x1b[K"
    } else {
        ""
    };
    let say = move |line| {
        if has_workspace() {
            answer(&[clear, line]);
        }
    };
    let act = move || match wish.insists(signal) {
        true => {
            say(ENDED_AT_ONCE);
            low_level::exit(INTERRUPTED);
        }
        false if !wish.stop.swap(true, Ordering::SeqCst) => say(ENDING_IN_ORDER),
        false => {}
    };
    // SAFETY: what is done in the handler is allowed there (signal-safety(7)): operations of
    // atomics, clock_gettime(2), poll(2), write(2) and _exit(2).
    unsafe { low_level::register(signal, act) }.map(|_| ())
}

/// Has a write that makes a file larger than the user's limit fail, as any other
/// write that cannot be done, where it would otherwise end the process.
pub(crate) fn outlive_file_size_limit() -> Result<(), LaboratoryError> {
    let reached = Arc::new(AtomicBool::new(false));
    match register(SIGXFSZ, reached) {
        Ok(_) => Ok(()),
        Err(error) => Err(cannot_watch(SIGXFSZ, &error)),
    }
}

fn cannot_watch(signal: i32, error: &io::Error) -> LaboratoryError {
    LaboratoryError::Work(format!("cannot watch for signal {signal}: {error}"))
}

/// The signals that this process ignores since it was started, a bit each; none
/// where the kernel does not say.
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
        let wish = Wish::new();
        assert!(!wish.insists(SIGTERM));
        assert!(!wish.insists(SIGTERM));
        assert!(wish.insists(SIGINT));
    }

    #[test]
    fn a_signal_that_comes_again_later_insists() {
        let earlier = Instant::now().checked_sub(2 * SAME_WISH);
        let mut wish = Wish::new();
        assert!(!wish.insists(SIGTERM));
        wish.watched_since = earlier.expect("a machine that was not just started");
        assert!(wish.insists(SIGTERM));
    }
}
