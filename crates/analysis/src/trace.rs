//! Block trace with the results of its analysis.

use diskperf_blocktrace::Notices;
use diskperf_blocktrace::own::{About, Part};
use diskperf_blocktrace::summary::Summary;
use serde::Serialize;

/// Trace with the results of its analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// Files of the trace.
    pub files: Vec<String>,
    /// Format of the trace.
    pub form: &'static str,
    /// Description of the analysed part; absent for the whole trace.
    pub part: Option<String>,
    /// Metadata of the trace, such as its origin.
    pub about: Vec<About>,
    /// Parts of the trace, such as the repetitions of a run; always all of them.
    pub parts: Vec<Part>,
    /// Notices for the reader of the trace.
    pub notices: Notices,
    /// Summary of the trace's contents.
    pub summary: Summary,
}
