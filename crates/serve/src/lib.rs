//! Modelled drives, served to other programs in real time.
//!
//! [`ServedDrive`] runs a drive of `diskperf-device` against the monotonic clock: a request is
//! submitted, and a [`Client`] learns that it is due. [`Data`] has the bytes. An [`Exchange`]
//! brings both together. A transport gives it requests, and implements [`Responder`], by which it
//! sends answers. [`nbd`] is a transport: the protocol of network block devices, over a Unix
//! socket or the loopback. [`FuseFile`] is another one: a file.
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

mod client_threads;
mod clock;
mod control;
mod data;
mod drive;
mod error;
mod exchange;
mod faults;
mod fuse;
mod http;
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
    ACTIVITY_PERIODS_MAX, ActivePart, ActivityPeriod, Client, Completed, DriveEvent, DriveShape,
    Outcome, RequestKind, ServedDrive, ServedRequest, TakenEvents, TimedRequest,
};
pub use error::ServeError;
pub use exchange::{Exchange, RequestFailure, Responder};
pub use faults::{FaultLog, read_faults};
pub use fuse::{FUSE_MOUNT_SOURCE, FuseFile, unmount_served_file};
pub use http::{HttpResponse, HttpServer};
pub use private_directory::{AbandonedDirectory, PrivateDirectory, abandoned_directories};
pub use recording::ServedTraceRecorder;
pub use resolve::resolve_drive;
pub use served::{Served, ServedOptions, served_sectors};
pub use statistics::{OperationStatistics, Statistics, StatisticsReport};
