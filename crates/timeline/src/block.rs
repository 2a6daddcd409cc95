//! What the block layer and the scheduler of a real system told of one
//! repetition: the requests of its devices, and when its workers had a
//! processor.

use crate::Nanoseconds;
use serde::{Deserialize, Serialize};

/// What was recorded of one repetition on real storage. All times are of one
/// clock, that of the workers' measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockTrace {
    /// The devices' names, as `vda`.
    pub devices: Vec<String>,
    /// Every request that reached a device, whoever made it, in the order of
    /// completion.
    pub requests: Vec<BlockRequest>,
    /// The workers' timed parts.
    pub workers: Vec<TimedPart>,
    /// What happened to the workers' threads, in the order of time.
    pub switches: Vec<Switch>,
    /// Events that the kernel could not keep. Of a trace that has lost any,
    /// nothing can be told.
    pub lost_events: u64,
}

/// What a request asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Data that somebody waits for.
    Read,
    /// Data that may be wanted soon.
    ReadAhead,
    /// Data to be kept.
    Write,
    /// Its cache to be emptied.
    Flush,
    /// Sectors to be forgotten.
    Discard,
    /// Something else: sectors to be zeroed, commands of the driver's own.
    Other,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::ReadAhead,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::Other,
    ];

    /// Its name.
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

/// One request of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRequest {
    /// The device, by its place in [`BlockTrace::devices`].
    pub device: u32,
    /// What it asks.
    pub operation: Operation,
    /// Its first sector of 512 bytes.
    pub sector: u64,
    /// Its length.
    pub bytes: u64,
    /// When the first of what it carries came to the block layer.
    pub queued: Nanoseconds,
    /// When the driver gave it to the device.
    pub issued: Nanoseconds,
    /// When the device was done with it.
    pub completed: Nanoseconds,
}

/// The timed part of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedPart {
    /// The kernel's number of its thread.
    pub thread: u32,
    /// When it began.
    pub opened: Nanoseconds,
    /// When its last call had returned.
    pub ended: Nanoseconds,
}

/// Something that the scheduler did with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// When.
    pub at: Nanoseconds,
    /// With which.
    pub thread: u32,
    /// What.
    pub to: Scheduled,
}

/// What the scheduler did with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduled {
    /// It was given a processor.
    Running,
    /// It lost the processor to something else, and could go on.
    Preempted,
    /// It gave the processor up to wait for something.
    Waiting,
    /// That has come; where it has the processor still, it goes on.
    Woken,
}
