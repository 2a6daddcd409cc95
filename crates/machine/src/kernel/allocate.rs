//! Allocation, growth and release of fragments in a 4.2BSD file system, through the buffer cache
//! (`alloc`, `realloccg`, `free`).

use super::buffers::{BlockKey, BufferId};
use super::ffs::{FragmentAddress, GroupCandidate, GroupIndex, PointerArray, TailGrowth};
use super::process::{ExecutionContext, Process};
use super::{FfsView, Vnode};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl FfsView<'_> {
    /// Allocates fragments, up to a whole block, for an inode. Returns their address and a zeroed
    /// buffer for them. Fails with `NoSpace` if no cylinder group has room.
    pub(super) async fn allocate_fragments(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (preference, fragments): (Option<FragmentAddress>, u32),
    ) -> Result<(FragmentAddress, BufferId)> {
        self.with_file_system(node.volume, |fs| fs.require_free_space(fragments, false))
            .map_err(|_| Errno::NoSpace)?;
        let search = self.with_file_system(node.volume, |fs| {
            fs.allocation_search(node.inode, preference)
        });
        let address = self
            .search_cylinder_groups(process, node, search, (preference, fragments))
            .await?;
        let fragment_bytes =
            self.with_file_system(node.volume, |fs| fs.superblock().fragment_bytes());
        let (key, bytes) = (self.block_key(node, address), fragments * fragment_bytes);
        self.invalidate_overlapping(process, key, (fragments, fragment_bytes))
            .await;
        let id = self.getblk(process, key, bytes).await;
        self.clear_buffer(process, id, bytes).await;
        Ok((address, id))
    }

    /// Drops cached blocks that share fragments with a newly allocated block (`brealloc`). Waits
    /// for buffers in use first: a write of the old contents must not reach the drive after the new
    /// block.
    async fn invalidate_overlapping(
        &self,
        process: &Rc<Process>,
        key: BlockKey,
        (fragments, fragment_bytes): (u32, u32),
    ) {
        loop {
            let other = {
                let buffers = self.buffers.borrow();
                let found = buffers.find_overlapping(key, fragments, fragment_bytes);
                found.map(|id| {
                    let buffer = &buffers.buffers[id.0 as usize];
                    (id, buffer.key, buffer.is_busy)
                })
            };
            match other {
                Some((id, _, true)) => self.wait_for_buffer(process, id).await,
                Some((_, Some(old), false)) => self.invalidate_buffer(old),
                Some((_, None, false)) | None => return,
            }
        }
    }

    async fn search_cylinder_groups(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        search: impl Iterator<Item = GroupCandidate>,
        (preference, fragments): (Option<FragmentAddress>, u32),
    ) -> Result<FragmentAddress> {
        for GroupCandidate {
            group,
            is_preferred,
        } in search
        {
            if !self.with_file_system(node.volume, |fs| fs.group_may_hold(group, fragments)) {
                continue;
            }
            let map = self.read_group_map(process, node.volume, group).await;
            self.spend_processor_time(
                ExecutionContext::InProcess(process),
                Stage::Allocate,
                self.costs.allocation_time,
            )
            .await;
            let preference = preference.filter(|_| is_preferred);
            let found = self.with_file_system_mut(node.volume, |fs| {
                fs.allocate_in_group(group, preference, fragments)
            });
            match found {
                Some(address) => {
                    self.bdwrite(process, map).await;
                    return Ok(address);
                }
                None => self.brelse(process, map).await,
            }
        }
        Err(Errno::NoSpace)
    }

    pub(crate) async fn read_group_map(
        &self,
        process: &Rc<Process>,
        volume: u32,
        group: GroupIndex,
    ) -> BufferId {
        let (address, bytes) = self.with_file_system(volume, |fs| {
            let superblock = fs.superblock();
            (
                superblock.group_map_address(group),
                superblock.group_map_bytes(),
            )
        });
        let key = BlockKey::new(volume, address.0);
        self.bread(process, key, bytes).await
    }

    async fn clear_buffer(&self, process: &Rc<Process>, id: BufferId, bytes: u32) {
        let cost = self.costs.clear_time(bytes as usize);
        self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Clear, cost)
            .await;
        let page = self.zero_page(bytes);
        let mut buffers = self.buffers.borrow_mut();
        let buffer = buffers.buffer_mut(id);
        buffer.page = Some(page);
        buffer.is_transfer_done = true;
    }

    /// Extends the fragments at the end of a file, in place or by moving them. Returns the address
    /// and a buffer with the old contents followed by zeroes. Fails with `NoSpace` if the file
    /// system is full.
    pub(crate) async fn grow_fragments(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        growth: TailGrowth,
    ) -> Result<(FragmentAddress, BufferId)> {
        let TailGrowth {
            address,
            old_fragments,
            new_fragments,
            ..
        } = growth;
        self.with_file_system(node.volume, |fs| fs.require_free_space_for_growth(false))
            .map_err(|_| Errno::NoSpace)?;
        let fragment_bytes =
            self.with_file_system(node.volume, |fs| fs.superblock().fragment_bytes());
        let (old_bytes, new_bytes) = (
            old_fragments * fragment_bytes,
            new_fragments * fragment_bytes,
        );
        let in_place = self.extend_in_place(process, node, &growth).await;
        let new_address = if in_place {
            address
        } else {
            self.with_file_system(node.volume, |fs| {
                fs.require_free_space(new_fragments, false)
            })
            .map_err(|_| Errno::NoSpace)?;
            let preference = self.with_file_system_mut(node.volume, |fs| {
                fs.block_preference(
                    node.inode,
                    growth.logical_block,
                    PointerArray::InodePointers,
                    growth.logical_block,
                )
            });
            let search = self.with_file_system(node.volume, |fs| fs.relocation_search(address));
            self.search_cylinder_groups(process, node, search, (preference, new_fragments))
                .await?
        };
        self.invalidate_overlapping(
            process,
            self.block_key(node, new_address),
            (new_fragments, fragment_bytes),
        )
        .await;
        let old = self
            .bread(process, self.block_key(node, address), old_bytes)
            .await;
        let contents = self.buffers.borrow().buffers[old.0 as usize].page.clone();
        let id = if in_place {
            self.brelse(process, old).await;
            self.getblk(process, self.block_key(node, address), new_bytes)
                .await
        } else {
            self.brelse(process, old).await;
            self.invalidate_buffer(self.block_key(node, address));
            self.free_fragments(process, node.volume, (address, old_fragments))
                .await;
            let id = self
                .getblk(process, self.block_key(node, new_address), new_bytes)
                .await;
            let cost = self.costs.copy_time(old_bytes as usize);
            self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Copy, cost)
                .await;
            id
        };
        let cost = self.costs.clear_time((new_bytes - old_bytes) as usize);
        self.spend_processor_time(ExecutionContext::InProcess(process), Stage::Clear, cost)
            .await;
        {
            let mut grown = contents
                .expect("a buffer that was read has contents")
                .to_vec();
            grown.resize(new_bytes as usize, 0);
            let mut buffers = self.buffers.borrow_mut();
            let buffer = buffers.buffer_mut(id);
            buffer.page = Some(grown.into());
            buffer.is_transfer_done = true;
        }
        self.with_file_system_mut(node.volume, |fs| {
            fs.set_direct_pointer(node.inode, growth.logical_block, new_address);
        });
        self.with_core_inode(node, |core| core.is_modified = true);
        Ok((new_address, id))
    }

    async fn extend_in_place(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        growth: &TailGrowth,
    ) -> bool {
        let TailGrowth {
            address,
            old_fragments,
            new_fragments,
            ..
        } = *growth;
        let may = self.with_file_system(node.volume, |fs| {
            fs.may_extend(address, old_fragments, new_fragments)
        });
        if !may {
            return false;
        }
        let group = self.with_file_system(node.volume, |fs| fs.superblock().group_of(address));
        let map = self.read_group_map(process, node.volume, group).await;
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::Allocate,
            self.costs.allocation_time,
        )
        .await;
        let extended = self.with_file_system_mut(node.volume, |fs| {
            fs.extend_fragments(address, old_fragments, new_fragments)
        });
        if extended {
            self.bdwrite(process, map).await;
        } else {
            self.brelse(process, map).await;
        }
        extended
    }

    /// Frees fragments in the map of their cylinder group.
    pub(crate) async fn free_fragments(
        &self,
        process: &Rc<Process>,
        volume: u32,
        (address, fragments): (FragmentAddress, u32),
    ) {
        let group = self.with_file_system(volume, |fs| fs.superblock().group_of(address));
        let map = self.read_group_map(process, volume, group).await;
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::Allocate,
            self.costs.allocation_time,
        )
        .await;
        self.with_file_system_mut(volume, |fs| fs.free_fragments(address, fragments));
        self.bdwrite(process, map).await;
    }
}
