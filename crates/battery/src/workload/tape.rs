//! Tape format of dump, as written to a pipe: records of 1 KB, ten per write (TP_BSIZE and NTREC of
//! 4.2BSD's dumprestor.h). Each inode has a header record before its contents, which fill whole
//! records.

use crate::blocks::{pause_for_think_time, write_block};
use crate::program::ProgramError;
use diskperf_system::{File, ProgramWork, System};
use diskperf_timeline::Nanoseconds;

pub(crate) const TAPE_RECORD_BYTES: usize = 1024;
pub(crate) const TAPE_BLOCK_BYTES: usize = 10 * TAPE_RECORD_BYTES;

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
    EndOfTape { files: u32, content_bytes: u64 },
}

/// First word of each header: the magic number of 4.2BSD's tapes.
const RECORD_MAGIC: u32 = 60_012;

impl RecordHeader {
    fn to_fields(self) -> [u64; 3] {
        match self {
            Self::Volume { top } => [1, u64::from(top), 0],
            Self::Directory { inode, size_bytes } => [2, u64::from(inode), size_bytes],
            Self::File { inode, size_bytes } => [3, u64::from(inode), size_bytes],
            Self::EndOfTape {
                files,
                content_bytes,
            } => [4, u64::from(files), content_bytes],
        }
    }

    /// Writes the header to the start of a record of zeroes.
    fn write_to(self, record: &mut [u8]) {
        record[..4].copy_from_slice(&RECORD_MAGIC.to_be_bytes());
        for (place, field) in record[8..].chunks_exact_mut(8).zip(self.to_fields()) {
            place.copy_from_slice(&field.to_be_bytes());
        }
    }

    /// Parses the header in a record. Returns `None` if the record is not a header.
    pub(crate) fn parse_header(record: &[u8]) -> Option<Self> {
        let field = |number: usize| {
            let bytes = record.get(8 + number * 8..)?.first_chunk()?;
            Some(u64::from_be_bytes(*bytes))
        };
        let number = u32::try_from(field(1)?).ok()?;
        let bytes = field(2)?;
        let magic = record.first_chunk().copied().map(u32::from_be_bytes);
        match (magic == Some(RECORD_MAGIC), field(0)?) {
            (true, 1) => Some(Self::Volume { top: number }),
            (true, 2) => Some(Self::Directory {
                inode: number,
                size_bytes: bytes,
            }),
            (true, 3) => Some(Self::File {
                inode: number,
                size_bytes: bytes,
            }),
            (true, 4) => Some(Self::EndOfTape {
                files: number,
                content_bytes: bytes,
            }),
            _ => None,
        }
    }
}

/// Writer of the tape format to a pipe.
pub(crate) struct TapeWriter<'b> {
    pub(crate) pipe_file: File,
    /// Write buffer of [`TAPE_BLOCK_BYTES`].
    pub(crate) buffer: &'b mut [u8],
    pub(crate) filled_bytes: usize,
    /// CPU time that the program uses after each write.
    pub(crate) think_time: Nanoseconds,
}

impl TapeWriter<'_> {
    /// Returns the free bytes in the write buffer: whole records, at least one.
    pub(crate) fn free_bytes(&self) -> usize {
        TAPE_BLOCK_BYTES - self.filled_bytes
    }

    /// Returns the next `bytes` bytes of the buffer to fill. There must be room for them.
    pub(crate) fn space_mut(&mut self, bytes: usize) -> &mut [u8] {
        &mut self.buffer[self.filled_bytes..self.filled_bytes + bytes]
    }

    /// Accepts bytes that were put into the buffer, pads them with zeroes to a whole record, and
    /// writes the buffer to the pipe once it is full.
    pub(crate) async fn write_full_records(
        &mut self,
        system: &mut System,
        bytes: usize,
    ) -> Result<(), ProgramError> {
        let whole = bytes.next_multiple_of(TAPE_RECORD_BYTES);
        self.space_mut(whole)[bytes..].fill(0);
        self.filled_bytes += whole;
        if self.filled_bytes == TAPE_BLOCK_BYTES {
            write_block(system, self.pipe_file, &*self.buffer, Nanoseconds::ZERO).await?;
            pause_for_think_time(system, self.think_time).await?;
            self.filled_bytes = 0;
        }
        Ok(())
    }

    pub(crate) async fn write_header(
        &mut self,
        system: &mut System,
        header: RecordHeader,
    ) -> Result<(), ProgramError> {
        let record = self.space_mut(TAPE_RECORD_BYTES);
        record.fill(0);
        header.write_to(record);
        self.write_full_records(system, TAPE_RECORD_BYTES).await
    }

    /// Writes the rest of the buffer, padded with zeroes.
    pub(crate) async fn finish_tape(&mut self, system: &mut System) -> Result<(), ProgramError> {
        while self.filled_bytes > 0 {
            self.space_mut(TAPE_RECORD_BYTES).fill(0);
            self.write_full_records(system, TAPE_RECORD_BYTES).await?;
        }
        Ok(())
    }
}

/// Reader of the tape format from a pipe.
pub(crate) struct TapeReader<'b> {
    pub(crate) pipe_file: File,
    /// Read buffer of [`TAPE_BLOCK_BYTES`].
    pub(crate) buffer: &'b mut [u8],
    /// Bytes of the buffer that were taken out already.
    pub(crate) consumed_bytes: usize,
}

impl TapeReader<'_> {
    pub(crate) async fn next_record(&mut self, system: &mut System) -> Result<&[u8], ProgramError> {
        if self.consumed_bytes == TAPE_BLOCK_BYTES {
            let mut filled = 0;
            // A pipe gives what is in it, which is less.
            while filled < TAPE_BLOCK_BYTES {
                match system
                    .read(self.pipe_file, &mut self.buffer[filled..])
                    .await?
                {
                    0 => {
                        return Err(ProgramError::TapeDamaged(
                            "the pipe ends before the end of the dump",
                        ));
                    }
                    count => filled += count,
                }
            }
            self.consumed_bytes = 0;
            let records = (TAPE_BLOCK_BYTES / TAPE_RECORD_BYTES) as u32;
            system
                .perform_program_work(ProgramWork::RestoreRecords(records))
                .await?;
        }
        let start = self.consumed_bytes;
        self.consumed_bytes += TAPE_RECORD_BYTES;
        Ok(&self.buffer[start..self.consumed_bytes])
    }

    /// Returns the next tape record as a header. It is an error if the record is not one.
    pub(crate) async fn next_header(
        &mut self,
        system: &mut System,
    ) -> Result<RecordHeader, ProgramError> {
        let header = RecordHeader::parse_header(self.next_record(system).await?);
        header.ok_or(ProgramError::TapeDamaged("a header record was expected"))
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
            RecordHeader::EndOfTape {
                files: 0,
                content_bytes: 1,
            },
        ] {
            let mut record = [0; TAPE_RECORD_BYTES];
            header.write_to(&mut record);
            assert_eq!(RecordHeader::parse_header(&record), Some(header));
            record[0] = 1;
            assert_eq!(RecordHeader::parse_header(&record), None);
        }
        assert_eq!(RecordHeader::parse_header(&[0; TAPE_RECORD_BYTES]), None);
        assert_eq!(RecordHeader::parse_header(&[]), None);
    }
}
