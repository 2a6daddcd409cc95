//! Runs that succeed, and what is then done with them: every suite and
//! program, every format, and the round trip through store and file.

mod ab;
mod cache;
mod contract;
mod corpus;
mod explain;
mod exported;
mod fresh;
mod interference;
mod job_engines;
mod job_files;
mod own_limits;
mod progress;
mod record;
mod replay;
mod shell;
mod sizes;
mod steady;
mod stored;
#[path = "../support/mod.rs"]
mod support;
mod targets;
mod today;
mod tune;
mod verify;
