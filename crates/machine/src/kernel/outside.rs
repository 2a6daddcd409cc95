//! The buffer cache, as who measures it sees and empties it: not system calls
//! of 4.2BSD, and outside all that is timed.

use super::errno::{Errno, Result};
use super::ffs::FileSystem;
use super::files::Session;
use super::names::Found;
use super::{BlockKey, Kernel, Vnode};

impl Session {
    /// Writes a file's blocks out and forgets them. Of a drive by itself
    /// nothing is in the cache.
    pub async fn drop_cached(&mut self, path: &str) -> Result<()> {
        let Some(node) = self.node(path).await? else {
            return Ok(());
        };
        self.kernel.pin(node);
        self.kernel.flush(&self.process, node.volume).await;
        for key in self.kernel.cached_blocks(node) {
            self.kernel.invalidate(key);
        }
        self.kernel.unpin(&self.process, node).await;
        Ok(())
    }

    /// Writes everything out and forgets it.
    pub async fn drop_all_caches(&mut self) {
        let volumes = self.kernel.mounts.borrow().len();
        for volume in 0..volumes {
            self.kernel.flush(&self.process, volume as u32).await;
        }
        self.kernel.forget_all();
    }

    /// How much of the first `length` bytes of a file is in the cache.
    pub async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        let node = self.node(path).await?;
        Ok(node.map_or(0, |node| self.kernel.resident_bytes(node, length)))
    }

    /// Writes out what is still to be written, for the time by which it is.
    pub async fn flush(&mut self, volume: u32) {
        self.kernel.flush(&self.process, volume).await;
    }

    /// How many volumes have file systems.
    pub fn volumes(&self) -> usize {
        self.kernel.mounts.borrow().len()
    }

    /// The layout of a volume's file system at this moment; none where it has
    /// none.
    pub fn file_system(&self, volume: u32) -> Option<FileSystem> {
        let mounts = self.kernel.mounts.borrow();
        mounts.get(volume as usize).map(|mount| mount.fs.clone())
    }

    /// Whether there is this volume, mounted or not.
    pub fn has_volume(&self, volume: u32) -> bool {
        (volume as usize) < self.kernel.partitions.len()
    }

    /// The file of this name; none of a drive by itself.
    async fn node(&self, path: &str) -> Result<Option<Vnode>> {
        match self.kernel.find(&self.process, path).await? {
            Found::Node(node) => Ok(Some(node)),
            Found::Drive(_) => Ok(None),
            Found::Null | Found::Zero => Err(Errno::Invalid),
        }
    }
}

impl Kernel {
    fn cached_blocks(&self, node: Vnode) -> Vec<BlockKey> {
        let blocks = self.fs(node.volume, |fs| {
            let block_bytes = u64::from(fs.superblock().block_bytes());
            fs.size_bytes(node.inode).div_ceil(block_bytes) as u32
        });
        (0..blocks)
            .filter_map(|lbn| self.block_address(node, lbn))
            .map(|address| self.key(node, address))
            .filter(|key| self.buffers.borrow().find(*key).is_some())
            .collect()
    }

    fn resident_bytes(&self, node: Vnode, length: u64) -> u64 {
        let block_bytes = self.fs(node.volume, |fs| u64::from(fs.superblock().block_bytes()));
        let resident = |lbn: &u32| {
            let key = self
                .block_address(node, *lbn)
                .map(|address| self.key(node, address));
            let buffers = self.buffers.borrow();
            // A hole is where a read of it takes no time: in memory.
            key.is_none_or(|key| {
                let found = buffers.find(key);
                found.is_some_and(|id| buffers.all[id.0 as usize].done)
            })
        };
        (0..length.div_ceil(block_bytes) as u32)
            .filter(resident)
            .map(|lbn| block_bytes.min(length - u64::from(lbn) * block_bytes))
            .sum()
    }
}
