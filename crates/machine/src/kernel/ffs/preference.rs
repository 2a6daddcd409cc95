//! Preferred address of a new block (`blkpref`): the start of a section, or one rotational gap
//! behind the previous block of the file.

use super::FastFileSystem;
use super::indirect::PointerArray;
use super::inode::{DIRECT_POINTERS, InodeNumber};
use super::superblock::{FragmentAddress, GroupIndex};

impl FastFileSystem {
    /// Returns the preferred address for block `lbn` of a file. `index` is the block's index in the
    /// pointer array. For an indirect block itself the array is [`PointerArray::NewIndirectBlock`]. The first
    /// data block (or second-level indirect block) below a new indirect block reuses that block's
    /// preference without a call.
    ///
    /// The start of a section moves the rotor, so call this once for each allocation. Returns
    /// `None` if no group has its share of free blocks; the search then starts in the inode's
    /// group.
    pub fn block_preference(
        &mut self,
        inode: InodeNumber,
        lbn: u32,
        array: PointerArray,
        index: u32,
    ) -> Option<FragmentAddress> {
        let maxbpg = self.superblock.parameters().maxbpg_blocks;
        let pointers: &[u32] = match array {
            PointerArray::NewIndirectBlock => &[],
            PointerArray::InodePointers => &self.inodes.inode(inode).direct,
            PointerArray::IndirectPointers(id) => &self.indirect_blocks.indirect_block(id).pointers,
        };
        let previous = match index.checked_sub(1) {
            Some(before) if !index.is_multiple_of(maxbpg) => pointers[before as usize],
            _ => 0,
        };
        if previous == 0 {
            return self.section_preference(inode, lbn);
        }
        let next = previous + self.superblock.fragments_per_block();
        if self.is_run_below_maxcontig(pointers, index, next) {
            return Some(FragmentAddress(next));
        }
        Some(FragmentAddress(next + self.superblock.gap_fragments()))
    }

    /// Reports whether fewer than maxcontig blocks are contiguous before `index`, so that the next
    /// one needs no gap. The first `maxcontig` indexes of an array get the gap in any case, as in
    /// the source.
    fn is_run_below_maxcontig(&self, pointers: &[u32], index: u32, next: u32) -> bool {
        let maxcontig = self.superblock.parameters().maxcontig_blocks;
        index > maxcontig
            && pointers[(index - maxcontig) as usize]
                .wrapping_add(maxcontig * self.superblock.fragments_per_block())
                != next
    }

    fn section_preference(&mut self, inode: InodeNumber, lbn: u32) -> Option<FragmentAddress> {
        if lbn < DIRECT_POINTERS {
            let group = self.superblock.group_of_inode(inode);
            return Some(self.superblock.section_start(group));
        }
        let groups = self.superblock.group_count();
        let average = self.total_summary.free_block_count / groups;
        let rotor = self.section_rotor.0;
        let group = (rotor + 1..groups)
            .chain(0..=rotor)
            .find(|&group| self.summaries[group as usize].free_block_count >= average)?;
        self.section_rotor = GroupIndex(group);
        Some(self.superblock.section_start(GroupIndex(group)))
    }
}
