//! Superblock of a 4.2BSD file system: its constants and its address arithmetic.

use super::inode::{INODE_BYTES, InodeNumber};
use super::parameters::{
    CYLINDERS_PER_GROUP_MAX, DiskLabel, FileSystemTuning, NewfsError, NewfsParameters,
};
use super::rotation::{
    BlockPosition, ROTATIONAL_POSITIONS, RotationTables, TABLE_BLOCKS_MAX, block_positions,
};

/// Address of a fragment, counted from the start of the partition. Fragment 0 is in the boot block
/// and never belongs to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FragmentAddress(pub u32);

/// Number of a cylinder group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex(pub u32);

/// Size of the boot block in bytes. The superblock and each of its copies have the same size.
const BOOT_BYTES: u32 = 8192;
const SUPERBLOCK_BYTES: u32 = 8192;
/// Maximum number of inodes in a cylinder group (`MAXIPG`).
const INODES_PER_GROUP_MAX: u32 = 2048;
/// Size of a cylinder group's entry in the summary array, in bytes.
const GROUP_SUMMARY_BYTES: u32 = 16;
/// Bytes of a cylinder group's map block before the fragment map: counters by cylinder and by
/// rotational position, and the inode map.
const GROUP_HEADER_BYTES: u32 = 988;

/// Constants of a 4.2BSD file system.
#[derive(Debug, Clone)]
pub struct Superblock {
    geometry: DiskLabel,
    parameters: NewfsParameters,
    sectors_per_fragment: u32,
    fragments_per_block: u32,
    cycle_cylinders: u32,
    group_count: u32,
    size_fragments: u32,
    fragments_per_group: u32,
    inodes_per_group: u32,
    /// Offset of the superblock copy from the start of a cylinder group's metadata, in fragments.
    /// All metadata offsets count from there.
    superblock_offset: u32,
    map_offset: u32,
    inode_offset: u32,
    data_offset: u32,
    /// Shift between the metadata of successive cylinder groups, in fragments. It spreads the
    /// superblock copies over the platters.
    group_shift: u32,
    group_shift_mask: u32,
    summary_bytes: u32,
    group_map_bytes: u32,
    gap_fragments: u32,
    pub(super) data_fragments: u32,
    pub(super) block_positions: Vec<BlockPosition>,
    pub(super) rotation_tables: Option<RotationTables>,
    /// Table of the run lengths in each byte of a fragment map: bit n-1 is set if one of the byte's
    /// blocks has a run of exactly n free fragments.
    pub(super) run_sizes: [u8; 256],
}

impl Superblock {
    pub(super) fn new(
        geometry: DiskLabel,
        parameters: NewfsParameters,
    ) -> Result<Self, NewfsError> {
        geometry.validate()?;
        parameters.validate(&geometry)?;
        let sectors_per_fragment = parameters.fragment_bytes / geometry.sector_bytes;
        let fragments_per_block = parameters.block_bytes / parameters.fragment_bytes;
        let cycle_cylinders = cycle_cylinders(&geometry, &parameters)?;
        let cylinder_sectors = geometry.sectors_per_cylinder();
        let group_sectors = parameters.cylinders_per_group * cylinder_sectors;
        let fragments_per_group = group_sectors / sectors_per_fragment;
        let blocks_of = |bytes: u32| {
            bytes
                .div_ceil(parameters.fragment_bytes)
                .next_multiple_of(fragments_per_block)
        };
        let superblock_offset = blocks_of(BOOT_BYTES + SUPERBLOCK_BYTES);
        let map_offset = superblock_offset + blocks_of(SUPERBLOCK_BYTES);
        let inode_offset = map_offset + fragments_per_block;
        let inodes_per_group = inodes_per_group(&parameters, fragments_per_group);
        let group_map_bytes = (GROUP_HEADER_BYTES + fragments_per_group.div_ceil(8))
            .next_multiple_of(parameters.fragment_bytes);
        // Before the tables of a group are made, which are as large.
        if group_map_bytes > parameters.block_bytes {
            return Err(NewfsError::GroupMapTooLarge {
                map_bytes: group_map_bytes,
                block_bytes: parameters.block_bytes,
            });
        }
        let mut superblock = Self {
            sectors_per_fragment,
            fragments_per_block,
            cycle_cylinders,
            group_count: 0,
            size_fragments: geometry.partition_sectors / sectors_per_fragment,
            fragments_per_group,
            inodes_per_group,
            superblock_offset,
            map_offset,
            inode_offset,
            data_offset: inode_offset + inodes_per_group * INODE_BYTES / parameters.fragment_bytes,
            group_shift: geometry
                .sectors_per_track
                .div_ceil(sectors_per_fragment)
                .next_multiple_of(fragments_per_block),
            group_shift_mask: geometry.tracks_per_cylinder.next_power_of_two() - 1,
            summary_bytes: 0,
            group_map_bytes,
            gap_fragments: 0,
            data_fragments: 0,
            block_positions: block_positions(
                fragments_per_group / fragments_per_block,
                sectors_per_fragment * fragments_per_block,
                geometry.sectors_per_track,
                cylinder_sectors,
            ),
            rotation_tables: None,
            run_sizes: free_run_size_masks(fragments_per_block),
            geometry,
            parameters,
        };
        superblock.compute_group_layout()?;
        superblock.make_rotation_tables();
        superblock.gap_fragments = superblock.rotational_gap();
        Ok(superblock)
    }

    /// Creates the rotational tables if they fit in the superblock. With one track per cylinder
    /// none are needed, because all blocks at a position are the same block.
    fn make_rotation_tables(&mut self) {
        let sectors_per_block = self.sectors_per_fragment * self.fragments_per_block;
        let cycle_blocks =
            self.cycle_cylinders * self.geometry.sectors_per_cylinder() / sectors_per_block;
        if self.geometry.tracks_per_cylinder > 1 && cycle_blocks <= TABLE_BLOCKS_MAX {
            let tables =
                RotationTables::new(self.cycle_cylinders, cycle_blocks, &self.block_positions);
            self.rotation_tables = Some(tables);
        }
    }

    /// Computes the number of cylinder groups, and drops a last group that its own metadata would
    /// fill.
    fn compute_group_layout(&mut self) -> Result<(), NewfsError> {
        self.group_count = self.size_fragments.div_ceil(self.fragments_per_group);
        self.summary_bytes = (self.group_count * GROUP_SUMMARY_BYTES)
            .next_multiple_of(self.parameters.fragment_bytes);
        // Summary, root directory and lost+found.
        let first_group = self.data_offset
            + (self.summary_fragments()).next_multiple_of(self.fragments_per_block)
            + 2 * self.fragments_per_block;
        if self.size_fragments < first_group {
            return Err(NewfsError::PartitionTooSmall {
                sectors: self.geometry.partition_sectors,
                needed: first_group * self.sectors_per_fragment,
            });
        }
        let widest = GroupIndex(self.group_shift_mask.min(self.group_count - 1));
        let metadata = self.data_start(widest).0 - self.group_base(widest).0;
        if metadata.max(first_group) >= self.fragments_per_group && self.group_count > 1 {
            return Err(NewfsError::GroupTooSmall {
                metadata_fragments: metadata.max(first_group),
                group_fragments: self.fragments_per_group,
            });
        }
        let last = GroupIndex(self.group_count - 1);
        if self.group_count > 1 && self.data_start(last).0 > self.size_fragments {
            self.group_count -= 1;
            self.size_fragments = self.group_count * self.fragments_per_group;
        }
        Ok(())
    }

    /// Returns the fragments that pass the heads during the rotational delay, rounded up to whole
    /// blocks. The integer division comes before the rounding, as in `blkpref`.
    fn rotational_gap(&self) -> u32 {
        let sectors = u64::from(self.parameters.rotdelay_ms)
            * u64::from(self.geometry.revolutions_per_second)
            * u64::from(self.geometry.sectors_per_track);
        let fragments = sectors / (u64::from(self.sectors_per_fragment) * 1000);
        (fragments as u32).next_multiple_of(self.fragments_per_block)
    }

    pub(super) fn set_tuning(&mut self, tuning: FileSystemTuning) -> Result<(), NewfsError> {
        tuning.validate(self.geometry.revolutions_per_second)?;
        self.parameters.rotdelay_ms = tuning.rotdelay_ms;
        self.parameters.maxcontig_blocks = tuning.maxcontig_blocks;
        self.parameters.maxbpg_blocks = tuning.maxbpg_blocks;
        self.parameters.minfree_percent = tuning.minfree_percent;
        self.gap_fragments = self.rotational_gap();
        Ok(())
    }

    /// Returns the geometry of the partition.
    #[must_use]
    pub fn geometry(&self) -> &DiskLabel {
        &self.geometry
    }

    /// Returns the current parameters, with the changes of `tune`.
    #[must_use]
    pub fn parameters(&self) -> &NewfsParameters {
        &self.parameters
    }

    /// Returns the block size in bytes.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.parameters.block_bytes
    }

    /// Returns the fragment size in bytes.
    #[must_use]
    pub fn fragment_bytes(&self) -> u32 {
        self.parameters.fragment_bytes
    }

    /// Returns the number of fragments per block: 1, 2, 4 or 8.
    #[must_use]
    pub fn fragments_per_block(&self) -> u32 {
        self.fragments_per_block
    }

    /// Returns the number of sectors per fragment.
    #[must_use]
    pub fn sectors_per_fragment(&self) -> u32 {
        self.sectors_per_fragment
    }

    /// Returns the number of cylinder groups.
    #[must_use]
    pub fn group_count(&self) -> u32 {
        self.group_count
    }

    /// Returns the size of the file system in fragments.
    #[must_use]
    pub fn size_fragments(&self) -> u32 {
        self.size_fragments
    }

    /// Returns the number of fragments per cylinder group. The last group may have fewer.
    #[must_use]
    pub fn fragments_per_group(&self) -> u32 {
        self.fragments_per_group
    }

    /// Returns the number of inodes per cylinder group.
    #[must_use]
    pub fn inodes_per_group(&self) -> u32 {
        self.inodes_per_group
    }

    /// Returns the number of inodes per inode block.
    #[must_use]
    pub fn inodes_per_block(&self) -> u32 {
        self.parameters.block_bytes / INODE_BYTES
    }

    /// Returns the smallest number of cylinders that holds a whole number of blocks (`cpc`).
    #[must_use]
    pub fn cycle_cylinders(&self) -> u32 {
        self.cycle_cylinders
    }

    /// Returns the number of pointers in an indirect block.
    #[must_use]
    pub fn pointers_per_block(&self) -> u32 {
        self.parameters.block_bytes / 4
    }

    /// Returns the number of fragments that the allocator leaves between two blocks of a file for
    /// `rotdelay_ms`.
    #[must_use]
    pub fn gap_fragments(&self) -> u32 {
        self.gap_fragments
    }

    /// Returns the number of fragments that hold a number of bytes.
    #[must_use]
    pub fn bytes_to_fragments(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.parameters.fragment_bytes)
    }

    /// Returns the block of a file that holds the byte at an offset.
    #[must_use]
    pub fn block_index_at(&self, offset_bytes: u64) -> u32 {
        (offset_bytes / u64::from(self.parameters.block_bytes)) as u32
    }

    /// Returns the first sector of a fragment, counted from the start of the partition.
    #[must_use]
    pub fn first_sector_of_fragment(&self, address: FragmentAddress) -> u32 {
        address.0 * self.sectors_per_fragment
    }

    /// Returns the cylinder of the partition in which a fragment starts.
    #[must_use]
    pub fn cylinder_of_fragment(&self, address: FragmentAddress) -> u32 {
        self.first_sector_of_fragment(address) / self.geometry.sectors_per_cylinder()
    }

    /// Returns the rotational position (0 to 7) at which a fragment starts.
    #[must_use]
    pub fn rotational_position(&self, address: FragmentAddress) -> u32 {
        let in_track = self.first_sector_of_fragment(address) % self.geometry.sectors_per_track;
        in_track * ROTATIONAL_POSITIONS as u32 / self.geometry.sectors_per_track
    }

    /// Returns the cylinder group of a fragment.
    #[must_use]
    pub fn group_of(&self, address: FragmentAddress) -> GroupIndex {
        GroupIndex(address.0 / self.fragments_per_group)
    }

    /// Returns the cylinder group of an inode.
    #[must_use]
    pub fn group_of_inode(&self, inode: InodeNumber) -> GroupIndex {
        GroupIndex(inode.0 / self.inodes_per_group)
    }

    /// Returns the first fragment of a cylinder group.
    #[must_use]
    pub fn group_base(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(group.0 * self.fragments_per_group)
    }

    /// Returns the fragment after the last one of a cylinder group.
    #[must_use]
    pub fn group_end(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(((group.0 + 1) * self.fragments_per_group).min(self.size_fragments))
    }

    /// Returns the fragment from which the offsets of a cylinder group's metadata count.
    fn group_start(&self, group: GroupIndex) -> u32 {
        self.group_base(group).0 + self.group_shift * (group.0 & self.group_shift_mask)
    }

    /// Returns the address of a cylinder group's copy of the superblock. Group 0 has a copy too;
    /// the superblock itself is at [`Self::superblock_address`].
    #[must_use]
    pub fn superblock_copy_address(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(self.group_start(group) + self.superblock_offset)
    }

    /// Returns the address of the superblock that sync writes.
    #[must_use]
    pub fn superblock_address(&self) -> FragmentAddress {
        FragmentAddress(BOOT_BYTES / self.parameters.fragment_bytes)
    }

    /// Returns the size of the superblock in bytes.
    #[must_use]
    pub fn superblock_bytes(&self) -> u32 {
        SUPERBLOCK_BYTES
    }

    /// Returns the address of the summary array, which follows the inodes of group 0.
    #[must_use]
    pub fn summary_address(&self) -> FragmentAddress {
        self.data_start(GroupIndex(0))
    }

    /// Returns the size of the summary array in bytes, a whole number of fragments.
    #[must_use]
    pub fn summary_bytes(&self) -> u32 {
        self.summary_bytes
    }

    pub(super) fn summary_fragments(&self) -> u32 {
        self.summary_bytes / self.parameters.fragment_bytes
    }

    /// Returns the address of a cylinder group's map block.
    #[must_use]
    pub fn group_map_address(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(self.group_start(group) + self.map_offset)
    }

    /// Returns the bytes of a cylinder group's map block that the kernel reads and writes: a whole
    /// number of fragments, less than a block on most drives.
    #[must_use]
    pub fn group_map_bytes(&self) -> u32 {
        self.group_map_bytes
    }

    /// Returns the address of the first inode block of a cylinder group.
    #[must_use]
    pub fn inodes_start(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(self.group_start(group) + self.inode_offset)
    }

    /// Returns the address of the block that holds an inode.
    #[must_use]
    pub fn inode_block_address(&self, inode: InodeNumber) -> FragmentAddress {
        let block = inode.0 % self.inodes_per_group / self.inodes_per_block();
        let start = self.inodes_start(self.group_of_inode(inode));
        FragmentAddress(start.0 + block * self.fragments_per_block)
    }

    /// Returns the first fragment behind a cylinder group's metadata. The blocks between the
    /// group's base and its superblock copy are data too, except in group 0.
    #[must_use]
    pub fn data_start(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(self.group_start(group) + self.data_offset)
    }

    /// Returns the preferred address for a new section of a file, or for a new file: block number 1
    /// of the cylinder group.
    #[must_use]
    pub fn section_start(&self, group: GroupIndex) -> FragmentAddress {
        FragmentAddress(self.group_base(group).0 + self.fragments_per_block)
    }
}

/// Computes the smallest number of cylinders that holds a whole number of blocks. The sectors per
/// block are a power of two, so that repeated halving of both sides finds it.
fn cycle_cylinders(geometry: &DiskLabel, parameters: &NewfsParameters) -> Result<u32, NewfsError> {
    let sectors_per_block = parameters.block_bytes / geometry.sector_bytes;
    let twos = geometry.sectors_per_cylinder().trailing_zeros();
    let cycle = (sectors_per_block >> twos.min(sectors_per_block.trailing_zeros())).max(1);
    let given = parameters.cylinders_per_group;
    if cycle > CYLINDERS_PER_GROUP_MAX {
        let block_bytes = parameters.block_bytes;
        return Err(NewfsError::NoAlignment {
            block_bytes,
            cylinders: cycle,
        });
    }
    if !given.is_multiple_of(cycle) {
        return Err(NewfsError::CylindersPerGroupNotMultiple {
            given,
            multiple_of: cycle,
        });
    }
    Ok(cycle)
}

fn inodes_per_group(parameters: &NewfsParameters, fragments_per_group: u32) -> u32 {
    let group_bytes = u64::from(fragments_per_group) * u64::from(parameters.fragment_bytes);
    let wanted = group_bytes / u64::from(parameters.bytes_per_inode);
    let inodes = (wanted as u32).clamp(1, INODES_PER_GROUP_MAX);
    inodes.next_multiple_of(parameters.block_bytes / INODE_BYTES)
}

fn free_run_size_masks(fragments_per_block: u32) -> [u8; 256] {
    let mut table = [0; 256];
    for (byte, sizes) in table.iter_mut().enumerate() {
        let mut run = 0;
        for bit in 0..8 {
            run = if byte >> bit & 1 == 1 { run + 1 } else { 0 };
            let block_ends = (bit + 1) % fragments_per_block == 0;
            let next_is_free = !block_ends && byte >> (bit + 1) & 1 == 1;
            if run > 0 && !next_is_free {
                *sizes |= 1 << (run - 1);
                run = 0;
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::free_run_size_masks;

    #[test]
    fn run_sizes_stop_at_block_ends() {
        assert_eq!(free_run_size_masks(8)[0xff], 1 << 7);
        assert_eq!(free_run_size_masks(4)[0xff], 1 << 3);
        assert_eq!(free_run_size_masks(1)[0x81], 1);
        assert_eq!(free_run_size_masks(8)[0b0111_0110], 1 << 1 | 1 << 2);
        assert_eq!(free_run_size_masks(4)[0b0111_0110], 1 << 1 | 1 << 2);
        assert_eq!(free_run_size_masks(4)[0b0001_1000], 1);
    }
}
