//! Giving blocks back: truncation and the end of a file (itrunc).

use super::FileSystem;
use super::indirect::IndirectId;
use super::inode::{DIRECT_POINTERS, Inode, InodeKind, InodeNumber};
use super::superblock::Fragment;

/// One step of a truncation, in the order in which the 1983 source takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseStep {
    /// The inode, already with its new size and pointers, is written, and
    /// waited for: a crash must not leave it pointing at freed blocks.
    WriteInode,
    /// An indirect block is read, its pointers from `kept_pointers` on are
    /// zeroed, and it is written before any of them is freed. With 0 kept it
    /// is itself freed by a later step.
    IndirectBlock {
        /// Where it is.
        address: Fragment,
        /// Pointers that stay.
        kept_pointers: u32,
    },
    /// The map of the group of `address` is read, the fragments are freed
    /// (the kernel calls [`FileSystem::free`]), and the map is left dirty.
    Free {
        /// The first fragment.
        address: Fragment,
        /// How many, 1 to a block.
        fragments: u32,
    },
}

/// Blocks of a file to keep under each kind of pointer: the last index, or -1.
struct LastKept {
    direct: i64,
    /// Single, double.
    indirect: [i64; 2],
}

impl FileSystem {
    /// Cuts a file to `new_size_bytes` and appends what has to be done to
    /// `steps`, in order. Size and pointers are changed here and now; the
    /// blocks of [`ReleaseStep::Free`] belong to nobody until the kernel frees
    /// them, as on the real machine (a check in between reports them).
    ///
    /// A file that is already shorter keeps its size, and the inode is written.
    /// (To make a file longer: [`FileSystem::tail_growth`], then
    /// [`FileSystem::set_size`].)
    ///
    /// When the cut is inside a block, the rest of the block keeps its bytes.
    /// The 1983 source left them; a kernel that lets the file grow again must
    /// clear them.
    ///
    /// # Panics
    /// If a directory is cut to anything but nothing.
    pub fn release_blocks(
        &mut self,
        inode: InodeNumber,
        new_size_bytes: u64,
        steps: &mut Vec<ReleaseStep>,
    ) {
        steps.push(ReleaseStep::WriteInode);
        let record = self.inodes.get(inode);
        let old_size_bytes = record.size_bytes;
        if old_size_bytes <= new_size_bytes && (new_size_bytes > 0 || !record.has_blocks()) {
            return;
        }
        if record.kind == InodeKind::Directory {
            assert!(
                new_size_bytes == 0,
                "a directory is cut to nothing or not at all"
            );
            self.inodes.get_mut(inode).directory = None;
        }
        let kept = self.last_kept(new_size_bytes);
        self.inodes.get_mut(inode).size_bytes = new_size_bytes;
        for level in [1, 0] {
            let last = kept.indirect[level];
            if let Some(root) = self.inodes.get(inode).indirect[level] {
                self.release_indirect(root, last, level, steps);
                if last < 0 {
                    self.inodes.get_mut(inode).indirect[level] = None;
                    self.release_indirect_block(root, steps);
                }
            }
            if last >= 0 {
                return;
            }
        }
        self.release_direct(inode, kept.direct, old_size_bytes, new_size_bytes, steps);
    }

    fn last_kept(&self, new_size_bytes: u64) -> LastKept {
        let blocks = new_size_bytes.div_ceil(u64::from(self.superblock.block_bytes()));
        let direct = blocks as i64 - 1;
        let single = direct - i64::from(DIRECT_POINTERS);
        let double = single - i64::from(self.superblock.pointers_per_block());
        LastKept {
            direct,
            indirect: [single.max(-1), double.max(-1)],
        }
    }

    /// Whole blocks from the last down, then the end of the last kept one.
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
            let Inode { direct, .. } = self.inodes.get_mut(inode);
            let address = std::mem::take(&mut direct[lbn as usize]);
            if address != 0 {
                let fragments = self.fragments_at_size(old_size_bytes, lbn);
                steps.push(ReleaseStep::Free {
                    address: Fragment(address),
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
            steps.push(ReleaseStep::Free {
                address: Fragment(address.0 + new_fragments),
                fragments: old_fragments - new_fragments,
            });
        }
    }

    /// Releases what hangs on an indirect block behind block `last_kept` of
    /// its tree (-1: everything). `level` is 0 for a single, 1 for a double.
    fn release_indirect(
        &mut self,
        id: IndirectId,
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
        steps.push(ReleaseStep::IndirectBlock {
            address,
            kept_pointers,
        });
        for index in (kept_pointers..pointers).rev() {
            let block = self.indirect_blocks.get_mut(id);
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
                steps.push(ReleaseStep::Free {
                    address: Fragment(address),
                    fragments,
                });
            }
        }
        if level == 1 && last_kept >= 0 {
            let child = self.indirect_blocks.get(id).children[kept_pointers as usize - 1];
            if let Some(child) = child {
                self.release_indirect(child, last_kept % blocks_per_pointer, 0, steps);
            }
        }
    }

    fn release_indirect_block(&mut self, id: IndirectId, steps: &mut Vec<ReleaseStep>) {
        let address = self.indirect_blocks.remove(id).address;
        let fragments = self.superblock.fragments_per_block();
        steps.push(ReleaseStep::Free { address, fragments });
    }
}
