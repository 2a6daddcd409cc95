//! Block trace with the results of its analysis.

use diskperf_blocktrace::Notices;
use diskperf_blocktrace::own::{TraceFact, TracePart};
use diskperf_blocktrace::summary::TraceSummary;
use serde::Serialize;

/// Trace with the results of its analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceReport {
    /// Names of the trace files.
    pub files: Vec<String>,
    /// Name of the trace format.
    #[serde(rename = "form")]
    pub format_name: &'static str,
    /// Description of the analysed part; absent for the whole trace.
    #[serde(rename = "part")]
    pub part_name: Option<String>,
    /// Metadata of the trace, such as its origin.
    #[serde(rename = "about")]
    pub metadata: Vec<TraceFact>,
    /// Parts of the trace, such as the repetitions of a run; always all of them.
    pub parts: Vec<TracePart>,
    /// Notices for the reader of the trace.
    pub notices: Notices,
    /// Summary of the requests in the trace.
    pub summary: TraceSummary,
}
