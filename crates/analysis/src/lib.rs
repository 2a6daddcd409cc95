//! Analysis of runs: statistics, summaries of programs, the parts of a read call's time, the
//! comparison of runs, the interleave factor for a service time, and the tables, JSON, CSV and
//! Markdown that present all this.
//!
//! Everything here is a function of its arguments: no input or output, no clock, no look at the
//! terminal (a width is an argument). The crate runs nothing and does not know how a run was made.

pub mod accuracy;
pub mod cache;
pub mod caps;
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
pub mod request_lists;
pub mod statistics;
pub mod summary;
pub mod trace;
pub mod tuning;
pub mod volume;

pub use cache::CacheVerdict;
pub use comparison::{Comparison, compare};
pub use report::ReportFormat;
pub use statistics::ConfidenceInterval;
pub use summary::{ResultSummary, generator_share_if_limiting};

#[cfg(test)]
mod fixtures;
