//! Runs in the formats of other tools: benchmark trackers, Prometheus, HdrHistogram, JUnit.
//!
//! Only results with a counted repetition have figures. Text from users is made printable first,
//! and then escaped as each format requires.

mod benchmark;
mod exposition;
mod figures;
mod hdr_log;
mod junit;

pub use exposition::{LabelPair, format_metric_labels};
pub use junit::{render_junit_comparison, render_junit_runs};

use super::view::RunView;
use diskperf_timeline::Run;
use figures::ExportedResult;

/// Format of another tool that reads runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeFormat {
    /// Bencher Metric Format, version 0.
    BencherMetric,
    /// Array of github-action-benchmark with the figures of which more is better
    /// (`customBiggerIsBetter`).
    GithubBenchmarkBigger,
    /// Array of github-action-benchmark with the figures of which less is better
    /// (`customSmallerIsBetter`).
    GithubBenchmarkSmaller,
    /// Prometheus text format 0.0.4, without timestamps.
    Prometheus,
    /// Exposition format of OpenMetrics 1.0, which ends in `# EOF`.
    OpenMetrics,
    /// Log of HdrHistogram, one line per operation and repetition.
    HdrLog,
}

/// Error for runs without any figure that the format can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// No result has a counted repetition.
    #[error("no program of these runs was measured, and the format has no empty form")]
    NoFigures,
    /// No result has a latency histogram.
    #[error(
        "no program of these runs has latencies: run again without --no-latency, or export another format"
    )]
    NoLatencies,
}

/// Renders runs in the format of another tool.
///
/// # Errors
///
/// Returns an error if the runs have no figure for this format.
pub fn render_exchange(runs: &[Run], format: ExchangeFormat) -> Result<String, ExchangeError> {
    let views = RunView::from_runs(runs);
    let results = ExportedResult::from_views(&views);
    if results.is_empty() {
        return Err(ExchangeError::NoFigures);
    }
    match format {
        ExchangeFormat::BencherMetric => Ok(benchmark::render_bencher_metric(&results)),
        ExchangeFormat::GithubBenchmarkBigger => benchmark::render_github(&results, true),
        ExchangeFormat::GithubBenchmarkSmaller => benchmark::render_github(&results, false),
        ExchangeFormat::Prometheus => Ok(exposition::render_prometheus(&views, &results)),
        ExchangeFormat::OpenMetrics => Ok(exposition::render_open_metrics(&views, &results)),
        ExchangeFormat::HdrLog => hdr_log::render_log(&results),
    }
}

#[cfg(test)]
mod tests;
