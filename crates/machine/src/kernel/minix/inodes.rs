//! In-core inodes of the Minix file server, and the allocation and release of inodes and zones.

use super::blocks::{ContentsNeeded, DEVICE_FULL, ServerCall};
use super::cache::BlockKey;
use super::layout::{
    BLOCK_BYTES, BlockPointer, FILE_BLOCKS_MAX, INODE_BYTES, Inode, Kind, Volume, ZONES_PER_BLOCK,
    locate_pointer, read_u16, write_u16,
};
use crate::errno::{Errno, Result};
use std::collections::BTreeMap;

/// Key of an inode: its drive and its inode number.
pub(super) type DriveInode = (u32, u32);

/// Table of the in-core inodes that the file server uses.
#[derive(Default)]
pub(super) struct InodeTable {
    table: BTreeMap<DriveInode, InodeInUse>,
}

struct InodeInUse {
    inode: Inode,
    user_count: u32,
    is_dirty: bool,
}

impl InodeTable {
    fn get(&self, node: DriveInode) -> &InodeInUse {
        self.table.get(&node).expect("an inode in use is in core")
    }

    fn get_mut(&mut self, node: DriveInode) -> &mut InodeInUse {
        self.table
            .get_mut(&node)
            .expect("an inode in use is in core")
    }

    /// Returns the numbers of a drive's inodes that are newer than their blocks.
    pub(super) fn dirty_inodes(&self, drive: u32) -> Vec<u32> {
        let of = |(node, core): &(&DriveInode, &InodeInUse)| node.0 == drive && core.is_dirty;
        self.table
            .iter()
            .filter(of)
            .map(|(node, _)| node.1)
            .collect()
    }

    /// Returns copies of a drive's in-core inodes, by number.
    pub(super) fn inodes_of_drive(&self, drive: u32) -> BTreeMap<u32, Inode> {
        let of = self.table.iter().filter(|(node, _)| node.0 == drive);
        of.map(|(node, core)| (node.1, core.inode.clone()))
            .collect()
    }
}

impl ServerCall<'_> {
    /// Brings an inode into core, in use until it is put back. Reads its block if necessary.
    pub(super) async fn get_inode(&self, node: DriveInode) -> Result<()> {
        let known = self.with_server(|server| {
            let core = server.inodes.table.get_mut(&node);
            core.map(|core| core.user_count += 1).is_some()
        });
        if known {
            return Ok(());
        }
        let id = self
            .get_block(self.inode_key(node), ContentsNeeded::Current)
            .await?;
        let at = Volume::inode_offset(node.1);
        let inode = Inode::decode(&self.block_data(id).borrow()[at..at + INODE_BYTES]);
        self.put_block(id);
        self.enter_inode(
            node,
            inode.expect("a directory entry names an allocated inode"),
            false,
        );
        Ok(())
    }

    fn enter_inode(&self, node: DriveInode, inode: Inode, dirty: bool) {
        let core = InodeInUse {
            inode,
            user_count: 1,
            is_dirty: dirty,
        };
        self.with_server(|server| server.inodes.table.insert(node, core));
    }

    fn inode_key(&self, (drive, number): DriveInode) -> BlockKey {
        let block = self.with_server(|server| server.volumes[drive as usize].inode_block(number));
        BlockKey {
            drive: Some(drive),
            block,
        }
    }

    /// Calls a closure with an inode in use.
    pub(super) fn with_inode<T>(&self, node: DriveInode, look: impl FnOnce(&Inode) -> T) -> T {
        self.with_server(|server| look(&server.inodes.get(node).inode))
    }

    /// Changes an inode in use through a closure, and marks it as dirty.
    pub(super) fn with_inode_mut<T>(
        &self,
        node: DriveInode,
        change: impl FnOnce(&mut Inode) -> T,
    ) -> T {
        self.with_server(|server| {
            let core = server.inodes.get_mut(node);
            core.is_dirty = true;
            change(&mut core.inode)
        })
    }

    pub(super) fn kind(&self, node: DriveInode) -> Kind {
        self.with_inode(node, |inode| inode.kind)
    }

    /// Allocates an inode without a name, in use until it is put back. Fails if no inode is free.
    pub(super) async fn allocate_inode(&self, drive: u32, kind: Kind) -> Result<DriveInode> {
        let number =
            self.with_server(|server| server.volumes[drive as usize].inode_map.take_bit(1));
        let node = (drive, number.ok_or(DEVICE_FULL)?);
        self.enter_inode(node, Inode::new(kind), true);
        Ok(node)
    }

    /// Removes one user of an inode. The last user frees an inode without names, or writes a
    /// changed inode into its block.
    pub(super) async fn put_inode(&self, node: DriveInode) -> Result<()> {
        let (users, links) = self.with_server(|server| {
            let core = server.inodes.get_mut(node);
            core.user_count -= 1;
            (core.user_count, core.inode.link_count)
        });
        if users > 0 {
            return Ok(());
        }
        if links == 0 {
            self.truncate(node).await?;
            self.clear_inode(node).await?;
            self.with_server(|server| {
                let map = &mut server.volumes[node.0 as usize].inode_map;
                map.free_bit(node.1);
            });
        } else {
            self.write_inode(node).await?;
        }
        self.with_server(|server| server.inodes.table.remove(&node));
        Ok(())
    }

    /// Writes a changed inode into its block in the cache.
    pub(super) async fn write_inode(&self, node: DriveInode) -> Result<()> {
        if !self.with_server(|server| server.inodes.get(node).is_dirty) {
            return Ok(());
        }
        let id = self
            .get_block(self.inode_key(node), ContentsNeeded::Current)
            .await?;
        let at = Volume::inode_offset(node.1);
        let data = self.block_data(id);
        self.with_inode(node, |inode| {
            inode.encode(&mut data.borrow_mut()[at..at + INODE_BYTES]);
        });
        self.mark_dirty(id);
        self.put_block(id);
        self.with_server(|server| server.inodes.get_mut(node).is_dirty = false);
        Ok(())
    }

    async fn clear_inode(&self, node: DriveInode) -> Result<()> {
        let id = self
            .get_block(self.inode_key(node), ContentsNeeded::Current)
            .await?;
        let at = Volume::inode_offset(node.1);
        self.block_data(id).borrow_mut()[at..at + INODE_BYTES].fill(0);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }
}

impl ServerCall<'_> {
    /// Translates a block number of a file to a block of the drive; `None` for a hole.
    pub(super) async fn read_map(&self, node: DriveInode, block: u32) -> Result<Option<u32>> {
        if block >= FILE_BLOCKS_MAX {
            return Ok(None);
        }
        let zone = |place: usize| self.with_inode(node, |inode| inode.zones[place]);
        let zone = match locate_pointer(block) {
            BlockPointer::Direct(place) => zone(place),
            BlockPointer::Indirect(place) => self.read_pointer(node.0, zone(7), place).await?,
            BlockPointer::Double(first, place) => {
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
            .get_block(zone_block_key(drive, zone), ContentsNeeded::Current)
            .await?;
        let pointer = read_u16(&self.block_data(id).borrow(), 2 * place);
        self.put_block(id);
        Ok(pointer)
    }

    /// Allocates a zone for a block of a file, and the indirect blocks that must point to it.
    /// Returns the block number on the drive.
    pub(super) async fn write_map(&self, node: DriveInode, block: u32) -> Result<u32> {
        let near = match block {
            0 => 0,
            block => self.read_map(node, block - 1).await?.unwrap_or(0) as u16,
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
                    self.drop_indirect(node, 7, first);
                }
                made?
            }
            BlockPointer::Double(outer, place) => {
                let (first, new) = self.find_or_make_indirect(node, 8, near).await?;
                let made = self.add_double(drive, first, (outer, place)).await;
                if made.is_err() && new {
                    self.drop_indirect(node, 8, first);
                }
                made?
            }
        };
        Ok(u32::from(zone))
    }

    fn allocate_zone(&self, drive: u32, near: u16) -> Result<u16> {
        self.with_server(|server| server.volumes[drive as usize].take_zone(near))
            .ok_or(DEVICE_FULL)
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
            .get_block(zone_block_key(drive, zone), ContentsNeeded::Overwritten)
            .await?;
        self.block_data(id).borrow_mut().fill(0);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(zone)
    }

    /// Frees a new indirect block that nothing refers to, after a failed allocation.
    fn drop_indirect(&self, node: DriveInode, place: usize, zone: u16) {
        self.with_inode_mut(node, |inode| inode.zones[place] = 0);
        self.free_zone(node.0, zone);
    }

    async fn add_double(
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
            .get_block(zone_block_key(drive, indirect), ContentsNeeded::Current)
            .await?;
        write_u16(&mut self.block_data(id).borrow_mut(), 2 * place, zone);
        self.mark_dirty(id);
        self.put_block(id);
        Ok(())
    }

    fn free_zone(&self, drive: u32, zone: u16) {
        self.with_server(|server| {
            server.volumes[drive as usize].free_zone(zone);
            server.cache.discard(zone_block_key(drive, zone));
        });
    }

    /// Frees all zones of a file and sets its length to 0.
    pub(super) async fn truncate(&self, node: DriveInode) -> Result<()> {
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
                    .get_block(zone_block_key(node.0, zone), ContentsNeeded::Current)
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

fn zone_block_key(drive: u32, zone: u16) -> BlockKey {
    BlockKey {
        drive: Some(drive),
        block: u32::from(zone),
    }
}

/// Returns the byte offset of a block's first byte.
pub(super) fn block_offset(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}

/// Error for a position beyond the largest file.
pub(super) const BLOCK_BEYOND_LIMIT: Errno = Errno::FileTooLarge;
