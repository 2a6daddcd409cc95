//! Modelled drives, served to other programs in real time.
//!
//! [`ServedDrive`] runs a drive of `diskperf-device` against the monotonic clock. A transport
//! submits requests to it, and implements [`Client`], through which it learns that a request
//! is due. [`Data`] has the bytes. [`nbd`] is a transport: the protocol of network block
//! devices, over a Unix socket or the loopback.
//!
//! # Time
//!
//! Virtual time is the elapsed time multiplied by the speed ([`Clock`]). A request arrives
//! when its header has been read, a write when the last byte of its data has been read: the
//! model moves the data over its own link from then on. The modelled drive takes the request
//! at that time. Its answer is sent when the model completes it, or later, and never before.
//! Lateness is measured ([`Statistics`]) and does not move the clock: platter angles and later
//! completions follow from absolute time.
//!
//! # Contents
//!
//! A read returns the bytes of the newest write that was answered before the read arrived, or
//! of a write in flight beside it. Writes reach [`Data`] before they are answered, so a flush
//! covers every write that was answered before it, on whichever connection.
//!
//! # Faults
//!
//! A drive may have faults (`diskperf_device::faults`). [`ServedDrive::submit`] returns what they
//! do to a request, and the data are moved by [`Served::read`], [`Served::write`] and
//! [`Served::zero`], which follow it.

mod clock;
mod control;
mod data;
mod drive;
mod error;
mod faults;
pub mod nbd;
mod private_directory;
mod recording;
mod resolve;
mod served;
mod statistics;
mod unix_socket;

pub use clock::Clock;
pub use control::ControlServer;
pub use data::{Data, Extent};
pub use drive::{
    Client, Completed, DriveEvent, Outcome, RequestKind, ServedDrive, ServedRequest, TakenEvents,
    TimedRequest,
};
pub use error::ServeError;
pub use faults::{FaultLog, read_faults};
pub use private_directory::{AbandonedDirectory, PrivateDirectory, abandoned_directories};
pub use recording::ServedTraceRecorder;
pub use resolve::resolve_drive;
pub use served::{Served, ServedOptions, served_sectors};
pub use statistics::{OperationStatistics, Statistics, StatisticsReport};
