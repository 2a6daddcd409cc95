//! Parsers of the trace formats, from a line or a piece of bytes to an event, one file per format.

mod biosnoop;
mod blkparse;
mod blktrace;
pub(crate) mod block_layer;
mod csv;
mod disksim;
mod fio;
mod ftrace;
mod simple;
mod srt;
mod vscsi;

pub(crate) use biosnoop::BiosnoopParser;
pub(crate) use blkparse::BlkparseParser;
pub(crate) use blktrace::BlktraceParser;
pub(crate) use csv::CsvParser;
pub(crate) use disksim::{DiskSimParser, ThinkPosition};
pub(crate) use fio::IologParser;
pub(crate) use ftrace::FtraceParser;
pub(crate) use simple::CsvLineParser;
pub(crate) use srt::{HEADER_BYTES_MAX, SrtParser};
pub(crate) use vscsi::{VscsiCsvParser, VscsiParser};

use crate::order::OpenRequests;
use crate::record::{DeviceIndex, TraceRecord};
use std::collections::BTreeMap;

/// Returns the first bytes of an SRT trace.
pub(crate) fn srt_magic() -> &'static [u8] {
    srt::MAGIC
}

pub(crate) enum LineMeaning {
    /// A complete request. Its time counts from an arbitrary origin.
    Request(TraceRecord),
    /// The beginning of a request, which was added to [`ParseContext::open_requests`].
    RequestIssue,
    /// A further event of a request that has begun: its merge, its issue or its completion.
    RequestUpdate,
    /// A line that cannot be a request: a heading, a comment or an empty line.
    Heading,
    /// A line that was left out and counted by its reason.
    Ignored,
}

/// State that the lines of a trace share.
#[derive(Debug, Default)]
pub(crate) struct ParseContext {
    devices: DeviceNames,
    pub(crate) open_requests: OpenRequests,
    /// Number of lines that are not requests, by reason.
    pub(crate) dropped_counts: BTreeMap<&'static str, u64>,
    /// Information other than requests in a trace of diskperf's own format.
    pub(crate) information: crate::own::TraceInformation,
}

impl ParseContext {
    /// Returns the index of a device by its name, and assigns one to a new device.
    #[inline]
    pub(crate) fn device_index(&mut self, name: &[u8]) -> DeviceIndex {
        self.devices.find_or_add(name)
    }

    pub(crate) fn device_names(&self) -> &[String] {
        &self.devices.names
    }

    /// Checks that the range of a request that has just begun is possible for storage.
    ///
    /// # Errors
    ///
    /// Fails like [`TraceRecord::validate`].
    pub(crate) fn validate(&self, said: LineMeaning) -> Result<LineMeaning, String> {
        let begun = match &said {
            LineMeaning::Request(record) => Some(record),
            LineMeaning::RequestIssue => self.open_requests.last_issued(),
            LineMeaning::RequestUpdate | LineMeaning::Heading | LineMeaning::Ignored => None,
        };
        begun.map_or(Ok(()), TraceRecord::validate)?;
        Ok(said)
    }

    /// Counts a line that is not a request under the given reason.
    pub(crate) fn ignore_line(&mut self, why: &'static str) -> LineMeaning {
        *self.dropped_counts.entry(why).or_default() += 1;
        LineMeaning::Ignored
    }

    /// Counts a completion without a matching issue.
    pub(crate) fn ignore_unmatched_completion(&mut self) -> LineMeaning {
        self.open_requests.without_issue_count += 1;
        LineMeaning::Ignored
    }
}

/// Maximum number of distinct devices. Requests to further devices count for the last one.
pub const DEVICES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct DeviceNames {
    names: Vec<String>,
    index_by_name: BTreeMap<Vec<u8>, u32>,
    last_name: Vec<u8>,
    last_index: u32,
}

impl DeviceNames {
    #[inline]
    fn find_or_add(&mut self, name: &[u8]) -> DeviceIndex {
        if self.last_name == name && !self.names.is_empty() {
            return DeviceIndex(self.last_index);
        }
        let next = self.names.len() as u32;
        let known = self.index_by_name.get(name).copied();
        let number = known.unwrap_or_else(|| {
            if self.names.len() < DEVICES_MAX {
                self.names.push(String::from_utf8_lossy(name).into_owned());
                self.index_by_name.insert(name.to_owned(), next);
                next
            } else {
                next - 1
            }
        });
        self.last_name.clear();
        self.last_name.extend_from_slice(name);
        self.last_index = number;
        DeviceIndex(number)
    }
}

/// Splits a line at commas into its first `N` fields. It is an error if the line has fewer.
pub(crate) fn split_fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], String> {
    let mut found = [&line[..0]; N];
    let mut count = 0;
    for field in line.split(|byte| *byte == b',') {
        if count < N {
            found[count] = field.trim_ascii();
        }
        count += 1;
    }
    match count < N {
        true => Err(format!(
            "the line has {count} comma-separated fields instead of {N}"
        )),
        false => Ok(found),
    }
}

/// Splits a line at blanks into its first `N` words, and returns them with the number of all words.
pub(crate) fn split_words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut found = [&line[..0]; N];
    let mut count = 0;
    let all = line.split(u8::is_ascii_whitespace);
    for word in all.filter(|word| !word.is_empty()) {
        if count < N {
            found[count] = word;
        }
        count += 1;
    }
    (found, count)
}

/// Returns the message for a word that is not the expected value.
pub(crate) fn unexpected_field(what: &str, word: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 40;
    let shown = String::from_utf8_lossy(&word[..word.len().min(SHOWN_BYTES_MAX)]);
    format!("`{}` is not {what}", shown.escape_debug())
}

/// Parses a whole number in a line of a trace.
#[inline]
pub(crate) fn parse_number(what: &str, word: &[u8]) -> Result<u64, String> {
    crate::number::parse_decimal(word).ok_or_else(|| unexpected_field(what, word))
}

/// Parses a time in a line of a trace, and converts it to nanoseconds.
#[inline]
pub(crate) fn parse_time_ns(what: &str, word: &[u8], digits: i32) -> Result<u64, String> {
    crate::number::parse_nanoseconds(word, digits).ok_or_else(|| unexpected_field(what, word))
}

/// Parses a number of units and converts it to bytes.
#[inline]
pub(crate) fn parse_bytes(what: &str, word: &[u8], unit: u64) -> Result<u64, String> {
    let units = parse_number(what, word)?;
    units
        .checked_mul(unit)
        .ok_or_else(|| unexpected_field(what, word))
}

/// Bytes of a sector of the Linux block layer.
pub(crate) const SECTOR_BYTES: u64 = 512;
