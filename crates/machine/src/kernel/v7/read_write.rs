//! Reads and writes of file contents in a seventh edition file system, block by block (`readi`,
//! `writei`).

use super::super::Vnode;
use super::super::ffs::FragmentAddress;
use super::super::process::{ExecutionContext, Process};
use super::V7View;
use super::layout::{BLOCK_BYTES, FILE_BYTES_MAX};
use super::{BLOCK_BYTES_U32, BlockKey};
use crate::errno::{Errno, Result};
use crate::written::WriteData;
use diskperf_timeline::Stage;
use std::ops::Range;
use std::rc::Rc;

/// Part of a read or write that lies within one block of a file.
struct V7FileBlockRange {
    logical_block: u32,
    range_in_block: Range<usize>,
}

fn next_part(offset: u64, wanted: usize) -> V7FileBlockRange {
    let start = (offset % BLOCK_BYTES as u64) as usize;
    V7FileBlockRange {
        logical_block: (offset / BLOCK_BYTES as u64) as u32,
        range_in_block: start..BLOCK_BYTES.min(start + wanted),
    }
}

impl V7View<'_> {
    /// Reads from a file at an offset and returns the number of bytes read. The number is smaller
    /// than the buffer at the end of the file.
    pub(crate) async fn read_file_data(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (offset, into): (u64, &mut [u8]),
    ) -> Result<usize> {
        let size = self.with_inode(node, |inode| u64::from(inode.size_bytes));
        let left = size.saturating_sub(offset);
        let wanted = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut done = 0;
        while done < wanted {
            let piece = next_part(offset + done as u64, wanted - done);
            let bytes = piece.range_in_block.len();
            let part = &mut into[done..done + bytes];
            self.read_part(process, node, (piece, part)).await?;
            done += bytes;
        }
        Ok(done)
    }

    async fn read_part(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (piece, into): (V7FileBlockRange, &mut [u8]),
    ) -> Result<()> {
        let mapped = self
            .map_for_reading(process, node, piece.logical_block)
            .await?;
        let context = ExecutionContext::InProcess(process);
        let last = self.with_core_inode(node, |core| {
            std::mem::replace(&mut core.last_read_block, piece.logical_block)
        });
        let copy = self.costs.copy_time(into.len());
        let Some(block) = mapped.block else {
            let clear = self.costs.clear_time(BLOCK_BYTES);
            self.spend_processor_time(context, Stage::Clear, clear)
                .await;
            self.spend_processor_time(context, Stage::Copy, copy).await;
            into.fill(0);
            return Ok(());
        };
        let key = |block: FragmentAddress| Self::block_key(node.volume, block.0);
        let sequential = self.costs.reads_ahead && last + 1 == piece.logical_block;
        let id = match mapped.next_block.filter(|_| sequential) {
            Some(next) => {
                let (this, next) = ((key(block), BLOCK_BYTES_U32), (key(next), BLOCK_BYTES_U32));
                self.breada(process, this, next).await
            }
            None => self.bread(process, key(block), BLOCK_BYTES_U32).await,
        };
        self.spend_processor_time(context, Stage::Copy, copy).await;
        self.with_block(id, |bytes| {
            into.copy_from_slice(&bytes[piece.range_in_block])
        });
        self.brelse(process, id).await;
        Ok(())
    }

    /// Writes to a file at an offset. Returns the number of bytes written, and an error if that is
    /// not all. As in the seventh edition, a failed call keeps the blocks that it has written, and
    /// the program learns only of the error.
    pub(crate) async fn write_file_data(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (offset, data): (u64, WriteData<'_>),
    ) -> (usize, Result<()>) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            if at >= FILE_BYTES_MAX {
                return (done, Err(Errno::FileTooLarge));
            }
            let piece = next_part(at, data.len() - done);
            let bytes = piece.range_in_block.len();
            let part = data.subrange(done..done + bytes);
            let written = self.write_part(process, node, (piece, part)).await;
            if let Err(errno) = written {
                return (done, Err(errno));
            }
            done += bytes;
            let end = (at + bytes as u64) as u32;
            self.with_inode_mut(node, |inode| inode.size_bytes = inode.size_bytes.max(end));
        }
        (done, Ok(()))
    }

    async fn write_part(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (piece, data): (V7FileBlockRange, WriteData<'_>),
    ) -> Result<()> {
        let block = self
            .map_for_writing(process, node, piece.logical_block)
            .await?;
        let key = Self::block_key(node.volume, block);
        let whole = piece.range_in_block.len() == BLOCK_BYTES;
        let id = if whole {
            self.getblk(process, key, BLOCK_BYTES_U32).await
        } else {
            self.bread(process, key, BLOCK_BYTES_U32).await
        };
        let context = ExecutionContext::InProcess(process);
        let cost = self.costs.copy_time(data.len());
        self.spend_processor_time(context, Stage::Copy, cost).await;
        if whole {
            let mut buffers = self.buffers.borrow_mut();
            let page = buffers.pages.page_of_data(data);
            buffers.buffer_mut(id).page = Some(page);
        } else {
            self.edit_buffer(id, |bytes| {
                bytes[piece.range_in_block].copy_from_slice(&data)
            });
        }
        self.bdwrite(process, id).await;
        Ok(())
    }

    /// Returns the cache keys of the blocks of a file's first `length` bytes, with `None` for a
    /// hole. Reads indirect blocks from the cache or the drive without passing virtual time.
    pub(crate) fn block_keys(&self, node: Vnode, length: u64) -> Vec<Option<BlockKey>> {
        let count = length.div_ceil(BLOCK_BYTES as u64) as u32;
        (0..count).map(|lbn| self.block_key_of(node, lbn)).collect()
    }

    fn block_key_of(&self, node: Vnode, lbn: u32) -> Option<BlockKey> {
        let path = super::layout::pointer_path(lbn)?;
        let mut block = self.with_inode(node, |inode| inode.addresses[path[0]]);
        for place in &path[1..] {
            if block == 0 {
                return None;
            }
            let bytes = self.current_block(node.volume, block);
            block = super::layout::read_u32(&bytes, 4 * place);
        }
        (block != 0).then(|| Self::block_key(node.volume, block))
    }
}
