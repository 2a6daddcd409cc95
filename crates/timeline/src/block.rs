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
    #[serde(rename = "workers")]
    pub timed_parts: Vec<TimedPart>,
    /// Scheduler events of the workers' threads, in order of time.
    #[serde(rename = "switches")]
    pub thread_switches: Vec<ThreadSwitch>,
    /// Trace events that the kernel dropped because its buffer was full. A trace with lost events
    /// supports no conclusions.
    #[serde(rename = "lost_events")]
    pub lost_event_count: u64,
}

/// Operation that a block request performs on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOperation {
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

impl BlockOperation {
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
    #[serde(rename = "device")]
    pub device_index: u32,
    /// Operation that the block request performs.
    pub operation: BlockOperation,
    /// First sector of the request, in sectors of 512 bytes.
    pub sector: u64,
    /// Length of the request in bytes.
    pub bytes: u64,
    /// Time at which the first bio of the request entered the block layer.
    #[serde(rename = "queued")]
    pub queued_at: Nanoseconds,
    /// Time at which the driver issued the request to the device.
    #[serde(rename = "issued")]
    pub issued_at: Nanoseconds,
    /// Time at which the device completed the request.
    #[serde(rename = "completed")]
    pub completed_at: Nanoseconds,
}

/// Timed part of one worker in a block trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedPart {
    /// Kernel thread id of the worker.
    #[serde(rename = "thread")]
    pub thread_id: u32,
    /// Start of the worker's timed part.
    #[serde(rename = "opened")]
    pub started_at: Nanoseconds,
    /// End of the worker's timed part: the return of its last call.
    #[serde(rename = "ended")]
    pub ended_at: Nanoseconds,
}

/// Scheduler event: a thread got, lost or gave up a processor, or became ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSwitch {
    /// Time of the scheduler event.
    #[serde(rename = "at")]
    pub switch_time: Nanoseconds,
    /// Kernel thread id of the thread that was switched.
    #[serde(rename = "thread")]
    pub thread_id: u32,
    /// State that the scheduler moved the thread to.
    #[serde(rename = "to")]
    pub new_state: SchedulingState,
}

/// State of a thread after a scheduler event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulingState {
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
