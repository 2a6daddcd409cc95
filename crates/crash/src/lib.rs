//! Recorded requests of a drive, and the media that a power cut may leave.
//!
//! A [`Recording`] takes the requests and marks of a workload in order. [`Recording::finish`]
//! makes a [`Log`] of it, which knows for each request when it was submitted, completed and
//! durable. A [`Cut`] is an instant of the log with the fate of every write that is at risk
//! then; [`Log::read`] returns the contents of the medium after it. [`Overlay`] keeps what is
//! written after the cut, so that a medium costs no copy. [`directory`] does the same for files
//! and names without a drive below. [`minimise`] finds the writes whose
//! loss suffices for a failure, and [`log_writes`] reads and writes logs of dm-log-writes.
//!
//! # Rules of a cut
//!
//! - A write is durable when a flush completes that was submitted after the write had
//!   completed. With force unit access, or in a drive whose cache is protected, it is durable
//!   when it completes.
//! - Other writes that were submitted are at risk. Each of their units is kept or lost on its
//!   own, without any order. A unit is never torn.
//! - A unit has the contents of the latest kept write, in order of completion.
//! - Trims and zeroes are writes of nothing.
//! - Where it is asked for, the sector of the medium that a write was writing is unreadable, with the
//!   units in it that the write does not cover, until they are written.

mod cut;
pub mod directory;
mod log;
pub mod log_writes;
mod minimise;
mod overlay;
mod recording;
mod stored;

pub use cut::{Cut, CutPolicy, Fate, Instants};
pub use log::{Entry, Log, Mark, Request, RequestKind};
pub use minimise::minimise;
pub use overlay::{Overlay, ReadError};
pub use recording::{LyingFlush, OutOfRange, Recording};
pub use stored::InvalidLog;
