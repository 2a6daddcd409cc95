//! From a line, or a piece of bytes, to what it says: one file a form.

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

pub(crate) use biosnoop::Biosnoop;
pub(crate) use blkparse::Blkparse;
pub(crate) use blktrace::Blktrace;
pub(crate) use csv::Csv;
pub(crate) use disksim::{DiskSim, Pause};
pub(crate) use fio::FioIolog;
pub(crate) use ftrace::Ftrace;
pub(crate) use simple::Simple;
pub(crate) use srt::{LONGEST_HEADER, Srt};
pub(crate) use vscsi::{Vscsi, VscsiCsv};

use crate::order::Order;
use crate::record::{DeviceIndex, Record};
use std::collections::BTreeMap;

/// What a trace of SRT begins with.
pub(crate) fn srt_magic() -> &'static [u8] {
    srt::MAGIC
}

/// What a line is.
pub(crate) enum Said {
    /// A request, whose time counts from any beginning.
    Request(Record),
    /// Beginning of a request, which was handed to [`Context::order`].
    Begin,
    /// More of a request that has begun: its merge, its issue, its completion.
    More,
    /// Nothing that could be a request: a heading, a comment, an empty line.
    Aside,
    /// Left out, and counted by the reason.
    LeftOut,
}

/// What lines have in common.
#[derive(Debug, Default)]
pub(crate) struct Context {
    devices: Devices,
    pub(crate) order: Order,
    /// Lines that are no requests, by the reason.
    pub(crate) dropped: BTreeMap<&'static str, u64>,
    /// What diskperf's own form says beside its requests.
    pub(crate) said: crate::own::Said,
}

impl Context {
    /// The number of a device.
    #[inline]
    pub(crate) fn device(&mut self, name: &[u8]) -> DeviceIndex {
        self.devices.number(name)
    }

    /// Names by number.
    pub(crate) fn devices(&self) -> &[String] {
        &self.devices.names
    }

    /// Makes sure that a request which has just begun has a range that storage can have.
    ///
    /// # Errors
    ///
    /// As [`Record::validate`].
    pub(crate) fn validate(&self, said: Said) -> Result<Said, String> {
        let begun = match &said {
            Said::Request(record) => Some(record),
            Said::Begin => self.order.newest(),
            Said::More | Said::Aside | Said::LeftOut => None,
        };
        begun.map_or(Ok(()), Record::validate)?;
        Ok(said)
    }

    /// A line that is no request, and why.
    pub(crate) fn drop(&mut self, why: &'static str) -> Said {
        *self.dropped.entry(why).or_default() += 1;
        Said::LeftOut
    }

    /// A completion of what was never issued.
    pub(crate) fn without_issue(&mut self) -> Said {
        self.order.without_issue += 1;
        Said::LeftOut
    }
}

/// Devices that are told apart: requests of any others count for the last of these.
pub const DEVICES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Devices {
    names: Vec<String>,
    by_name: BTreeMap<Vec<u8>, u32>,
    last: Vec<u8>,
    last_number: u32,
}

impl Devices {
    #[inline]
    fn number(&mut self, name: &[u8]) -> DeviceIndex {
        if self.last == name && !self.names.is_empty() {
            return DeviceIndex(self.last_number);
        }
        let next = self.names.len() as u32;
        let known = self.by_name.get(name).copied();
        let number = known.unwrap_or_else(|| {
            if self.names.len() < DEVICES_MAX {
                self.names.push(String::from_utf8_lossy(name).into_owned());
                self.by_name.insert(name.to_owned(), next);
                next
            } else {
                next - 1
            }
        });
        self.last.clear();
        self.last.extend_from_slice(name);
        self.last_number = number;
        DeviceIndex(number)
    }
}

/// The fields of a line between commas.
pub(crate) fn fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], String> {
    let mut found = [&line[..0]; N];
    let mut count = 0;
    for field in line.split(|byte| *byte == b',') {
        if count < N {
            found[count] = field.trim_ascii();
        }
        count += 1;
    }
    match count < N {
        true => Err(format!("{count} fields between commas, and {N} are wanted")),
        false => Ok(found),
    }
}

/// The words of a line between blanks, so many at the most; how many there are.
pub(crate) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
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

/// What is wrong with a word.
pub(crate) fn wrong(what: &str, word: &[u8]) -> String {
    const LONGEST: usize = 40;
    let shown = String::from_utf8_lossy(&word[..word.len().min(LONGEST)]);
    format!("`{}` is not {what}", shown.escape_debug())
}

/// A whole number of a line.
#[inline]
pub(crate) fn number(what: &str, word: &[u8]) -> Result<u64, String> {
    crate::number::whole(word).ok_or_else(|| wrong(what, word))
}

/// A time of a line, in nanoseconds.
#[inline]
pub(crate) fn time(what: &str, word: &[u8], digits: i32) -> Result<u64, String> {
    crate::number::nanoseconds(word, digits).ok_or_else(|| wrong(what, word))
}

/// A number of units of bytes.
#[inline]
pub(crate) fn bytes(what: &str, word: &[u8], unit: u64) -> Result<u64, String> {
    let units = number(what, word)?;
    units.checked_mul(unit).ok_or_else(|| wrong(what, word))
}

/// Bytes of a sector of the block layer.
pub(crate) const SECTOR_BYTES: u64 = 512;
