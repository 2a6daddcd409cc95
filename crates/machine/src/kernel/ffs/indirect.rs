//! Indirect blocks of files: the path to a block's pointer, and the pointers themselves.

use super::FastFileSystem;
use super::inode::{DIRECT_POINTERS, InodeNumber, decode_pointer};
use super::superblock::FragmentAddress;

/// Id of an in-core indirect block, valid as long as the file has the block. It saves a search by
/// address; [`FastFileSystem::indirect_address`] returns the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndirectBlockId(u32);

/// Location of the pointer to a file's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPath {
    /// Pointer in the inode itself.
    DirectPointer {
        /// Index of the direct pointer.
        index: u32,
    },
    /// Pointer in the single indirect block.
    SingleIndirect {
        /// Index of the pointer in the single indirect block.
        index: u32,
    },
    /// Pointer in a second-level block under the double indirect block.
    DoubleIndirect {
        /// Index of the second-level block in the double indirect block.
        outer: u32,
        /// Index of the pointer in the second-level block.
        inner: u32,
    },
}

impl BlockPath {
    /// Returns the number of indirect blocks on the path: 0, 1 or 2.
    #[must_use]
    pub fn indirection_depth(self) -> u32 {
        match self {
            Self::DirectPointer { .. } => 0,
            Self::SingleIndirect { .. } => 1,
            Self::DoubleIndirect { .. } => 2,
        }
    }

    /// Returns the index of the data block's pointer in the array that holds it.
    #[must_use]
    pub fn index_in_leaf(self) -> u32 {
        match self {
            Self::DirectPointer { index } | Self::SingleIndirect { index } => index,
            Self::DoubleIndirect { inner, .. } => inner,
        }
    }
}

/// Array of block pointers for which the allocator chooses a preferred address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerArray {
    /// Direct pointers of the inode.
    InodePointers,
    /// Pointers in an indirect block.
    IndirectPointers(IndirectBlockId),
    /// No array yet: the allocation is for the indirect block itself.
    NewIndirectBlock,
}

#[derive(Debug, Clone)]
pub(super) struct IndirectBlock {
    pub(super) address: FragmentAddress,
    /// Block pointers, as many as fit in a block; 0 is a hole.
    pub(super) pointers: Vec<u32>,
    /// Second-level blocks of a double indirect block, by pointer index. Empty for a block that
    /// points to data.
    pub(super) children: Vec<Option<IndirectBlockId>>,
}

/// Table of all files' indirect blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct IndirectBlocks {
    blocks: Vec<Option<IndirectBlock>>,
    vacant_ids: Vec<u32>,
}

impl IndirectBlocks {
    #[track_caller]
    pub(super) fn indirect_block(&self, id: IndirectBlockId) -> &IndirectBlock {
        self.blocks[id.0 as usize]
            .as_ref()
            .expect("an indirect block of a file")
    }

    #[track_caller]
    pub(super) fn indirect_block_mut(&mut self, id: IndirectBlockId) -> &mut IndirectBlock {
        self.blocks[id.0 as usize]
            .as_mut()
            .expect("an indirect block of a file")
    }

    pub(super) fn insert_block(
        &mut self,
        address: FragmentAddress,
        pointers: u32,
        is_outer: bool,
    ) -> IndirectBlockId {
        let block = Some(IndirectBlock {
            address,
            pointers: vec![0; pointers as usize],
            children: if is_outer {
                vec![None; pointers as usize]
            } else {
                Vec::new()
            },
        });
        match self.vacant_ids.pop() {
            Some(place) => {
                self.blocks[place as usize] = block;
                IndirectBlockId(place)
            }
            None => {
                self.blocks.push(block);
                IndirectBlockId(self.blocks.len() as u32 - 1)
            }
        }
    }

    pub(super) fn remove_block(&mut self, id: IndirectBlockId) -> IndirectBlock {
        self.vacant_ids.push(id.0);
        self.blocks[id.0 as usize]
            .take()
            .expect("an indirect block of a file")
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks.len() - self.vacant_ids.len()
    }

    /// Returns the number of blocks in the tree below an indirect block, including the indirect
    /// blocks.
    pub(super) fn blocks_under(&self, root: IndirectBlockId) -> u32 {
        let block = self.indirect_block(root);
        if block.children.is_empty() {
            let data = block
                .pointers
                .iter()
                .filter(|&&pointer| pointer != 0)
                .count();
            return 1 + data as u32;
        }
        1 + block
            .children
            .iter()
            .flatten()
            .map(|&child| self.blocks_under(child))
            .sum::<u32>()
    }
}

impl FastFileSystem {
    /// Returns the location of the pointer to block `lbn` of a file. Returns `None` if double
    /// indirect blocks do not reach that far.
    #[must_use]
    pub fn locate_block(&self, lbn: u32) -> Option<BlockPath> {
        let pointers = self.superblock.pointers_per_block();
        let Some(index) = lbn.checked_sub(DIRECT_POINTERS) else {
            return Some(BlockPath::DirectPointer { index: lbn });
        };
        let Some(index) = index.checked_sub(pointers) else {
            return Some(BlockPath::SingleIndirect { index });
        };
        let (outer, inner) = (index / pointers, index % pointers);
        (outer < pointers).then_some(BlockPath::DoubleIndirect { outer, inner })
    }

    /// Returns the top indirect block of a path with this depth (1 single, 2 double).
    ///
    /// # Panics
    /// Panics if the depth is not 1 or 2.
    #[must_use]
    pub fn indirect_root(&self, inode: InodeNumber, depth: u32) -> Option<IndirectBlockId> {
        self.inodes.inode(inode).indirect[depth as usize - 1]
    }

    /// Attaches a newly allocated top indirect block to an inode. The kernel must have written the
    /// zeroed block before.
    ///
    /// # Panics
    /// Panics if the inode has such a block already.
    pub fn attach_indirect_root(
        &mut self,
        inode: InodeNumber,
        depth: u32,
        address: FragmentAddress,
    ) -> IndirectBlockId {
        let pointers = self.superblock.pointers_per_block();
        let id = self
            .indirect_blocks
            .insert_block(address, pointers, depth == 2);
        let root = &mut self.inodes.inode_mut(inode).indirect[depth as usize - 1];
        assert!(root.is_none(), "an indirect block replaces another");
        *root = Some(id);
        id
    }

    /// Returns the second-level block at an index of a double indirect block.
    #[must_use]
    pub fn indirect_child(&self, outer: IndirectBlockId, index: u32) -> Option<IndirectBlockId> {
        self.indirect_blocks.indirect_block(outer).children[index as usize]
    }

    /// Attaches a newly allocated second-level block to a double indirect block. The kernel must
    /// have written the zeroed block before.
    ///
    /// # Panics
    /// Panics if the index has a block already, or `outer` is not a double indirect block.
    pub fn attach_indirect_child(
        &mut self,
        outer: IndirectBlockId,
        index: u32,
        address: FragmentAddress,
    ) -> IndirectBlockId {
        let pointers = self.superblock.pointers_per_block();
        let id = self.indirect_blocks.insert_block(address, pointers, false);
        let block = self.indirect_blocks.indirect_block_mut(outer);
        let child = &mut block.children[index as usize];
        assert!(child.is_none(), "an indirect block replaces another");
        *child = Some(id);
        block.pointers[index as usize] = address.0;
        id
    }

    /// Returns the address of an indirect block. The kernel must have the block in core before it
    /// reads or changes one of its pointers.
    #[must_use]
    pub fn indirect_address(&self, id: IndirectBlockId) -> FragmentAddress {
        self.indirect_blocks.indirect_block(id).address
    }

    /// Returns the address in a pointer of an indirect block, or `None` for a hole.
    #[must_use]
    pub fn indirect_pointer(&self, id: IndirectBlockId, index: u32) -> Option<FragmentAddress> {
        decode_pointer(self.indirect_blocks.indirect_block(id).pointers[index as usize])
    }

    /// Sets the pointer to a data block in an indirect block.
    ///
    /// # Panics
    /// Panics if the block points to second-level blocks.
    pub fn set_indirect_pointer(
        &mut self,
        id: IndirectBlockId,
        index: u32,
        address: FragmentAddress,
    ) {
        let block = self.indirect_blocks.indirect_block_mut(id);
        assert!(
            block.children.is_empty(),
            "only the last level of indirect blocks points to data"
        );
        block.pointers[index as usize] = address.0;
    }

    /// Returns the address of block `lbn` of a file, without the reads that the kernel needs to
    /// find it. Returns `None` for a hole, or beyond the largest file.
    #[must_use]
    pub fn block_address(&self, inode: InodeNumber, lbn: u32) -> Option<FragmentAddress> {
        match self.locate_block(lbn)? {
            BlockPath::DirectPointer { index } => self.direct_pointer(inode, index),
            BlockPath::SingleIndirect { index } => {
                self.indirect_pointer(self.indirect_root(inode, 1)?, index)
            }
            BlockPath::DoubleIndirect { outer, inner } => {
                let root = self.indirect_root(inode, 2)?;
                self.indirect_pointer(self.indirect_child(root, outer)?, inner)
            }
        }
    }
}
