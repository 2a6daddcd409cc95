//! Parser of Hewlett-Packard's SRT 1.3: a text header, then records of big-endian words.

use super::{LineMeaning, ParseContext};
use crate::record::{TraceRecord, TracedOperation};
use std::collections::BTreeMap;

/// Maximum length of the text header, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 60 << 10;
/// First bytes of every SRT trace.
pub(crate) const MAGIC: &[u8] = b"$$TR_IOREC-1.3";

/// Minimum number of words in a record: up to its flags and the words after them. `RECORD_WORDS_MAX` is
/// the maximum.
const RECORD_WORDS_MIN: usize = 13;
const RECORD_WORDS_MAX: usize = 64;

/// Parser of an SRT trace, with the information from its header.
#[derive(Clone, Debug)]
pub(crate) struct SrtParser {
    /// Sector size of each disk, in bytes.
    sector_bytes: BTreeMap<u32, u64>,
}

impl SrtParser {
    /// Creates the parser from the header, the text before the form feed.
    pub(crate) fn from_header(header: &str) -> Self {
        let mut sector_bytes = BTreeMap::new();
        let mut disk = None;
        for line in header.lines() {
            if let Some((number, _)) = line.split_once("->") {
                disk = number.trim().trim_start_matches('{').trim().parse().ok();
            }
            if let (Some(disk), Some((_, size))) = (disk, line.split_once("sectorsize")) {
                let digits: String = size.chars().filter(char::is_ascii_digit).collect();
                if let Ok(size) = digits.parse() {
                    sector_bytes.insert(disk, size);
                }
            }
        }
        Self { sector_bytes }
    }

    /// Returns the bytes of an SRT record, from its first word.
    pub(crate) fn record_bytes(&self, first: &[u8]) -> Result<usize, String> {
        let bytes = u32::from_be_bytes([0, 1, 2, 3].map(|of| first[of])) as usize;
        let legal = (4 * RECORD_WORDS_MIN..=4 * RECORD_WORDS_MAX).contains(&bytes)
            && bytes.is_multiple_of(4);
        legal
            .then_some(bytes)
            .ok_or_else(|| format!("a record of {bytes} bytes is invalid: records have 52 to 256"))
    }

    pub(crate) fn parse_record(
        &self,
        record: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|of| record[4 * at + of]));
        let (seconds, us, stop_us) = (word(2), word(3), word(5));
        let issued_ns = u64::from(seconds) * 1_000_000_000 + u64::from(us) * 1000;
        let device = word(8);
        let disk = device >> 8 & 0xff;
        let size = self.sector_bytes.get(&disk).copied().unwrap_or(512);
        let flags = word(11);
        let name = format!("{disk}.{}", device & 0xff);
        let offset = u64::from(word(7)).checked_mul(size);
        Ok(LineMeaning::Request(TraceRecord {
            operation: match flags & 1 {
                1 => TracedOperation::Read,
                _ => TracedOperation::Write,
            },
            sync: flags >> 24 & 1 == 1,
            completed_ns: Some(issued_ns + u64::from(stop_us) * 1000),
            device: context.device_index(name.as_bytes()),
            offset_bytes: offset.ok_or("the sector is beyond the end of any disk")?,
            length_bytes: u64::from(word(6)),
            ..TraceRecord::issued_at(issued_ns)
        }))
    }
}
