//! Verification of blocks that are written and read back by one call after another.

use super::record::BlockPosition;
use super::{SlotBlock, SlotPurpose, UnreadBlock, Verifier};
use crate::blocks::{read_block, seek_to_offset, write_block};
use crate::load::YesNo;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{Buffer, File, OpenOptions, System};
use diskperf_timeline::Nanoseconds;

/// Verifier of a worker whose calls write one block after another.
pub(crate) struct CallVerifier {
    verifier: Verifier,
    file_paths: Vec<String>,
    /// Buffer of the block that is being written or was read.
    block_buffer: Buffer,
}

impl CallVerifier {
    /// Creates the verifier of a worker with calls of at most `call_bytes`, or returns `None` if
    /// verification is off.
    pub(crate) fn new(
        verify: YesNo,
        (system, worker): (&System, &Worker),
        call_bytes: u64,
    ) -> Option<Self> {
        (verify == YesNo::Yes).then(|| Self {
            verifier: Verifier::for_program(system, worker),
            file_paths: Vec::new(),
            block_buffer: Buffer::new(call_bytes as usize),
        })
    }

    /// Adds a file under the path by which it is read back, and returns its index.
    pub(crate) fn add_file(&mut self, path: String) -> usize {
        self.file_paths.push(path);
        self.file_paths.len() - 1
    }

    /// Writes the next block of an open file, whose position is at the given offset.
    pub(crate) async fn write(
        &mut self,
        (system, file): (&mut System, File),
        (index, offset_bytes): (usize, u64),
        bytes: u64,
        think: Nanoseconds,
    ) -> Result<(), ProgramError> {
        let place = BlockPosition {
            file_index: index,
            offset_bytes,
        };
        let time_ns = Some(system.now().0);
        let write = self.verifier.record_write(place, bytes as u32, time_ns);
        let block = &mut self.block_buffer[..bytes as usize];
        self.verifier
            .layout_for_size(bytes as u32)
            .fill_block(block, write);
        write_block(system, file, &*block, think).await?;
        self.verifier.complete_last_write(place);
        Ok(())
    }

    /// Writes a whole file from its start, in calls of `call_bytes`.
    pub(crate) async fn write_file(
        &mut self,
        (system, file): (&mut System, File),
        path: String,
        (call_bytes, size_bytes): (u64, u64),
        think: Nanoseconds,
    ) -> Result<(), ProgramError> {
        let index = self.add_file(path);
        for number in 0..size_bytes / call_bytes {
            let place = (index, number * call_bytes);
            self.write((system, file), place, call_bytes, think).await?;
        }
        Ok(())
    }

    /// Reads all blocks back from storage, past the page cache or with the page cache dropped. The
    /// time does not count in the measurements.
    pub(crate) async fn read_back(
        mut self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<(), ProgramError> {
        system.end_timed_part().await?;
        let read = self.read_back_all((&mut *system, worker)).await;
        let outcome = read.and_then(|()| self.verifier.evaluate_differences());
        system.count_verified(self.verifier.take_verified());
        outcome
    }

    async fn read_back_all(
        &mut self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<(), ProgramError> {
        let shown = self.verifier.begin_read_back(system);
        let mut open: Option<(usize, File)> = None;
        while let Some(unread) = self.verifier.next_unread() {
            let file = match open {
                Some((index, file)) if index == unread.file() => file,
                other => {
                    if let Some((_, file)) = other {
                        system.close(file).await?;
                    }
                    let path = &self.file_paths[unread.file()];
                    let file = open_uncached((system, worker), path).await?;
                    open = Some((unread.file(), file));
                    file
                }
            };
            self.compare_block((&mut *system, file), unread).await?;
            shown.show_remaining(system, &self.verifier);
        }
        Ok(())
    }

    async fn compare_block(
        &mut self,
        (system, file): (&mut System, File),
        unread: UnreadBlock,
    ) -> Result<(), ProgramError> {
        let paths = &self.file_paths;
        let path = |file: usize| paths[file].clone();
        let bytes = &mut self.block_buffer[..unread.bytes() as usize];
        seek_to_offset(system, file, unread.offset_bytes()).await?;
        match read_block(system, file, bytes, Nanoseconds::ZERO).await {
            Ok(()) => {}
            Err(ProgramError::ShortFile) => {
                let (path, offset) = (path(unread.file()), unread.offset_bytes());
                let count = unread.bytes();
                let text = format!(
                    "{path}: byte {offset}: expected a block of {count} bytes, got the end of the file"
                );
                return self.verifier.add_difference(text);
            }
            Err(error) => return Err(error),
        }
        let block = SlotBlock {
            block_place: unread.block_place,
            bytes: unread.bytes(),
            slot_purpose: SlotPurpose::CompareWithRecord(unread.block_record),
            written_bytes: 0,
        };
        self.verifier.compare_and_count(block, bytes, path)
    }
}

/// Opens a file for reads from storage, past the page cache or with the page cache dropped.
pub(super) async fn open_uncached(
    (system, worker): (&mut System, &Worker),
    path: &str,
) -> Result<File, ProgramError> {
    if !worker.direct_io {
        system.drop_cached_pages(path).await?;
    }
    Ok(system
        .open(path, OpenOptions::READ.with_direct(worker.direct_io))
        .await?)
}
