//! Consistency check of a 4.2BSD file system in the manner of fsck. It recomputes maps and counters
//! from the inodes and directories and compares them with the stored ones.

mod claims;
mod connectivity;

use super::FileSystem;
use super::directory::NAME_MAX_BYTES;
use super::group::{GroupSummary, free_runs};
use super::inode::{InodeKind, InodeNumber};
use super::newfs::RESERVED_INODES;
use super::rotation::ROTATIONAL_POSITIONS;
use super::superblock::{Fragment, Group};
use claims::Claims;
use std::fmt;

/// Counts of files, directories and free space in a consistent file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckSummary {
    /// Number of regular files in the file system.
    pub files: u32,
    /// Number of directories, including the root and `lost+found`.
    pub directories: u32,
    /// Number of inodes without a name that the caller has listed as open.
    pub open_unlinked: u32,
    /// Number of fragments that files, directories and their indirect blocks use.
    pub used_fragments: u32,
    /// Free blocks, fragments and inodes of the file system.
    pub free: GroupSummary,
}

/// Inconsistency that the check of a 4.2BSD file system has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Pointer to an address that is outside the file system or crosses a block.
    BadAddress {
        /// Inode that holds the bad pointer.
        inode: InodeNumber,
        /// First fragment that the bad pointer refers to.
        address: Fragment,
        /// Number of fragments that the bad pointer refers to.
        fragments: u32,
    },
    /// Fragment that two pointers claim.
    ClaimedTwice {
        /// Inode whose pointer claimed the fragment second.
        inode: InodeNumber,
        /// Fragment that is claimed twice.
        address: Fragment,
    },
    /// Fragment that a file or metadata claims and that the map marks as free.
    ClaimedButFree {
        /// Fragment that is claimed and free.
        address: Fragment,
    },
    /// Fragment that no file or metadata claims and that the map marks as used.
    LostFragment {
        /// Fragment that is used in the map and claimed by nothing.
        address: Fragment,
    },
    /// Pointer to a data block behind the end of the file.
    BeyondEnd {
        /// Inode of the file that has a block behind its end.
        inode: InodeNumber,
        /// Block number within the file.
        lbn: u32,
    },
    /// Indirect blocks of a file with wrong links to each other.
    IndirectDamage {
        /// Inode with the damaged indirect blocks.
        inode: InodeNumber,
    },
    /// Indirect blocks in core that belong to no inode.
    LostIndirect {
        /// Number of indirect blocks in core.
        kept: u32,
        /// Number of indirect blocks that can be reached from inodes.
        reached: u32,
    },
    /// Counter of a cylinder group that disagrees with the group's map.
    GroupCount {
        /// Cylinder group with the wrong counter.
        group: Group,
        /// Name of the counter.
        what: &'static str,
        /// Stored value of the counter.
        counted: u32,
        /// Value of the counter as recomputed from the map.
        found: u32,
    },
    /// Total in the superblock that disagrees with the sum over the cylinder groups.
    Total {
        /// Name of the total.
        what: &'static str,
        /// Stored value of the total.
        counted: u32,
        /// Sum over the cylinder groups.
        found: u32,
    },
    /// Inode in use that the map marks as free, or the reverse.
    InodeMap {
        /// Inode with the wrong map bit.
        inode: InodeNumber,
        /// Whether the map marks the inode as used.
        is_used: bool,
    },
    /// Link count of an inode that differs from its number of names.
    LinkCount {
        /// Inode with the wrong link count.
        inode: InodeNumber,
        /// Stored link count of the inode.
        links: u32,
        /// Number of names found for the inode.
        names: u32,
    },
    /// Inode without a name that no process has open.
    Unreferenced {
        /// Inode without a name.
        inode: InodeNumber,
    },
    /// Directory entry that refers to a free inode.
    DanglingName {
        /// Directory that holds the dangling entry.
        directory: InodeNumber,
        /// Name of the dangling entry.
        name: String,
    },
    /// Directory that the walk from the root does not reach, or reaches twice.
    Disconnected {
        /// Directory that is not reached exactly once.
        directory: InodeNumber,
    },
    /// Directory with damaged contents.
    DirectoryDamage {
        /// Directory that is damaged.
        directory: InodeNumber,
        /// Description of the damage.
        what: &'static str,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadAddress {
                inode,
                address,
                fragments,
            } => {
                write!(
                    f,
                    "inode {}: bad address {} ({fragments} fragments)",
                    inode.0, address.0
                )
            }
            Self::ClaimedTwice { inode, address } => {
                write!(
                    f,
                    "inode {}: fragment {} is claimed twice",
                    inode.0, address.0
                )
            }
            Self::ClaimedButFree { address } => {
                write!(
                    f,
                    "fragment {} belongs to a file but is free in the map",
                    address.0
                )
            }
            Self::LostFragment { address } => {
                write!(
                    f,
                    "fragment {} is allocated in the map but belongs to no file",
                    address.0
                )
            }
            Self::BeyondEnd { inode, lbn } => {
                write!(
                    f,
                    "inode {}: block {lbn} is beyond the end of the file",
                    inode.0
                )
            }
            Self::IndirectDamage { inode } => {
                write!(f, "inode {}: inconsistent tree of indirect blocks", inode.0)
            }
            Self::LostIndirect { kept, reached } => {
                write!(
                    f,
                    "{kept} indirect blocks are in core, but inodes reach {reached}"
                )
            }
            Self::GroupCount {
                group,
                what,
                counted,
                found,
            } => {
                write!(
                    f,
                    "group {}: count of {what} is {counted}, but {found} were found",
                    group.0
                )
            }
            Self::Total {
                what,
                counted,
                found,
            } => {
                write!(
                    f,
                    "superblock: count of {what} is {counted}, but {found} were found"
                )
            }
            Self::InodeMap {
                inode,
                is_used: true,
            } => {
                write!(
                    f,
                    "inode {} is allocated in the map but not in use",
                    inode.0
                )
            }
            Self::InodeMap {
                inode,
                is_used: false,
            } => {
                write!(f, "inode {} is in use but free in the map", inode.0)
            }
            Self::LinkCount {
                inode,
                links,
                names,
            } => {
                write!(f, "inode {}: link count {links}, {names} names", inode.0)
            }
            Self::Unreferenced { inode } => write!(f, "inode {} has no name", inode.0),
            Self::DanglingName { directory, name } => {
                write!(f, "directory {}: {name} names a free inode", directory.0)
            }
            Self::Disconnected { directory } => {
                write!(
                    f,
                    "directory {} is not reached exactly once from the root",
                    directory.0
                )
            }
            Self::DirectoryDamage { directory, what } => {
                write!(f, "directory {}: {what}", directory.0)
            }
        }
    }
}

impl FileSystem {
    /// Checks the whole file system. No operation may be in progress and no unnamed file may be
    /// open.
    ///
    /// # Errors
    /// All inconsistencies found.
    pub fn check(&self) -> Result<CheckSummary, Vec<Problem>> {
        self.check_while_open(&[])
    }

    /// Checks the whole file system. The inodes in `open` may be without a name.
    ///
    /// # Errors
    /// All inconsistencies found.
    pub fn check_while_open(&self, open: &[InodeNumber]) -> Result<CheckSummary, Vec<Problem>> {
        let mut problems = Vec::new();
        let claims = Claims::collect(self, &mut problems);
        self.check_free_map(&claims, &mut problems);
        self.check_inodes(&mut problems);
        for group in (0..self.superblock.group_count()).map(Group) {
            self.check_group_counters(group, &mut problems);
        }
        self.check_totals(&mut problems);
        let (files, directories) = self.check_names(open, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let unlinked = open.iter().filter(|&&inode| {
            self.inodes
                .try_get(inode)
                .is_some_and(|record| record.link_count == 0)
        });
        Ok(CheckSummary {
            files,
            directories,
            open_unlinked: unlinked.count() as u32,
            used_fragments: claims.used_fragments(),
            free: self.total_summary,
        })
    }

    fn check_free_map(&self, claims: &Claims, problems: &mut Vec<Problem>) {
        for group in (0..self.superblock.group_count()).map(Group) {
            let base = self.superblock.group_base(group).0;
            for address in base..self.superblock.group_end(group).0 {
                let is_free = self.groups[group.0 as usize].is_free(address - base);
                let address = Fragment(address);
                match (claims.is_claimed(address), is_free) {
                    (true, true) => problems.push(Problem::ClaimedButFree { address }),
                    (false, false) => problems.push(Problem::LostFragment { address }),
                    _ => {}
                }
            }
        }
    }

    fn check_inodes(&self, problems: &mut Vec<Problem>) {
        let per_group = self.superblock.inodes_per_group();
        for inode in (0..self.inodes.len()).map(InodeNumber) {
            let group = &self.groups[(inode.0 / per_group) as usize];
            let is_used = group.is_inode_used(inode.0 % per_group);
            let should = inode.0 < RESERVED_INODES || self.inodes.try_get(inode).is_some();
            if is_used != should {
                problems.push(Problem::InodeMap { inode, is_used });
            }
        }
    }

    fn check_group_counters(&self, group: Group, problems: &mut Vec<Problem>) {
        let superblock = &self.superblock;
        let map = &self.groups[group.0 as usize];
        let per_block = superblock.fragments_per_block();
        let cylinders = superblock.parameters().cylinders_per_group as usize;
        let mut found = GroupSummary::default();
        let mut by_cylinder = vec![0; cylinders];
        let mut by_position = vec![[0; ROTATIONAL_POSITIONS]; cylinders];
        let mut fragment_runs = [0; 8];
        for block in (0..superblock.fragments_per_group()).step_by(per_block as usize) {
            if map.is_block_free(superblock, block) {
                let place = superblock.block_positions[(block / per_block) as usize];
                by_cylinder[place.cylinder as usize] += 1;
                by_position[place.cylinder as usize][place.position as usize] += 1;
                found.free_blocks += 1;
                continue;
            }
            for (_, length) in free_runs(map.block_bits(superblock, block), per_block) {
                fragment_runs[length as usize] += 1;
                found.free_fragments += length;
            }
        }
        let used: u32 = map.inodes_used.iter().map(|word| word.count_ones()).sum();
        found.free_inodes = superblock.inodes_per_group() - used;
        found.directories = self.directories_in(group);
        let mut differ = |what, counted: u32, found: u32| {
            if counted != found {
                problems.push(Problem::GroupCount {
                    group,
                    what,
                    counted,
                    found,
                });
            }
        };
        compare_summaries(&self.summaries[group.0 as usize], &found, &mut differ);
        for cylinder in 0..cylinders {
            differ(
                "blocks of a cylinder",
                map.free_by_cylinder[cylinder],
                by_cylinder[cylinder],
            );
            for (counted, found) in map.free_by_position[cylinder]
                .iter()
                .zip(by_position[cylinder])
            {
                differ(
                    "blocks of a rotational position",
                    u32::from(*counted),
                    found,
                );
            }
        }
        for (counted, found) in map.fragment_runs.iter().zip(fragment_runs) {
            differ("runs of fragments", *counted, found);
        }
    }

    fn directories_in(&self, group: Group) -> u32 {
        let per_group = self.superblock.inodes_per_group();
        (group.0 * per_group..(group.0 + 1) * per_group)
            .filter_map(|inode| self.inodes.try_get(InodeNumber(inode)))
            .filter(|record| record.kind == InodeKind::Directory)
            .count() as u32
    }

    fn check_totals(&self, problems: &mut Vec<Problem>) {
        let mut sum = GroupSummary::default();
        for summary in &self.summaries {
            sum.add(summary);
        }
        compare_summaries(&self.total_summary, &sum, &mut |what, counted, found| {
            if counted != found {
                problems.push(Problem::Total {
                    what,
                    counted,
                    found,
                });
            }
        });
    }
}

fn compare_summaries(
    counted: &GroupSummary,
    found: &GroupSummary,
    differ: &mut impl FnMut(&'static str, u32, u32),
) {
    differ("free blocks", counted.free_blocks, found.free_blocks);
    differ(
        "free fragments",
        counted.free_fragments,
        found.free_fragments,
    );
    differ("free inodes", counted.free_inodes, found.free_inodes);
    differ("directories", counted.directories, found.directories);
}

fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX_BYTES && !name.contains(['/', '\0'])
}
