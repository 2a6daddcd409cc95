//! The buffer cache, as who measures it sees and empties it: not system calls
//! of 4.2BSD, and outside all that is timed.

use super::ffs::FileSystem;
use super::files::Session;
use super::names::Found;
use super::{BlockKey, FileSystems, Unix, Vnode};
use crate::errno::{Errno, Result};

impl Session {
    /// Writes a file's blocks out and forgets them. Of a drive by itself
    /// nothing is in the cache.
    pub async fn drop_cached(&mut self, path: &str) -> Result<()> {
        let Some(node) = self.node(path).await? else {
            return Ok(());
        };
        self.kernel.flush(&self.process, node.volume).await;
        for key in self.kernel.cached_blocks(node) {
            self.kernel.invalidate(key);
        }
        self.kernel.leave(&self.process, node).await;
        Ok(())
    }

    /// Writes everything out and forgets it.
    pub async fn drop_all_caches(&mut self) {
        let volumes = self.kernel.mounted();
        for volume in 0..volumes {
            self.kernel.flush(&self.process, volume as u32).await;
        }
        self.kernel.forget_all();
    }

    /// How much of the first `length` bytes of a file is in the cache.
    pub async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        let Some(node) = self.node(path).await? else {
            return Ok(0);
        };
        let resident = self.kernel.resident_bytes(node, length);
        self.kernel.leave(&self.process, node).await;
        Ok(resident)
    }

    /// Writes out what is still to be written, for the time by which it is.
    pub async fn flush(&mut self, volume: u32) {
        self.kernel.flush(&self.process, volume).await;
    }

    /// How many volumes have file systems.
    pub fn volumes(&self) -> usize {
        self.kernel.mounted()
    }

    /// The layout of a volume's file system at this moment; none where it has
    /// none.
    pub fn file_system(&self, volume: u32) -> Option<FileSystem> {
        let FileSystems::Ffs(mounts) = &self.kernel.file_systems else {
            return None;
        };
        let mounts = mounts.borrow();
        mounts.get(volume as usize).map(|mount| mount.fs.clone())
    }

    /// Whether there is this volume, mounted or not.
    pub fn has_volume(&self, volume: u32) -> bool {
        (volume as usize) < self.kernel.volumes.count()
    }

    /// The file of this name, until it is left; none of a drive by itself.
    async fn node(&self, path: &str) -> Result<Option<Vnode>> {
        match self.kernel.reach(&self.process, path).await? {
            Found::Node(node) => Ok(Some(node)),
            Found::Drive(_) => Ok(None),
            Found::Null | Found::Zero => Err(Errno::Invalid),
        }
    }
}

impl Unix {
    fn cached_blocks(&self, node: Vnode) -> Vec<BlockKey> {
        let size_bytes = self.size_bytes(node);
        let buffers = self.buffers.borrow();
        let blocks = self.blocks_of(node, size_bytes).into_iter().flatten();
        blocks.filter(|key| buffers.find(*key).is_some()).collect()
    }

    fn resident_bytes(&self, node: Vnode, length: u64) -> u64 {
        let block_bytes = self.block_bytes(node.volume);
        let blocks = self.blocks_of(node, length);
        let buffers = self.buffers.borrow();
        // A hole is where a read of it takes no time: in memory.
        let resident = |key: &Option<BlockKey>| {
            key.is_none_or(|key| {
                let found = buffers.find(key);
                found.is_some_and(|id| buffers.all[id.0 as usize].done)
            })
        };
        let bytes = |lbn: usize| block_bytes.min(length - lbn as u64 * block_bytes);
        let blocks = blocks.iter().enumerate();
        blocks
            .filter(|(_, key)| resident(key))
            .map(|(lbn, _)| bytes(lbn))
            .sum()
    }
}
