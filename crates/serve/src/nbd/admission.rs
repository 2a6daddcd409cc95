//! Bounds of what a connection has in flight.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Requests of a connection that are read and not answered.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 256;

/// Bytes of a connection's requests and answers that are kept in memory: two requests of the
/// largest size.
pub const BYTES_IN_FLIGHT_MAX: u64 = 64 * 1024 * 1024;

/// Requests and bytes of a connection in flight. The largest request fits into an empty one.
#[derive(Debug, Default)]
pub(super) struct Admission {
    state: Mutex<AdmittedLoad>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AdmittedLoad {
    requests: usize,
    bytes: u64,
}

impl Admission {
    /// Waits until a request fits, and counts it.
    pub(super) fn admit(&self, bytes: u64) {
        let mut state = self.lock();
        while state.requests >= REQUESTS_IN_FLIGHT_MAX || state.bytes + bytes > BYTES_IN_FLIGHT_MAX
        {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.requests += 1;
        state.bytes += bytes;
    }

    /// Forgets a request that was answered.
    pub(super) fn release(&self, bytes: u64) {
        let mut state = self.lock();
        state.requests -= 1;
        state.bytes -= bytes;
        self.changed.notify_all();
    }

    /// Waits until every request has been answered.
    pub(super) fn wait_until_empty(&self) {
        let mut state = self.lock();
        while state.requests > 0 {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, AdmittedLoad> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
