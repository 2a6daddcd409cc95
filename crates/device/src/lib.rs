//! Drives that stand by themselves: disks, flash drives, and servers without mechanics, in
//! virtual time, for anyone's event loop.
//!
//! A [`Drive`] takes requests ([`Drive::submit`]), says when something happens in it next
//! ([`Drive::next_due`]), does what happens up to a moment ([`Drive::run_until`]), and hands
//! back what is done ([`Drive::completions`]). It knows no kernel, no clock, no thread and no
//! file. The time of each request is booked, without gap ([`Completion::spans`]).
//!
//! [`Contents`] knows what is written on a drive, what of it is durable, and what a power cut
//! may leave. It follows the rules of the interface, beside any drive.
//!
//! A drive is built from a [`DeviceSpecification`]; with the feature `catalogue`,
//! `DeviceSpecification::of` reads the specification of a drive of the catalogue by its name.
//! Two drives of one specification, one seed and one load do the same to the nanosecond.
//!
//! Whoever keeps requests of several devices in one place uses [`Device`] and [`Requests`]
//! themselves.

mod busy;
mod contents;
mod device;
pub mod disk;
mod drive;
#[cfg(feature = "catalogue")]
pub mod expected;
pub mod fixed;
pub mod flash;
mod kinds;
mod request;
pub mod specification;
mod what_if;

pub use busy::Busy;
pub use contents::{Contents, Write, WriteCache};
pub use device::Device;
pub use drive::{ClosedLoop, Command, Completion, Drive, Refusal};
pub use request::{Hint, Operation, Request, RequestId, Requests};
pub use specification::{BuildDevice, DeviceSpecification, Unit};
pub use what_if::WhatIf;

use diskperf_sim::Time;
use diskperf_spans::Nanoseconds;

/// A moment of the simulation, in the units of spans.
#[inline]
pub fn moment(time: Time) -> Nanoseconds {
    Nanoseconds(time.0)
}
