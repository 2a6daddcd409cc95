//! Input of a trace: lines or pieces of bytes, decompressed if necessary, in constant memory.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};

const LINE_BYTES_MAX: usize = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;

pub(crate) struct TraceInput {
    reader: BufReader<Box<dyn Read + Send>>,
    line_buffer: Vec<u8>,
    byte_offset: u64,
    line_number: u64,
    is_empty: bool,
}

/// Byte order mark that Windows programs write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(crate) enum ReadOutcome {
    /// Complete line or piece of the input.
    Complete,
    /// Truncated line or piece: the input ended within it.
    Truncated,
    End,
}

impl TraceInput {
    /// Opens an input, and decompresses it if it is in gzip or zstd format.
    pub(crate) fn open(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, input);
        let head = plain.fill_buf()?;
        let reader: Box<dyn Read + Send> = match head {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(plain)),
            #[cfg(feature = "zstd")]
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(plain)?),
            #[cfg(not(feature = "zstd"))]
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let what = "it is compressed with zstd, which this build of diskperf cannot read: \
                     decompress it";
                return Err(io::Error::new(io::ErrorKind::Unsupported, what));
            }
            _ => Box::new(plain),
        };
        let mut input = Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            line_buffer: Vec::new(),
            byte_offset: 0,
            line_number: 0,
            is_empty: false,
        };
        let head = input.reader.fill_buf()?;
        input.is_empty = head.is_empty();
        if head.starts_with(BYTE_ORDER_MARK) {
            input.reader.consume(BYTE_ORDER_MARK.len());
            input.byte_offset = BYTE_ORDER_MARK.len() as u64;
        }
        Ok(input)
    }

    /// Reports whether the input contains no bytes at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns the next bytes of the input, as far as they are buffered, without consuming them.
    pub(crate) fn peek_head(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    /// Returns the number of the last line or piece, from 1, and its offset in bytes.
    pub(crate) fn line_and_offset(&self) -> (u64, u64) {
        (
            self.line_number,
            self.byte_offset - self.line_buffer.len() as u64,
        )
    }

    /// Restarts the numbering, because the input read so far is a header.
    pub(crate) fn restart_numbering(&mut self) {
        self.line_number = 0;
    }

    /// Returns the line or piece that was read last.
    pub(crate) fn last_piece(&self) -> &[u8] {
        &self.line_buffer
    }

    /// Returns the buffer of the last line or piece, so that a caller can borrow its contents and
    /// put them back.
    pub(crate) fn last_piece_mut(&mut self) -> &mut Vec<u8> {
        &mut self.line_buffer
    }

    pub(crate) fn read_line(&mut self) -> io::Result<ReadOutcome> {
        self.line_buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = self
            .reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.line_buffer)?;
        self.byte_offset += read as u64;
        if read == 0 {
            return Ok(ReadOutcome::End);
        }
        self.line_number += 1;
        if self.line_buffer.last() != Some(&b'\n') {
            if read > LINE_BYTES_MAX {
                let long = format!(
                    "line {} has more than {LINE_BYTES_MAX} bytes",
                    self.line_number
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, long));
            }
            return Ok(ReadOutcome::Truncated);
        }
        Ok(ReadOutcome::Complete)
    }

    /// Reads the next `bytes` bytes, and appends them to the last piece if `more` is set.
    pub(crate) fn read_piece(&mut self, bytes: usize, more: bool) -> io::Result<ReadOutcome> {
        if !more {
            self.line_buffer.clear();
            self.line_number += 1;
        }
        let before = self.line_buffer.len();
        let wanted = bytes as u64;
        let read = self
            .reader
            .by_ref()
            .take(wanted)
            .read_to_end(&mut self.line_buffer)?;
        self.byte_offset += read as u64;
        match read {
            0 if before == 0 => Ok(ReadOutcome::End),
            _ if read < bytes => Ok(ReadOutcome::Truncated),
            _ => Ok(ReadOutcome::Complete),
        }
    }
}

/// Strips the line end and trailing blanks from a line.
pub(crate) fn trim_line(line: &[u8]) -> &[u8] {
    line.trim_ascii_end()
}
