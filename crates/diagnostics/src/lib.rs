//! Errors and warnings about a text that a user wrote (a file of the catalogue, a setting, a job
//! file). Each has its location, a label for the caret there, and advice on the remedy.
//!
//! ```
//! use diskperf_diagnostics::{Problem, SourceSpan, Text};
//! use std::sync::Arc;
//!
//! let text = Arc::new(Text::new("disk.toml".to_owned(), "heads = 0\n".to_owned()));
//! let problem = Problem::error("a disk has no heads").at(&SourceSpan::new(&text, 8..9), "at least 1");
//! assert_eq!(problem.span().map(SourceSpan::to_string).as_deref(), Some("disk.toml:1:9"));
//! ```

pub mod input;
mod place;
mod problem;

pub use place::{SourceSpan, Text};
pub use problem::{Errors, Problem};

#[cfg(test)]
mod tests;
