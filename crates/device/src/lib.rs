//! Drives that stand by themselves: disks, flash drives, and servers without mechanics, in
//! virtual time, for anyone's event loop.
//!
//! A [`Device`] takes a [`Request`], says when something happens in it next
//! ([`Device::next_event`]), does what it had to do up to a moment ([`Device::advance`]), and
//! hands back what is done ([`Device::take_done`]). It knows no kernel, no clock, no thread and
//! no file. Each request books where its time went, without gap ([`diskperf_spans`]).

mod busy;
mod device;
pub mod disk;
pub mod fixed;
pub mod flash;
mod request;
mod what_if;

pub use busy::Busy;
pub use device::Device;
pub use request::{Hint, Operation, Request, RequestId, Requests};
pub use what_if::WhatIf;

use diskperf_sim::Time;
use diskperf_spans::Nanoseconds;

/// A moment of the simulation, in the units of spans.
#[inline]
pub fn moment(time: Time) -> Nanoseconds {
    Nanoseconds(time.0)
}
