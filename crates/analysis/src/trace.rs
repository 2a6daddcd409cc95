//! What a block trace holds.

use diskperf_blocktrace::Notices;
use diskperf_blocktrace::own::{About, Part};
use diskperf_blocktrace::summary::Summary;
use serde::Serialize;

/// A trace, and what was found in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// Its files.
    pub files: Vec<String>,
    /// The form that it is of.
    pub form: &'static str,
    /// The part that was looked at, in words; all of it if absent.
    pub part: Option<String>,
    /// What it says of itself, as what it was recorded from.
    pub about: Vec<About>,
    /// The parts that it has, as the repetitions of a run, all of them.
    pub parts: Vec<Part>,
    /// What a reader of it should know.
    pub notices: Notices,
    /// What it holds.
    pub summary: Summary,
}
