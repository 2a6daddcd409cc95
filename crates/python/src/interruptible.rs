//! Work without the interpreter's lock that Ctrl-C ends.

use crate::errors::package_exception;
use diskperf_laboratory::explain_thread_start_failure;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Interval of the checks for signals: short enough that Ctrl-C seems immediate, long enough not to
/// disturb a measurement.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs work on a thread of its own, with the interpreter free for other threads. A signal whose
/// handler raises sets the stop flag of the work, and the exception is raised when the work has
/// ended.
///
/// Python runs handlers on its main thread alone: work that another thread waits for continues to
/// its end.
pub(crate) fn run_interruptible<T: Send>(
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
                while outcome.recv_timeout(SIGNAL_CHECK_INTERVAL)
                    == Err::<(), _>(RecvTimeoutError::Timeout)
                {
                    if signal.is_none() {
                        signal = Python::attach(|py| py.check_signals()).err();
                        stop.store(signal.is_some(), Ordering::Relaxed);
                    }
                }
                Ok((worker.join(), signal))
            })
        })
        .map_err(|error: std::io::Error| thread_start_error(py, &error))?;
    match (result, signal) {
        (_, Some(signal)) => Err(signal),
        (Ok(result), None) => Ok(result),
        (Err(panic), None) => std::panic::resume_unwind(panic),
    }
}

fn thread_start_error(py: Python<'_>, error: &std::io::Error) -> PyErr {
    let why = explain_thread_start_failure(error);
    let text = format!("the thread that does the work could not be started: {error}{why}");
    package_exception(py, "RunError", text)
}
