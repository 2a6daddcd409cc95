//! The 4.2BSD fast file system (1983, ufs_alloc.c 6.1) on an in-memory layout.
//!
//! This module is the *layout*: which fragment a block lands on, which
//! metadata block holds the fact, what is free and what is claimed. It is pure
//! and synchronous. It knows no time, no buffer cache, and stores no file data;
//! the modelled kernel around it does.
//!
//! Because the kernel has to have a metadata block in core before it acts on
//! it, every change is cut where the 1983 source would sleep:
//!
//! 1. *Which blocks?* [`FileSystem::allocation_search`] names the cylinder
//!    groups in the order of the source, [`FileSystem::group_may_hold`] says
//!    from the in-core summary whether reading a group's map is worth it, and
//!    [`Superblock::group_map_address`] says where the map is.
//! 2. *The change itself:* [`FileSystem::allocate_in_group`],
//!    [`FileSystem::extend_fragments`], [`FileSystem::free`], the pointer
//!    setters and the directory calls.
//!
//! Writing one block goes as follows (`writer.rs` is the whole of it):
//! [`FileSystem::tail_growth`] (a fragment that must first become a full
//! block), [`FileSystem::locate`], then for a direct pointer
//! [`FileSystem::direct_need`], and for an indirect one the walk from
//! [`FileSystem::indirect_root`] down, allocating what is missing with
//! [`FileSystem::block_preference`].
//!
//! Addresses are fragment numbers within the partition ([`Fragment`]); the
//! kernel adds the partition's first sector.

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

pub use allocation::{AllocationSearch, Candidate, NoSpace};
pub use check::{CheckSummary, Problem};
pub use directory::{
    DIRECTORY_CHUNK_BYTES, DirectoryEntry, EntryPlace, EntrySlot, NAME_MAX_BYTES, NameError,
    record_bytes,
};
pub use dump::{DumpBlock, DumpedInode};
pub use fsck::{FsckPass, FsckRead};
pub use group::GroupSummary;
pub use indirect::{IndirectId, Path, PointerArray};
pub use inode::{BlockNeed, DIRECT_POINTERS, INODE_BYTES, InodeKind, InodeNumber, TailGrowth};
pub use parameters::{Geometry, NewfsError, Parameters, Tuning};
pub use release::ReleaseStep;
pub use rotation::ROTATIONAL_POSITIONS;
pub use superblock::{Fragment, Group, Superblock};
pub use writer::{Metadata, Writer};

use group::CylinderGroup;
use indirect::IndirectBlocks;
use inode::InodeTable;

/// 4.2BSD file system: superblock, cylinder groups, inodes, indirect blocks and directories, all in
/// host memory.
///
/// A clone is an independent file system. Cloning a fresh one is cheaper than making another with
/// [`FileSystem::newfs`].
#[derive(Debug, Clone)]
pub struct FileSystem {
    superblock: Superblock,
    /// Summary of each cylinder group. The 1983 kernel keeps this array in core for every mounted
    /// file system and consults it without reading a group map.
    summaries: Vec<GroupSummary>,
    total: GroupSummary,
    /// Cylinder group in which the last section of a file was started.
    section_rotor: Group,
    groups: Vec<CylinderGroup>,
    inodes: InodeTable,
    indirect_blocks: IndirectBlocks,
}

impl FileSystem {
    /// Returns the superblock, with the file system's constants and address arithmetic.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Returns the in-core summary of a cylinder group.
    #[must_use]
    pub fn group_summary(&self, group: Group) -> GroupSummary {
        self.summaries[group.0 as usize]
    }

    /// Returns the sum of all cylinder groups' summaries, as kept in the superblock.
    #[must_use]
    pub fn total(&self) -> GroupSummary {
        self.total
    }

    /// Returns the cylinder group in which the last section of a file was started.
    #[must_use]
    pub fn section_rotor(&self) -> Group {
        self.section_rotor
    }

    /// Changes the parameters that `tunefs` can change on an existing file system. Allocated blocks
    /// stay where they are.
    ///
    /// # Errors
    /// The same limits as in [`FileSystem::newfs`]. On error nothing changes.
    pub fn tune(&mut self, tuning: Tuning) -> Result<(), NewfsError> {
        self.superblock.tune(tuning)
    }
}
