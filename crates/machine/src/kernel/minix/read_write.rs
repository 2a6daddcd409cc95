//! Reads and writes of the Minix file server: block by block through the cache, or a whole buffer
//! in one request to a task.

use super::blocks::{BlockOrEnd, ContentsNeeded, ServerCall, device_of_drive};
use super::cache::{CacheBufferId, DriveBlockKey, SharedBytes};
use super::inodes::{BLOCK_BEYOND_LIMIT_ERRNO, DriveInode, block_offset};
use super::layout::{BLOCK_BYTES, FILE_BYTES_MAX, MinixInodeKind};
use super::message::{DeviceRequest, MinixDevice};
use crate::errno::Result;

/// File or device whose reads and writes go through the Minix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachedBlocksSource {
    FileInode(DriveInode),
    /// Block device: a drive's partition, or the null device (`None`), which has no data.
    BlockDevice(Option<u32>),
}

/// Part of a read or write that lies within one block.
#[derive(Clone, Copy)]
struct FileChunk {
    block: u32,
    /// Offset of the chunk in its block, in bytes.
    offset_in_block: usize,
    bytes: usize,
    /// Number of the call's bytes before this chunk.
    transferred_bytes: usize,
    /// Number of the call's remaining bytes, including this chunk.
    remaining_bytes: usize,
}

impl ServerCall<'_> {
    /// Transfers the program's whole buffer to or from a character device, with one request to its
    /// task. Returns the number of bytes moved.
    pub(super) async fn transfer_character(
        &self,
        device: MinixDevice,
        (position, memory): (u64, &SharedBytes),
        write: bool,
    ) -> Result<usize> {
        let request = DeviceRequest {
            device,
            is_write: write,
            position,
            buffers: vec![memory.clone()],
        };
        self.send_device_request(request).await
    }

    pub(super) async fn read_cached(
        &self,
        from: CachedBlocksSource,
        (position, memory): (u64, &SharedBytes),
    ) -> Result<usize> {
        let mut wanted = memory.borrow().len();
        if let CachedBlocksSource::FileInode(node) = from {
            let left = self
                .with_inode(node, |inode| inode.size_bytes)
                .saturating_sub(position);
            wanted = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        let mut done = 0;
        while done < wanted {
            let chunk = next_chunk(position, done, wanted);
            if !self.read_chunk(from, chunk, memory).await? {
                break;
            }
            done += chunk.bytes;
        }
        Ok(done)
    }

    /// Reads one chunk of a call (`rw_chunk`). Returns `false` at the end of the device.
    async fn read_chunk(
        &self,
        from: CachedBlocksSource,
        chunk: FileChunk,
        memory: &SharedBytes,
    ) -> Result<bool> {
        let to = chunk.transferred_bytes..chunk.transferred_bytes + chunk.bytes;
        let Some(key) = self.find_block_key(from, chunk.block).await? else {
            memory.borrow_mut()[to].fill(0);
            self.copy_bytes(chunk.bytes).await;
            return Ok(true);
        };
        let run = self.read_run_blocks(from, chunk, key).await?;
        let id = match self
            .get_block_run(key, ContentsNeeded::CurrentContents, run)
            .await?
        {
            BlockOrEnd::Block(id) => id,
            BlockOrEnd::End => return Ok(false),
        };
        self.copy_bytes(chunk.bytes).await;
        let data = self.block_data(id);
        let part = chunk.offset_in_block..chunk.offset_in_block + chunk.bytes;
        memory.borrow_mut()[to].copy_from_slice(&data.borrow()[part]);
        self.put_block(id);
        Ok(true)
    }

    async fn find_block_key(
        &self,
        of: CachedBlocksSource,
        block: u32,
    ) -> Result<Option<DriveBlockKey>> {
        match of {
            CachedBlocksSource::BlockDevice(drive) => Ok(Some(DriveBlockKey { drive, block })),
            CachedBlocksSource::FileInode(node) => {
                let found = self.map_for_reading(node, block).await?;
                Ok(found.map(|block| DriveBlockKey {
                    drive: Some(node.0),
                    block,
                }))
            }
        }
    }

    /// Returns the number of blocks that one request may read: the consecutive blocks that the call
    /// needs, and those that are read ahead.
    async fn read_run_blocks(
        &self,
        from: CachedBlocksSource,
        chunk: FileChunk,
        first: DriveBlockKey,
    ) -> Result<u32> {
        let config = &self.kernel.config;
        let of_call = (chunk.offset_in_block + chunk.remaining_bytes).div_ceil(BLOCK_BYTES) as u32;
        let wanted = config
            .blocks_per_request
            .min(of_call)
            .max(1 + config.read_ahead_blocks);
        let cached = self.with_server(|server| server.cache.is_cached(first));
        let CachedBlocksSource::FileInode(node) = from else {
            return Ok(wanted);
        };
        if wanted == 1 || cached {
            return Ok(1);
        }
        let end = self.with_inode(node, super::layout::MinixInode::block_count);
        let mut run = 1;
        while run < wanted && chunk.block + run < end {
            let next = self.map_for_reading(node, chunk.block + run).await?;
            if next != Some(first.block + run) {
                break;
            }
            run += 1;
        }
        Ok(run)
    }

    /// Writes through the cache. Returns the end position and the number of bytes written. As in
    /// Minix, a failed call keeps the blocks that it has written, and returns only an error.
    pub(super) async fn write_cached(
        &self,
        to: CachedBlocksSource,
        (position, memory): (u64, &SharedBytes),
    ) -> (u64, Result<usize>) {
        let wanted = memory.borrow().len();
        if matches!(to, CachedBlocksSource::FileInode(_))
            && position + wanted as u64 > FILE_BYTES_MAX
        {
            return (position, Err(BLOCK_BEYOND_LIMIT_ERRNO));
        }
        let mut done = 0;
        let mut result = Ok(());
        while done < wanted && result.is_ok() {
            let chunk = next_chunk(position, done, wanted);
            result = self.write_chunk(to, chunk, memory).await;
            if result.is_ok() {
                done += chunk.bytes;
            }
        }
        let end = position + done as u64;
        if let (CachedBlocksSource::FileInode(node), true) = (to, done > 0) {
            let size = self.with_inode(node, |inode| inode.size_bytes);
            if end > size {
                self.with_inode_mut(node, |inode| inode.size_bytes = end);
            }
        }
        (end, result.map(|()| done))
    }

    async fn write_chunk(
        &self,
        to: CachedBlocksSource,
        chunk: FileChunk,
        memory: &SharedBytes,
    ) -> Result<()> {
        let id = match self.find_block_key(to, chunk.block).await? {
            None => self.new_file_block(to, chunk.block).await?,
            Some(key) => {
                let whole = chunk.bytes == BLOCK_BYTES;
                let contents = if whole || self.is_beyond_end(to, chunk.block) {
                    ContentsNeeded::FullyOverwritten
                } else {
                    ContentsNeeded::CurrentContents
                };
                match self.get_block_run(key, contents, 1).await? {
                    BlockOrEnd::Block(id) => id,
                    BlockOrEnd::End => return Err(super::blocks::DEVICE_FULL_ERRNO),
                }
            }
        };
        self.copy_bytes(chunk.bytes).await;
        let part = chunk.offset_in_block..chunk.offset_in_block + chunk.bytes;
        let from = chunk.transferred_bytes..chunk.transferred_bytes + chunk.bytes;
        self.block_data(id).borrow_mut()[part].copy_from_slice(&memory.borrow()[from]);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }

    /// Reports whether a file's block lies behind the end of the file. The drive may then hold old
    /// data of another file there.
    fn is_beyond_end(&self, to: CachedBlocksSource, block: u32) -> bool {
        match to {
            CachedBlocksSource::BlockDevice(_) => false,
            CachedBlocksSource::FileInode(node) => {
                block_offset(block) >= self.with_inode(node, |inode| inode.size_bytes)
            }
        }
    }

    /// Allocates a missing block of a file and zeroes it (`new_file_block`, `zero_block`).
    pub(super) async fn new_file_block(
        &self,
        to: CachedBlocksSource,
        block: u32,
    ) -> Result<CacheBufferId> {
        let CachedBlocksSource::FileInode(node) = to else {
            panic!("a device has no missing blocks")
        };
        let block = self.map_for_writing(node, block).await?;
        let key = DriveBlockKey {
            drive: Some(node.0),
            block,
        };
        let id = self
            .get_block(key, ContentsNeeded::FullyOverwritten)
            .await?;
        let clear = self.kernel.costs.clear_time(BLOCK_BYTES);
        self.spend_processor_time(diskperf_timeline::Stage::Clear, clear)
            .await;
        self.block_data(id).borrow_mut().fill(0);
        self.mark_dirty(id);
        Ok(id)
    }

    /// Returns the number of bytes that the cache holds of the first `length` bytes of a file or
    /// device. Holes count as cached.
    pub(super) async fn resident_bytes(&self, of: CachedBlocksSource, length: u64) -> Result<u64> {
        let mut resident = 0;
        for block in 0..length.div_ceil(BLOCK_BYTES as u64) as u32 {
            let key = self.find_block_key(of, block).await?;
            let there =
                key.is_none_or(|key| self.with_server(|server| server.cache.is_cached(key)));
            if there {
                resident += (length - block_offset(block)).min(BLOCK_BYTES as u64);
            }
        }
        Ok(resident)
    }

    /// Syncs the drive of a file or device, and drops the file's blocks from the cache. For a block
    /// device, drops all clean blocks.
    pub(super) async fn drop_cached_blocks(&self, of: CachedBlocksSource) -> Result<()> {
        match of {
            CachedBlocksSource::BlockDevice(None) => {}
            CachedBlocksSource::BlockDevice(Some(drive)) => {
                self.sync_drive(drive).await?;
                self.with_server(|server| server.cache.discard_clean_blocks());
            }
            CachedBlocksSource::FileInode(node) => {
                self.sync_drive(node.0).await?;
                for block in 0..self.with_inode(node, super::layout::MinixInode::block_count) {
                    if let Some(key) = self.find_block_key(of, block).await? {
                        self.with_server(|server| server.cache.discard_block(key));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reports whether an inode is a directory. Minix lets programs read directories too.
    pub(super) fn is_directory(&self, node: DriveInode) -> bool {
        self.inode_kind(node) == MinixInodeKind::Directory
    }
}

fn next_chunk(position: u64, done: usize, wanted: usize) -> FileChunk {
    let at = position + done as u64;
    let within = (at % BLOCK_BYTES as u64) as usize;
    let left = wanted - done;
    FileChunk {
        block: (at / BLOCK_BYTES as u64) as u32,
        offset_in_block: within,
        bytes: left.min(BLOCK_BYTES - within),
        transferred_bytes: done,
        remaining_bytes: left,
    }
}

/// Returns the device that holds a cached file or device.
pub(super) fn device_of_source(of: CachedBlocksSource) -> MinixDevice {
    match of {
        CachedBlocksSource::BlockDevice(drive) => device_of_drive(drive),
        CachedBlocksSource::FileInode(node) => MinixDevice::DriveDevice(node.0),
    }
}
