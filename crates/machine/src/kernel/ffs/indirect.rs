//! Indirect blocks: where the pointer to a block is kept, and the pointers.

use super::FileSystem;
use super::inode::{DIRECT_POINTERS, InodeNumber, pointer};
use super::superblock::Fragment;

/// Names an indirect block in core for as long as the file has it. It spares
/// a search by address; the address is [`FileSystem::indirect_address`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndirectId(u32);

/// Where the pointer to a block of a file is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// In the inode.
    Direct {
        /// Index of the direct pointer.
        index: u32,
    },
    /// In the single indirect block.
    Single {
        /// Index in it.
        index: u32,
    },
    /// In a second-level block under the double indirect block.
    Double {
        /// Index of the second-level block in the double indirect block.
        outer: u32,
        /// Index in the second-level block.
        inner: u32,
    },
}

impl Path {
    /// Indirect blocks on the way: 0, 1 or 2.
    #[must_use]
    pub fn depth(self) -> u32 {
        match self {
            Self::Direct { .. } => 0,
            Self::Single { .. } => 1,
            Self::Double { .. } => 2,
        }
    }

    /// The index of the data block's pointer in the array that holds it.
    #[must_use]
    pub fn leaf_index(self) -> u32 {
        match self {
            Self::Direct { index } | Self::Single { index } => index,
            Self::Double { inner, .. } => inner,
        }
    }
}

/// A pointer array, for the preference rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerArray {
    /// The direct pointers of the inode.
    Direct,
    /// An indirect block.
    Indirect(IndirectId),
    /// None yet: it is an indirect block that is to be allocated.
    Fresh,
}

#[derive(Debug, Clone)]
pub(super) struct IndirectBlock {
    pub(super) address: Fragment,
    /// As many as fit in a block; 0 is a hole.
    pub(super) pointers: Vec<u32>,
    /// In a double indirect block the second-level blocks, by the same index.
    pub(super) children: Vec<Option<IndirectId>>,
}

/// The indirect blocks of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct IndirectBlocks {
    blocks: Vec<Option<IndirectBlock>>,
    vacant: Vec<u32>,
}

impl IndirectBlocks {
    #[track_caller]
    pub(super) fn get(&self, id: IndirectId) -> &IndirectBlock {
        self.blocks[id.0 as usize]
            .as_ref()
            .expect("an indirect block of a file")
    }

    #[track_caller]
    pub(super) fn get_mut(&mut self, id: IndirectId) -> &mut IndirectBlock {
        self.blocks[id.0 as usize]
            .as_mut()
            .expect("an indirect block of a file")
    }

    pub(super) fn insert(
        &mut self,
        address: Fragment,
        pointers: u32,
        is_outer: bool,
    ) -> IndirectId {
        let block = Some(IndirectBlock {
            address,
            pointers: vec![0; pointers as usize],
            children: if is_outer {
                vec![None; pointers as usize]
            } else {
                Vec::new()
            },
        });
        match self.vacant.pop() {
            Some(place) => {
                self.blocks[place as usize] = block;
                IndirectId(place)
            }
            None => {
                self.blocks.push(block);
                IndirectId(self.blocks.len() as u32 - 1)
            }
        }
    }

    pub(super) fn remove(&mut self, id: IndirectId) -> IndirectBlock {
        self.vacant.push(id.0);
        self.blocks[id.0 as usize]
            .take()
            .expect("an indirect block of a file")
    }

    /// How many indirect blocks are in use.
    pub(super) fn count(&self) -> usize {
        self.blocks.len() - self.vacant.len()
    }

    /// Blocks in a tree, the indirect ones counted.
    pub(super) fn blocks_under(&self, root: IndirectId) -> u32 {
        let block = self.get(root);
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

impl FileSystem {
    /// Where the pointer to block `lbn` of a file is kept. `None`: the file
    /// would be larger than double indirect blocks reach.
    #[must_use]
    pub fn locate(&self, lbn: u32) -> Option<Path> {
        let pointers = self.superblock.pointers_per_block();
        let Some(index) = lbn.checked_sub(DIRECT_POINTERS) else {
            return Some(Path::Direct { index: lbn });
        };
        let Some(index) = index.checked_sub(pointers) else {
            return Some(Path::Single { index });
        };
        let (outer, inner) = (index / pointers, index % pointers);
        (outer < pointers).then_some(Path::Double { outer, inner })
    }

    /// The top indirect block on a path of this depth (1 single, 2 double).
    ///
    /// # Panics
    /// If the depth is not 1 or 2.
    #[must_use]
    pub fn indirect_root(&self, inode: InodeNumber, depth: u32) -> Option<IndirectId> {
        self.inodes.get(inode).indirect[depth as usize - 1]
    }

    /// Hangs a freshly allocated top indirect block on the inode. The kernel
    /// has written it, zeroed, before.
    ///
    /// # Panics
    /// If there is one.
    pub fn attach_indirect_root(
        &mut self,
        inode: InodeNumber,
        depth: u32,
        address: Fragment,
    ) -> IndirectId {
        let pointers = self.superblock.pointers_per_block();
        let id = self.indirect_blocks.insert(address, pointers, depth == 2);
        let root = &mut self.inodes.get_mut(inode).indirect[depth as usize - 1];
        assert!(root.is_none(), "an indirect block is attached over another");
        *root = Some(id);
        id
    }

    /// The second-level block at an index of a double indirect block.
    #[must_use]
    pub fn indirect_child(&self, outer: IndirectId, index: u32) -> Option<IndirectId> {
        self.indirect_blocks.get(outer).children[index as usize]
    }

    /// Hangs a freshly allocated second-level block on a double indirect one.
    /// The kernel has written it, zeroed, before.
    ///
    /// # Panics
    /// If there is one, or `outer` is not a double indirect block.
    pub fn attach_indirect_child(
        &mut self,
        outer: IndirectId,
        index: u32,
        address: Fragment,
    ) -> IndirectId {
        let pointers = self.superblock.pointers_per_block();
        let id = self.indirect_blocks.insert(address, pointers, false);
        let block = self.indirect_blocks.get_mut(outer);
        let child = &mut block.children[index as usize];
        assert!(
            child.is_none(),
            "an indirect block is attached over another"
        );
        *child = Some(id);
        block.pointers[index as usize] = address.0;
        id
    }

    /// Where an indirect block is: what the kernel has to have in core before
    /// it looks at, or changes, a pointer of it.
    #[must_use]
    pub fn indirect_address(&self, id: IndirectId) -> Fragment {
        self.indirect_blocks.get(id).address
    }

    /// A data block's pointer, if it is not a hole.
    #[must_use]
    pub fn indirect_pointer(&self, id: IndirectId, index: u32) -> Option<Fragment> {
        pointer(self.indirect_blocks.get(id).pointers[index as usize])
    }

    /// Sets a data block's pointer.
    ///
    /// # Panics
    /// If the block points at second-level blocks.
    pub fn set_indirect_pointer(&mut self, id: IndirectId, index: u32, address: Fragment) {
        let block = self.indirect_blocks.get_mut(id);
        assert!(
            block.children.is_empty(),
            "data hangs on the last level of indirect blocks"
        );
        block.pointers[index as usize] = address.0;
    }

    /// The address of block `lbn` of a file, without a word about what has to
    /// be read for it. `None`: a hole, or beyond the largest file.
    #[must_use]
    pub fn block_address(&self, inode: InodeNumber, lbn: u32) -> Option<Fragment> {
        match self.locate(lbn)? {
            Path::Direct { index } => self.direct_pointer(inode, index),
            Path::Single { index } => self.indirect_pointer(self.indirect_root(inode, 1)?, index),
            Path::Double { outer, inner } => {
                let root = self.indirect_root(inode, 2)?;
                self.indirect_pointer(self.indirect_child(root, outer)?, inner)
            }
        }
    }
}
