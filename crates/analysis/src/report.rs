//! Reports of runs and comparisons as text: tables for a terminal, JSON, CSV, Markdown.

mod card;
mod comparison_table;
mod csv;
mod details;
mod difference;
mod disk_queue;
mod document;
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
mod run_table;
mod series;
mod targets;
mod trace;
mod tuning;
mod unwritten;
mod view;

use crate::accuracy::Card;
use crate::comparison::Comparison;
use crate::disk_queue::DiskQueue;
use crate::expected::ExpectedFigures;
use crate::explanation::Explanation;
use crate::explanation::difference::Differences;
use crate::flash::Flash;
use crate::formatting::Formatting;
use crate::interleave::Interleave;
use crate::real_drives::RealDrives;
use crate::recorded::Observed;
use crate::trace::Trace;
use crate::tuning::Tuned;
use diskperf_timeline::Run;
use view::View;

pub use diskperf_fio::results::JsonFormat as FioFormat;
pub use fio_json::{NoRequests, fio_json};

/// Output format of a report: table, JSON, CSV or Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
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
pub fn runs(runs: &[Run], format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&run_table::blocks(&View::from_runs(runs)), width),
        Format::Markdown => document::markdown(&run_table::blocks(&View::from_runs(runs))),
        Format::Json => json::runs(&View::from_runs(runs)),
        Format::Csv => csv::runs(&View::from_runs(runs)),
    }
}

/// Formats the series of each program over time, as far as runs store one. `width` as in [`runs`];
/// the JSON is that of [`runs`], which contains the series.
pub fn series(runs: &[Run], format: Format, width: u16) -> String {
    let views = View::from_runs(runs);
    match format {
        Format::Table => document::text(&series::blocks(&views), width),
        Format::Markdown => document::markdown(&series::blocks(&views)),
        Format::Json => json::runs(&views),
        Format::Csv => series::csv(&views),
    }
}

/// Formats a comparison with its warnings. `width` as in [`runs`].
pub fn comparison(comparison: &Comparison, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&comparison_table::blocks(comparison), width),
        Format::Markdown => document::markdown(&comparison_table::blocks(comparison)),
        Format::Json => json::comparison(comparison),
        Format::Csv => csv::comparison(comparison),
    }
}

/// Formats an accuracy card. `width` as in [`runs`].
pub fn card(card: &Card, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&card::blocks(card), width),
        Format::Markdown => document::markdown(&card::page(card)),
        Format::Json => card::json(card),
        Format::Csv => card::csv(card),
    }
}

/// Formats the calculation of an interleave factor, with a remark on the factor that the user asked
/// about. `width` as in [`runs`].
pub fn interleave(
    interleave: &Interleave,
    format: Format,
    width: u16,
    asked: Option<u32>,
) -> String {
    match format {
        Format::Table => document::text(&interleave::blocks(interleave, asked), width),
        Format::Markdown => document::markdown(&interleave::blocks(interleave, asked)),
        Format::Json => interleave::json(interleave),
        Format::Csv => interleave::csv(interleave),
    }
}

/// Formats the result of a tuning search. `width` as in [`runs`].
pub fn tuned(tuned: &Tuned, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&tuning::blocks(tuned), width),
        Format::Markdown => document::markdown(&tuning::blocks(tuned)),
        Format::Json => tuning::json(tuned),
        Format::Csv => tuning::csv(tuned),
    }
}

/// Formats the durations of formatting a drive. `width` as in [`runs`].
pub fn formatting(times: &Formatting, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&formatting::blocks(times), width),
        Format::Markdown => document::markdown(&formatting::blocks(times)),
        Format::Json => formatting::json(times),
        Format::Csv => formatting::csv(times),
    }
}

/// Formats the contents of a block trace. `width` as in [`runs`].
pub fn trace(trace: &Trace, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&trace::blocks(trace), width),
        Format::Markdown => document::markdown(&trace::blocks(trace)),
        Format::Json => trace::json(trace),
        Format::Csv => trace::csv(trace),
    }
}

/// Formats the result of recording a disk. `width` as in [`runs`].
pub fn recorded(recorded: &Observed, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&recorded::blocks(recorded), width),
        Format::Markdown => document::markdown(&recorded::blocks(recorded)),
        Format::Json => recorded::json(recorded),
        Format::Csv => recorded::csv(recorded),
    }
}

/// Formats the gains of orders of service. `width` as in [`runs`].
pub fn disk_queue(disk_queue: &DiskQueue, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&disk_queue::blocks(disk_queue), width),
        Format::Markdown => document::markdown(&disk_queue::blocks(disk_queue)),
        Format::Json => disk_queue::json(disk_queue),
        Format::Csv => disk_queue::csv(disk_queue),
    }
}

/// Formats a drive's figures beside the expected ones. `width` as in [`runs`].
pub fn expected(expected_figures: &ExpectedFigures, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&expected::blocks(expected_figures), width),
        Format::Markdown => document::markdown(&expected::blocks(expected_figures)),
        Format::Json => expected::json(expected_figures),
        Format::Csv => expected::csv(expected_figures),
    }
}

/// Formats the calculations for a flash drive. `width` as in [`runs`].
pub fn flash(flash: &Flash, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&flash::blocks(flash), width),
        Format::Markdown => document::markdown(&flash::blocks(flash)),
        Format::Json => flash::json(flash),
        Format::Csv => flash::csv(flash),
    }
}

/// Formats real drives and their replays. `width` as in [`runs`].
pub fn real_drives(real_drives: &RealDrives, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&real_drives::blocks(real_drives), width),
        Format::Markdown => document::markdown(&real_drives::blocks(real_drives)),
        Format::Json => real_drives::json(real_drives),
        Format::Csv => real_drives::csv(real_drives),
    }
}

/// Formats the account of the time of programs. `width` as in [`runs`].
pub fn explanation(explanation: &Explanation, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&explanation::blocks(explanation), width),
        Format::Markdown => document::markdown(&explanation::blocks(explanation)),
        Format::Json => explanation::json(explanation),
        Format::Csv => explanation::csv(explanation),
    }
}

/// Formats the differences between two runs. `width` as in [`runs`].
pub fn differences(differences: &Differences, format: Format, width: u16) -> String {
    match format {
        Format::Table => document::text(&difference::blocks(differences), width),
        Format::Markdown => document::markdown(&difference::blocks(differences)),
        Format::Json => difference::json(differences),
        Format::Csv => difference::csv(differences),
    }
}

/// Formats text as one field of CSV.
pub fn csv_field(text: &str) -> String {
    csv::escape_field(text)
}

/// Formats text as one cell of a Markdown table.
pub fn markdown_cell(text: &str) -> String {
    document::escape_markdown(text)
}

/// Formats all details of one run for a terminal of this width in columns.
pub fn details(run: &Run, width: u16) -> String {
    let views = View::from_runs(std::slice::from_ref(run));
    document::text(&details::blocks(&views), width)
}

#[cfg(test)]
mod robustness;
#[cfg(test)]
mod tests;
