//! The options of `diskperf trace`.

use super::OutputFormat;
use clap::Args;
use diskperf_laboratory::traces::{Columns, Form, TimeUnit};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct TraceArguments {
    /// A trace, plain or compressed with gzip or zstd; `-` is standard input; of blktrace, the
    /// files of all processors, or the directory that holds them
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Its form [default: told by what it begins with]
    #[arg(long, value_name = "FORM")]
    pub(crate) form: Option<Form>,
    /// What the columns of a table are, by number or by name: time_us=1,op=3,offset=4,length=Size;
    /// also sector, sectors, response_UNIT, device
    #[arg(long, value_name = "NAME=N,...")]
    pub(crate) columns: Option<Columns>,
    /// The unit of its times, of a form that says none: s, ms, us, ns or ps
    #[arg(long, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Read a trace that is cut off as far as it goes
    #[arg(long)]
    pub(crate) partial: bool,
    /// Only what was issued in this time from the beginning, as 10s..1m
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    pub(crate) window: Option<(u64, u64)>,
    /// Only what was issued in this part of it, as a repetition of a run: a number of the table of
    /// parts
    #[arg(long, value_name = "N")]
    pub(crate) part: Option<u32>,
    /// Only what this device was asked, as the trace calls it
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Write the trace in another form, to --output
    #[arg(long, value_name = "FORM", requires = "output", value_parser = written_form)]
    pub(crate) convert: Option<Form>,
    /// Where --convert writes; `-` is standard output
    #[arg(short, long, value_name = "FILE", requires = "convert")]
    pub(crate) output: Option<PathBuf>,
    /// With --convert: scale addresses to a space of so many bytes
    #[arg(long, value_name = "SIZE", requires = "convert", value_parser = super::parse_bytes)]
    pub(crate) scale_addresses: Option<u64>,
    /// Also write an HTML page with pictures of it to this file
    #[arg(long, value_name = "FILE.html", conflicts_with = "convert")]
    pub(crate) report: Option<PathBuf>,
    /// Output format; csv has the miss ratios
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A form by its name, to write a trace in.
fn parse_written_form(name: &str) -> Result<Form, String> {
    name.parse().map_err(|_| {
        let written = Form::WRITTEN.map(Form::name).join(", ");
        format!("there is no form `{name}` to write; there are {written}")
    })
}

/// Two times with their units.
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
