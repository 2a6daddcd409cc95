//! Tape format of dump, as written to a pipe: records of 1 KB, ten per write (TP_BSIZE and NTREC of
//! 4.2BSD's dumprestor.h). Each inode has a header record before its contents, which fill whole
//! records.

use crate::blocks::{pause, write_block};
use crate::program::ProgramError;
use diskperf_system::{File, System, Work};
use diskperf_timeline::Nanoseconds;

/// Bytes of a tape record.
pub(crate) const RECORD_BYTES: usize = 1024;
/// Bytes of one write to the tape.
pub(crate) const TAPE_BYTES: usize = 10 * RECORD_BYTES;

/// Header record of the tape, in contrast to contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordHeader {
    /// First header: the inode of the top directory.
    Volume { top: u32 },
    /// Directory, followed by its directory records.
    Directory { inode: u32, size_bytes: u64 },
    /// File, followed by its contents.
    File { inode: u32, size_bytes: u64 },
    /// Last header: the number of files and their total bytes.
    End { files: u32, content_bytes: u64 },
}

/// First word of each header: the magic number of 4.2BSD's tapes.
const MAGIC: u32 = 60_012;

impl RecordHeader {
    fn to_fields(self) -> [u64; 3] {
        match self {
            Self::Volume { top } => [1, u64::from(top), 0],
            Self::Directory { inode, size_bytes } => [2, u64::from(inode), size_bytes],
            Self::File { inode, size_bytes } => [3, u64::from(inode), size_bytes],
            Self::End {
                files,
                content_bytes,
            } => [4, u64::from(files), content_bytes],
        }
    }

    /// Writes the header to the start of a record of zeroes.
    fn write_to(self, record: &mut [u8]) {
        record[..4].copy_from_slice(&MAGIC.to_be_bytes());
        for (place, field) in record[8..].chunks_exact_mut(8).zip(self.to_fields()) {
            place.copy_from_slice(&field.to_be_bytes());
        }
    }

    /// Parses the header in a record. Returns `None` if the record is not a header.
    pub(crate) fn parse(record: &[u8]) -> Option<Self> {
        let field = |number: usize| {
            let bytes = record.get(8 + number * 8..)?.first_chunk()?;
            Some(u64::from_be_bytes(*bytes))
        };
        let number = u32::try_from(field(1)?).ok()?;
        let bytes = field(2)?;
        let magic = record.first_chunk().copied().map(u32::from_be_bytes);
        match (magic == Some(MAGIC), field(0)?) {
            (true, 1) => Some(Self::Volume { top: number }),
            (true, 2) => Some(Self::Directory {
                inode: number,
                size_bytes: bytes,
            }),
            (true, 3) => Some(Self::File {
                inode: number,
                size_bytes: bytes,
            }),
            (true, 4) => Some(Self::End {
                files: number,
                content_bytes: bytes,
            }),
            _ => None,
        }
    }
}

/// Writer of the tape format to a pipe.
pub(crate) struct TapeWriter<'b> {
    pub(crate) pipe: File,
    /// Write buffer of [`TAPE_BYTES`].
    pub(crate) buffer: &'b mut [u8],
    pub(crate) filled_bytes: usize,
    /// CPU time that the program uses after each write.
    pub(crate) think: Nanoseconds,
}

impl TapeWriter<'_> {
    /// Returns the free bytes in the write buffer: whole records, at least one.
    pub(crate) fn free_bytes(&self) -> usize {
        TAPE_BYTES - self.filled_bytes
    }

    /// Returns the next `bytes` bytes of the buffer to fill. There must be room for them.
    pub(crate) fn space_mut(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.buffer[self.filled_bytes..self.filled_bytes + bytes]
    }

    /// Accepts bytes that were put into the buffer, pads them with zeroes to a whole record, and
    /// writes the buffer to the pipe once it is full.
    pub(crate) async fn accept(
        &mut self,
        system: &mut System,
        bytes: usize,
    ) -> Result<(), ProgramError> {
        let whole = bytes.next_multiple_of(RECORD_BYTES);
        self.space_mut(whole)[bytes..].fill(0);
        self.filled_bytes += whole;
        if self.filled_bytes == TAPE_BYTES {
            write_block(system, self.pipe, &*self.buffer, Nanoseconds::ZERO).await?;
            pause(system, self.think).await?;
            self.filled_bytes = 0;
        }
        Ok(())
    }

    /// Adds a header record.
    pub(crate) async fn write_header(
        &mut self,
        system: &mut System,
        header: RecordHeader,
    ) -> Result<(), ProgramError> {
        let record = self.space_mut(RECORD_BYTES);
        record.fill(0);
        header.write_to(record);
        self.accept(system, RECORD_BYTES).await
    }

    /// Writes the rest of the buffer, padded with zeroes.
    pub(crate) async fn finish(&mut self, system: &mut System) -> Result<(), ProgramError> {
        while self.filled_bytes > 0 {
            self.space_mut(RECORD_BYTES).fill(0);
            self.accept(system, RECORD_BYTES).await?;
        }
        Ok(())
    }
}

/// Reader of the tape format from a pipe.
pub(crate) struct TapeReader<'b> {
    pub(crate) pipe: File,
    /// Read buffer of [`TAPE_BYTES`].
    pub(crate) buffer: &'b mut [u8],
    /// Bytes of the buffer that were taken out already.
    pub(crate) taken_bytes: usize,
}

impl TapeReader<'_> {
    /// Returns the next tape record.
    pub(crate) async fn next_record(&mut self, system: &mut System) -> Result<&[u8], ProgramError> {
        if self.taken_bytes == TAPE_BYTES {
            let mut filled = 0;
            // A pipe gives what is in it, which is less.
            while filled < TAPE_BYTES {
                match system.read(self.pipe, &mut self.buffer[filled..]).await? {
                    0 => {
                        return Err(ProgramError::Tape(
                            "the pipe ends before the end of the dump",
                        ));
                    }
                    count => filled += count,
                }
            }
            self.taken_bytes = 0;
            let records = (TAPE_BYTES / RECORD_BYTES) as u32;
            system.work(Work::RestoreRecords(records)).await?;
        }
        let start = self.taken_bytes;
        self.taken_bytes += RECORD_BYTES;
        Ok(&self.buffer[start..self.taken_bytes])
    }

    /// Returns the next tape record as a header. It is an error if the record is not one.
    pub(crate) async fn next_header(
        &mut self,
        system: &mut System,
    ) -> Result<RecordHeader, ProgramError> {
        let header = RecordHeader::parse(self.next_record(system).await?);
        header.ok_or(ProgramError::Tape("a header record was expected"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back() {
        for header in [
            RecordHeader::Volume { top: 2 },
            RecordHeader::Directory {
                inode: 2049,
                size_bytes: 512,
            },
            RecordHeader::File {
                inode: u32::MAX,
                size_bytes: u64::MAX,
            },
            RecordHeader::End {
                files: 0,
                content_bytes: 1,
            },
        ] {
            let mut record = [0; RECORD_BYTES];
            header.write_to(&mut record);
            assert_eq!(RecordHeader::parse(&record), Some(header));
            record[0] = 1;
            assert_eq!(RecordHeader::parse(&record), None);
        }
        assert_eq!(RecordHeader::parse(&[0; RECORD_BYTES]), None);
        assert_eq!(RecordHeader::parse(&[]), None);
    }
}
