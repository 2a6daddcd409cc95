//! Block traces: what was asked of storage, when, and when it was answered.
//!
//! - [`record`]: one request of a trace, as every form is read into and written from.
//!
//! Nothing here knows how a trace is replayed or modelled.

pub mod record;

pub use record::{DeviceIndex, Operation, Record};
