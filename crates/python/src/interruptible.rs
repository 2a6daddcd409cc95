//! Work without the interpreter's lock that Ctrl-C ends.

use crate::errors::named;
use diskperf_laboratory::explain_thread_start_failure;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are looked for: often enough that Ctrl-C seems to work at
/// once, too seldom to disturb a measurement.
const PERIOD: Duration = Duration::from_millis(50);

/// Does work on a thread of its own, with the interpreter free for others. A
/// signal whose handler raises sets the flag that the work is given, which ends
/// it as a signal ends the command line's, and is raised when it has ended.
///
/// Python runs handlers on its main thread alone: work that another thread waits
/// for goes on to its end.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, outcome) = channel();
    let (result, signal) = py
        .detach(move || {
            std::thread::scope(|scope| {
                let worker = std::thread::Builder::new().spawn_scoped(scope, || {
                    // Dropped at the end of the work, also if it panics.
                    let _done = done;
                    work(&stop)
                })?;
                let mut signal = None;
                while outcome.recv_timeout(PERIOD) == Err::<(), _>(RecvTimeoutError::Timeout) {
                    if signal.is_none() {
                        signal = Python::attach(|py| py.check_signals()).err();
                        stop.store(signal.is_some(), Ordering::Relaxed);
                    }
                }
                Ok((worker.join(), signal))
            })
        })
        .map_err(|error: std::io::Error| not_started(py, &error))?;
    match (result, signal) {
        (_, Some(signal)) => Err(signal),
        (Ok(result), None) => Ok(result),
        (Err(panic), None) => std::panic::resume_unwind(panic),
    }
}

fn not_started(py: Python<'_>, error: &std::io::Error) -> PyErr {
    let why = explain_thread_start_failure(error);
    let text = format!("the thread that does the work could not be started: {error}{why}");
    named(py, "RunError", text)
}
