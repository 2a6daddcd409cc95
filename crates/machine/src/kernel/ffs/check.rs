//! The consistency check, in the manner of fsck: what the maps and counters
//! say is made again from the inodes and directories and compared.

mod claims;
mod connectivity;

use super::FileSystem;
use super::directory::NAME_MAX_BYTES;
use super::group::{GroupSummary, runs};
use super::inode::{InodeKind, InodeNumber};
use super::newfs::RESERVED_INODES;
use super::rotation::ROTATIONAL_POSITIONS;
use super::superblock::{Fragment, Group};
use claims::Claims;
use std::fmt;

/// What a sound file system holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckSummary {
    /// Files.
    pub files: u32,
    /// Directories, the root and `lost+found` among them.
    pub directories: u32,
    /// Inodes without a name that the caller says are open.
    pub open_unlinked: u32,
    /// Fragments that files, directories and their indirect blocks hold.
    pub used_fragments: u32,
    /// Free space and inodes.
    pub free: GroupSummary,
}

/// Something that does not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A pointer to what is no data, crosses a block, or is outside.
    BadAddress {
        /// Whose pointer.
        inode: InodeNumber,
        /// Where to.
        address: Fragment,
        /// How much.
        fragments: u32,
    },
    /// A fragment that two pointers claim.
    ClaimedTwice {
        /// The later claimant.
        inode: InodeNumber,
        /// The fragment.
        address: Fragment,
    },
    /// A fragment that is claimed, and free in the map.
    ClaimedButFree {
        /// The fragment.
        address: Fragment,
    },
    /// A fragment that nothing claims, and is not free in the map.
    LostFragment {
        /// The fragment.
        address: Fragment,
    },
    /// A data pointer behind the end of the file.
    BeyondEnd {
        /// The inode.
        inode: InodeNumber,
        /// The block of the file.
        lbn: u32,
    },
    /// Indirect blocks that are not linked as they should be.
    IndirectDamage {
        /// The inode.
        inode: InodeNumber,
    },
    /// Indirect blocks in core that no inode has.
    LostIndirect {
        /// In core.
        kept: u32,
        /// Reached from inodes.
        reached: u32,
    },
    /// A counter of a group that is not what its map says.
    GroupCount {
        /// The group.
        group: Group,
        /// Which counter.
        what: &'static str,
        /// Its value.
        counted: u32,
        /// What the map says.
        found: u32,
    },
    /// A total in the superblock that is not the sum over the groups.
    Total {
        /// Which total.
        what: &'static str,
        /// Its value.
        counted: u32,
        /// The sum.
        found: u32,
    },
    /// An inode that is used and not in the map, or the other way round.
    InodeMap {
        /// The inode.
        inode: InodeNumber,
        /// What the map says.
        is_used: bool,
    },
    /// A link count that is not the number of names.
    LinkCount {
        /// The inode.
        inode: InodeNumber,
        /// Its link count.
        links: u32,
        /// Names found.
        names: u32,
    },
    /// An inode without a name that nobody has open.
    Unreferenced {
        /// The inode.
        inode: InodeNumber,
    },
    /// A name of an inode that is not in use.
    DanglingName {
        /// The directory.
        directory: InodeNumber,
        /// The name.
        name: String,
    },
    /// A directory that is not reached from the root, or is reached twice.
    Disconnected {
        /// The directory.
        directory: InodeNumber,
    },
    /// A directory whose contents are wrong.
    DirectoryDamage {
        /// The directory.
        directory: InodeNumber,
        /// What is wrong.
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
                write!(f, "fragment {} is claimed and free in the map", address.0)
            }
            Self::LostFragment { address } => {
                write!(
                    f,
                    "fragment {} is not claimed and not free in the map",
                    address.0
                )
            }
            Self::BeyondEnd { inode, lbn } => {
                write!(f, "inode {}: block {lbn} is behind the end", inode.0)
            }
            Self::IndirectDamage { inode } => {
                write!(f, "inode {}: indirect blocks are not linked right", inode.0)
            }
            Self::LostIndirect { kept, reached } => {
                write!(
                    f,
                    "{kept} indirect blocks in core, {reached} belong to inodes"
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
                    "group {}: {what} counted {counted}, found {found}",
                    group.0
                )
            }
            Self::Total {
                what,
                counted,
                found,
            } => {
                write!(f, "superblock: {what} counted {counted}, found {found}")
            }
            Self::InodeMap {
                inode,
                is_used: true,
            } => {
                write!(f, "inode {} is used in the map only", inode.0)
            }
            Self::InodeMap {
                inode,
                is_used: false,
            } => {
                write!(f, "inode {} is in use and free in the map", inode.0)
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
                    "directory {} is not reached once from the root",
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
    /// Checks everything, while nothing is under way and no file without a
    /// name is open.
    ///
    /// # Errors
    /// Everything that does not fit together.
    pub fn check(&self) -> Result<CheckSummary, Vec<Problem>> {
        self.check_while_open(&[])
    }

    /// Checks everything; the inodes of `open` may be without a name.
    ///
    /// # Errors
    /// Everything that does not fit together.
    pub fn check_while_open(&self, open: &[InodeNumber]) -> Result<CheckSummary, Vec<Problem>> {
        let mut problems = Vec::new();
        let claims = Claims::of(self, &mut problems);
        self.check_free_map(&claims, &mut problems);
        self.check_inodes(&mut problems);
        for group in (0..self.superblock.groups()).map(Group) {
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
                .is_some_and(|record| record.links == 0)
        });
        Ok(CheckSummary {
            files,
            directories,
            open_unlinked: unlinked.count() as u32,
            used_fragments: claims.used_fragments(),
            free: self.total,
        })
    }

    fn check_free_map(&self, claims: &Claims, problems: &mut Vec<Problem>) {
        for group in (0..self.superblock.groups()).map(Group) {
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

    /// The inode maps against the inodes in use.
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

    /// The counters of a group made again from its maps.
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
                let place = superblock.places[(block / per_block) as usize];
                by_cylinder[place.cylinder as usize] += 1;
                by_position[place.cylinder as usize][place.position as usize] += 1;
                found.free_blocks += 1;
                continue;
            }
            for (_, length) in runs(map.block_bits(superblock, block), per_block) {
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
        compare_summaries(&self.total, &sum, &mut |what, counted, found| {
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

/// Whether a name may stand in a directory.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX_BYTES && !name.contains(['/', '\0'])
}
