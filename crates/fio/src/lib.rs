//! fio job files as typed jobs, and results in the JSON format of fio.
//!
//! A job file goes in and typed [`JobDefinition`]s come out, with every value as fio resolves it:
//!
//! ```
//! use diskperf_fio::{JobEnvironment, JobFile};
//!
//! let text = "[global]\nbs=4k\n[log]\nrw=write\nfdatasync=1\nsize=1m\n";
//! let file = JobFile::parse("log.fio", text, &JobEnvironment::default())?;
//! assert_eq!(file.jobs[0].blocks.fixed_bytes.write, 4096);
//! # Ok::<(), diskperf_fio::Errors>(())
//! ```
//!
//! - [`JobFile::parse`]: sections, global sections, `include`, `${NAME}`, `$ncpus` and
//!   expressions. fio silently misreads some text (`bs= 4k` is 4 bytes, `1.5g` is 1, `5min`
//!   is 5 microseconds); here that is an error that names fio's reading. An unsupported
//!   option that affects the workload is an error, too. An option without effect on the
//!   measured results is listed in [`JobFile::ignored`]. Commands in a job file are never run.
//! - [`plan`] and [`offsets`]: the files of a job, the number of its I/Os, and the offsets of
//!   sequential I/Os, as in fio.
//! - [`results`]: fio's JSON and JSON+ from plain counts and latencies, for existing plots
//!   and scripts.
//! - [`verify`]: headers, checksums and patterns of verified blocks.
//!
//! The crate does no I/O except reading included files, and does not know diskperf's
//! programs. It follows fio 3.33 and is tested against that program; the documentation of an
//! option mentions differences of newer versions.

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

pub use diskperf_diagnostics::{Errors, Problem, SourceSpan};
pub use elsewhere::{EngineTransport, ForeignEngine};
pub use job::{Direction, Ignored, JobDefinition, PerDirection};
pub use job_file::JobFile;
pub use number::UnitBase;
pub use surroundings::{FileSource, JobEnvironment, Keyword};
