//! I/O programs, written once against [`diskperf_system::System`], and the suites that order them.
//!
//! A program is straight-line `async` code. It never spawns a task, never reads a clock, and never
//! learns whether it runs on a real or on a modelled system. Work before the timed part belongs
//! into [`Program::prepare_target`]. The runner does everything around the program: caches, repetitions
//! and the lifetime of files.
//!
//! To add a program, add one file to `programs` with its parameters and its loop, and one line to
//! the list of programs. A suite that runs the program names it.

mod blocks;
mod company;
mod file_locks;
mod fio_job;
mod load;
pub mod parameter;
mod pattern;
pub mod program;
mod programs;
mod random;
pub mod replay;
mod ring;
pub mod suite;
mod verify;
pub mod worker;
mod workload;
mod zones;

pub use company::{EarlierSteps, EndScope, WorkerGroupMember, WorkerGroups};
pub use fio_job::{FileMaker, IoLog};
pub use load::open_loop_slots;
pub use parameter::{Parameter, ParameterError};
pub use program::{Program, ProgramError};
pub use replay::ReplayPlan;
pub use suite::{Suite, SuiteJob, SuiteStep, TargetNeeds};
#[doc(hidden)]
pub use verify::set_read_back_hook;
pub use worker::{Medium, PipeEnd, SecondTarget, Worker};
pub use zones::ZoneTable;
