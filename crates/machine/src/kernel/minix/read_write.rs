//! Reads and writes of the Minix file server: block by block through the cache, or a whole buffer
//! in one request to a task.

use super::blocks::{BlockOrEnd, ContentsNeeded, ServerCall, device_of_drive};
use super::cache::{BlockKey, BufferId, SharedBytes};
use super::inodes::{BLOCK_BEYOND_LIMIT, DriveInode, block_offset};
use super::layout::{BLOCK_BYTES, FILE_BYTES_MAX, Kind};
use super::message::{DeviceRequest, MinixDevice};
use crate::errno::Result;

/// File or device whose reads and writes go through the Minix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachedSource {
    /// File or directory, by its inode.
    Node(DriveInode),
    /// Block device: a drive's partition, or the null device (`None`), which has no data.
    Block(Option<u32>),
}

/// Part of a read or write that lies within one block.
#[derive(Clone, Copy)]
struct FileChunk {
    block: u32,
    /// Offset of the chunk in its block, in bytes.
    offset_in_block: usize,
    bytes: usize,
    /// Number of the call's bytes before this chunk.
    done_bytes: usize,
    /// Number of the call's remaining bytes, including this chunk.
    left_bytes: usize,
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
            write,
            position,
            buffers: vec![memory.clone()],
        };
        self.request_device(request).await
    }

    /// Reads through the cache and returns the number of bytes read.
    pub(super) async fn read_cached(
        &self,
        from: CachedSource,
        (position, memory): (u64, &SharedBytes),
    ) -> Result<usize> {
        let mut wanted = memory.borrow().len();
        if let CachedSource::Node(node) = from {
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
        from: CachedSource,
        chunk: FileChunk,
        memory: &SharedBytes,
    ) -> Result<bool> {
        let to = chunk.done_bytes..chunk.done_bytes + chunk.bytes;
        let Some(key) = self.find_block_key(from, chunk.block).await? else {
            memory.borrow_mut()[to].fill(0);
            self.copy_bytes(chunk.bytes).await;
            return Ok(true);
        };
        let run = self.read_run_blocks(from, chunk, key).await?;
        let id = match self
            .get_block_run(key, ContentsNeeded::Current, run)
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

    async fn find_block_key(&self, of: CachedSource, block: u32) -> Result<Option<BlockKey>> {
        match of {
            CachedSource::Block(drive) => Ok(Some(BlockKey { drive, block })),
            CachedSource::Node(node) => {
                let found = self.read_map(node, block).await?;
                Ok(found.map(|block| BlockKey {
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
        from: CachedSource,
        chunk: FileChunk,
        first: BlockKey,
    ) -> Result<u32> {
        let config = &self.kernel.config;
        let of_call = (chunk.offset_in_block + chunk.left_bytes).div_ceil(BLOCK_BYTES) as u32;
        let wanted = config
            .blocks_per_request
            .min(of_call)
            .max(1 + config.read_ahead_blocks);
        let cached = self.with_server(|server| server.cache.contains(first));
        let CachedSource::Node(node) = from else {
            return Ok(wanted);
        };
        if wanted == 1 || cached {
            return Ok(1);
        }
        let end = self.with_inode(node, super::layout::Inode::blocks);
        let mut run = 1;
        while run < wanted && chunk.block + run < end {
            let next = self.read_map(node, chunk.block + run).await?;
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
        to: CachedSource,
        (position, memory): (u64, &SharedBytes),
    ) -> (u64, Result<usize>) {
        let wanted = memory.borrow().len();
        if matches!(to, CachedSource::Node(_)) && position + wanted as u64 > FILE_BYTES_MAX {
            return (position, Err(BLOCK_BEYOND_LIMIT));
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
        if let (CachedSource::Node(node), true) = (to, done > 0) {
            let size = self.with_inode(node, |inode| inode.size_bytes);
            if end > size {
                self.with_inode_mut(node, |inode| inode.size_bytes = end);
            }
        }
        (end, result.map(|()| done))
    }

    async fn write_chunk(
        &self,
        to: CachedSource,
        chunk: FileChunk,
        memory: &SharedBytes,
    ) -> Result<()> {
        let id = match self.find_block_key(to, chunk.block).await? {
            None => self.new_block(to, chunk.block).await?,
            Some(key) => {
                let whole = chunk.bytes == BLOCK_BYTES;
                let contents = if whole || self.is_beyond_end(to, chunk.block) {
                    ContentsNeeded::Overwritten
                } else {
                    ContentsNeeded::Current
                };
                match self.get_block_run(key, contents, 1).await? {
                    BlockOrEnd::Block(id) => id,
                    BlockOrEnd::End => return Err(super::blocks::DEVICE_FULL),
                }
            }
        };
        self.copy_bytes(chunk.bytes).await;
        let part = chunk.offset_in_block..chunk.offset_in_block + chunk.bytes;
        let from = chunk.done_bytes..chunk.done_bytes + chunk.bytes;
        self.block_data(id).borrow_mut()[part].copy_from_slice(&memory.borrow()[from]);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }

    /// Reports whether a file's block lies behind the end of the file. The drive may then hold old
    /// data of another file there.
    fn is_beyond_end(&self, to: CachedSource, block: u32) -> bool {
        match to {
            CachedSource::Block(_) => false,
            CachedSource::Node(node) => {
                block_offset(block) >= self.with_inode(node, |inode| inode.size_bytes)
            }
        }
    }

    /// Allocates a missing block of a file and zeroes it (`new_block`, `zero_block`).
    pub(super) async fn new_block(&self, to: CachedSource, block: u32) -> Result<BufferId> {
        let CachedSource::Node(node) = to else {
            panic!("a device has no missing blocks")
        };
        let block = self.write_map(node, block).await?;
        let key = BlockKey {
            drive: Some(node.0),
            block,
        };
        let id = self.get_block(key, ContentsNeeded::Overwritten).await?;
        let clear = self.kernel.costs.clear_time(BLOCK_BYTES);
        self.spend(diskperf_timeline::Stage::Clear, clear).await;
        self.block_data(id).borrow_mut().fill(0);
        self.mark_dirty(id);
        Ok(id)
    }

    /// Returns the number of bytes that the cache holds of the first `length` bytes of a file or
    /// device. Holes count as cached.
    pub(super) async fn resident_bytes(&self, of: CachedSource, length: u64) -> Result<u64> {
        let mut resident = 0;
        for block in 0..length.div_ceil(BLOCK_BYTES as u64) as u32 {
            let key = self.find_block_key(of, block).await?;
            let there = key.is_none_or(|key| self.with_server(|server| server.cache.contains(key)));
            if there {
                resident += (length - block_offset(block)).min(BLOCK_BYTES as u64);
            }
        }
        Ok(resident)
    }

    /// Syncs the drive of a file or device, and drops the file's blocks from the cache. For a block
    /// device, drops all clean blocks.
    pub(super) async fn drop_cached(&self, of: CachedSource) -> Result<()> {
        match of {
            CachedSource::Block(None) => {}
            CachedSource::Block(Some(drive)) => {
                self.sync(drive).await?;
                self.with_server(|server| server.cache.discard_clean());
            }
            CachedSource::Node(node) => {
                self.sync(node.0).await?;
                for block in 0..self.with_inode(node, super::layout::Inode::blocks) {
                    if let Some(key) = self.find_block_key(of, block).await? {
                        self.with_server(|server| server.cache.discard(key));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reports whether an inode is a directory. Minix lets programs read directories too.
    pub(super) fn is_directory(&self, node: DriveInode) -> bool {
        self.kind(node) == Kind::Directory
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
        done_bytes: done,
        left_bytes: left,
    }
}

/// Returns the device that holds a cached file or device.
pub(super) fn device_of_source(of: CachedSource) -> MinixDevice {
    match of {
        CachedSource::Block(drive) => device_of_drive(drive),
        CachedSource::Node(node) => MinixDevice::Drive(node.0),
    }
}
