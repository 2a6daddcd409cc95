//! Modelled computer in virtual time: an async kernel, and hardware as state machines.
//!
//! [`Machine`] is a computer built from a system of the
//! [`Catalogue`](diskperf_catalogue::Catalogue); [`Session`] is a process on it, with its system
//! calls.

mod books;
mod budget;
mod calls;
pub mod controllers;
pub mod driver;
mod errno;
mod event;
pub mod hardware;
pub mod id;
pub mod kernel;
mod machine;
pub mod maintenance;
mod medium;
pub mod parts;
mod records;
mod rendezvous;
mod rig;
mod ring;
mod session;
mod software;
pub mod specification;
mod standstill;
mod volumes;
mod written;

pub use budget::{Budget, Exceeded, LongestStage};
pub use calls::{Account, From, How};
pub use errno::Errno;
pub use kernel::costs::Work;
pub use kernel::pipe::{Pipe, PipeEnd};

pub use machine::{Circumstances, Machine};
pub use records::{DriveStatistics, Statistics};
pub use rendezvous::Rendezvous;
pub use ring::{RingCompletion, RingOperation, RingRequest, RingSize};
pub use session::Session;
pub use software::Kernel;
pub use standstill::{HardError, Standstill};
pub use written::Written;

pub use diskperf_sim::{Deadlock, Stream, Streams, TieBreak, Time, Waiting};
