//! A flash drive: dies behind channels, a buffer for writes, collection, and an interface.
//!
//! What is mapped where, and what is to be moved, is the translation layer's
//! (`diskperf-ftl`), which knows no time. Here is when: dies sense, program and erase,
//! channels carry pages, the controller takes commands, the link carries data.

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
