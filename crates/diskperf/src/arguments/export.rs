//! The options of `diskperf export`.

use super::parse_percent;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ExportArguments {
    /// Runs: ids, unique prefixes, labels, or `last`
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub(crate) runs: Vec<String>,
    /// Output file; - is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Format of the file
    #[arg(long, value_enum, default_value = "diskperf")]
    pub(crate) format: ExportFormat,
    /// For junit: only rows that are slower than the first run by more than this fail
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) fail_over: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// JSON with all repetitions, which other commands accept in place of a run
    Diskperf,
    /// Bencher Metric Format, version 0
    Bmf,
    /// JSON of github-action-benchmark: NAME-bigger.json and NAME-smaller.json, since a file has
    /// one direction
    GithubBenchmark,
    /// OpenMetrics 1.0, as for GitLab's metrics reports
    Openmetrics,
    /// Prometheus text format 0.0.4, as for node_exporter's textfile collector
    Prometheus,
    /// Log of HdrHistogram, with a line for each operation and repetition
    Hdr,
    /// JUnit XML: of several runs, each row against the first run; slower rows fail, undecided ones
    /// are skipped
    Junit,
}
