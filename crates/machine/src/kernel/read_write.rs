//! Reads and writes of file contents in a 4.2BSD file system, block by block (`rwip`).

use super::buffers::{BufferId, Buffers};
use super::ffs::{FragmentAddress, InodeKind};
use super::inode_io::WriteTiming;
use super::process::{ExecutionContext, Process};
use super::{FfsView, Vnode};
use crate::errno::{Errno, Result};
use crate::written::WriteData;
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Part of a read or write that lies within one block of a file.
#[derive(Clone, Copy)]
struct FileBlockRange {
    logical_block: u32,
    start_in_block: u32,
    bytes: u32,
}

impl FileBlockRange {
    fn end_in_block(self) -> u32 {
        self.start_in_block + self.bytes
    }
}

impl FfsView<'_> {
    fn next_part(&self, node: Vnode, offset: u64, wanted: u64) -> Result<FileBlockRange> {
        self.with_file_system(node.volume, |fs| {
            let block_bytes = u64::from(fs.superblock().block_bytes());
            if offset / block_bytes > u64::from(u32::MAX) {
                return Err(Errno::FileTooLarge);
            }
            let start = offset % block_bytes;
            Ok(FileBlockRange {
                logical_block: fs.superblock().block_index_at(offset),
                start_in_block: start as u32,
                bytes: wanted.min(block_bytes - start) as u32,
            })
        })
    }

    /// Reads from a file at an offset and returns the number of bytes read. The number is smaller
    /// than the buffer at the end of the file.
    pub(crate) async fn read_inode(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (offset, into): (u64, &mut [u8]),
    ) -> Result<usize> {
        let size = self.with_file_system(node.volume, |fs| fs.size_bytes(node.inode));
        let mut done = 0;
        while done < into.len() && offset + (done as u64) < size {
            let at = offset + done as u64;
            let left = (into.len() - done) as u64;
            let piece = self.next_part(node, at, left.min(size - at))?;
            let part = &mut into[done..done + piece.bytes as usize];
            let at_end = at + u64::from(piece.bytes) == size;
            self.read_part(process, node, (piece, at_end), part).await?;
            done += piece.bytes as usize;
        }
        Ok(done)
    }

    async fn read_part(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (piece, at_end): (FileBlockRange, bool),
        into: &mut [u8],
    ) -> Result<()> {
        let mapped = self
            .map_for_reading(process, node, piece.logical_block)
            .await?;
        let context = ExecutionContext::InProcess(process);
        let last = self.with_core_inode(node, |core| {
            std::mem::replace(&mut core.last_read_block, piece.logical_block)
        });
        let Some(block) = mapped.block else {
            self.spend_processor_time(context, Stage::Copy, self.costs.copy_time(into.len()))
                .await;
            into.fill(0);
            return Ok(());
        };
        let (bytes, next_bytes, block_bytes) = self.with_file_system(node.volume, |fs| {
            let superblock = fs.superblock();
            let bytes =
                |lbn| fs.fragment_count_of_block(node.inode, lbn) * superblock.fragment_bytes();
            (
                bytes(piece.logical_block),
                bytes(piece.logical_block + 1),
                superblock.block_bytes(),
            )
        });
        let ahead = mapped.next_block.filter(|_| {
            self.costs.reads_ahead && last + 1 == piece.logical_block && next_bytes > 0
        });
        let key = self.block_key(node, block);
        let id = match ahead {
            Some(next) => {
                let next = (self.block_key(node, next), next_bytes);
                self.breada(process, (key, bytes), next).await
            }
            None => self.bread(process, key, bytes).await,
        };
        self.spend_processor_time(context, Stage::Copy, self.costs.copy_time(into.len()))
            .await;
        self.copy_from_buffer(id, piece, into);
        if piece.end_in_block() == block_bytes || at_end {
            self.buffers.borrow_mut().buffer_mut(id).should_reuse_early = true;
        }
        self.brelse(process, id).await;
        Ok(())
    }

    fn copy_from_buffer(&self, id: BufferId, piece: FileBlockRange, into: &mut [u8]) {
        let buffers = self.buffers.borrow();
        let page = buffers.buffers[id.0 as usize].page.as_ref();
        let page = page.expect("a buffer that was read has contents");
        into.copy_from_slice(&page[piece.start_in_block as usize..piece.end_in_block() as usize]);
    }

    /// Writes to a file at an offset and returns the number of bytes written. The number is smaller
    /// than the data if the file system becomes full or the file reaches its maximum size.
    pub(crate) async fn write_inode(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (offset, data): (u64, WriteData<'_>),
    ) -> Result<usize> {
        let most = self.with_file_system(node.volume, |fs| fs.file_size_bytes_max());
        if offset >= most && !data.is_empty() {
            return Err(Errno::FileTooLarge);
        }
        let old = self.with_file_system(node.volume, |fs| fs.size_bytes(node.inode));
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let left = (data.len() - done) as u64;
            let written = match self.next_part(node, at, left.min(most - at)) {
                Ok(piece) if piece.bytes > 0 => {
                    let part = data.subrange(done..done + piece.bytes as usize);
                    self.write_part(process, node, piece, part)
                        .await
                        .map(|()| piece.bytes as usize)
                }
                Ok(_) => Err(Errno::FileTooLarge),
                Err(errno) => Err(errno),
            };
            match written {
                Ok(bytes) => done += bytes,
                Err(errno) => {
                    let reached = if done == 0 { 0 } else { at };
                    self.undo_extension(process, node, old.max(reached)).await;
                    return if done == 0 { Err(errno) } else { Ok(done) };
                }
            }
        }
        Ok(done)
    }

    /// Sets the length of a file in bytes, longer or shorter.
    pub(crate) async fn resize_file(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        bytes: u64,
    ) -> Result<()> {
        let old = self.with_file_system(node.volume, |fs| fs.size_bytes(node.inode));
        if bytes <= old {
            self.truncate_inode(process, node, bytes).await;
            return Ok(());
        }
        let lengthened = self.extend_file(process, node, bytes).await;
        if lengthened.is_err() {
            self.undo_extension(process, node, old).await;
        }
        lengthened
    }

    async fn extend_file(&self, process: &Rc<Process>, node: Vnode, bytes: u64) -> Result<()> {
        // A file that grows ends in a hole; a tail of fragments may not stay
        // in front of one.
        let lbn = self.with_file_system(node.volume, |fs| fs.superblock().block_index_at(bytes));
        self.grow_tail(process, node, lbn).await?;
        let within = self.with_file_system(node.volume, |fs| fs.tail_growth(node.inode, bytes));
        if let Some(growth) = within {
            let (_, id) = self.grow_fragments(process, node, growth).await?;
            self.bdwrite(process, id).await;
        }
        self.with_file_system_mut(node.volume, |fs| fs.set_size_bytes(node.inode, bytes));
        self.write_inode_block(process, node, WriteTiming::Delayed)
            .await;
        Ok(())
    }

    /// Restores the length of a file after a failed write. The write may have extended the file's
    /// last fragments to a whole block before the allocation behind it failed.
    async fn undo_extension(&self, process: &Rc<Process>, node: Vnode, bytes: u64) {
        let (size, kind) = self.with_file_system(node.volume, |fs| {
            (fs.size_bytes(node.inode), fs.inode_kind(node.inode))
        });
        if size > bytes && kind == InodeKind::RegularFile {
            self.truncate_inode(process, node, bytes).await;
        }
    }

    async fn write_part(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        piece: FileBlockRange,
        data: WriteData<'_>,
    ) -> Result<()> {
        let address = self
            .map_for_writing(process, node, (piece.logical_block, piece.end_in_block()))
            .await?;
        let context = ExecutionContext::InProcess(process);
        let (bytes, block_bytes) = self.with_file_system_mut(node.volume, |fs| {
            let block_bytes = fs.superblock().block_bytes();
            let end = u64::from(piece.logical_block) * u64::from(block_bytes)
                + u64::from(piece.end_in_block());
            let size = fs.size_bytes(node.inode).max(end);
            fs.set_size_bytes(node.inode, size);
            let fragments = fs.fragment_count_of_block(node.inode, piece.logical_block);
            (fragments * fs.superblock().fragment_bytes(), block_bytes)
        });
        let cost = self.costs.text_check_time(bytes);
        self.spend_processor_time(context, Stage::SystemCall, cost)
            .await;
        let key = self.block_key(node, address);
        let whole = piece.start_in_block == 0 && piece.bytes == bytes;
        let id = if whole {
            self.getblk(process, key, bytes).await
        } else {
            self.bread(process, key, bytes).await
        };
        self.spend_processor_time(context, Stage::Copy, self.costs.copy_time(data.len()))
            .await;
        self.copy_into_buffer(id, piece, whole, data);
        self.with_core_inode(node, |core| core.is_modified = true);
        if piece.end_in_block() == block_bytes {
            self.buffers.borrow_mut().buffer_mut(id).should_reuse_early = true;
            self.bawrite(process, id).await;
        } else {
            self.bdwrite(process, id).await;
        }
        Ok(())
    }

    fn copy_into_buffer(
        &self,
        id: BufferId,
        piece: FileBlockRange,
        whole: bool,
        data: WriteData<'_>,
    ) {
        let Buffers {
            buffers: all,
            pages,
            ..
        } = &mut *self.buffers.borrow_mut();
        let buffer = &mut all[id.0 as usize];
        if whole {
            buffer.page = Some(pages.page_of_data(data));
        } else {
            let page = buffer.page.as_mut();
            let page = page.expect("a buffer that was read has contents");
            pages.change_page(page, piece.start_in_block as usize, data);
        }
        buffer.is_transfer_done = true;
    }

    /// Returns the first fragment of a file's block, or `None` for a hole.
    pub(crate) fn block_address(&self, node: Vnode, lbn: u32) -> Option<FragmentAddress> {
        self.with_file_system(node.volume, |fs| fs.block_address(node.inode, lbn))
    }
}
