//! Consistency check of a 4.2BSD file system in the manner of fsck. It recomputes maps and counters
//! from the inodes and directories and compares them with the stored ones.

mod claims;
mod connectivity;

use super::FastFileSystem;
use super::directory::NAME_BYTES_MAX;
use super::group::{GroupSummary, free_runs};
use super::inode::{InodeKind, InodeNumber};
use super::newfs::RESERVED_INODES;
use super::rotation::ROTATIONAL_POSITIONS;
use super::superblock::{FragmentAddress, GroupIndex};
use claims::FragmentClaims;
use std::fmt;

/// Counts of files, directories and free space in a consistent file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckSummary {
    /// Number of regular files in the file system.
    pub file_count: u32,
    /// Number of directories, including the root and `lost+found`.
    pub directory_count: u32,
    /// Number of inodes without a name that the caller has listed as open.
    pub open_unlinked_count: u32,
    /// Number of fragments that files, directories and their indirect blocks use.
    pub used_fragment_count: u32,
    /// Free blocks, fragments and inodes of the file system.
    pub free_summary: GroupSummary,
}

/// Inconsistency that the check of a 4.2BSD file system has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsistencyProblem {
    /// Pointer to an address that is outside the file system or crosses a block.
    BadAddress {
        /// Inode that holds the bad pointer.
        inode: InodeNumber,
        /// First fragment that the bad pointer refers to.
        address: FragmentAddress,
        /// Number of fragments that the bad pointer refers to.
        fragments: u32,
    },
    /// Fragment that two pointers claim.
    ClaimedTwice {
        /// Inode whose pointer claimed the fragment second.
        inode: InodeNumber,
        /// Fragment that is claimed twice.
        address: FragmentAddress,
    },
    /// Fragment that a file or metadata claims and that the map marks as free.
    ClaimedButFree {
        /// Fragment that is claimed and free.
        address: FragmentAddress,
    },
    /// Fragment that no file or metadata claims and that the map marks as used.
    LostFragment {
        /// Fragment that is used in the map and claimed by nothing.
        address: FragmentAddress,
    },
    /// Pointer to a data block behind the end of the file.
    BlockBeyondEnd {
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
    WrongGroupCount {
        /// Cylinder group with the wrong counter.
        group: GroupIndex,
        /// Name of the counter.
        what: &'static str,
        /// Stored value of the counter.
        counted: u32,
        /// Value of the counter as recomputed from the map.
        found: u32,
    },
    /// Total in the superblock that disagrees with the sum over the cylinder groups.
    WrongTotal {
        /// Name of the total.
        what: &'static str,
        /// Stored value of the total.
        counted: u32,
        /// Sum over the cylinder groups.
        found: u32,
    },
    /// Inode in use that the map marks as free, or the reverse.
    WrongInodeMap {
        /// Inode with the wrong map bit.
        inode: InodeNumber,
        /// Whether the map marks the inode as used.
        is_used: bool,
    },
    /// Link count of an inode that differs from its number of names.
    WrongLinkCount {
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

impl fmt::Display for ConsistencyProblem {
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
            Self::BlockBeyondEnd { inode, lbn } => {
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
            Self::WrongGroupCount {
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
            Self::WrongTotal {
                what,
                counted,
                found,
            } => {
                write!(
                    f,
                    "superblock: count of {what} is {counted}, but {found} were found"
                )
            }
            Self::WrongInodeMap {
                inode,
                is_used: true,
            } => {
                write!(
                    f,
                    "inode {} is allocated in the map but not in use",
                    inode.0
                )
            }
            Self::WrongInodeMap {
                inode,
                is_used: false,
            } => {
                write!(f, "inode {} is in use but free in the map", inode.0)
            }
            Self::WrongLinkCount {
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

impl FastFileSystem {
    /// Checks the whole file system. No operation may be in progress and no unnamed file may be
    /// open.
    ///
    /// # Errors
    /// All inconsistencies found.
    pub fn check_consistency(&self) -> Result<CheckSummary, Vec<ConsistencyProblem>> {
        self.check_while_open(&[])
    }

    /// Checks the whole file system. The inodes in `open` may be without a name.
    ///
    /// # Errors
    /// All inconsistencies found.
    pub fn check_while_open(
        &self,
        open: &[InodeNumber],
    ) -> Result<CheckSummary, Vec<ConsistencyProblem>> {
        let mut problems = Vec::new();
        let claims = FragmentClaims::collect_claims(self, &mut problems);
        self.check_free_map(&claims, &mut problems);
        self.check_inodes(&mut problems);
        for group in (0..self.superblock.group_count()).map(GroupIndex) {
            self.check_group_counters(group, &mut problems);
        }
        self.check_totals(&mut problems);
        let (files, directories) = self.check_names(open, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let unlinked = open.iter().filter(|&&inode| {
            self.inodes
                .try_inode(inode)
                .is_some_and(|record| record.link_count == 0)
        });
        Ok(CheckSummary {
            file_count: files,
            directory_count: directories,
            open_unlinked_count: unlinked.count() as u32,
            used_fragment_count: claims.used_fragments(),
            free_summary: self.total_summary,
        })
    }

    fn check_free_map(&self, claims: &FragmentClaims, problems: &mut Vec<ConsistencyProblem>) {
        for group in (0..self.superblock.group_count()).map(GroupIndex) {
            let base = self.superblock.group_base(group).0;
            for address in base..self.superblock.group_end(group).0 {
                let is_free = self.groups[group.0 as usize].is_free(address - base);
                let address = FragmentAddress(address);
                match (claims.is_claimed(address), is_free) {
                    (true, true) => problems.push(ConsistencyProblem::ClaimedButFree { address }),
                    (false, false) => problems.push(ConsistencyProblem::LostFragment { address }),
                    _ => {}
                }
            }
        }
    }

    fn check_inodes(&self, problems: &mut Vec<ConsistencyProblem>) {
        let per_group = self.superblock.inodes_per_group();
        for inode in (0..self.inodes.inode_count()).map(InodeNumber) {
            let group = &self.groups[(inode.0 / per_group) as usize];
            let is_used = group.is_inode_used(inode.0 % per_group);
            let should = inode.0 < RESERVED_INODES || self.inodes.try_inode(inode).is_some();
            if is_used != should {
                problems.push(ConsistencyProblem::WrongInodeMap { inode, is_used });
            }
        }
    }

    fn check_group_counters(&self, group: GroupIndex, problems: &mut Vec<ConsistencyProblem>) {
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
                by_position[place.cylinder as usize][place.rotational_position as usize] += 1;
                found.free_block_count += 1;
                continue;
            }
            for (_, length) in free_runs(map.block_bits(superblock, block), per_block) {
                fragment_runs[length as usize] += 1;
                found.free_fragment_count += length;
            }
        }
        let used: u32 = map.inode_bitmap.iter().map(|word| word.count_ones()).sum();
        found.free_inode_count = superblock.inodes_per_group() - used;
        found.directory_count = self.directories_in(group);
        let mut differ = |what, counted: u32, found: u32| {
            if counted != found {
                problems.push(ConsistencyProblem::WrongGroupCount {
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
                map.free_blocks_by_cylinder[cylinder],
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

    fn directories_in(&self, group: GroupIndex) -> u32 {
        let per_group = self.superblock.inodes_per_group();
        (group.0 * per_group..(group.0 + 1) * per_group)
            .filter_map(|inode| self.inodes.try_inode(InodeNumber(inode)))
            .filter(|record| record.inode_kind == InodeKind::Directory)
            .count() as u32
    }

    fn check_totals(&self, problems: &mut Vec<ConsistencyProblem>) {
        let mut sum = GroupSummary::default();
        for summary in &self.summaries {
            sum.add_summary(summary);
        }
        compare_summaries(&self.total_summary, &sum, &mut |what, counted, found| {
            if counted != found {
                problems.push(ConsistencyProblem::WrongTotal {
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
    differ(
        "free blocks",
        counted.free_block_count,
        found.free_block_count,
    );
    differ(
        "free fragments",
        counted.free_fragment_count,
        found.free_fragment_count,
    );
    differ(
        "free inodes",
        counted.free_inode_count,
        found.free_inode_count,
    );
    differ(
        "directories",
        counted.directory_count,
        found.directory_count,
    );
}

fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(['/', '\0'])
}
