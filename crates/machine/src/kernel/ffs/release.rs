//! Release of blocks when a file is truncated or removed (`itrunc`).

use super::FastFileSystem;
use super::indirect::IndirectBlockId;
use super::inode::{DIRECT_POINTERS, Inode, InodeKind, InodeNumber};
use super::superblock::FragmentAddress;

/// Step of a truncation. The steps have the order of the 1983 source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseStep {
    /// Synchronous write of the inode, already with its new size and pointers. A crash must not
    /// leave it with pointers to freed blocks.
    WriteInode,
    /// Read of an indirect block, and its write with the pointers from `kept_pointers` on zeroed,
    /// before any of them is freed. If no pointer is kept, a later step frees the indirect block
    /// itself.
    ReleaseIndirectBlock {
        /// Address of the indirect block.
        address: FragmentAddress,
        /// Number of leading pointers that the truncation keeps.
        kept_pointers: u32,
    },
    /// Release of fragments: the map of their cylinder group is read, the kernel frees them with
    /// [`FastFileSystem::free_fragments`], and the map stays dirty.
    FreeFragments {
        /// First fragment to free.
        address: FragmentAddress,
        /// Number of fragments to free, from 1 to a whole block.
        fragments: u32,
    },
}

/// Last block that a truncation keeps under each kind of pointer, as an index; -1 for none.
struct LastKeptBlocks {
    last_direct_index: i64,
    /// Index under the single and the double indirect block.
    indirect: [i64; 2],
}

impl FastFileSystem {
    /// Truncates a file to `new_size_bytes` and appends the remaining steps to `steps`, in order.
    /// Size and pointers change immediately. The blocks of [`ReleaseStep::FreeFragments`] belong to no file
    /// until the kernel frees them, as on the real machine; a check in between reports them.
    ///
    /// A file that is already shorter keeps its size, and the inode is written. (To make a file
    /// longer: [`FastFileSystem::tail_growth`], then [`FastFileSystem::set_size_bytes`].)
    ///
    /// When the cut is inside a block, the rest of the block keeps its bytes. The 1983 source left
    /// them; a kernel that lets the file grow again must clear them.
    ///
    /// # Panics
    /// Panics if a directory is truncated to a size other than 0.
    pub fn release_blocks(
        &mut self,
        inode: InodeNumber,
        new_size_bytes: u64,
        steps: &mut Vec<ReleaseStep>,
    ) {
        steps.push(ReleaseStep::WriteInode);
        let record = self.inodes.inode(inode);
        let old_size_bytes = record.size_bytes;
        if old_size_bytes <= new_size_bytes && (new_size_bytes > 0 || !record.has_blocks()) {
            return;
        }
        if record.inode_kind == InodeKind::Directory {
            assert!(
                new_size_bytes == 0,
                "a directory can only be truncated to 0 bytes"
            );
            self.inodes.inode_mut(inode).directory = None;
        }
        let kept = self.last_kept_blocks(new_size_bytes);
        self.inodes.inode_mut(inode).size_bytes = new_size_bytes;
        for level in [1, 0] {
            let last = kept.indirect[level];
            if let Some(root) = self.inodes.inode(inode).indirect[level] {
                self.release_indirect(root, last, level, steps);
                if last < 0 {
                    self.inodes.inode_mut(inode).indirect[level] = None;
                    self.release_indirect_block(root, steps);
                }
            }
            if last >= 0 {
                return;
            }
        }
        self.release_direct(
            inode,
            kept.last_direct_index,
            old_size_bytes,
            new_size_bytes,
            steps,
        );
    }

    fn last_kept_blocks(&self, new_size_bytes: u64) -> LastKeptBlocks {
        let blocks = new_size_bytes.div_ceil(u64::from(self.superblock.block_bytes()));
        let direct = blocks as i64 - 1;
        let single = direct - i64::from(DIRECT_POINTERS);
        let double = single - i64::from(self.superblock.pointers_per_block());
        LastKeptBlocks {
            last_direct_index: direct,
            indirect: [single.max(-1), double.max(-1)],
        }
    }

    /// Releases the whole direct blocks from the last down, then the unused end of the last kept
    /// block.
    fn release_direct(
        &mut self,
        inode: InodeNumber,
        last_kept: i64,
        old_size_bytes: u64,
        new_size_bytes: u64,
        steps: &mut Vec<ReleaseStep>,
    ) {
        let first_released = (last_kept + 1).min(i64::from(DIRECT_POINTERS)) as u32;
        for lbn in (first_released..DIRECT_POINTERS).rev() {
            let Inode { direct, .. } = self.inodes.inode_mut(inode);
            let address = std::mem::take(&mut direct[lbn as usize]);
            if address != 0 {
                let fragments = self.fragments_at_size(old_size_bytes, lbn);
                steps.push(ReleaseStep::FreeFragments {
                    address: FragmentAddress(address),
                    fragments,
                });
            }
        }
        let Ok(lbn) = u32::try_from(last_kept) else {
            return;
        };
        let Some(address) = self.direct_pointer(inode, lbn) else {
            return;
        };
        let old_fragments = self.fragments_at_size(old_size_bytes, lbn);
        let new_fragments = self.fragments_at_size(new_size_bytes, lbn);
        if new_fragments < old_fragments {
            steps.push(ReleaseStep::FreeFragments {
                address: FragmentAddress(address.0 + new_fragments),
                fragments: old_fragments - new_fragments,
            });
        }
    }

    /// Releases all blocks below an indirect block that follow block `last_kept_blocks` of its tree; -1
    /// releases the whole tree. `level` is 0 for a single and 1 for a double indirect block.
    fn release_indirect(
        &mut self,
        id: IndirectBlockId,
        last_kept: i64,
        level: usize,
        steps: &mut Vec<ReleaseStep>,
    ) {
        let pointers = self.superblock.pointers_per_block();
        let blocks_per_pointer = if level == 1 { i64::from(pointers) } else { 1 };
        let kept_pointers = if last_kept < 0 {
            0
        } else {
            (last_kept / blocks_per_pointer) as u32 + 1
        };
        let address = self.indirect_address(id);
        steps.push(ReleaseStep::ReleaseIndirectBlock {
            address,
            kept_pointers,
        });
        for index in (kept_pointers..pointers).rev() {
            let block = self.indirect_blocks.indirect_block_mut(id);
            let address = std::mem::take(&mut block.pointers[index as usize]);
            if address == 0 {
                continue;
            }
            if level == 1 {
                let child = block.children[index as usize]
                    .take()
                    .expect("a pointer has a child");
                self.release_indirect(child, -1, 0, steps);
                self.release_indirect_block(child, steps);
            } else {
                let fragments = self.superblock.fragments_per_block();
                steps.push(ReleaseStep::FreeFragments {
                    address: FragmentAddress(address),
                    fragments,
                });
            }
        }
        if level == 1 && last_kept >= 0 {
            let child =
                self.indirect_blocks.indirect_block(id).children[kept_pointers as usize - 1];
            if let Some(child) = child {
                self.release_indirect(child, last_kept % blocks_per_pointer, 0, steps);
            }
        }
    }

    fn release_indirect_block(&mut self, id: IndirectBlockId, steps: &mut Vec<ReleaseStep>) {
        let address = self.indirect_blocks.remove_block(id).address;
        let fragments = self.superblock.fragments_per_block();
        steps.push(ReleaseStep::FreeFragments { address, fragments });
    }
}
