//! Cylinder group of a 4.2BSD file system: the map of free fragments, the map of used inodes, and
//! the counters that speed up their search.

use super::rotation::ROTATIONAL_POSITIONS;
use super::superblock::Superblock;

/// Counts of free space and directories, for a cylinder group or the whole file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupSummary {
    /// Number of inodes that are directories.
    pub directory_count: u32,
    /// Number of whole free blocks.
    pub free_block_count: u32,
    /// Number of free inodes.
    pub free_inode_count: u32,
    /// Number of free fragments in partly used blocks.
    pub free_fragment_count: u32,
}

impl GroupSummary {
    pub(super) fn add_summary(&mut self, other: &Self) {
        self.directory_count += other.directory_count;
        self.free_block_count += other.free_block_count;
        self.free_inode_count += other.free_inode_count;
        self.free_fragment_count += other.free_fragment_count;
    }
}

/// Contents of a cylinder group's map block. Addresses count from the base of the group, in
/// fragments for the map and in blocks where a name says block.
#[derive(Debug, Clone)]
pub(super) struct CylinderGroup {
    /// Bitmap of the group's fragments; a set bit is a free fragment.
    pub(super) free_map: Vec<u8>,
    pub(super) free_blocks_by_cylinder: Vec<u32>,
    pub(super) free_by_position: Vec<[u16; ROTATIONAL_POSITIONS]>,
    /// Number of runs of exactly n consecutive free fragments, indexed by n. Runs are shorter than
    /// a block.
    pub(super) fragment_runs: [u32; 8],
    /// Bitmap of the group's inodes; a set bit is a used inode.
    pub(super) inode_bitmap: Vec<u64>,
    /// Fragment number at which the last search found a whole block.
    block_rotor: u32,
    /// Fragment number at which the last search of the map ended.
    map_rotor: u32,
    inode_rotor: u32,
}

impl CylinderGroup {
    /// Creates a cylinder group without free fragments, in which all inodes are free.
    fn new(superblock: &Superblock) -> Self {
        let cylinders = superblock.parameters().cylinders_per_group as usize;
        Self {
            free_map: vec![0; superblock.fragments_per_group().div_ceil(8) as usize],
            free_blocks_by_cylinder: vec![0; cylinders],
            free_by_position: vec![[0; ROTATIONAL_POSITIONS]; cylinders],
            fragment_runs: [0; 8],
            inode_bitmap: vec![0; superblock.inodes_per_group().div_ceil(64) as usize],
            block_rotor: 0,
            map_rotor: 0,
            inode_rotor: 0,
        }
    }

    /// Creates a cylinder group in which all blocks and inodes are free.
    pub(super) fn new_free(superblock: &Superblock) -> (Self, GroupSummary) {
        let mut map = Self::new(superblock);
        let mut summary = GroupSummary {
            free_inode_count: superblock.inodes_per_group(),
            ..Default::default()
        };
        let per_block = superblock.fragments_per_block();
        for block in 0..superblock.fragments_per_group() / per_block {
            map.free_block(superblock, &mut summary, block * per_block);
        }
        (map, summary)
    }

    pub(super) fn is_free(&self, fragment: u32) -> bool {
        self.free_map[fragment as usize / 8] >> (fragment % 8) & 1 == 1
    }

    fn set_free(&mut self, fragment: u32) {
        self.free_map[fragment as usize / 8] |= 1 << (fragment % 8);
    }

    fn clear_free(&mut self, fragment: u32) {
        self.free_map[fragment as usize / 8] &= !(1 << (fragment % 8));
    }

    /// Returns the free bits of the block that holds a fragment, lowest bit first.
    pub(super) fn block_bits(&self, superblock: &Superblock, fragment: u32) -> u8 {
        let per_block = superblock.fragments_per_block();
        let base = fragment - fragment % per_block;
        self.free_map[base as usize / 8] >> (base % 8) & full_block_bits(per_block)
    }

    pub(super) fn is_block_free(&self, superblock: &Superblock, fragment: u32) -> bool {
        self.block_bits(superblock, fragment) == full_block_bits(superblock.fragments_per_block())
    }

    /// Adds `change` (1 or -1) to the free-block counts of the block's cylinder and rotational
    /// position.
    fn count_free_block(&mut self, superblock: &Superblock, fragment: u32, change: i32) {
        let place =
            superblock.block_positions[(fragment / superblock.fragments_per_block()) as usize];
        let by_cylinder = &mut self.free_blocks_by_cylinder[place.cylinder as usize];
        *by_cylinder = by_cylinder.wrapping_add_signed(change);
        let by_position =
            &mut self.free_by_position[place.cylinder as usize][place.rotational_position as usize];
        *by_position = by_position.wrapping_add_signed(change as i16);
    }

    /// Marks a fully used block as free.
    pub(super) fn free_block(
        &mut self,
        superblock: &Superblock,
        summary: &mut GroupSummary,
        fragment: u32,
    ) {
        let per_block = superblock.fragments_per_block();
        self.free_map[fragment as usize / 8] |= full_block_bits(per_block) << (fragment % 8);
        self.count_free_block(superblock, fragment, 1);
        summary.free_block_count += 1;
    }

    /// Marks a wholly free block as used.
    pub(super) fn take_block(
        &mut self,
        superblock: &Superblock,
        summary: &mut GroupSummary,
        fragment: u32,
    ) -> u32 {
        let per_block = superblock.fragments_per_block();
        self.free_map[fragment as usize / 8] &= !(full_block_bits(per_block) << (fragment % 8));
        self.count_free_block(superblock, fragment, -1);
        summary.free_block_count -= 1;
        fragment
    }

    /// Allocates a whole block: the preferred one; or else one of the same cylinder, starting at
    /// its rotational position; or else the next free one of the group.
    pub(super) fn allocate_block(
        &mut self,
        superblock: &Superblock,
        summary: &mut GroupSummary,
        preference: Option<u32>,
    ) -> Option<u32> {
        let mut start = self.block_rotor;
        if let Some(fragment) = preference {
            start = fragment - fragment % superblock.fragments_per_block();
            if self.is_block_free(superblock, start) {
                return Some(self.take_block(superblock, summary, start));
            }
            let place =
                superblock.block_positions[(start / superblock.fragments_per_block()) as usize];
            if self.free_blocks_by_cylinder[place.cylinder as usize] > 0 {
                match self.nearest_in_cylinder(superblock, start) {
                    Some(found) => return Some(self.take_block(superblock, summary, found)),
                    // Without tables any block of the cylinder will do.
                    None => start = cylinder_start(superblock, u32::from(place.cylinder)),
                }
            }
        }
        // Fragment 0 is how the source writes "no place known".
        let start = (start != 0).then_some(start);
        let found = self.search_free_map(superblock, start, superblock.fragments_per_block())?;
        self.block_rotor = found;
        Some(self.take_block(superblock, summary, found))
    }

    /// Finds the free block of the cylinder that passes the heads first after the rotational
    /// position of the preferred block. Returns `None` if the file system has no rotational tables.
    fn nearest_in_cylinder(&self, superblock: &Superblock, fragment: u32) -> Option<u32> {
        let tables = superblock.rotation_tables.as_ref()?;
        let per_block = superblock.fragments_per_block();
        let place = superblock.block_positions[(fragment / per_block) as usize];
        let counts = &self.free_by_position[place.cylinder as usize];
        let wanted = place.rotational_position as usize;
        let position = (wanted..ROTATIONAL_POSITIONS)
            .chain(0..wanted)
            .find(|&position| counts[position] > 0)
            .expect("a cylinder with free blocks has one at some rotational position");
        let block = tables
            .blocks_at_position(u32::from(place.cylinder), position)
            .find(|&block| self.is_block_free(superblock, block * per_block))
            .expect("the counter of this rotational position says that a block is free");
        Some(block * per_block)
    }

    /// Allocates fragments from a partly used block, or splits a whole block for them.
    pub(super) fn allocate_fragments(
        &mut self,
        superblock: &Superblock,
        summary: &mut GroupSummary,
        preference: Option<u32>,
        fragments: u32,
    ) -> Option<u32> {
        let per_block = superblock.fragments_per_block();
        let run = (fragments..per_block).find(|&run| self.fragment_runs[run as usize] > 0);
        let Some(run) = run else {
            if summary.free_block_count == 0 {
                return None;
            }
            let block = self.allocate_block(superblock, summary, preference)?;
            for fragment in block + fragments..block + per_block {
                self.set_free(fragment);
            }
            summary.free_fragment_count += per_block - fragments;
            self.fragment_runs[(per_block - fragments) as usize] += 1;
            return Some(block);
        };
        let found = self
            .search_free_map(superblock, preference, run)
            .expect("the counter of runs says that one of this size is free");
        for fragment in found..found + fragments {
            self.clear_free(fragment);
        }
        summary.free_fragment_count -= fragments;
        self.fragment_runs[run as usize] -= 1;
        if run > fragments {
            self.fragment_runs[(run - fragments) as usize] += 1;
        }
        Some(found)
    }

    /// Finds the next run of exactly `run` free fragments. The search goes by bytes of the map,
    /// from the byte of `start` (or the end of the last search) to the end and then from the
    /// beginning. It may therefore find a run before `start` in the same byte.
    fn search_free_map(
        &mut self,
        superblock: &Superblock,
        start: Option<u32>,
        run: u32,
    ) -> Option<u32> {
        let start = start.unwrap_or(self.map_rotor) as usize / 8;
        let has_run = |byte: &u8| superblock.run_sizes[*byte as usize] >> (run - 1) & 1 == 1;
        let (before, after) = self.free_map.split_at(start);
        let byte = match after.iter().position(has_run) {
            Some(offset) => start + offset,
            None => before.iter().position(has_run)?,
        };
        self.map_rotor = byte as u32 * 8;
        let per_block = superblock.fragments_per_block();
        (self.map_rotor..self.map_rotor + 8)
            .step_by(per_block as usize)
            .find_map(|block| {
                let bits = self.free_map[byte] >> (block % 8) & full_block_bits(per_block);
                free_runs(bits, per_block)
                    .find(|&(_, length)| length == run)
                    .map(|(offset, _)| block + offset)
            })
    }

    /// Extends used fragments in place. Returns `false` if the next fragments are not free.
    pub(super) fn extend_fragments(
        &mut self,
        superblock: &Superblock,
        summary: &mut GroupSummary,
        fragment: u32,
        old_fragments: u32,
        new_fragments: u32,
    ) -> bool {
        let per_block = superblock.fragments_per_block();
        let added = fragment + old_fragments..fragment + new_fragments;
        if added.clone().any(|fragment| !self.is_free(fragment)) {
            return false;
        }
        let block_end = fragment - fragment % per_block + per_block;
        let free_end = (added.end..block_end)
            .find(|&fragment| !self.is_free(fragment))
            .unwrap_or(block_end);
        self.fragment_runs[(free_end - added.start) as usize] -= 1;
        if free_end > added.end {
            self.fragment_runs[(free_end - added.end) as usize] += 1;
        }
        for fragment in added {
            self.clear_free(fragment);
            summary.free_fragment_count -= 1;
        }
        true
    }

    /// Frees a part of a block. Counts the block as a whole free block if none of it remains in
    /// use.
    pub(super) fn free_fragments(
        &mut self,
        superblock: &Superblock,
        summary: &mut GroupSummary,
        fragment: u32,
        fragments: u32,
    ) {
        let per_block = superblock.fragments_per_block();
        self.count_free_runs(superblock, fragment, -1);
        for fragment in fragment..fragment + fragments {
            assert!(!self.is_free(fragment), "a free fragment is freed");
            self.set_free(fragment);
        }
        summary.free_fragment_count += fragments;
        if self.is_block_free(superblock, fragment) {
            summary.free_fragment_count -= per_block;
            summary.free_block_count += 1;
            self.count_free_block(superblock, fragment - fragment % per_block, 1);
        } else {
            self.count_free_runs(superblock, fragment, 1);
        }
    }

    fn count_free_runs(&mut self, superblock: &Superblock, fragment: u32, change: i32) {
        let per_block = superblock.fragments_per_block();
        let bits = self.block_bits(superblock, fragment);
        for (_, length) in free_runs(bits, per_block) {
            let count = &mut self.fragment_runs[length as usize];
            *count = count.wrapping_add_signed(change);
        }
    }

    /// Frees the single fragments that newfs leaves in a partly used block.
    pub(super) fn free_at_newfs(
        &mut self,
        summary: &mut GroupSummary,
        fragment: u32,
        fragments: u32,
    ) {
        for fragment in fragment..fragment + fragments {
            self.set_free(fragment);
        }
        summary.free_fragment_count += fragments;
        self.fragment_runs[fragments as usize] += 1;
    }

    pub(super) fn is_inode_used(&self, index: u32) -> bool {
        self.inode_bitmap[index as usize / 64] >> (index % 64) & 1 == 1
    }

    pub(super) fn set_inode_used(&mut self, index: u32, used: bool) {
        let bit = 1 << (index % 64);
        let word = &mut self.inode_bitmap[index as usize / 64];
        *word = if used { *word | bit } else { *word & !bit };
    }

    /// Allocates the preferred inode, or the next free one after it. Without a preference, the
    /// search starts after the inode that the last search found.
    pub(super) fn allocate_inode(&mut self, preference: Option<u32>, inodes: u32) -> Option<u32> {
        if let Some(index) = preference.filter(|&index| !self.is_inode_used(index)) {
            self.set_inode_used(index, true);
            return Some(index);
        }
        let start = preference.unwrap_or(self.inode_rotor);
        let found = (start + 1..inodes)
            .chain(0..=start)
            .find(|&i| !self.is_inode_used(i))?;
        self.inode_rotor = found;
        self.set_inode_used(found, true);
        Some(found)
    }
}

fn cylinder_start(superblock: &Superblock, cylinder: u32) -> u32 {
    let sectors = superblock.geometry().sectors_per_cylinder() * cylinder;
    sectors.div_ceil(superblock.sectors_per_fragment())
}

pub(super) fn full_block_bits(fragments_per_block: u32) -> u8 {
    (0xff_u16 >> (8 - fragments_per_block)) as u8
}

/// Returns the runs of free fragments in a block, as (offset, length). A wholly free block is a
/// single run.
pub(super) fn free_runs(bits: u8, fragments_per_block: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = (u16::from(bits) & u16::from(full_block_bits(fragments_per_block))) >> offset;
        if rest == 0 {
            return None;
        }
        let start = offset + rest.trailing_zeros();
        let length = (u16::from(bits) >> start).trailing_ones();
        offset = start + length;
        Some((start, length))
    })
}
