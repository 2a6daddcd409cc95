//! In-core inodes of the Minix file server, and the allocation and release of inodes and zones.

use super::blocks::{Contents, FULL, Work};
use super::cache::BlockKey;
use super::layout::{
    BLOCK_BYTES, INODE_BYTES, Inode, Kind, MOST_BLOCKS, Pointer, Volume, ZONES_PER_BLOCK, pointer,
    put_word, word,
};
use crate::errno::{Errno, Result};
use std::collections::BTreeMap;

/// Key of an inode: its drive and its inode number.
pub(super) type Node = (u32, u32);

/// Table of the in-core inodes that the file server uses.
#[derive(Default)]
pub(super) struct InodeTable {
    table: BTreeMap<Node, InCore>,
}

struct InCore {
    inode: Inode,
    users: u32,
    dirty: bool,
}

impl InodeTable {
    fn get(&self, node: Node) -> &InCore {
        self.table.get(&node).expect("an inode in use is in core")
    }

    fn get_mut(&mut self, node: Node) -> &mut InCore {
        self.table
            .get_mut(&node)
            .expect("an inode in use is in core")
    }

    /// Returns the numbers of a drive's inodes that are newer than their blocks.
    pub(super) fn dirty(&self, drive: u32) -> Vec<u32> {
        let of = |(node, core): &(&Node, &InCore)| node.0 == drive && core.dirty;
        self.table
            .iter()
            .filter(of)
            .map(|(node, _)| node.1)
            .collect()
    }

    /// Returns copies of a drive's in-core inodes, by number.
    pub(super) fn of_drive(&self, drive: u32) -> BTreeMap<u32, Inode> {
        let of = self.table.iter().filter(|(node, _)| node.0 == drive);
        of.map(|(node, core)| (node.1, core.inode.clone()))
            .collect()
    }
}

impl Work<'_> {
    /// Brings an inode into core, in use until it is put back. Reads its block if necessary.
    pub(super) async fn get_inode(&self, node: Node) -> Result<()> {
        let known = self.server(|server| {
            let core = server.inodes.table.get_mut(&node);
            core.map(|core| core.users += 1).is_some()
        });
        if known {
            return Ok(());
        }
        let id = self.get(self.inode_key(node), Contents::Wanted).await?;
        let at = Volume::inode_offset(node.1);
        let inode = Inode::decode(&self.data(id).borrow()[at..at + INODE_BYTES]);
        self.put(id);
        self.enter_inode(node, inode.expect("what has a name is an inode"), false);
        Ok(())
    }

    fn enter_inode(&self, node: Node, inode: Inode, dirty: bool) {
        let core = InCore {
            inode,
            users: 1,
            dirty,
        };
        self.server(|server| server.inodes.table.insert(node, core));
    }

    fn inode_key(&self, (drive, number): Node) -> BlockKey {
        let block = self.server(|server| server.volumes[drive as usize].inode_block(number));
        BlockKey {
            drive: Some(drive),
            block,
        }
    }

    /// Calls a closure with an inode in use.
    pub(super) fn inode<T>(&self, node: Node, look: impl FnOnce(&Inode) -> T) -> T {
        self.server(|server| look(&server.inodes.get(node).inode))
    }

    /// Changes an inode in use through a closure, and marks it as dirty.
    pub(super) fn change_inode<T>(&self, node: Node, change: impl FnOnce(&mut Inode) -> T) -> T {
        self.server(|server| {
            let core = server.inodes.get_mut(node);
            core.dirty = true;
            change(&mut core.inode)
        })
    }

    pub(super) fn kind(&self, node: Node) -> Kind {
        self.inode(node, |inode| inode.kind)
    }

    /// Allocates an inode without a name, in use until it is put back. Fails if no inode is free.
    pub(super) async fn allocate_inode(&self, drive: u32, kind: Kind) -> Result<Node> {
        let number = self.server(|server| server.volumes[drive as usize].inode_map.take(1));
        let node = (drive, number.ok_or(FULL)?);
        self.enter_inode(node, Inode::new(kind), true);
        Ok(node)
    }

    /// Removes one user of an inode. The last user frees an inode without names, or writes a
    /// changed inode into its block.
    pub(super) async fn put_inode(&self, node: Node) -> Result<()> {
        let (users, links) = self.server(|server| {
            let core = server.inodes.get_mut(node);
            core.users -= 1;
            (core.users, core.inode.links)
        });
        if users > 0 {
            return Ok(());
        }
        if links == 0 {
            self.truncate(node).await?;
            self.clear_inode(node).await?;
            self.server(|server| {
                let map = &mut server.volumes[node.0 as usize].inode_map;
                map.free(node.1);
            });
        } else {
            self.write_inode(node).await?;
        }
        self.server(|server| server.inodes.table.remove(&node));
        Ok(())
    }

    /// Writes a changed inode into its block in the cache.
    pub(super) async fn write_inode(&self, node: Node) -> Result<()> {
        if !self.server(|server| server.inodes.get(node).dirty) {
            return Ok(());
        }
        let id = self.get(self.inode_key(node), Contents::Wanted).await?;
        let at = Volume::inode_offset(node.1);
        let data = self.data(id);
        self.inode(node, |inode| {
            inode.encode(&mut data.borrow_mut()[at..at + INODE_BYTES]);
        });
        self.soil(id);
        self.put(id);
        self.server(|server| server.inodes.get_mut(node).dirty = false);
        Ok(())
    }

    async fn clear_inode(&self, node: Node) -> Result<()> {
        let id = self.get(self.inode_key(node), Contents::Wanted).await?;
        let at = Volume::inode_offset(node.1);
        self.data(id).borrow_mut()[at..at + INODE_BYTES].fill(0);
        self.soil(id);
        self.put(id);
        Ok(())
    }
}

impl Work<'_> {
    /// Translates a block number of a file to a block of the drive; `None` for a hole.
    pub(super) async fn read_map(&self, node: Node, block: u32) -> Result<Option<u32>> {
        if block >= MOST_BLOCKS {
            return Ok(None);
        }
        let zone = |place: usize| self.inode(node, |inode| inode.zones[place]);
        let zone = match pointer(block) {
            Pointer::Direct(place) => zone(place),
            Pointer::Indirect(place) => self.read_pointer(node.0, zone(7), place).await?,
            Pointer::Double(first, place) => {
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
        let id = self.get(zone_key(drive, zone), Contents::Wanted).await?;
        let pointer = word(&self.data(id).borrow(), 2 * place);
        self.put(id);
        Ok(pointer)
    }

    /// Allocates a zone for a block of a file, and the indirect blocks that must point to it.
    /// Returns the block number on the drive.
    pub(super) async fn write_map(&self, node: Node, block: u32) -> Result<u32> {
        let near = match block {
            0 => 0,
            block => self.read_map(node, block - 1).await?.unwrap_or(0) as u16,
        };
        let drive = node.0;
        let zone = match pointer(block) {
            Pointer::Direct(place) => {
                let zone = self.allocate_zone(drive, near)?;
                self.change_inode(node, |inode| inode.zones[place] = zone);
                zone
            }
            Pointer::Indirect(place) => {
                let (first, new) = self.indirect(node, 7, near).await?;
                let made = self.add_pointer(drive, first, place).await;
                if made.is_err() && new {
                    self.drop_indirect(node, 7, first);
                }
                made?
            }
            Pointer::Double(outer, place) => {
                let (first, new) = self.indirect(node, 8, near).await?;
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
        self.server(|server| server.volumes[drive as usize].take_zone(near))
            .ok_or(FULL)
    }

    /// Returns the indirect block that an inode has at an index, and allocates it if it is missing.
    /// The flag is `true` for a new block.
    async fn indirect(&self, node: Node, place: usize, near: u16) -> Result<(u16, bool)> {
        let known = self.inode(node, |inode| inode.zones[place]);
        if known != 0 {
            return Ok((known, false));
        }
        let zone = self.make_indirect(node.0, near).await?;
        self.change_inode(node, |inode| inode.zones[place] = zone);
        Ok((zone, true))
    }

    async fn make_indirect(&self, drive: u32, near: u16) -> Result<u16> {
        let zone = self.allocate_zone(drive, near)?;
        let id = self
            .get(zone_key(drive, zone), Contents::Overwritten)
            .await?;
        self.data(id).borrow_mut().fill(0);
        self.soil(id);
        self.put(id);
        Ok(zone)
    }

    /// Frees a new indirect block that nothing refers to, after a failed allocation.
    fn drop_indirect(&self, node: Node, place: usize, zone: u16) {
        self.change_inode(node, |inode| inode.zones[place] = 0);
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
            .get(zone_key(drive, indirect), Contents::Wanted)
            .await?;
        put_word(&mut self.data(id).borrow_mut(), 2 * place, zone);
        self.soil(id);
        self.put(id);
        Ok(())
    }

    fn free_zone(&self, drive: u32, zone: u16) {
        self.server(|server| {
            server.volumes[drive as usize].free_zone(zone);
            server.cache.forget(zone_key(drive, zone));
        });
    }

    /// Frees all zones of a file and sets its length to 0.
    pub(super) async fn truncate(&self, node: Node) -> Result<()> {
        let zones = self.change_inode(node, |inode| {
            inode.size = 0;
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
                let id = self.get(zone_key(node.0, zone), Contents::Wanted).await?;
                let data = self.data(id);
                let pointers = (0..ZONES_PER_BLOCK as usize).map(|at| word(&data.borrow(), 2 * at));
                below.extend(pointers.map(|zone| (zone, levels - 1)));
                self.put(id);
            }
            self.free_zone(node.0, zone);
        }
        Ok(())
    }
}

fn zone_key(drive: u32, zone: u16) -> BlockKey {
    BlockKey {
        drive: Some(drive),
        block: u32::from(zone),
    }
}

/// Returns the byte offset of a block's first byte.
pub(super) fn offset_of(block: u32) -> u64 {
    u64::from(block) * BLOCK_BYTES as u64
}

/// Error for a position beyond the largest file.
pub(super) const TOO_FAR: Errno = Errno::FileTooLarge;
