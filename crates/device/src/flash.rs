//! Flash drive in virtual time: dies behind channels, a write buffer, garbage collection, and a
//! host interface.
//!
//! The translation layer (`diskperf-ftl`) maps logical to physical units, and decides what to move;
//! it knows no time. This module adds the time: dies sense, program and erase, channels transfer
//! pages, the controller processes commands, and the link transfers data.

mod agenda;
mod buffer;
mod channel;
mod contents;
pub mod device;
mod die;
mod link;
mod places;
mod pool;
pub mod recorder;
pub mod specification;
