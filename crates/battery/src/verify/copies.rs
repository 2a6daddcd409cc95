//! Comparison of copied files with their sources.

use super::calls::open_uncached;
use super::{LISTED_DIFFERENCES_MAX, run_read_back_hook};
use crate::blocks::{read_block, seek_to_offset};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{Buffer, ReadBackProgress, System};
use diskperf_timeline::{Nanoseconds, VerifiedBlocks};

#[derive(Clone, Debug)]
pub(crate) struct CopiedFile {
    pub(crate) source_path: String,
    pub(crate) copy_path: String,
    /// Offset of the copy in its file or device, in bytes.
    pub(crate) copy_offset_bytes: u64,
    pub(crate) bytes: u64,
}

/// Comparison of copies with their sources, block by block.
pub(crate) struct CopyComparison {
    expected_buffer: Buffer,
    actual_buffer: Buffer,
    verified_bytes: VerifiedBlocks,
    differences: Vec<String>,
}

/// Name of this kind of verification in results. Bytes are compared directly, without a checksum.
const VERIFICATION_KIND: &str = "each byte";

impl CopyComparison {
    /// Reads all copies and their sources from storage, past the page cache or with the page cache
    /// dropped, and compares each byte. The time does not count in the measurements.
    ///
    /// # Errors
    ///
    /// Returns all differences. The first of them are listed individually.
    pub(crate) async fn run_comparison(
        (system, worker): (&mut System, &Worker),
        files: &[CopiedFile],
        block_bytes: u64,
    ) -> Result<(), ProgramError> {
        system.end_timed_part().await?;
        run_read_back_hook();
        let mut comparison = Self {
            expected_buffer: Buffer::new(block_bytes as usize),
            actual_buffer: Buffer::new(block_bytes as usize),
            verified_bytes: VerifiedBlocks {
                verification_kind: VERIFICATION_KIND.to_owned(),
                ..VerifiedBlocks::default()
            },
            differences: Vec::new(),
        };
        let compared = comparison.compare_all((&mut *system, worker), files).await;
        let Self {
            verified_bytes: verified,
            differences,
            ..
        } = comparison;
        let outcome = compared.and_then(|()| super::evaluate_counts(&verified, &differences));
        system.count_verified(verified);
        outcome
    }

    async fn compare_all(
        &mut self,
        (system, worker): (&mut System, &Worker),
        files: &[CopiedFile],
    ) -> Result<(), ProgramError> {
        let block_bytes = self.actual_buffer.len() as u64;
        let blocks_of = |file: &CopiedFile| file.bytes.div_ceil(block_bytes);
        let blocks_total = files.iter().map(blocks_of).sum();
        for file in files {
            let shown = |blocks| ReadBackProgress {
                verified_blocks: blocks,
                blocks_to_verify: blocks_total,
            };
            self.compare_file((&mut *system, worker), file, shown)
                .await?;
        }
        Ok(())
    }

    async fn compare_file(
        &mut self,
        (system, worker): (&mut System, &Worker),
        file: &CopiedFile,
        shown: impl Fn(u64) -> ReadBackProgress,
    ) -> Result<(), ProgramError> {
        let source = open_uncached((&mut *system, worker), &file.source_path).await?;
        let copy = open_uncached((&mut *system, worker), &file.copy_path).await?;
        let mut offset_bytes = 0;
        self.verified_bytes.written_bytes += file.bytes;
        while offset_bytes < file.bytes {
            let bytes = (file.bytes - offset_bytes).min(self.actual_buffer.len() as u64);
            let expected = &mut self.expected_buffer[..bytes as usize];
            seek_to_offset(system, source, offset_bytes).await?;
            read_block(system, source, expected, Nanoseconds::ZERO).await?;
            let got = &mut self.actual_buffer[..bytes as usize];
            let at = file.copy_offset_bytes + offset_bytes;
            seek_to_offset(system, copy, at).await?;
            let difference = match read_block(system, copy, got, Nanoseconds::ZERO).await {
                Ok(()) => first_difference((expected, got), at),
                Err(ProgramError::ShortFile) => Some(format!(
                    "byte {at}: expected a block of {bytes} bytes, got the end of the file"
                )),
                Err(error) => return Err(error),
            };
            self.verified_bytes.block_count += 1;
            self.verified_bytes.verified_bytes += bytes;
            if let Some(difference) = difference {
                self.verified_bytes.mismatch_count += 1;
                if self.differences.len() < LISTED_DIFFERENCES_MAX {
                    let (copy, source) = (&file.copy_path, &file.source_path);
                    let text = format!("{copy}: {difference} (the copy of {source})");
                    self.differences.push(text);
                }
            }
            offset_bytes += bytes;
            system.publish_read_back_progress(shown(self.verified_bytes.block_count));
        }
        system.close(source).await?;
        Ok(system.close(copy).await?)
    }
}

/// Describes the first differing byte, or returns `None` if there is none.
fn first_difference((expected, got): (&[u8], &[u8]), at: u64) -> Option<String> {
    let mut pairs = expected.iter().zip(got);
    let index = pairs.position(|(expected, got)| expected != got)?;
    let byte = at + index as u64;
    let (expected, got) = (expected[index], got[index]);
    Some(format!(
        "byte {byte}: expected 0x{expected:02x}, got 0x{got:02x}"
    ))
}
