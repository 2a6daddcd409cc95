//! Chains of stages of operations on real storage: from events of the kernel to where the time of
//! each operation went.
//!
//! A [`KernelRecording`](event::KernelRecording) is events with what their numbers mean. A
//! [`History`] is what tasks, requests, work items and journals did. A [`Chain`] is the time of one
//! operation by stages, through all tasks that it waited for, each instant once.

mod activities;
mod chain;
mod context;
pub mod event;
mod history;
pub mod identity;
mod request_rule;
mod requests;
mod ring_rule;
mod rule;
mod segments;
mod threads;

pub use activities::Period;
pub use chain::{Chain, ChainLink, Purpose, TimedOperation};
pub use history::{History, RequestTimes, RingRequestLife};
