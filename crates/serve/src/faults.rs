//! Faults of a served drive: the files that describe them, their log, and the data that clients
//! see. What they do is decided in `diskperf_device::faults`.

mod data;
mod log;
mod reader;

pub use log::FaultLog;
pub use reader::read_faults;
