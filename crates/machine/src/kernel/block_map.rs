//! Translation of a file's block number to a disk address in a 4.2BSD file system, for reading and
//! for writing (`bmap`).

use super::buffers::{BlockKey, BufferId};
use super::ffs::{BlockNeed, BlockPath, FragmentAddress, IndirectBlockId, PointerArray};
use super::process::{ExecutionContext, Process};
use super::{FfsView, Vnode};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Disk address of a file's block, and of the block after it if the same inode or indirect block
/// holds that pointer. `None` is a hole, or an unknown next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockMapping {
    pub(crate) block: Option<FragmentAddress>,
    pub(crate) next_block: Option<FragmentAddress>,
}

impl FfsView<'_> {
    pub(crate) fn block_key(&self, node: Vnode, fragment: FragmentAddress) -> BlockKey {
        BlockKey::new(node.volume, fragment.0)
    }

    /// Translates a block number of a file to a disk address for reading. Reads the indirect blocks
    /// on the way. Fails with `FileTooLarge` if no pointer can reach the block.
    pub(crate) async fn map_for_reading(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        lbn: u32,
    ) -> Result<BlockMapping> {
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::SystemCall,
            self.costs.block_map_time,
        )
        .await;
        let path = self.with_file_system(node.volume, |fs| fs.locate_block(lbn));
        let path = path.ok_or(Errno::FileTooLarge)?;
        let nothing = BlockMapping {
            block: None,
            next_block: None,
        };
        let (array, index) = match path {
            BlockPath::DirectPointer { index } => {
                return Ok(self.with_file_system(node.volume, |fs| BlockMapping {
                    block: fs.direct_pointer(node.inode, index),
                    next_block: (index + 1 < super::ffs::DIRECT_POINTERS)
                        .then(|| fs.direct_pointer(node.inode, index + 1))
                        .flatten(),
                }));
            }
            BlockPath::SingleIndirect { index } => {
                let root = self.with_file_system(node.volume, |fs| fs.indirect_root(node.inode, 1));
                (root, index)
            }
            BlockPath::DoubleIndirect { outer, inner } => {
                let root = self.with_file_system(node.volume, |fs| fs.indirect_root(node.inode, 2));
                let Some(root) = root else {
                    return Ok(nothing);
                };
                let id = self.read_indirect(process, node, root).await;
                self.brelse(process, id).await;
                let child = self.with_file_system(node.volume, |fs| fs.indirect_child(root, outer));
                (child, inner)
            }
        };
        let Some(array) = array else {
            return Ok(nothing);
        };
        let id = self.read_indirect(process, node, array).await;
        self.brelse(process, id).await;
        Ok(self.with_file_system(node.volume, |fs| {
            let last = fs.superblock().pointers_per_block();
            BlockMapping {
                block: fs.indirect_pointer(array, index),
                next_block: (index + 1 < last)
                    .then(|| fs.indirect_pointer(array, index + 1))
                    .flatten(),
            }
        }))
    }

    async fn read_indirect(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        block: IndirectBlockId,
    ) -> BufferId {
        let (address, bytes) = self.with_file_system(node.volume, |fs| {
            (fs.indirect_address(block), fs.superblock().block_bytes())
        });
        self.bread(process, self.block_key(node, address), bytes)
            .await
    }

    /// Translates a block number of a file to a disk address for writing up to byte `end` of the
    /// block. Allocates and zeroes the block, or extends its fragments, if necessary.
    pub(crate) async fn map_for_writing(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (lbn, end): (u32, u32),
    ) -> Result<FragmentAddress> {
        self.spend_processor_time(
            ExecutionContext::InProcess(process),
            Stage::SystemCall,
            self.costs.block_map_time,
        )
        .await;
        self.grow_tail(process, node, lbn).await?;
        let path = self.with_file_system(node.volume, |fs| fs.locate_block(lbn));
        let path = path.ok_or(Errno::FileTooLarge)?;
        let (array, index, fresh) = match path {
            BlockPath::DirectPointer { index } => {
                return self.map_direct(process, node, (index, end)).await;
            }
            BlockPath::SingleIndirect { index } => {
                let (root, fresh) = self
                    .find_or_make_indirect_root(process, node, (lbn, 1))
                    .await?;
                (root, index, fresh)
            }
            BlockPath::DoubleIndirect { outer, inner } => {
                let (root, fresh) = self
                    .find_or_make_indirect_root(process, node, (lbn, 2))
                    .await?;
                let (child, fresh) = self
                    .find_or_make_indirect_child(process, node, (root, outer), (lbn, fresh))
                    .await?;
                (child, inner, fresh)
            }
        };
        self.map_indirect(process, node, (array, index), (lbn, fresh))
            .await
    }

    /// Extends the fragments at the end of a file to a whole block before the file grows past that
    /// block. Does nothing if the file has no such fragments.
    pub(crate) async fn grow_tail(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        lbn: u32,
    ) -> Result<()> {
        let growth = self.with_file_system(node.volume, |fs| {
            let start = u64::from(lbn) * u64::from(fs.superblock().block_bytes());
            fs.tail_growth(node.inode, start)
        });
        let Some(growth) = growth else { return Ok(()) };
        let (_, id) = self.grow_fragments(process, node, growth).await?;
        self.bawrite(process, id).await;
        let end = self.with_file_system(node.volume, |fs| {
            u64::from(growth.logical_block + 1) * u64::from(fs.superblock().block_bytes())
        });
        self.with_file_system_mut(node.volume, |fs| {
            let size = fs.size_bytes(node.inode).max(end);
            fs.set_size_bytes(node.inode, size);
        });
        Ok(())
    }

    async fn map_direct(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (index, end): (u32, u32),
    ) -> Result<FragmentAddress> {
        let need = self.with_file_system(node.volume, |fs| {
            fs.direct_block_need(node.inode, index, end)
        });
        match need {
            BlockNeed::AlreadyPresent(address) => Ok(address),
            BlockNeed::GrowTail(growth) => {
                let (address, id) = self.grow_fragments(process, node, growth).await?;
                self.bdwrite(process, id).await;
                Ok(address)
            }
            BlockNeed::AllocateFragments { fragments } => {
                let preference = self.with_file_system_mut(node.volume, |fs| {
                    fs.block_preference(node.inode, index, PointerArray::InodePointers, index)
                });
                let (address, id) = self
                    .allocate_fragments(process, node, (preference, fragments))
                    .await?;
                self.bdwrite(process, id).await;
                self.with_file_system_mut(node.volume, |fs| {
                    fs.set_direct_pointer(node.inode, index, address);
                });
                self.with_core_inode(node, |core| core.is_modified = true);
                Ok(address)
            }
        }
    }

    /// Returns the top indirect block of a file, single or double, and allocates it if it is
    /// missing. A new block comes with the allocation preference that it was allocated with.
    async fn find_or_make_indirect_root(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (lbn, depth): (u32, u32),
    ) -> Result<(IndirectBlockId, NewBlockPreference)> {
        if let Some(root) =
            self.with_file_system(node.volume, |fs| fs.indirect_root(node.inode, depth))
        {
            return Ok((root, None));
        }
        let (address, preference) = self.allocate_indirect(process, node, (lbn, None)).await?;
        let root = self.with_file_system_mut(node.volume, |fs| {
            fs.attach_indirect_root(node.inode, depth, address)
        });
        self.with_core_inode(node, |core| core.is_modified = true);
        Ok((root, Some(preference)))
    }

    async fn find_or_make_indirect_child(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (root, outer): (IndirectBlockId, u32),
        (lbn, fresh): (u32, NewBlockPreference),
    ) -> Result<(IndirectBlockId, NewBlockPreference)> {
        let above = self.read_indirect(process, node, root).await;
        if let Some(child) = self.with_file_system(node.volume, |fs| fs.indirect_child(root, outer))
        {
            self.brelse(process, above).await;
            return Ok((child, None));
        }
        let made = self.allocate_indirect(process, node, (lbn, fresh)).await;
        let (address, preference) = match made {
            Ok(made) => made,
            Err(errno) => {
                self.brelse(process, above).await;
                return Err(errno);
            }
        };
        let child = self.with_file_system_mut(node.volume, |fs| {
            fs.attach_indirect_child(root, outer, address)
        });
        self.bdwrite(process, above).await;
        Ok((child, Some(preference)))
    }

    /// Allocates a zeroed indirect block and waits until it is on the drive, before any pointer
    /// refers to it.
    async fn allocate_indirect(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (lbn, fresh): (u32, NewBlockPreference),
    ) -> Result<(FragmentAddress, Option<FragmentAddress>)> {
        let (preference, fragments) = self.with_file_system_mut(node.volume, |fs| {
            let preference = match fresh {
                Some(preference) => preference,
                None => fs.block_preference(node.inode, lbn, PointerArray::NewIndirectBlock, 0),
            };
            (preference, fs.superblock().fragments_per_block())
        });
        let (address, id) = self
            .allocate_fragments(process, node, (preference, fragments))
            .await?;
        self.bwrite(process, id).await;
        Ok((address, preference))
    }

    async fn map_indirect(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (array, index): (IndirectBlockId, u32),
        (lbn, fresh): (u32, NewBlockPreference),
    ) -> Result<FragmentAddress> {
        let above = self.read_indirect(process, node, array).await;
        if let Some(address) =
            self.with_file_system(node.volume, |fs| fs.indirect_pointer(array, index))
        {
            self.brelse(process, above).await;
            return Ok(address);
        }
        let (preference, fragments) = self.with_file_system_mut(node.volume, |fs| {
            let preference = match fresh {
                Some(preference) => preference,
                None => fs.block_preference(
                    node.inode,
                    lbn,
                    PointerArray::IndirectPointers(array),
                    index,
                ),
            };
            (preference, fs.superblock().fragments_per_block())
        });
        match self
            .allocate_fragments(process, node, (preference, fragments))
            .await
        {
            Ok((address, id)) => {
                self.bdwrite(process, id).await;
                self.with_file_system_mut(node.volume, |fs| {
                    fs.set_indirect_pointer(array, index, address);
                });
                self.bdwrite(process, above).await;
                self.with_core_inode(node, |core| core.is_modified = true);
                Ok(address)
            }
            Err(errno) => {
                self.brelse(process, above).await;
                Err(errno)
            }
        }
    }
}

/// Allocation preference of an indirect block that the current call has allocated; `None` for an
/// older block. The first data block below it uses the same preference.
type NewBlockPreference = Option<Option<FragmentAddress>>;
