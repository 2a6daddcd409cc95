//! Requests between a transport and a served drive.

use diskperf_sim::Time;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Return bytes of the drive.
    Read,
    /// Store bytes on the drive.
    Write,
    /// Make all answered writes durable.
    Flush,
    /// Give storage back; the bytes read as zeroes.
    Trim,
    /// Make bytes zero without data.
    WriteZeroes,
    /// Read into the drive's cache; no bytes are returned.
    Cache,
}

impl RequestKind {
    /// All kinds of requests.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Trim,
        Self::WriteZeroes,
        Self::Cache,
    ];

    /// Name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::WriteZeroes => "write_zeroes",
            Self::Cache => "cache",
        }
    }
}

/// A request whose range lies within the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRequest {
    /// Kind of the request.
    pub kind: RequestKind,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes. A request of no bytes is complete when it arrives, unless it is a flush.
    pub bytes: u64,
    /// Whether what changes is durable at the completion. Without effect on reads.
    pub fua: bool,
}

/// End of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model completed it.
    Done {
        /// Virtual time of its arrival.
        arrived: Time,
        /// Virtual time of its completion, which has come.
        due: Time,
    },
    /// A fault made it fail.
    Failed {
        /// Virtual time of its arrival.
        arrived: Time,
        /// Virtual time of its completion, which has come.
        due: Time,
    },
    /// Serving ended before the request did.
    ShutDown,
}

/// A request that its client may answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Tag that the client gave it.
    pub tag: u64,
    /// End of the request.
    pub outcome: Outcome,
}

/// A transport's connection: where requests come from and their completions go to. All that
/// the drive knows of a transport.
pub trait Client: Send + Sync {
    /// Takes the completion of a request, on any thread. It must not block: other clients'
    /// requests may be due.
    fn complete(&self, completed: Completed);
}

/// Served request with the virtual times of its arrival and completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// Request as the client sent it.
    pub request: ServedRequest,
    /// Virtual time of its arrival.
    pub arrived: Time,
    /// Virtual time of its completion; none if serving ended before.
    pub due: Option<Time>,
}

/// Arrival or completion of a request, with its number in the order of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveEvent {
    /// Arrival of a request.
    Arrived {
        /// Number of the request.
        number: u64,
        /// Request as the client sent it.
        request: ServedRequest,
        /// Virtual time of the arrival.
        time: Time,
    },
    /// A request was completed.
    Completed {
        /// Number of the request.
        number: u64,
        /// Virtual time of the completion.
        time: Time,
        /// Whether a fault made it fail.
        fails: bool,
    },
}

/// Events since they were last taken, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenEvents {
    /// Events that were kept.
    pub events: Vec<DriveEvent>,
    /// Number of later events that were not kept, because too many waited to be taken.
    pub lost: u64,
}
