//! Block-layer requests and scheduler events of a real system, recorded during one repetition.

use crate::Nanoseconds;
use serde::{Deserialize, Serialize};

/// Recorded block trace of one repetition on real storage: requests, timed parts of the workers,
/// and thread switches. All times use the clock of the workers' measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockTrace {
    /// Kernel names of the traced devices, such as `vda`.
    pub devices: Vec<String>,
    /// Every request that reached a traced device, whichever process made it, in order of
    /// completion.
    pub requests: Vec<BlockRequest>,
    /// Timed part of each worker, with its thread number.
    pub workers: Vec<TimedPart>,
    /// Scheduler events of the workers' threads, in order of time.
    pub switches: Vec<Switch>,
    /// Trace events that the kernel dropped because its buffer was full. A trace with lost events
    /// supports no conclusions.
    pub lost_events: u64,
}

/// Operation that a block request performs on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Read that some process waits for.
    Read,
    /// Read-ahead: data that may be needed soon, with no process waiting.
    ReadAhead,
    /// Write of data to the device.
    Write,
    /// Flush of the device's volatile write cache.
    Flush,
    /// Discard of sectors that are no longer needed.
    Discard,
    /// Any other operation, such as writing zeroes or a command that only the driver knows.
    Other,
}

impl Operation {
    /// Every block operation, for iteration.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::ReadAhead,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::Other,
    ];

    /// Returns the name of the block operation, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadAhead => "read ahead",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Other => "other",
        }
    }
}

/// One block request to one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRequest {
    /// Index of the request's device in [`BlockTrace::devices`].
    pub device: u32,
    /// Operation that the block request performs.
    pub operation: Operation,
    /// First sector of the request, in sectors of 512 bytes.
    pub sector: u64,
    /// Length of the request in bytes.
    pub bytes: u64,
    /// Time at which the first bio of the request entered the block layer.
    pub queued: Nanoseconds,
    /// Time at which the driver issued the request to the device.
    pub issued: Nanoseconds,
    /// Time at which the device completed the request.
    pub completed: Nanoseconds,
}

/// Timed part of one worker in a block trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedPart {
    /// Kernel thread id of the worker.
    pub thread: u32,
    /// Start of the worker's timed part.
    pub opened: Nanoseconds,
    /// End of the worker's timed part: the return of its last call.
    pub ended: Nanoseconds,
}

/// Scheduler event: a thread got, lost or gave up a processor, or became ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Time of the scheduler event.
    pub at: Nanoseconds,
    /// Kernel thread id of the thread that was switched.
    pub thread: u32,
    /// State that the scheduler moved the thread to.
    pub to: Scheduled,
}

/// State of a thread after a scheduler event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduled {
    /// Running: the thread was given a processor.
    Running,
    /// Preempted: the thread lost the processor to another task and is still ready to run.
    Preempted,
    /// Waiting: the thread gave up the processor to wait for an event.
    Waiting,
    /// Woken: the event that the thread waited for has happened. A thread that still holds the
    /// processor continues to run.
    Woken,
}
