//! The battery: I/O programs, written once against
//! [`diskperf_system::System`], and the suites
//! that order them.
//!
//! A program is straight-line `async` code. It never spawns, never reads a
//! clock and never learns on which of the two worlds it runs. What it wants
//! done before its timed part it says in [`Program::prepare`]; everything
//! around it (caches, repetitions, files' lives) is the runner's.
//!
//! To add a program: one file here with its parameters and its loop, one arm
//! in [`program::Kind`], and a line in the suite that runs it.

mod blocks;
mod copy;
mod dump;
mod dump_restore;
mod fsck;
mod mix;
pub mod parameter;
mod populate;
pub mod program;
mod random;
mod read;
mod read_files;
mod restore;
mod rewrite;
mod scan;
mod seqread;
pub mod suite;
mod tape;
mod track;
mod tree;
pub mod worker;
mod write;

pub use parameter::{Parameter, ParameterError};
pub use program::{Program, ProgramError, Survey};
pub use suite::{Needs, Step, Suite};
pub use worker::{Medium, Other, PipeEnd, Worker};
