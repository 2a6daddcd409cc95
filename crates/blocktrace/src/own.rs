//! Native trace format of diskperf: the issue and the completion of each request, in blocks with
//! checksums. A recording that was killed can be read up to its last complete block.
//!
//! `docs/reference/trace-form.md` describes the format byte by byte.

mod encoder;
mod item;
mod parser;
mod said;

pub(crate) use encoder::{TraceEncoder, encode_header};
pub use item::NAME_BYTES_MAX;
pub(crate) use parser::OwnFormatParser;
pub(crate) use said::TraceInformation;
pub use said::{TraceFact, TracePart};

use crate::record::{DeviceIndex, TraceRecord};
use std::io::{self, Write};
use std::time::Duration;

/// First bytes of a trace. They are not text, and any conversion of line ends damages them visibly.
pub(crate) const MAGIC: &[u8; 8] = b"\x89dptr\r\n\x1a";
/// Format version that is written, and the only one that is read.
pub(crate) const VERSION: u32 = 1;
/// Bytes of the trace header: magic number, version and checksum.
pub(crate) const HEADER_BYTES: usize = 16;
/// Magic number at the start of a block.
pub(crate) const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"DBLK");
/// Bytes of a block header: magic number, payload length, block number, flags and checksum.
pub(crate) const BLOCK_HEADER_BYTES: usize = 24;
/// Bytes of the block header that its checksum covers. The checksum also covers the payload.
pub(crate) const CHECKSUMMED_HEADER_BYTES: usize = 20;
/// Maximum payload of a block, in bytes.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Flag of the last block of a trace.
pub(crate) const LAST_BLOCK_FLAG: u32 = 1;

/// Maximum interval at which a recorder passes its data to the operating system, so that a kill
/// loses less than a second.
pub const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// Recorder of a trace: it writes issues and completions as they happen.
///
/// Data reaches the output with [`flush`](Self::flush), when a block is full, and with
/// [`finish`](Self::finish). Each block is written completely by one call.
pub struct TraceRecorder<W: Write> {
    output: W,
    encoder: TraceEncoder,
}

impl<W: Write> TraceRecorder<W> {
    /// Begins a trace.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn create(mut output: W) -> io::Result<Self> {
        output.write_all(&encode_header())?;
        Ok(Self {
            output,
            encoder: TraceEncoder::default(),
        })
    }

    /// Adds a device by its name, which must be new, and returns its index.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn add_device(&mut self, name: &str) -> io::Result<DeviceIndex> {
        let number = self.encoder.add_device(name);
        self.write_block_if_full()?;
        Ok(number)
    }

    /// Adds information on the whole trace, such as its source, as a name and a value. The first
    /// 4096 bytes of each are kept.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn add_information(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.encoder.add_information(name, value);
        self.write_block_if_full()
    }

    /// Begins a part of the trace, such as a repetition of a run. Requests issued from now on
    /// belong to it.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn begin_part(&mut self, at_ns: u64, name: &str) -> io::Result<()> {
        self.encoder.begin_part(at_ns, name);
        self.write_block_if_full()
    }

    /// Ends the latest part. `counts` says whether the recorder's results include it.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn end_part(&mut self, at_ns: u64, counts: bool) -> io::Result<()> {
        self.encoder.end_part(at_ns, counts);
        self.write_block_if_full()
    }

    /// Records the issue of a request, and returns the number that its completion must give. A
    /// completion time in the record is ignored.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    ///
    /// # Panics
    ///
    /// Panics if the record's device was not added.
    pub fn record_issue(&mut self, record: &TraceRecord) -> io::Result<u64> {
        let number = self.encoder.add_issue(record);
        self.write_block_if_full()?;
        Ok(number)
    }

    /// Records the completion of a request, with `at_ns` on the clock of the issues, and 0 or an
    /// errno.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn record_completion(&mut self, number: u64, at_ns: u64, errno: u16) -> io::Result<()> {
        self.encoder.add_completion(number, at_ns, errno);
        self.write_block_if_full()
    }

    /// Records that the recorder missed `events` issues and completions.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn record_lost_events(&mut self, events: u64) -> io::Result<()> {
        self.encoder.add_lost_events(events);
        self.write_block_if_full()
    }

    /// Passes the recorded data to the output.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.encoder.is_empty() {
            self.output.write_all(self.encoder.take_block(0))?;
        }
        self.output.flush()
    }

    /// Ends the trace and returns the output.
    ///
    /// # Errors
    ///
    /// Fails if the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.output
            .write_all(self.encoder.take_block(LAST_BLOCK_FLAG))?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn write_block_if_full(&mut self) -> io::Result<()> {
        match self.encoder.is_full() {
            true => self.output.write_all(self.encoder.take_block(0)),
            false => Ok(()),
        }
    }
}

/// Returns the checksum of a block: CRC-32 of its header up to the checksum, and of its payload.
pub(crate) fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header[..CHECKSUMMED_HEADER_BYTES]);
    sum.update(payload);
    sum.finalize()
}
