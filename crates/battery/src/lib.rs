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
mod mix;
pub mod parameter;
pub mod program;
mod read;
mod rewrite;
mod scan;
mod seqread;
pub mod suite;
mod track;
pub mod worker;
mod write;

pub use parameter::{Parameter, ParameterError};
pub use program::{Program, ProgramError};
pub use suite::{Needs, Step, Suite};
pub use worker::{Medium, Other, Worker};
