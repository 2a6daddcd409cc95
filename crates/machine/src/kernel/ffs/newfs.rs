//! Creation of an empty 4.2BSD file system (`newfs`, `mkfs`).

use super::FastFileSystem;
use super::directory::{DIRECTORY_CHUNK_BYTES, Directory};
use super::group::{CylinderGroup, GroupSummary};
use super::indirect::IndirectBlocks;
use super::inode::{InodeKind, InodeNumber, InodeTable};
use super::parameters::{DiskLabel, NewfsError, NewfsParameters};
use super::rotation::ROTATIONAL_POSITIONS;
use super::superblock::{FragmentAddress, GroupIndex, Superblock};

/// Number of reserved inodes. Inode 0 means no inode, and inode 1 was the bad-block file.
pub(super) const RESERVED_INODES: u32 = 2;

impl FastFileSystem {
    /// Inode of the root directory.
    pub const ROOT_INODE: InodeNumber = InodeNumber(2);
    /// Inode of the `lost+found` directory that mkfs creates for fsck.
    pub const LOST_AND_FOUND_INODE: InodeNumber = InodeNumber(3);

    /// Tests whether [`Self::make_file_system`] can create a file system with a geometry and parameters.
    ///
    /// # Errors
    /// The same errors as those of [`Self::make_file_system`].
    pub fn check_parameters(
        geometry: DiskLabel,
        parameters: NewfsParameters,
    ) -> Result<(), NewfsError> {
        Superblock::new(geometry, parameters).map(drop)
    }

    /// Returns the host memory of a newly created file system, in bytes.
    ///
    /// # Errors
    /// The same errors as those of [`Self::make_file_system`].
    pub fn memory_bytes(
        geometry: DiskLabel,
        parameters: NewfsParameters,
    ) -> Result<u64, NewfsError> {
        let superblock = Superblock::new(geometry, parameters)?;
        let inodes = u64::from(superblock.inodes_per_group());
        let fragments = u64::from(superblock.fragments_per_group());
        let cylinders = u64::from(parameters.cylinders_per_group);
        let by_cylinder = size_of::<u32>() + size_of::<[u16; ROTATIONAL_POSITIONS]>();
        let maps = (inodes + fragments).div_ceil(8) + cylinders * by_cylinder as u64;
        let itself = size_of::<CylinderGroup>() + size_of::<GroupSummary>();
        let a_group = maps + inodes * size_of::<u32>() as u64 + itself as u64;
        Ok(u64::from(superblock.group_count()) * a_group)
    }

    /// Creates a file system with a root directory and its `lost+found`.
    ///
    /// # Errors
    /// [`NewfsError`] names the parameter that is not possible and the allowed values.
    pub fn make_file_system(
        geometry: DiskLabel,
        parameters: NewfsParameters,
    ) -> Result<Self, NewfsError> {
        let superblock = Superblock::new(geometry, parameters)?;
        let groups = superblock.group_count();
        let mut file_system = Self {
            inodes: InodeTable::new(groups * superblock.inodes_per_group()),
            summaries: Vec::with_capacity(groups as usize),
            total_summary: GroupSummary::default(),
            section_rotor: GroupIndex(0),
            groups: Vec::with_capacity(groups as usize),
            indirect_blocks: IndirectBlocks::default(),
            superblock,
        };
        let whole = CylinderGroup::new_free(&file_system.superblock);
        for group in (0..groups).map(GroupIndex) {
            file_system.make_group(group, &whole);
        }
        file_system.make_root();
        Ok(file_system)
    }

    /// Creates one cylinder group of a new file system. mkfs frees the blocks of a group one by
    /// one, before and after its metadata. Nearly all are free, so that this function starts with a
    /// fully free map and takes the others, with the same result. The last group may be shorter.
    fn make_group(&mut self, group: GroupIndex, whole: &(CylinderGroup, GroupSummary)) {
        let superblock = &self.superblock;
        let per_block = superblock.fragments_per_block();
        let base = superblock.group_base(group).0;
        let end = superblock.group_end(group).0 - base;
        let metadata_start = superblock.superblock_copy_address(group).0 - base;
        let mut data_start = superblock.data_start(group).0 - base;
        let (mut map, mut summary) = whole.clone();
        let mut data_fragments = 0;
        let taken_from = if group.0 == 0 {
            data_start += superblock.summary_fragments();
            for index in 0..RESERVED_INODES {
                map.set_inode_used(index, true);
                summary.free_inode_count -= 1;
            }
            0
        } else {
            data_fragments += metadata_start.min(end);
            metadata_start.min(end).next_multiple_of(per_block)
        };
        data_fragments += end.saturating_sub(data_start);
        let first_whole = data_start.next_multiple_of(per_block);
        let last_whole = end - end % per_block;
        let all = superblock.fragments_per_group() / per_block * per_block;
        let beyond = last_whole.max(first_whole.min(all))..all;
        for fragment in (taken_from..first_whole.min(all))
            .chain(beyond)
            .step_by(per_block as usize)
        {
            map.take_block(superblock, &mut summary, fragment);
        }
        if first_whole > data_start {
            map.free_at_newfs(&mut summary, data_start, first_whole - data_start);
        }
        if last_whole < end && first_whole <= last_whole {
            map.free_at_newfs(&mut summary, last_whole, end - last_whole);
        }
        self.superblock.data_fragments += data_fragments;
        self.total_summary.add_summary(&summary);
        self.groups.push(map);
        self.summaries.push(summary);
    }

    /// Creates `lost+found` and the root directory. mkfs gives each of the two the first whole
    /// block of group 0 and frees the fragments that it does not need.
    fn make_root(&mut self) {
        let block_bytes = self.superblock.block_bytes();
        self.make_first_directory(Self::LOST_AND_FOUND_INODE, Self::ROOT_INODE, block_bytes);
        self.make_first_directory(Self::ROOT_INODE, Self::ROOT_INODE, DIRECTORY_CHUNK_BYTES);
        self.add_entry(Self::ROOT_INODE, "lost+found", Self::LOST_AND_FOUND_INODE);
        self.inodes.inode_mut(Self::ROOT_INODE).link_count = 3;
        self.inodes.inode_mut(Self::LOST_AND_FOUND_INODE).link_count = 2;
    }

    fn make_first_directory(&mut self, inode: InodeNumber, parent: InodeNumber, size: u32) {
        let per_block = self.superblock.fragments_per_block();
        let kept = self.superblock.bytes_to_fragments(size);
        let first_free = (0..self.superblock.group_end(GroupIndex(0)).0)
            .step_by(per_block as usize)
            .find(|&block| self.groups[0].is_block_free(&self.superblock, block))
            .map(FragmentAddress);
        let address = self
            .allocate_in_group(GroupIndex(0), first_free, per_block)
            .expect("the file system has room for its first directories");
        if kept < per_block {
            self.free_fragments(FragmentAddress(address.0 + kept), per_block - kept);
        }
        let made = self.allocate_inode(GroupIndex(0), Some(inode), InodeKind::Directory);
        assert!(
            made == Some(inode),
            "the first inodes of a new file system are free"
        );
        let record = self.inodes.inode_mut(inode);
        record.direct[0] = address.0;
        record.size_bytes = u64::from(size);
        record.directory = Some(Box::new(Directory::new(inode, parent, size)));
    }
}
