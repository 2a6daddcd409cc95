//! diskperf's own form: each request's issue and its completion, in blocks with a checksum,
//! so that a recording that was killed is read up to its last whole block.
//!
//! The form is described byte by byte in `docs/reference/trace-form.md`.

mod encoder;
mod item;
mod parser;
mod said;

pub(crate) use encoder::{Encoder, header};
pub use item::LONGEST_NAME;
pub(crate) use parser::Own;
pub(crate) use said::Said;
pub use said::{About, Part};

use crate::record::{DeviceIndex, Record};
use std::io::{self, Write};
use std::time::Duration;

/// What a trace begins with: no text, and damaged by whatever changes the ends of lines.
pub(crate) const MAGIC: &[u8; 8] = b"\x89dptr\r\n\x1a";
/// The version that is written, and the only one that is read.
pub(crate) const VERSION: u32 = 1;
/// Magic, version, checksum.
pub(crate) const HEADER_BYTES: usize = 16;
/// What a block begins with.
pub(crate) const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"DBLK");
/// Magic, bytes, number, flags, checksum.
pub(crate) const BLOCK_HEADER_BYTES: usize = 24;
/// The bytes of the block's header that its checksum is of; the payload follows.
pub(crate) const CHECKED_BYTES: usize = 20;
/// The most bytes of a payload.
pub(crate) const LONGEST_PAYLOAD: usize = 1 << 20;
/// The flag of the last block.
pub(crate) const IS_LAST: u32 = 1;

/// Whoever records hands what it has to the system this often at least, so that a kill
/// loses less than a second.
pub const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// A trace while it is recorded: issues and completions as they happen.
///
/// What is recorded reaches the output with [`flush`](Self::flush), with a block that is
/// full, and with [`finish`](Self::finish): a block always whole, by one call.
pub struct Recorder<W: Write> {
    output: W,
    encoder: Encoder,
}

impl<W: Write> Recorder<W> {
    /// Begins a trace.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn create(mut output: W) -> io::Result<Self> {
        output.write_all(&header())?;
        Ok(Self {
            output,
            encoder: Encoder::default(),
        })
    }

    /// A device by its name, which is to be new.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn device(&mut self, name: &str) -> io::Result<DeviceIndex> {
        let number = self.encoder.device(name);
        self.write_full()?;
        Ok(number)
    }

    /// Says something of the whole trace, as what it was recorded from: a name and a value,
    /// of which the first 4096 bytes each are kept.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn about(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.encoder.about(name, value);
        self.write_full()
    }

    /// A part begins, as a repetition of a run: what is issued from now on is of it.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn begin_part(&mut self, at_ns: u64, name: &str) -> io::Result<()> {
        self.encoder.begin_part(at_ns, name);
        self.write_full()
    }

    /// The latest part has ended, and counts for what its recorder measured, or not.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn end_part(&mut self, at_ns: u64, counts: bool) -> io::Result<()> {
        self.encoder.end_part(at_ns, counts);
        self.write_full()
    }

    /// A request is issued; its completion does not count. The number by which it completes.
    ///
    /// # Errors
    ///
    /// The output fails.
    ///
    /// # Panics
    ///
    /// Of a device that was not named.
    pub fn issue(&mut self, record: &Record) -> io::Result<u64> {
        let number = self.encoder.issue(record);
        self.write_full()?;
        Ok(number)
    }

    /// A request is complete, `at_ns` on the clock of the issues, with 0 or an errno.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn complete(&mut self, number: u64, at_ns: u64, errno: u16) -> io::Result<()> {
        self.encoder.complete(number, at_ns, errno);
        self.write_full()
    }

    /// So many issues and completions were not seen.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn lost(&mut self, events: u64) -> io::Result<()> {
        self.encoder.lost(events);
        self.write_full()
    }

    /// Hands what was recorded to the output.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.encoder.is_empty() {
            self.output.write_all(self.encoder.close(0))?;
        }
        self.output.flush()
    }

    /// Ends the trace.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.write_all(self.encoder.close(IS_LAST))?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn write_full(&mut self) -> io::Result<()> {
        match self.encoder.is_full() {
            true => self.output.write_all(self.encoder.close(0)),
            false => Ok(()),
        }
    }
}

/// The checksum of a block: CRC-32 of its header, up to the checksum, and of its payload.
pub(crate) fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header[..CHECKED_BYTES]);
    sum.update(payload);
    sum.finalize()
}
