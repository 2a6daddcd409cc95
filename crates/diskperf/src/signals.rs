//! Signals: what ends a run in order.

use diskperf_laboratory::LaboratoryError;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What people and their terminals end a program with.
const ENDING: [i32; 2] = [SIGINT, SIGTERM];

/// Those whose default is to end the process as well, but that whoever started
/// this may have had it ignore (`nohup`), which is then to be left so.
const ENDING_UNLESS_IGNORED: [i32; 7] = [
    SIGHUP, SIGQUIT, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2,
];

/// The first signal ends the run in order; a second one ends the process at
/// once, and leaves the rest to `diskperf clean`. Not so the end of the CPU time
/// that the process may take, which the kernel says every second from then on.
pub(crate) fn stop_on_signals() -> Result<Arc<AtomicBool>, LaboratoryError> {
    let stop = Arc::new(AtomicBool::new(false));
    let ignored = ignored_signals();
    let others = ENDING_UNLESS_IGNORED
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0);
    for signal in ENDING.into_iter().chain(others) {
        register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| register(signal, Arc::clone(&stop)))
            .map_err(|error| cannot_watch(signal, &error))?;
    }
    register(SIGXCPU, Arc::clone(&stop)).map_err(|error| cannot_watch(SIGXCPU, &error))?;
    Ok(stop)
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
