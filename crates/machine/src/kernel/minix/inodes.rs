//! In-core inodes of the Minix file server, and the allocation and release of inodes and zones.

use super::blocks::{ContentsNeeded, DEVICE_FULL_ERRNO, ServerCall};
use super::cache::DriveBlockKey;
use super::layout::{
    BLOCK_BYTES, BlockPointer, FILE_BLOCKS_MAX, INODE_BYTES, MinixInode, MinixInodeKind,
    MinixVolume, ZONES_PER_BLOCK, locate_pointer, read_u16, write_u16,
};
use crate::errno::{Errno, Result};
use std::collections::BTreeMap;

pub(super) type DriveInode = (u32, u32);

/// Table of the in-core inodes that the file server uses.
#[derive(Default)]
pub(super) struct InodesInUse {
    inodes: BTreeMap<DriveInode, InodeInUse>,
}

struct InodeInUse {
    inode: MinixInode,
    user_count: u32,
    is_dirty: bool,
}

impl InodesInUse {
    fn inode_in_use(&self, node: DriveInode) -> &InodeInUse {
        self.inodes.get(&node).expect("an inode in use is in core")
    }

    fn inode_in_use_mut(&mut self, node: DriveInode) -> &mut InodeInUse {
        self.inodes
            .get_mut(&node)
            .expect("an inode in use is in core")
    }

    /// Returns the numbers of a drive's inodes that are newer than their blocks.
    pub(super) fn dirty_inodes(&self, drive: u32) -> Vec<u32> {
        let of = |(node, core): &(&DriveInode, &InodeInUse)| node.0 == drive && core.is_dirty;
        self.inodes
            .iter()
            .filter(of)
            .map(|(node, _)| node.1)
            .collect()
    }

    /// Returns copies of a drive's in-core inodes, by number.
    pub(super) fn inodes_of_drive(&self, drive: u32) -> BTreeMap<u32, MinixInode> {
        let of = self.inodes.iter().filter(|(node, _)| node.0 == drive);
        of.map(|(node, core)| (node.1, core.inode.clone()))
            .collect()
    }
}

impl ServerCall<'_> {
    /// Brings an inode into core, in use until it is put back. Reads its block if necessary.
    pub(super) async fn get_inode(&self, node: DriveInode) -> Result<()> {
        let known = self.with_server(|server| {
            let core = server.inodes.inodes.get_mut(&node);
            core.map(|core| core.user_count += 1).is_some()
        });
        if known {
            return Ok(());
        }
        let id = self
            .get_block(self.inode_key(node), ContentsNeeded::CurrentContents)
            .await?;
        let at = MinixVolume::inode_offset(node.1);
        let inode = MinixInode::decode_inode(&self.block_data(id).borrow()[at..at + INODE_BYTES]);
        self.put_block(id);
        self.enter_inode(
            node,
            inode.expect("a directory entry names an allocated inode"),
            false,
        );
        Ok(())
    }

    fn enter_inode(&self, node: DriveInode, inode: MinixInode, dirty: bool) {
        let core = InodeInUse {
            inode,
            user_count: 1,
            is_dirty: dirty,
        };
        self.with_server(|server| server.inodes.inodes.insert(node, core));
    }

    fn inode_key(&self, (drive, number): DriveInode) -> DriveBlockKey {
        let block = self.with_server(|server| server.volumes[drive as usize].inode_block(number));
        DriveBlockKey {
            drive: Some(drive),
            block,
        }
    }

    /// Calls a closure with an inode in use.
    pub(super) fn with_inode<T>(&self, node: DriveInode, look: impl FnOnce(&MinixInode) -> T) -> T {
        self.with_server(|server| look(&server.inodes.inode_in_use(node).inode))
    }

    /// Changes an inode in use through a closure, and marks it as dirty.
    pub(super) fn with_inode_mut<T>(
        &self,
        node: DriveInode,
        change: impl FnOnce(&mut MinixInode) -> T,
    ) -> T {
        self.with_server(|server| {
            let core = server.inodes.inode_in_use_mut(node);
            core.is_dirty = true;
            change(&mut core.inode)
        })
    }

    pub(super) fn inode_kind(&self, node: DriveInode) -> MinixInodeKind {
        self.with_inode(node, |inode| inode.kind)
    }

    /// Allocates an inode without a name, in use until it is put back. Fails if no inode is free.
    pub(super) async fn allocate_inode(
        &self,
        drive: u32,
        kind: MinixInodeKind,
    ) -> Result<DriveInode> {
        let number =
            self.with_server(|server| server.volumes[drive as usize].inode_map.take_bit(1));
        let node = (drive, number.ok_or(DEVICE_FULL_ERRNO)?);
        self.enter_inode(node, MinixInode::new(kind), true);
        Ok(node)
    }

    /// Removes one user of an inode. The last user frees an inode without names, or writes a
    /// changed inode into its block.
    pub(super) async fn put_inode(&self, node: DriveInode) -> Result<()> {
        let (users, links) = self.with_server(|server| {
            let core = server.inodes.inode_in_use_mut(node);
            core.user_count -= 1;
            (core.user_count, core.inode.link_count)
        });
        if users > 0 {
            return Ok(());
        }
        if links == 0 {
            self.truncate_inode(node).await?;
            self.clear_inode(node).await?;
            self.with_server(|server| {
                let map = &mut server.volumes[node.0 as usize].inode_map;
                map.free_bit(node.1);
            });
        } else {
            self.write_inode(node).await?;
        }
        self.with_server(|server| server.inodes.inodes.remove(&node));
        Ok(())
    }

    /// Writes a changed inode into its block in the cache.
    pub(super) async fn write_inode(&self, node: DriveInode) -> Result<()> {
        if !self.with_server(|server| server.inodes.inode_in_use(node).is_dirty) {
            return Ok(());
        }
        let id = self
            .get_block(self.inode_key(node), ContentsNeeded::CurrentContents)
            .await?;
        let at = MinixVolume::inode_offset(node.1);
        let data = self.block_data(id);
        self.with_inode(node, |inode| {
            inode.encode_inode(&mut data.borrow_mut()[at..at + INODE_BYTES]);
        });
        self.mark_dirty(id);
        self.put_block(id);
        self.with_server(|server| server.inodes.inode_in_use_mut(node).is_dirty = false);
        Ok(())
    }

    async fn clear_inode(&self, node: DriveInode) -> Result<()> {
        let id = self
            .get_block(self.inode_key(node), ContentsNeeded::CurrentContents)
            .await?;
        let at = MinixVolume::inode_offset(node.1);
        self.block_data(id).borrow_mut()[at..at + INODE_BYTES].fill(0);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }
}

impl ServerCall<'_> {
    /// Translates a block number of a file to a block of the drive; `None` for a hole.
    pub(super) async fn map_for_reading(
        &self,
        node: DriveInode,
        block: u32,
    ) -> Result<Option<u32>> {
        if block >= FILE_BLOCKS_MAX {
            return Ok(None);
        }
        let zone = |place: usize| self.with_inode(node, |inode| inode.zones[place]);
        let zone = match locate_pointer(block) {
            BlockPointer::Direct(place) => zone(place),
            BlockPointer::Indirect(place) => self.read_pointer(node.0, zone(7), place).await?,
            BlockPointer::DoubleIndirect(first, place) => {
                let second = self.read_pointer(node.0, zone(8), first).await?;
                self.read_pointer(node.0, second, place).await?
            }
        };
        Ok((zone != 0).then_some(u32::from(zone)))
    }

    async fn read_pointer(&self, drive: u32, zone: u16, place: usize) -> Result<u16> {
        if zone == 0 {
            return Ok(0);
        }
        let id = self
            .get_block(zone_block_key(drive, zone), ContentsNeeded::CurrentContents)
            .await?;
        let pointer = read_u16(&self.block_data(id).borrow(), 2 * place);
        self.put_block(id);
        Ok(pointer)
    }

    /// Allocates a zone for a block of a file, and the indirect blocks that must point to it.
    /// Returns the block number on the drive.
    pub(super) async fn map_for_writing(&self, node: DriveInode, block: u32) -> Result<u32> {
        let near = match block {
            0 => 0,
            block => self.map_for_reading(node, block - 1).await?.unwrap_or(0) as u16,
        };
        let drive = node.0;
        let zone = match locate_pointer(block) {
            BlockPointer::Direct(place) => {
                let zone = self.allocate_zone(drive, near)?;
                self.with_inode_mut(node, |inode| inode.zones[place] = zone);
                zone
            }
            BlockPointer::Indirect(place) => {
                let (first, new) = self.find_or_make_indirect(node, 7, near).await?;
                let made = self.add_pointer(drive, first, place).await;
                if made.is_err() && new {
                    self.free_empty_indirect(node, 7, first);
                }
                made?
            }
            BlockPointer::DoubleIndirect(outer, place) => {
                let (first, new) = self.find_or_make_indirect(node, 8, near).await?;
                let made = self.add_double_indirect(drive, first, (outer, place)).await;
                if made.is_err() && new {
                    self.free_empty_indirect(node, 8, first);
                }
                made?
            }
        };
        Ok(u32::from(zone))
    }

    fn allocate_zone(&self, drive: u32, near: u16) -> Result<u16> {
        self.with_server(|server| server.volumes[drive as usize].take_zone(near))
            .ok_or(DEVICE_FULL_ERRNO)
    }

    /// Returns the indirect block that an inode has at an index, and allocates it if it is missing.
    /// The flag is `true` for a new block.
    async fn find_or_make_indirect(
        &self,
        node: DriveInode,
        place: usize,
        near: u16,
    ) -> Result<(u16, bool)> {
        let known = self.with_inode(node, |inode| inode.zones[place]);
        if known != 0 {
            return Ok((known, false));
        }
        let zone = self.make_indirect(node.0, near).await?;
        self.with_inode_mut(node, |inode| inode.zones[place] = zone);
        Ok((zone, true))
    }

    async fn make_indirect(&self, drive: u32, near: u16) -> Result<u16> {
        let zone = self.allocate_zone(drive, near)?;
        let id = self
            .get_block(
                zone_block_key(drive, zone),
                ContentsNeeded::FullyOverwritten,
            )
            .await?;
        self.block_data(id).borrow_mut().fill(0);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(zone)
    }

    /// Frees a new indirect block that nothing refers to, after a failed allocation.
    fn free_empty_indirect(&self, node: DriveInode, place: usize, zone: u16) {
        self.with_inode_mut(node, |inode| inode.zones[place] = 0);
        self.free_zone(node.0, zone);
    }

    async fn add_double_indirect(
        &self,
        drive: u32,
        first: u16,
        (outer, place): (usize, usize),
    ) -> Result<u16> {
        let known = self.read_pointer(drive, first, outer).await?;
        if known != 0 {
            return self.add_pointer(drive, known, place).await;
        }
        let second = self.make_indirect(drive, first).await?;
        match self.add_pointer(drive, second, place).await {
            Ok(zone) => {
                self.set_pointer(drive, first, (outer, second)).await?;
                Ok(zone)
            }
            Err(errno) => {
                self.free_zone(drive, second);
                Err(errno)
            }
        }
    }

    async fn add_pointer(&self, drive: u32, indirect: u16, place: usize) -> Result<u16> {
        let zone = self.allocate_zone(drive, indirect)?;
        self.set_pointer(drive, indirect, (place, zone)).await?;
        Ok(zone)
    }

    async fn set_pointer(
        &self,
        drive: u32,
        indirect: u16,
        (place, zone): (usize, u16),
    ) -> Result<()> {
        let id = self
            .get_block(
                zone_block_key(drive, indirect),
                ContentsNeeded::CurrentContents,
            )
            .await?;
        write_u16(&mut self.block_data(id).borrow_mut(), 2 * place, zone);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }

    fn free_zone(&self, drive: u32, zone: u16) {
        self.with_server(|server| {
            server.volumes[drive as usize].free_zone(zone);
            server.cache.discard_block(zone_block_key(drive, zone));
        });
    }

    /// Frees all zones of a file and sets its length to 0.
    pub(super) async fn truncate_inode(&self, node: DriveInode) -> Result<()> {
        let zones = self.with_inode_mut(node, |inode| {
            inode.size_bytes = 0;
            std::mem::take(&mut inode.zones)
        });
        let mut below: Vec<(u16, u32)> = Vec::new();
        below.extend(zones[..7].iter().map(|zone| (*zone, 0)));
        below.extend([(zones[7], 1), (zones[8], 2)]);
        while let Some((zone, levels)) = below.pop() {
            if zone == 0 {
                continue;
            }
            if levels > 0 {
                let id = self
                    .get_block(
                        zone_block_key(node.0, zone),
                        ContentsNeeded::CurrentContents,
                    )
                    .await?;
                let data = self.block_data(id);
                let pointers =
                    (0..ZONES_PER_BLOCK as usize).map(|at| read_u16(&data.borrow(), 2 * at));
                below.extend(pointers.map(|zone| (zone, levels - 1)));
                self.put_block(id);
            }
            self.free_zone(node.0, zone);
        }
        Ok(())
    }
}

fn zone_block_key(drive: u32, zone: u16) -> DriveBlockKey {
    DriveBlockKey {
        drive: Some(drive),
        block: u32::from(zone),
    }
}

/// Returns the byte offset of a block's first byte.
pub(super) fn block_offset(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}

/// Error for a position beyond the largest file.
pub(super) const BLOCK_BEYOND_LIMIT_ERRNO: Errno = Errno::FileTooLarge;
