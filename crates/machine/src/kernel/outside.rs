//! Inspection and emptying of the buffer cache for measurements. These operations are not system
//! calls of 4.2BSD, and no timed part of a run includes them.

use super::ffs::FastFileSystem;
use super::files::UnixSession;
use super::names::ResolvedPath;
use super::{BlockKey, FileSystems, UnixKernel, Vnode};
use crate::errno::{Errno, Result};

impl UnixSession {
    /// Flushes the volume of a file and drops the file's blocks from the cache. Does nothing for a
    /// raw drive, which bypasses the cache.
    pub async fn drop_cached_blocks(&mut self, path: &str) -> Result<()> {
        let Some(node) = self.find_node(path).await? else {
            return Ok(());
        };
        self.kernel.flush_volume(&self.process, node.volume).await;
        for key in self.kernel.cached_blocks(node) {
            self.kernel.invalidate_buffer(key);
        }
        self.kernel.release_node(&self.process, node).await;
        Ok(())
    }

    /// Flushes all mounted volumes and drops all blocks from the cache.
    pub async fn drop_all_caches(&mut self) {
        let volumes = self.kernel.mounted_count();
        for volume in 0..volumes {
            self.kernel.flush_volume(&self.process, volume as u32).await;
        }
        self.kernel.invalidate_clean_buffers();
    }

    /// Returns the number of bytes that the cache holds of the first `length` bytes of a file.
    /// Holes count as cached. Returns 0 for a raw drive.
    pub async fn resident_bytes(&mut self, path: &str, length: u64) -> Result<u64> {
        let Some(node) = self.find_node(path).await? else {
            return Ok(0);
        };
        let resident = self.kernel.resident_bytes(node, length);
        self.kernel.release_node(&self.process, node).await;
        Ok(resident)
    }

    /// Writes all delayed data of a volume to its drive. Returns when all writes are complete, so
    /// that the caller can take the end time.
    pub async fn flush_volume(&mut self, volume: u32) {
        self.kernel.flush_volume(&self.process, volume).await;
    }

    /// Returns the number of volumes with a mounted file system.
    pub fn volume_count(&self) -> usize {
        self.kernel.mounted_count()
    }

    /// Returns a copy of the current 4.2BSD file system layout of a volume; `None` if the volume
    /// has no such file system.
    pub fn file_system(&self, volume: u32) -> Option<FastFileSystem> {
        let FileSystems::FastFileSystem(mounts) = &self.kernel.file_systems else {
            return None;
        };
        let mounts = mounts.borrow();
        mounts
            .get(volume as usize)
            .map(|mount| mount.file_system.clone())
    }

    /// Reports whether a volume exists, mounted or not.
    pub fn has_volume(&self, volume: u32) -> bool {
        (volume as usize) < self.kernel.volumes.volume_count()
    }

    /// Looks up a file and keeps it in core until the caller leaves it. Returns `None` for a raw
    /// drive.
    async fn find_node(&self, path: &str) -> Result<Option<Vnode>> {
        match self.kernel.resolve_and_pin(&self.process, path).await? {
            ResolvedPath::FileNode(node) => Ok(Some(node)),
            ResolvedPath::RawDrive(_) => Ok(None),
            ResolvedPath::NullDevice | ResolvedPath::ZeroDevice => Err(Errno::InvalidArgument),
        }
    }
}

impl UnixKernel {
    fn cached_blocks(&self, node: Vnode) -> Vec<BlockKey> {
        let size_bytes = self.size_bytes(node);
        let buffers = self.buffers.borrow();
        let blocks = self
            .cached_keys_of_file(node, size_bytes)
            .into_iter()
            .flatten();
        blocks
            .filter(|key| buffers.find_cached(*key).is_some())
            .collect()
    }

    fn resident_bytes(&self, node: Vnode, length: u64) -> u64 {
        let block_bytes = self.block_bytes(node.volume);
        let blocks = self.cached_keys_of_file(node, length);
        let buffers = self.buffers.borrow();
        // A hole is where a read of it takes no time: in memory.
        let resident = |key: &Option<BlockKey>| {
            key.is_none_or(|key| {
                let found = buffers.find_cached(key);
                found.is_some_and(|id| buffers.buffers[id.0 as usize].is_transfer_done)
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
