//! Whatever is wrong with a command line, a target or a store is said with its
//! remedy, has the exit code of its kind, and leaves nothing behind.

mod budgets;
mod command_line;
mod devices;
mod exit_codes;
mod fresh;
mod hostile;
mod job_files;
mod labels;
mod led_astray;
mod limits;
mod lines;
mod lost_stores;
mod named_files;
mod shown;
mod storage;
mod stores;
#[path = "../support/mod.rs"]
mod support;
