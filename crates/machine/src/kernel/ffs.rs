//! Layout of the 4.2BSD fast file system (1983, `ufs_alloc.c` 6.1), in host memory.
//!
//! The layout decides which fragment a block is placed on, which metadata block records that, and
//! which fragments are free. It is synchronous. It knows no time and no buffer cache, and stores no
//! file data; the modelled kernel around it does.
//!
//! The kernel must have a metadata block in core before it uses the block. Each change is therefore
//! split where the 1983 source would sleep:
//!
//! 1. Choice of blocks: [`FastFileSystem::allocation_search`] names the cylinder groups in the order
//!    of the source. [`FastFileSystem::group_may_hold`] tells from the in-core summary whether a
//!    group's map is worth reading. [`Superblock::group_map_address`] locates the map.
//! 2. The change itself: [`FastFileSystem::allocate_in_group`], [`FastFileSystem::extend_fragments`],
//!    [`FastFileSystem::free_fragments`], the pointer setters and the directory calls.
//!
//! A write of one block takes these calls, in order (`writer.rs` has the whole sequence):
//!
//! - [`FastFileSystem::tail_growth`] for fragments that must first become a full block;
//! - [`FastFileSystem::locate_block`];
//! - [`FastFileSystem::direct_block_need`] for a direct pointer;
//! - the path from [`FastFileSystem::indirect_root`] down for an indirect pointer. Missing blocks are
//!   allocated with [`FastFileSystem::block_preference`].
//!
//! Addresses are fragment numbers within the partition ([`FragmentAddress`]); the kernel adds the
//! partition's first sector.

mod allocation;
mod check;
mod directory;
mod dump;
mod fsck;
mod group;
mod indirect;
mod inode;
mod names;
mod newfs;
mod parameters;
mod preference;
mod release;
mod rotation;
mod superblock;
#[cfg(test)]
mod tests;
mod writer;

pub use allocation::{AllocationSearch, GroupCandidate, NoSpaceLeft};
pub use check::{CheckSummary, ConsistencyProblem};
pub use directory::{
    DIRECTORY_CHUNK_BYTES, DirectoryEntry, EntryLocation, EntrySlot, NAME_BYTES_MAX, NameError,
    record_bytes,
};
pub use dump::{DumpBlock, DumpedInode};
pub use fsck::{FsckPass, FsckRead};
pub use group::GroupSummary;
pub use indirect::{BlockPath, IndirectBlockId, PointerArray};
pub use inode::{BlockNeed, DIRECT_POINTERS, INODE_BYTES, InodeKind, InodeNumber, TailGrowth};
pub use parameters::{DiskLabel, FileSystemTuning, NewfsError, NewfsParameters};
pub use release::ReleaseStep;
pub use rotation::ROTATIONAL_POSITIONS;
pub use superblock::{FragmentAddress, GroupIndex, Superblock};
pub use writer::{MetadataAccess, UntimedWriter};

use group::CylinderGroup;
use indirect::IndirectBlocks;
use inode::InodeTable;

/// 4.2BSD file system: superblock, cylinder groups, inodes, indirect blocks and directories, all in
/// host memory.
///
/// A clone is an independent file system. Cloning a fresh one is cheaper than making another with
/// [`FastFileSystem::make_file_system`].
#[derive(Debug, Clone)]
pub struct FastFileSystem {
    superblock: Superblock,
    /// Summary of each cylinder group. The 1983 kernel keeps this array in core for every mounted
    /// file system and consults it without reading a group map.
    summaries: Vec<GroupSummary>,
    total_summary: GroupSummary,
    /// Cylinder group in which the last section of a file was started.
    section_rotor: GroupIndex,
    groups: Vec<CylinderGroup>,
    inodes: InodeTable,
    indirect_blocks: IndirectBlocks,
}

impl FastFileSystem {
    /// Returns the superblock, with the file system's constants and address arithmetic.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Returns the in-core summary of a cylinder group.
    #[must_use]
    pub fn group_summary(&self, group: GroupIndex) -> GroupSummary {
        self.summaries[group.0 as usize]
    }

    /// Returns the sum of all cylinder groups' summaries, as kept in the superblock.
    #[must_use]
    pub fn total_summary(&self) -> GroupSummary {
        self.total_summary
    }

    /// Returns the cylinder group in which the last section of a file was started.
    #[must_use]
    pub fn section_rotor(&self) -> GroupIndex {
        self.section_rotor
    }

    /// Changes the parameters that `tunefs` can change on an existing file system. Allocated blocks
    /// stay where they are.
    ///
    /// # Errors
    /// The same limits as in [`FastFileSystem::make_file_system`]. On error nothing changes.
    pub fn set_tuning(&mut self, tuning: FileSystemTuning) -> Result<(), NewfsError> {
        self.superblock.set_tuning(tuning)
    }
}
