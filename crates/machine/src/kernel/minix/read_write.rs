//! Reads and writes of the Minix file server: block by block through the cache, or a whole buffer
//! in one request to a task.

use super::blocks::{Contents, Got, Work, device};
use super::cache::{BlockKey, BufferId, Memory};
use super::inodes::{Node, TOO_FAR, offset_of};
use super::layout::{BLOCK_BYTES, Kind, MOST_BYTES};
use super::message::{Device, DeviceRequest};
use crate::errno::Result;

/// File or device whose reads and writes go through the Minix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cached {
    /// File or directory, by its inode.
    Node(Node),
    /// Block device: a drive's partition, or the null device (`None`), which has no data.
    Block(Option<u32>),
}

/// Part of a read or write that lies within one block.
#[derive(Clone, Copy)]
struct Chunk {
    block: u32,
    /// Offset of the chunk in its block, in bytes.
    within: usize,
    bytes: usize,
    /// Number of the call's bytes before this chunk.
    done: usize,
    /// Number of the call's remaining bytes, including this chunk.
    left: usize,
}

impl Work<'_> {
    /// Transfers the program's whole buffer to or from a character device, with one request to its
    /// task. Returns the number of bytes moved.
    pub(super) async fn character(
        &self,
        device: Device,
        (position, memory): (u64, &Memory),
        write: bool,
    ) -> Result<usize> {
        let request = DeviceRequest {
            device,
            write,
            position,
            pieces: vec![memory.clone()],
        };
        self.device(request).await
    }

    /// Reads through the cache and returns the number of bytes read.
    pub(super) async fn read_cached(
        &self,
        from: Cached,
        (position, memory): (u64, &Memory),
    ) -> Result<usize> {
        let mut wanted = memory.borrow().len();
        if let Cached::Node(node) = from {
            let left = self
                .inode(node, |inode| inode.size)
                .saturating_sub(position);
            wanted = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        let mut done = 0;
        while done < wanted {
            let chunk = chunk(position, done, wanted);
            if !self.read_chunk(from, chunk, memory).await? {
                break;
            }
            done += chunk.bytes;
        }
        Ok(done)
    }

    /// Reads one chunk of a call (`rw_chunk`). Returns `false` at the end of the device.
    async fn read_chunk(&self, from: Cached, chunk: Chunk, memory: &Memory) -> Result<bool> {
        let to = chunk.done..chunk.done + chunk.bytes;
        let Some(key) = self.block_of(from, chunk.block).await? else {
            memory.borrow_mut()[to].fill(0);
            self.copy(chunk.bytes).await;
            return Ok(true);
        };
        let run = self.run(from, chunk, key).await?;
        let id = match self.get_run(key, Contents::Wanted, run).await? {
            Got::Block(id) => id,
            Got::End => return Ok(false),
        };
        self.copy(chunk.bytes).await;
        let data = self.data(id);
        let part = chunk.within..chunk.within + chunk.bytes;
        memory.borrow_mut()[to].copy_from_slice(&data.borrow()[part]);
        self.put(id);
        Ok(true)
    }

    async fn block_of(&self, of: Cached, block: u32) -> Result<Option<BlockKey>> {
        match of {
            Cached::Block(drive) => Ok(Some(BlockKey { drive, block })),
            Cached::Node(node) => {
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
    async fn run(&self, from: Cached, chunk: Chunk, first: BlockKey) -> Result<u32> {
        let config = &self.kernel.config;
        let of_call = (chunk.within + chunk.left).div_ceil(BLOCK_BYTES) as u32;
        let wanted = config
            .blocks_per_request
            .min(of_call)
            .max(1 + config.read_ahead_blocks);
        let cached = self.server(|server| server.cache.holds(first));
        let Cached::Node(node) = from else {
            return Ok(wanted);
        };
        if wanted == 1 || cached {
            return Ok(1);
        }
        let end = self.inode(node, super::layout::Inode::blocks);
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
        to: Cached,
        (position, memory): (u64, &Memory),
    ) -> (u64, Result<usize>) {
        let wanted = memory.borrow().len();
        if matches!(to, Cached::Node(_)) && position + wanted as u64 > MOST_BYTES {
            return (position, Err(TOO_FAR));
        }
        let mut done = 0;
        let mut result = Ok(());
        while done < wanted && result.is_ok() {
            let chunk = chunk(position, done, wanted);
            result = self.write_chunk(to, chunk, memory).await;
            if result.is_ok() {
                done += chunk.bytes;
            }
        }
        let end = position + done as u64;
        if let (Cached::Node(node), true) = (to, done > 0) {
            let size = self.inode(node, |inode| inode.size);
            if end > size {
                self.change_inode(node, |inode| inode.size = end);
            }
        }
        (end, result.map(|()| done))
    }

    async fn write_chunk(&self, to: Cached, chunk: Chunk, memory: &Memory) -> Result<()> {
        let id = match self.block_of(to, chunk.block).await? {
            None => self.new_block(to, chunk.block).await?,
            Some(key) => {
                let whole = chunk.bytes == BLOCK_BYTES;
                let contents = if whole || self.is_behind_the_end(to, chunk.block) {
                    Contents::Overwritten
                } else {
                    Contents::Wanted
                };
                match self.get_run(key, contents, 1).await? {
                    Got::Block(id) => id,
                    Got::End => return Err(super::blocks::FULL),
                }
            }
        };
        self.copy(chunk.bytes).await;
        let part = chunk.within..chunk.within + chunk.bytes;
        let from = chunk.done..chunk.done + chunk.bytes;
        self.data(id).borrow_mut()[part].copy_from_slice(&memory.borrow()[from]);
        self.soil(id);
        self.put(id);
        Ok(())
    }

    /// Reports whether a file's block lies behind the end of the file. The drive may then hold old
    /// data of another file there.
    fn is_behind_the_end(&self, to: Cached, block: u32) -> bool {
        match to {
            Cached::Block(_) => false,
            Cached::Node(node) => offset_of(block) >= self.inode(node, |inode| inode.size),
        }
    }

    /// Allocates a missing block of a file and zeroes it (`new_block`, `zero_block`).
    pub(super) async fn new_block(&self, to: Cached, block: u32) -> Result<BufferId> {
        let Cached::Node(node) = to else {
            panic!("a device has all its blocks")
        };
        let block = self.write_map(node, block).await?;
        let key = BlockKey {
            drive: Some(node.0),
            block,
        };
        let id = self.get(key, Contents::Overwritten).await?;
        let clear = self.kernel.costs.clear_time(BLOCK_BYTES);
        self.spend(diskperf_timeline::Stage::Clear, clear).await;
        self.data(id).borrow_mut().fill(0);
        self.soil(id);
        Ok(id)
    }

    /// Returns the number of bytes that the cache holds of the first `length` bytes of a file or
    /// device. Holes count as cached.
    pub(super) async fn resident(&self, of: Cached, length: u64) -> Result<u64> {
        let mut resident = 0;
        for block in 0..length.div_ceil(BLOCK_BYTES as u64) as u32 {
            let key = self.block_of(of, block).await?;
            let there = key.is_none_or(|key| self.server(|server| server.cache.holds(key)));
            if there {
                resident += (length - offset_of(block)).min(BLOCK_BYTES as u64);
            }
        }
        Ok(resident)
    }

    /// Syncs the drive of a file or device, and drops the file's blocks from the cache. For a block
    /// device, drops all clean blocks.
    pub(super) async fn drop_cached(&self, of: Cached) -> Result<()> {
        match of {
            Cached::Block(None) => {}
            Cached::Block(Some(drive)) => {
                self.sync(drive).await?;
                self.server(|server| server.cache.forget_clean());
            }
            Cached::Node(node) => {
                self.sync(node.0).await?;
                for block in 0..self.inode(node, super::layout::Inode::blocks) {
                    if let Some(key) = self.block_of(of, block).await? {
                        self.server(|server| server.cache.forget(key));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reports whether an inode is a directory. Minix lets programs read directories too.
    pub(super) fn is_directory(&self, node: Node) -> bool {
        self.kind(node) == Kind::Directory
    }
}

fn chunk(position: u64, done: usize, wanted: usize) -> Chunk {
    let at = position + done as u64;
    let within = (at % BLOCK_BYTES as u64) as usize;
    let left = wanted - done;
    Chunk {
        block: (at / BLOCK_BYTES as u64) as u32,
        within,
        bytes: left.min(BLOCK_BYTES - within),
        done,
        left,
    }
}

/// Returns the device that holds a cached file or device.
pub(super) fn device_of(of: Cached) -> Device {
    match of {
        Cached::Block(drive) => device(drive),
        Cached::Node(node) => Device::Drive(node.0),
    }
}
