//! The options of `diskperf trace`.

use super::OutputFormat;
use clap::Args;
use diskperf_laboratory::traces::{CsvColumns, Form, TimeUnit};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct TraceArguments {
    /// A trace, plain or compressed with gzip or zstd; `-` is standard input; for blktrace, the
    /// files of all processors or their directory
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Form of the trace [default: detected from its start]
    #[arg(long, value_name = "FORM")]
    pub(crate) form: Option<Form>,
    /// Columns of a table, by number or by name: time_us=1,op=3,offset=4,length=Size; also sector,
    /// sectors, response_UNIT, device
    #[arg(long, value_name = "NAME=N,...")]
    pub(crate) columns: Option<CsvColumns>,
    /// Time unit of a form that does not state it: s, ms, us, ns or ps
    #[arg(long, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Accept a truncated trace, and read its complete part
    #[arg(long)]
    pub(crate) partial: bool,
    /// Only requests issued in this time window from the start, as 10s..1m
    #[arg(long, value_name = "FROM..TO", value_parser = parse_window)]
    pub(crate) window: Option<(u64, u64)>,
    /// Only requests of this part of the trace, such as a repetition of a run, by its number in the
    /// table of parts
    #[arg(long, value_name = "N")]
    pub(crate) part: Option<u32>,
    /// Only requests to this device, by its name in the trace
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Convert the trace to this form, into --output
    #[arg(long, value_name = "FORM", requires = "output", value_parser = parse_writable_form)]
    pub(crate) convert: Option<Form>,
    /// Output file of --convert; `-` is standard output
    #[arg(short, long, value_name = "FILE", requires = "convert")]
    pub(crate) output: Option<PathBuf>,
    /// With --convert: scale addresses to a space of this size
    #[arg(long, value_name = "SIZE", requires = "convert", value_parser = super::parse_bytes)]
    pub(crate) scale_addresses: Option<u64>,
    /// Also write an HTML page with charts of the trace to this file
    #[arg(long, value_name = "FILE.html", conflicts_with = "convert")]
    pub(crate) report: Option<PathBuf>,
    /// Output format; csv has the miss ratios
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

fn parse_writable_form(name: &str) -> Result<Form, String> {
    name.parse().map_err(|_| {
        let written = Form::WRITABLE.map(Form::name).join(", ");
        format!("there is no form `{name}` to write; there are {written}")
    })
}

/// Parses two times with their units.
pub(super) fn parse_window(text: &str) -> Result<(u64, u64), String> {
    let usage = || "a window is FROM..TO with units, as 10s..1m or 0s..500ms".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(usage)?;
    let (from, to) = (
        parse_time_ns(from).ok_or_else(usage)?,
        parse_time_ns(to).ok_or_else(usage)?,
    );
    match from < to {
        true => Ok((from, to)),
        false => Err(format!("{text}: nothing is before its own beginning")),
    }
}

pub(super) fn parse_time_ns(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|one: char| !(one.is_ascii_digit() || one == '.'))?;
    let (number, unit) = text.split_at(end);
    let ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    (number * ns < 1e19).then_some((number * ns) as u64)
}
