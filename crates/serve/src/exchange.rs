//! Requests of a transport on their way through the drive and the data.
//!
//! A transport reads requests, gives each to an [`Exchange`] with the [`Responder`] of its client
//! which encodes the answer when there is one. It knows nothing of the drive's time,
//! faults or statistics.

use crate::{Client, Completed, Outcome, RequestKind, Served, ServedRequest};
use diskperf_device::faults::FaultEffects;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFailure {
    /// A fault of the drive, or data that cannot be read or written.
    Io,
    /// The server has no memory for the data.
    NoMemory,
    /// The file system of the data is full.
    NoSpace,
    /// Serving ended before the request did.
    ShutDown,
}

/// Way of an answer to the client of a transport.
pub trait Responder: Send + 'static {
    /// Sends the answer: the data of a read, nothing for other requests, or the reason of the
    /// failure. It runs on any thread, and must not block: other requests may be due.
    fn respond(self, answer: Result<Vec<u8>, RequestFailure>);
}

/// Requests of a transport that are not answered. All that a transport needs of a served drive.
#[derive(Debug)]
pub struct Exchange<R> {
    served: Arc<Served>,
    next_tag: AtomicU64,
    /// Requests of which one of two things has happened: the drive completed them, or their
    /// data are read or written.
    halves: Mutex<HashMap<u64, Half<R>>>,
}

#[derive(Debug)]
enum Half<R> {
    Due(Outcome),
    Moved(Moved<R>),
}

/// A request whose data are read or written.
#[derive(Debug)]
struct Moved<R> {
    responder: R,
    kind: RequestKind,
    bytes: u64,
    /// Data of a read, or why the request fails.
    data: Result<Vec<u8>, RequestFailure>,
}

impl<R: Responder> Exchange<R> {
    /// Returns an exchange with a served drive.
    pub fn new(served: Arc<Served>) -> Arc<Self> {
        Arc::new(Self {
            served,
            next_tag: AtomicU64::new(0),
            halves: Mutex::default(),
        })
    }

    /// Returns the served drive.
    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }

    /// Submits a request to the drive, which arrives now, and reads or writes its data meanwhile.
    /// The range must lie within the drive. `written` has the data of a write. `keep_allocated`
    /// keeps the storage of a range that becomes zero.
    pub fn submit(
        self: &Arc<Self>,
        request: ServedRequest,
        written: &[u8],
        keep_allocated: bool,
        responder: R,
    ) {
        let tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
        let client: Arc<dyn Client> = Arc::<Self>::clone(self);
        let effects = self.served.drive.submit(&client, tag, request);
        let data = self.move_data(request, written, keep_allocated, &effects);
        let moved = Moved {
            responder,
            kind: request.kind,
            bytes: request.bytes,
            data: data.map_err(|error| failure(&error)),
        };
        self.meet(tag, Half::Moved(moved));
    }

    /// Reads or writes the data of a request. Returns those of a read.
    fn move_data(
        &self,
        request: ServedRequest,
        written: &[u8],
        keep_allocated: bool,
        effects: &FaultEffects,
    ) -> io::Result<Vec<u8>> {
        let (served, offset) = (&self.served, request.offset);
        match request.kind {
            RequestKind::Read => {
                let mut bytes = Vec::new();
                let reserved = bytes.try_reserve_exact(request.bytes as usize);
                reserved.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
                bytes.resize(request.bytes as usize, 0);
                served.read(offset, &mut bytes, effects)?;
                return Ok(bytes);
            }
            RequestKind::Write => served.write(offset, written, effects)?,
            RequestKind::Trim | RequestKind::WriteZeroes => {
                served.zero(offset, request.bytes, keep_allocated, effects)?;
            }
            RequestKind::Flush | RequestKind::Cache => {}
        }
        Ok(Vec::new())
    }

    /// Answers a request once the drive has completed it and its data are moved, whichever
    /// comes second.
    fn meet(&self, tag: u64, half: Half<R>) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(other) = halves.remove(&tag) else {
            halves.insert(tag, half);
            return;
        };
        drop(halves);
        match (half, other) {
            (Half::Due(outcome), Half::Moved(moved)) | (Half::Moved(moved), Half::Due(outcome)) => {
                self.answer(outcome, moved);
            }
            _ => unreachable!("a request completes once and is moved once"),
        }
    }

    fn answer(&self, outcome: Outcome, moved: Moved<R>) {
        let statistics = &self.served.statistics;
        let failure = match (outcome, moved.data) {
            (Outcome::Done { arrived, due }, Ok(data)) => {
                moved.responder.respond(Ok(data));
                let bytes = match moved.kind {
                    RequestKind::Flush => 0,
                    _ => moved.bytes,
                };
                let due_instant = self.served.drive.clock().instant(due);
                let lateness = Instant::now().saturating_duration_since(due_instant);
                return statistics.add(moved.kind, bytes, due - arrived, lateness);
            }
            (Outcome::Done { .. }, Err(failure)) => failure,
            (Outcome::Failed { .. }, _) => RequestFailure::Io,
            (Outcome::ShutDown, _) => RequestFailure::ShutDown,
        };
        moved.responder.respond(Err(failure));
        statistics.add_failed(moved.kind);
    }
}

impl<R: Responder> Client for Exchange<R> {
    fn complete(&self, completed: Completed) {
        self.meet(completed.tag, Half::Due(completed.outcome));
    }
}

/// Returns the failure that an error of the data is to a client.
pub(crate) fn failure(error: &io::Error) -> RequestFailure {
    match error.kind() {
        ErrorKind::OutOfMemory => RequestFailure::NoMemory,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => RequestFailure::NoSpace,
        _ => RequestFailure::Io,
    }
}
