//! Reports of runs and comparisons as text: tables for a terminal, JSON, CSV, Markdown.

mod card;
mod comparison_table;
mod csv;
mod details;
mod difference;
mod disk_queue;
mod document;
mod exchange;
mod expected;
mod explanation;
mod figures;
mod fio_json;
mod flash;
mod formatting;
pub mod html;
mod interleave;
mod json;
mod load_table;
mod notes;
mod pivot;
mod real_drives;
mod recorded;
mod replay;
mod request_lists;
mod run_table;
mod series;
mod targets;
mod trace;
mod tuning;
mod unwritten;
mod view;
mod volume;

use crate::accuracy::AccuracyCard;
use crate::comparison::Comparison;
use crate::disk_queue::DiskQueueReport;
use crate::expected::ExpectedFigures;
use crate::explanation::Explanation;
use crate::explanation::difference::ExplanationDifferences;
use crate::flash::FlashReport;
use crate::formatting::FormattingTime;
use crate::interleave::InterleaveReport;
use crate::real_drives::RealDrives;
use crate::recorded::RecordingSummary;
use crate::request_lists::RequestListReport;
use crate::trace::TraceReport;
use crate::tuning::TuningResult;
use crate::volume::VolumeReport;
use diskperf_timeline::Run;
use view::RunView;

pub use diskperf_fio::results::JsonFormat as FioFormat;
pub use exchange::{
    ExchangeError, ExchangeFormat, LabelPair, format_metric_labels, render_exchange,
    render_junit_comparison, render_junit_runs,
};
pub use fio_json::{NoRequests, render_fio_json};

/// Output format of a report: table, JSON, CSV or Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// Tables for a terminal, of a given width.
    Table,
    /// One JSON object with all figures of the report.
    Json,
    /// Comma-separated values with a heading, by RFC 4180: lines end in CR LF.
    Csv,
    /// Markdown tables in the GitHub flavour.
    Markdown,
}

/// Formats the results of runs, those of the same suite side by side. `width` is that of the
/// terminal in columns; only [`Format::Table`] uses it.
pub fn render_runs(runs: &[Run], format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => {
            document::render_text(&run_table::build_blocks(&RunView::from_runs(runs)), width)
        }
        ReportFormat::Markdown => {
            document::render_markdown(&run_table::build_blocks(&RunView::from_runs(runs)))
        }
        ReportFormat::Json => json::render_runs(&RunView::from_runs(runs)),
        ReportFormat::Csv => csv::render_runs(&RunView::from_runs(runs)),
    }
}

/// Formats the series of each program over time, as far as runs store one. `width` as in [`runs`];
/// the JSON is that of [`runs`], which contains the series.
pub fn render_series(runs: &[Run], format: ReportFormat, width: u16) -> String {
    let views = RunView::from_runs(runs);
    match format {
        ReportFormat::Table => document::render_text(&series::build_blocks(&views), width),
        ReportFormat::Markdown => document::render_markdown(&series::build_blocks(&views)),
        ReportFormat::Json => json::render_runs(&views),
        ReportFormat::Csv => series::render_csv(&views),
    }
}

/// Formats a comparison with its warnings. `width` as in [`runs`].
pub fn render_comparison(comparison: &Comparison, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => {
            document::render_text(&comparison_table::build_blocks(comparison), width)
        }
        ReportFormat::Markdown => {
            document::render_markdown(&comparison_table::build_blocks(comparison))
        }
        ReportFormat::Json => json::render_comparison(comparison),
        ReportFormat::Csv => csv::render_comparison(comparison),
    }
}

/// Formats an accuracy card. `width` as in [`runs`].
pub fn render_card(card: &AccuracyCard, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&card::build_blocks(card), width),
        ReportFormat::Markdown => document::render_markdown(&card::build_page(card)),
        ReportFormat::Json => card::render_json(card),
        ReportFormat::Csv => card::render_csv(card),
    }
}

/// Formats the calculation of an interleave factor, with a remark on the factor that the user asked
/// about. `width` as in [`runs`].
pub fn render_interleave(
    interleave: &InterleaveReport,
    format: ReportFormat,
    width: u16,
    asked: Option<u32>,
) -> String {
    match format {
        ReportFormat::Table => {
            document::render_text(&interleave::build_blocks(interleave, asked), width)
        }
        ReportFormat::Markdown => {
            document::render_markdown(&interleave::build_blocks(interleave, asked))
        }
        ReportFormat::Json => interleave::render_json(interleave),
        ReportFormat::Csv => interleave::render_csv(interleave),
    }
}

/// Formats the result of a tuning search. `width` as in [`runs`].
pub fn render_tuning(tuned: &TuningResult, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&tuning::build_blocks(tuned), width),
        ReportFormat::Markdown => document::render_markdown(&tuning::build_blocks(tuned)),
        ReportFormat::Json => tuning::render_json(tuned),
        ReportFormat::Csv => tuning::render_csv(tuned),
    }
}

/// Formats the durations of formatting a drive. `width` as in [`runs`].
pub fn render_formatting(times: &FormattingTime, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&formatting::build_blocks(times), width),
        ReportFormat::Markdown => document::render_markdown(&formatting::build_blocks(times)),
        ReportFormat::Json => formatting::render_json(times),
        ReportFormat::Csv => formatting::render_csv(times),
    }
}

/// Formats the bios of file operations. `width` as in [`runs`].
pub fn render_request_lists(lists: &RequestListReport, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&request_lists::build_blocks(lists), width),
        ReportFormat::Markdown => document::render_markdown(&request_lists::build_blocks(lists)),
        ReportFormat::Json => request_lists::render_json(lists),
        ReportFormat::Csv => request_lists::render_csv(lists),
    }
}

/// Formats the contents of a block trace. `width` as in [`runs`].
pub fn render_trace(trace: &TraceReport, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&trace::build_blocks(trace), width),
        ReportFormat::Markdown => document::render_markdown(&trace::build_blocks(trace)),
        ReportFormat::Json => trace::render_json(trace),
        ReportFormat::Csv => trace::render_csv(trace),
    }
}

/// Formats the result of recording a disk. `width` as in [`runs`].
pub fn render_recording(recorded: &RecordingSummary, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&recorded::build_blocks(recorded), width),
        ReportFormat::Markdown => document::render_markdown(&recorded::build_blocks(recorded)),
        ReportFormat::Json => recorded::render_json(recorded),
        ReportFormat::Csv => recorded::render_csv(recorded),
    }
}

/// Formats the gains of orders of service. `width` as in [`runs`].
pub fn render_disk_queue(disk_queue: &DiskQueueReport, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&disk_queue::build_blocks(disk_queue), width),
        ReportFormat::Markdown => document::render_markdown(&disk_queue::build_blocks(disk_queue)),
        ReportFormat::Json => disk_queue::render_json(disk_queue),
        ReportFormat::Csv => disk_queue::render_csv(disk_queue),
    }
}

/// Formats volumes under a load. `width` as in [`runs`].
pub fn render_volumes(volumes: &VolumeReport, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&volume::build_blocks(volumes), width),
        ReportFormat::Markdown => document::render_markdown(&volume::build_blocks(volumes)),
        ReportFormat::Json => json::render_pretty(volumes),
        ReportFormat::Csv => volume::render_csv(volumes),
    }
}

/// Formats a drive's figures beside the expected ones. `width` as in [`runs`].
pub fn render_expected(
    expected_figures: &ExpectedFigures,
    format: ReportFormat,
    width: u16,
) -> String {
    match format {
        ReportFormat::Table => {
            document::render_text(&expected::build_blocks(expected_figures), width)
        }
        ReportFormat::Markdown => {
            document::render_markdown(&expected::build_blocks(expected_figures))
        }
        ReportFormat::Json => expected::render_json(expected_figures),
        ReportFormat::Csv => expected::render_csv(expected_figures),
    }
}

/// Formats the calculations for a flash drive. `width` as in [`runs`].
pub fn render_flash(flash: &FlashReport, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => document::render_text(&flash::build_blocks(flash), width),
        ReportFormat::Markdown => document::render_markdown(&flash::build_blocks(flash)),
        ReportFormat::Json => flash::render_json(flash),
        ReportFormat::Csv => flash::render_csv(flash),
    }
}

/// Formats real drives and their replays. `width` as in [`runs`].
pub fn render_real_drives(real_drives: &RealDrives, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => {
            document::render_text(&real_drives::build_blocks(real_drives), width)
        }
        ReportFormat::Markdown => {
            document::render_markdown(&real_drives::build_blocks(real_drives))
        }
        ReportFormat::Json => real_drives::render_json(real_drives),
        ReportFormat::Csv => real_drives::render_csv(real_drives),
    }
}

/// Formats the account of the time of programs. `width` as in [`runs`].
pub fn render_explanation(explanation: &Explanation, format: ReportFormat, width: u16) -> String {
    match format {
        ReportFormat::Table => {
            document::render_text(&explanation::build_blocks(explanation), width)
        }
        ReportFormat::Markdown => {
            document::render_markdown(&explanation::build_blocks(explanation))
        }
        ReportFormat::Json => explanation::render_json(explanation),
        ReportFormat::Csv => explanation::render_csv(explanation),
    }
}

/// Formats the differences between two runs. `width` as in [`runs`].
pub fn render_differences(
    differences: &ExplanationDifferences,
    format: ReportFormat,
    width: u16,
) -> String {
    match format {
        ReportFormat::Table => document::render_text(&difference::build_blocks(differences), width),
        ReportFormat::Markdown => document::render_markdown(&difference::build_blocks(differences)),
        ReportFormat::Json => difference::render_json(differences),
        ReportFormat::Csv => difference::render_csv(differences),
    }
}

/// Formats text as one field of CSV.
pub fn escape_csv_field(text: &str) -> String {
    csv::escape_field(text)
}

/// Formats text as one cell of a Markdown table.
pub fn escape_markdown_cell(text: &str) -> String {
    document::escape_markdown(text)
}

/// Formats all details of one run for a terminal of this width in columns.
pub fn render_details(run: &Run, width: u16) -> String {
    let views = RunView::from_runs(std::slice::from_ref(run));
    document::render_text(&details::build_blocks(&views), width)
}

#[cfg(test)]
mod robustness;
#[cfg(test)]
mod tests;
