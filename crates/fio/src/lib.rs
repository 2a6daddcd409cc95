//! fio's job files and fio's results: what people already have.
//!
//! A job file goes in and typed [`Job`]s come out, with every value as fio resolves it:
//!
//! ```
//! use diskperf_fio::{JobFile, Surroundings};
//!
//! let text = "[global]\nbs=4k\n[log]\nrw=write\nfdatasync=1\nsize=1m\n";
//! let file = JobFile::parse("log.fio", text, &Surroundings::default())?;
//! assert_eq!(file.jobs[0].blocks.bytes.write, 4096);
//! # Ok::<(), diskperf_fio::Errors>(())
//! ```
//!
//! - [`JobFile::parse`]: sections, globals, `include`, `${NAME}`, `$ncpus`, expressions.
//!   fio is silent where it reads something else than is written (`bs= 4k` is 4 bytes,
//!   `1.5g` is 1, `5min` is 5 microseconds); here that is an error that names fio's
//!   reading. An option that changes what is done and is not supported is an error too;
//!   one that changes nothing of what is measured is listed in [`JobFile::ignored`].
//!   Commands in a job file are never run.
//! - [`plan`] and [`offsets`]: the files of a job, how many I/Os it does, and where the
//!   sequential ones are, as fio would do them.
//! - [`results`]: fio's JSON and JSON+ from plain counts and latencies, for the plots and
//!   the scripts that read them.
//! - [`verify`]: the headers, checksums and patterns of blocks that are verified.
//!
//! Nothing here does I/O but reading included files, and nothing knows diskperf's
//! programs. The meaning is that of fio 3.33, checked against the program itself; where
//! newer ones differ, the option's documentation says so.

mod arguments;
mod check;
mod elsewhere;
mod expression;
pub mod job;
mod job_file;
mod number;
pub mod offsets;
mod options;
pub mod plan;
mod reader;
pub mod results;
mod substitute;
mod surroundings;
mod value;
pub mod verify;

pub use diskperf_diagnostics::{Errors, Place, Problem};
pub use elsewhere::{Carrier, Elsewhere};
pub use job::{Direction, Ignored, Job, PerDirection};
pub use job_file::JobFile;
pub use number::Base;
pub use surroundings::{Files, Keyword, Surroundings};
