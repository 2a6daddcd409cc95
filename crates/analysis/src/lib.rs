//! Reads runs and says what they mean: statistics, the summary of a program,
//! where the time of a read call goes, the comparison of runs, the interleave
//! factor that fits a service time, and the tables, JSON, CSV and Markdown in
//! which all this is printed.
//!
//! Everything here is a function of its arguments: no input or output, no
//! clock, no look at the terminal (a width is an argument). It runs nothing
//! and knows nothing of how a run came to be.

pub mod accuracy;
pub mod cache;
pub mod comparison;
pub mod diagnosis;
pub mod disk_queue;
pub mod expected;
pub mod explanation;
pub mod fio_jobs;
pub mod flash;
pub mod formatting;
pub mod interference;
pub mod interleave;
pub mod layers;
pub mod perfetto;
pub mod quantity;
pub mod real_drives;
pub mod recorded;
pub mod replay;
pub mod report;
pub mod statistics;
pub mod summary;
pub mod trace;
pub mod tuning;

pub use cache::CacheVerdict;
pub use comparison::{Comparison, compare};
pub use report::Format;
pub use statistics::Interval;
pub use summary::{Summary, generator_limited};

#[cfg(test)]
mod fixtures;
