//! Allocation and release of blocks and inodes in a seventh edition file system, from its free
//! lists (`alloc`, `free`, `ialloc`, `ifree`).

use super::super::Vnode;
use super::super::ffs::{InodeKind, InodeNumber};
use super::super::process::{ExecutionContext, Process};
use super::V7View;
use super::layout::{
    FIRST_INODE_BLOCK, INODE_BYTES, LISTED_FREE_BLOCKS_MAX, LISTED_FREE_INODES_MAX, ROOT_INODE,
    V7Inode, decode_free, encode_free,
};
use super::{BLOCK_BYTES_U32, BufferId, InodeInCore, V7InodeInCore, V7Volume};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl V7View<'_> {
    async fn spend_allocate(&self, process: &Rc<Process>) {
        let context = ExecutionContext::InProcess(process);
        self.spend_processor_time(context, Stage::Allocate, self.costs.allocation_time)
            .await;
    }

    /// Allocates a block from the free list. Returns its number and a zeroed buffer for it
    /// (`alloc`).
    pub(super) async fn allocate_block(
        &self,
        process: &Rc<Process>,
        volume: u32,
    ) -> Result<(u32, BufferId)> {
        self.acquire_lock(process, volume, V7Volume::free_list_lock)
            .await;
        self.spend_allocate(process).await;
        let (taken, chained) = self.with_volume(volume, |volume| {
            let free = &mut volume.superblock.free_block_cache;
            let taken = free.pop().filter(|block| *block != 0);
            volume.superblock_modified |= taken.is_some();
            (taken, taken.is_some() && free.is_empty())
        });
        if let (Some(block), true) = (taken, chained) {
            let id = self.read_block(process, volume, block).await;
            let next = self.with_block(id, decode_free);
            self.with_volume(volume, |volume| volume.superblock.free_block_cache = next);
            self.brelse(process, id).await;
        }
        self.release_lock(volume, V7Volume::free_list_lock);
        let block = taken.ok_or(Errno::NoSpace)?;
        let id = self
            .getblk(process, Self::block_key(volume, block), BLOCK_BYTES_U32)
            .await;
        let cost = self.costs.clear_time(BLOCK_BYTES_U32 as usize);
        self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Clear, cost)
            .await;
        let zeroes = self.zero_page(BLOCK_BYTES_U32);
        let mut buffers = self.buffers.borrow_mut();
        let buffer = buffers.buffer_mut(id);
        buffer.page = Some(zeroes);
        buffer.is_transfer_done = true;
        Ok((block, id))
    }

    /// Frees a block. The free list returns it at the next allocation (`free`).
    pub(super) async fn free_block(&self, process: &Rc<Process>, volume: u32, block: u32) {
        self.acquire_lock(process, volume, V7Volume::free_list_lock)
            .await;
        self.spend_allocate(process).await;
        let full = self.with_volume(volume, |volume| {
            volume.superblock_modified = true;
            let free = &mut volume.superblock.free_block_cache;
            if free.is_empty() {
                free.push(0);
            }
            (free.len() == LISTED_FREE_BLOCKS_MAX).then(|| encode_free(free))
        });
        if let Some(bytes) = full {
            let key = Self::block_key(volume, block);
            let id = self.getblk(process, key, BLOCK_BYTES_U32).await;
            self.buffers.borrow_mut().buffer_mut(id).page = Some(bytes.into());
            self.bwrite(process, id).await;
            self.with_volume(volume, |volume| volume.superblock.free_block_cache.clear());
        }
        self.with_volume(volume, |volume| {
            volume.superblock.free_block_cache.push(block)
        });
        self.release_lock(volume, V7Volume::free_list_lock);
    }

    /// Allocates an inode without names, in use until it is put back (`ialloc`).
    pub(super) async fn make_inode(
        &self,
        process: &Rc<Process>,
        volume: u32,
        kind: InodeKind,
    ) -> Result<Vnode> {
        loop {
            self.spend_allocate(process).await;
            let taken = self.with_volume(volume, |volume| {
                volume.superblock_modified = true;
                volume.superblock.free_inode_cache.pop()
            });
            let Some(inode) = taken else {
                self.refill_free_inodes(process, volume).await?;
                continue;
            };
            if inode < ROOT_INODE {
                continue;
            }
            let node = Vnode {
                volume,
                inode: InodeNumber(inode),
            };
            // It may have been taken after all, by whoever found it too.
            if self.is_in_use(node) {
                continue;
            }
            self.take_inode(process, node).await;
            let (free, only) = (
                self.with_inode(node, |inode| inode.kind.is_none()),
                self.with_core_inode(node, |core| core.user_count == 1),
            );
            if !free || !only {
                self.put_inode(process, node).await;
                continue;
            }
            self.with_inode_mut(node, |inode| {
                *inode = V7Inode {
                    kind: Some(kind),
                    ..V7Inode::default()
                };
            });
            return Ok(node);
        }
    }

    fn is_in_use(&self, node: Vnode) -> bool {
        self.with_volume(node.volume, |volume| {
            volume.inodes.contains_key(&node.inode)
        })
    }

    /// Refills the super block's list of free inodes, with a search from the first inode block on.
    /// Fails with `NoSpace` if no inode is free.
    async fn refill_free_inodes(&self, process: &Rc<Process>, volume: u32) -> Result<()> {
        self.acquire_lock(process, volume, V7Volume::inode_list_lock)
            .await;
        let end = self.with_volume(volume, |volume| volume.superblock.first_data_block);
        let mut inode = 0;
        // Somebody may have filled them meanwhile.
        let mut found = self.with_volume(volume, |volume| volume.superblock.free_inode_cache.len());
        for block in FIRST_INODE_BLOCK..end {
            if found >= LISTED_FREE_INODES_MAX || (inode == 0 && found > 0) {
                break;
            }
            let id = self.read_block(process, volume, block).await;
            let free: Vec<bool> = self.with_block(id, |bytes| {
                let inodes = bytes.chunks(INODE_BYTES);
                inodes
                    .map(|bytes| V7Inode::decode_inode(bytes).kind.is_none())
                    .collect()
            });
            self.with_volume(volume, |volume| {
                for free in free {
                    inode += 1;
                    let number = InodeNumber(inode);
                    let listed = volume.superblock.free_inode_cache.len() >= LISTED_FREE_INODES_MAX;
                    if free && !listed && !volume.inodes.contains_key(&number) {
                        volume.superblock.free_inode_cache.push(inode);
                    }
                }
                found = volume.superblock.free_inode_cache.len();
            });
            self.brelse(process, id).await;
        }
        self.release_lock(volume, V7Volume::inode_list_lock);
        (found > 0).then_some(()).ok_or(Errno::NoSpace)
    }

    /// Adds a freed inode to the super block's list of free inodes, if the list has room (`ifree`).
    pub(super) fn free_inode(&self, node: Vnode) {
        self.with_volume(node.volume, |volume| {
            let inodes = &mut volume.superblock.free_inode_cache;
            if !volume.inode_list_lock.is_locked && inodes.len() < LISTED_FREE_INODES_MAX {
                inodes.push(node.inode.0);
                volume.superblock_modified = true;
            }
        });
    }

    /// Reserves an in-core entry for an inode that is about to be read.
    pub(super) fn add_in_core(&self, node: Vnode) {
        let core = InodeInCore {
            user_count: 1,
            ..InodeInCore::default()
        };
        let inode = V7InodeInCore {
            in_core_state: core,
            ..V7InodeInCore::default()
        };
        self.with_volume(node.volume, |volume| {
            volume.inodes.insert(node.inode, inode);
        });
    }
}
