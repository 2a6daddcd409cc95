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

pub use budget::{ExceededLimit, LongestStage, RunBudget};
pub use calls::{OpenFlags, ProcessAccount, SeekOrigin};
pub use errno::Errno;
pub use kernel::costs::ProgramWork;
pub use kernel::pipe::{Pipe, PipeEnd};

pub use machine::{Machine, RunConditions};
pub use records::{DriveStatistics, RequestStatistics};
pub use rendezvous::WorkerRendezvous;
pub use ring::{RingCompletion, RingOperation, RingRequest, RingSize};
pub use session::Session;
pub use software::Kernel;
pub use standstill::{HardError, RunEndReason};
pub use written::WriteData;

pub use diskperf_sim::{Deadlock, RandomStream, RandomStreams, TieBreak, Time, WaitingTask};
