//! Standalone drives in virtual time for any event loop: disks, flash drives, cloud volumes, and
//! servers without mechanics.
//!
//! A [`Drive`] accepts requests ([`Drive::submit`]), reports the time of its next event
//! ([`Drive::next_due`]), runs up to a given time ([`Drive::run_until`]), and returns completed
//! requests ([`Drive::completions`]). It knows no kernel, no clock, no thread and no file. The time
//! of each request is booked to stages without gaps ([`Completion::spans`]).
//!
//! [`Contents`] tracks the written data of a drive, which of them are durable, and what a power cut
//! may leave. It follows the rules of the interface, and works beside any drive. [`faults`] decides
//! which requests fail, are slow, or leave wrong data, and works beside any drive, too.
//!
//! A drive is built from a [`DeviceSpecification`]. With the feature `catalogue`,
//! `DeviceSpecification::from_catalogue` reads the specification of a drive of the catalogue by its name. Two
//! drives with the same specification, seed and load behave the same to the nanosecond.
//!
//! Callers that keep requests of several devices in one place use [`Device`] and [`Requests`]
//! directly.

mod busy;
mod contents;
mod device;
pub mod disk;
mod drive;
#[cfg(feature = "catalogue")]
pub mod expected;
pub mod faults;
pub mod fixed;
pub mod flash;
mod kinds;
mod request;
pub mod specification;
pub mod volume;
mod what_if;

pub use busy::BusyTimes;
pub use contents::{Contents, Write, WriteCache};
pub use device::Device;
pub use drive::{ClosedLoop, Command, Completion, Drive, Refusal};
pub use request::{AccessHint, Operation, Request, RequestId, Requests};
pub use specification::{BuildDevice, DeviceSpecification, Unit};
pub use what_if::WhatIf;

use diskperf_sim::Time;
use diskperf_spans::Nanoseconds;

/// Converts a time of the simulation to the unit of spans.
#[inline]
pub fn moment(time: Time) -> Nanoseconds {
    Nanoseconds(time.0)
}
