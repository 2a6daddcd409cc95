//! Allocation of blocks, fragments and inodes over all cylinder groups: the order in which groups
//! are tried, the free-space reserve, and the change in one group.

use super::FastFileSystem;
use super::inode::{InodeKind, InodeNumber};
use super::superblock::{FragmentAddress, GroupIndex};
use std::fmt;

/// Error of an allocation on a full file system, or on one with only the reserve left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSpaceLeft;

impl fmt::Display for NoSpaceLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no space left on the file system")
    }
}

impl std::error::Error for NoSpaceLeft {}

/// Cylinder group to try in an allocation, and whether the preferred address applies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCandidate {
    /// Cylinder group to try in the allocation.
    pub group: GroupIndex,
    /// Whether the allocation looks for the preferred address in this group. Only the first group
    /// does; a group reached by rehashing allocates from its rotor.
    pub is_preferred: bool,
}

/// Iterator over the cylinder groups in the order in which an allocation tries them: the preferred
/// group; then 1, 2, 4, ... groups further on (added up, modulo the number of groups); then all
/// groups from the second after the preferred one.
///
/// A group may occur twice. The iterator covers every group before it ends.
#[derive(Debug, Clone)]
pub struct AllocationSearch {
    group_count: u32,
    first_group: u32,
    search_stage: SearchStage,
}

#[derive(Debug, Clone)]
enum SearchStage {
    PreferredGroup,
    QuadraticRehash { last: u32, step: u32 },
    LinearSearch { tried: u32 },
}

impl AllocationSearch {
    pub(super) fn new(groups: u32, first: GroupIndex) -> Self {
        assert!(
            first.0 < groups,
            "the search starts in a group of the file system"
        );
        Self {
            group_count: groups,
            first_group: first.0,
            search_stage: SearchStage::PreferredGroup,
        }
    }
}

impl Iterator for AllocationSearch {
    type Item = GroupCandidate;

    fn next(&mut self) -> Option<GroupCandidate> {
        let rehashed = |group| {
            Some(GroupCandidate {
                group: GroupIndex(group),
                is_preferred: false,
            })
        };
        loop {
            match self.search_stage {
                SearchStage::PreferredGroup => {
                    self.search_stage = SearchStage::QuadraticRehash {
                        last: self.first_group,
                        step: 1,
                    };
                    return Some(GroupCandidate {
                        group: GroupIndex(self.first_group),
                        is_preferred: true,
                    });
                }
                SearchStage::QuadraticRehash { last, step } if step < self.group_count => {
                    let group = (last + step) % self.group_count;
                    self.search_stage = SearchStage::QuadraticRehash {
                        last: group,
                        step: step * 2,
                    };
                    return rehashed(group);
                }
                // The first was tried, and the one after it is always the
                // first of the rehash.
                SearchStage::QuadraticRehash { .. } => {
                    self.search_stage = SearchStage::LinearSearch { tried: 2 }
                }
                SearchStage::LinearSearch { tried } if tried < self.group_count => {
                    self.search_stage = SearchStage::LinearSearch { tried: tried + 1 };
                    return rehashed((self.first_group + tried) % self.group_count);
                }
                SearchStage::LinearSearch { .. } => return None,
            }
        }
    }
}

impl FastFileSystem {
    /// Returns the free fragments that a user other than the super-user may still allocate. The
    /// number is zero or negative when only the reserve is left.
    #[must_use]
    pub fn free_space_fragments(&self) -> i64 {
        let per_block = i64::from(self.superblock.fragments_per_block());
        let percent = i64::from(self.superblock.parameters().minfree_percent);
        let reserve = i64::from(self.superblock.data_fragments) * percent / 100;
        i64::from(self.total_summary.free_block_count) * per_block
            + i64::from(self.total_summary.free_fragment_count)
            - reserve
    }

    /// Tests whether an allocation of `fragments` may be tried at all. The super-user may use the
    /// reserve. An extension in place is tested with its new size.
    ///
    /// # Errors
    /// [`NoSpaceLeft`] when a whole block is wanted and none is free, or only the reserve is left.
    pub fn require_free_space(
        &self,
        fragments: u32,
        is_super_user: bool,
    ) -> Result<(), NoSpaceLeft> {
        let whole_block = fragments == self.superblock.fragments_per_block();
        if whole_block && self.total_summary.free_block_count == 0 {
            return Err(NoSpaceLeft);
        }
        self.require_free_space_for_growth(is_super_user)
    }

    /// Tests whether a fragment may be extended. Only the reserve counts, because the extension may
    /// succeed in place.
    ///
    /// # Errors
    /// [`NoSpaceLeft`] when only the reserve is left.
    pub fn require_free_space_for_growth(&self, is_super_user: bool) -> Result<(), NoSpaceLeft> {
        if !is_super_user && self.free_space_fragments() <= 0 {
            return Err(NoSpaceLeft);
        }
        Ok(())
    }

    /// Returns the cylinder groups to try for a block, in order. Without a usable preference the
    /// search starts in the inode's group.
    ///
    /// Pass the preference to [`Self::allocate_in_group`] only for a candidate with `is_preferred`.
    #[must_use]
    pub fn allocation_search(
        &self,
        inode: InodeNumber,
        preference: Option<FragmentAddress>,
    ) -> AllocationSearch {
        let group = match self.usable_preference(preference) {
            Some(address) => self.superblock.group_of(address),
            None => self.superblock.group_of_inode(inode),
        };
        AllocationSearch::new(self.superblock.group_count(), group)
    }

    /// Returns the cylinder groups to try for a fragment that could not be extended in place. The
    /// search starts in the fragment's own group, whatever the preference.
    #[must_use]
    pub fn relocation_search(&self, address: FragmentAddress) -> AllocationSearch {
        let group = self.superblock.group_of(address);
        AllocationSearch::new(self.superblock.group_count(), group)
    }

    /// Drops an allocation preference beyond the end of the file system.
    fn usable_preference(&self, preference: Option<FragmentAddress>) -> Option<FragmentAddress> {
        preference.filter(|address| address.0 < self.superblock.size_fragments())
    }

    /// Reports whether the in-core summary admits an allocation of `fragments` in a cylinder group.
    /// If not, the group's map is not even read. A group without whole free blocks may still have
    /// free fragments.
    #[must_use]
    pub fn group_may_hold(&self, group: GroupIndex, fragments: u32) -> bool {
        fragments < self.superblock.fragments_per_block()
            || self.summaries[group.0 as usize].free_block_count > 0
    }

    /// Allocates a whole block or `fragments` fragments in one cylinder group. The group's map must
    /// be in core. Returns `None`, with the map unchanged, if nothing of this size is free.
    ///
    /// # Panics
    /// Panics if `fragments` is not 1 to a block, or the group does not exist.
    pub fn allocate_in_group(
        &mut self,
        group: GroupIndex,
        preference: Option<FragmentAddress>,
        fragments: u32,
    ) -> Option<FragmentAddress> {
        let per_block = self.superblock.fragments_per_block();
        assert!(
            (1..=per_block).contains(&fragments),
            "1 to {per_block} fragments: {fragments}"
        );
        if !self.group_may_hold(group, fragments) {
            return None;
        }
        let base = self.superblock.group_base(group).0;
        let preference = self
            .usable_preference(preference)
            .map(|address| address.0 % self.superblock.fragments_per_group());
        let summary = &mut self.summaries[group.0 as usize];
        let before = *summary;
        let map = &mut self.groups[group.0 as usize];
        let found = if fragments == per_block {
            map.allocate_block(&self.superblock, summary, preference)
        } else {
            map.allocate_fragments(&self.superblock, summary, preference, fragments)
        };
        self.update_total_summary(group, before);
        found.map(|fragment| FragmentAddress(base + fragment))
    }

    /// Reports whether an extension of fragments in place is possible: they would stay inside their
    /// block, and the summary has enough free fragments. If not, the group's map is not even read.
    #[must_use]
    pub fn may_extend(
        &self,
        address: FragmentAddress,
        old_fragments: u32,
        new_fragments: u32,
    ) -> bool {
        let per_block = self.superblock.fragments_per_block();
        let group = self.superblock.group_of(address);
        self.summaries[group.0 as usize].free_fragment_count >= new_fragments - old_fragments
            && address.0 % per_block + new_fragments <= per_block
    }

    /// Extends fragments in place and returns whether that succeeded. The group's map must be in
    /// core; it changes only on success.
    ///
    /// # Panics
    /// Panics if the new size is not larger than the old one.
    pub fn extend_fragments(
        &mut self,
        address: FragmentAddress,
        old_fragments: u32,
        new_fragments: u32,
    ) -> bool {
        assert!(
            0 < old_fragments && old_fragments < new_fragments,
            "fragments grow"
        );
        if !self.may_extend(address, old_fragments, new_fragments) {
            return false;
        }
        let group = self.superblock.group_of(address);
        let fragment = address.0 - self.superblock.group_base(group).0;
        let summary = &mut self.summaries[group.0 as usize];
        let before = *summary;
        let extended = self.groups[group.0 as usize].extend_fragments(
            &self.superblock,
            summary,
            fragment,
            old_fragments,
            new_fragments,
        );
        self.update_total_summary(group, before);
        extended
    }

    /// Frees a block or a part of one. The group's map must be in core.
    ///
    /// # Panics
    /// Panics if a fragment is free already, lies outside the file system, or crosses a block.
    pub fn free_fragments(&mut self, address: FragmentAddress, fragments: u32) {
        let per_block = self.superblock.fragments_per_block();
        assert!(
            fragments > 0
                && address.0 % per_block + fragments <= per_block
                && address.0 + fragments <= self.superblock.size_fragments(),
            "freed fragments are inside one block of the file system: {address:?}, {fragments}"
        );
        let group = self.superblock.group_of(address);
        let fragment = address.0 - self.superblock.group_base(group).0;
        let summary = &mut self.summaries[group.0 as usize];
        let before = *summary;
        let map = &mut self.groups[group.0 as usize];
        if fragments == per_block {
            assert!(
                map.block_bits(&self.superblock, fragment) == 0,
                "a free block is freed: {address:?}"
            );
            map.free_block(&self.superblock, summary, fragment);
        } else {
            map.free_fragments(&self.superblock, summary, fragment, fragments);
        }
        self.update_total_summary(group, before);
    }

    /// Adds the change of a cylinder group's summary to the totals of the file system.
    pub(super) fn update_total_summary(&mut self, group: GroupIndex, before: super::GroupSummary) {
        let now = self.summaries[group.0 as usize];
        let carry = |total: &mut u32, before: u32, now: u32| *total = *total + now - before;
        carry(
            &mut self.total_summary.directory_count,
            before.directory_count,
            now.directory_count,
        );
        carry(
            &mut self.total_summary.free_block_count,
            before.free_block_count,
            now.free_block_count,
        );
        carry(
            &mut self.total_summary.free_inode_count,
            before.free_inode_count,
            now.free_inode_count,
        );
        carry(
            &mut self.total_summary.free_fragment_count,
            before.free_fragment_count,
            now.free_fragment_count,
        );
    }

    /// Returns the inode near which a new inode should be allocated. For a directory: the cylinder
    /// group with the fewest directories among those with at least the average number of free
    /// inodes. For a file: the directory that it is created in.
    #[must_use]
    pub fn inode_preference(&self, parent: InodeNumber, kind: InodeKind) -> InodeNumber {
        match kind {
            InodeKind::RegularFile => parent,
            InodeKind::Directory => {
                let average = self.total_summary.free_inode_count / self.superblock.group_count();
                let mut fewest = self.superblock.inodes_per_group();
                let mut best = 0;
                for (group, summary) in self.summaries.iter().enumerate() {
                    if summary.directory_count < fewest && summary.free_inode_count >= average {
                        fewest = summary.directory_count;
                        best = group as u32;
                    }
                }
                InodeNumber(best * self.superblock.inodes_per_group())
            }
        }
    }

    /// Returns the cylinder groups to try for a new inode, in order.
    #[must_use]
    pub fn inode_search(&self, preference: InodeNumber) -> AllocationSearch {
        let group = self.superblock.group_of_inode(preference);
        AllocationSearch::new(self.superblock.group_count(), group)
    }

    /// Reports whether the in-core summary of a cylinder group has a free inode. If not, the
    /// group's map is not even read.
    #[must_use]
    pub fn group_may_hold_inode(&self, group: GroupIndex) -> bool {
        self.summaries[group.0 as usize].free_inode_count > 0
    }

    /// Allocates an inode in one cylinder group, whose map must be in core. The new inode is empty,
    /// with a link count of 0; the kernel sets the count and writes the inode block. Returns `None`
    /// if the group has no free inode.
    ///
    /// Pass the preference only for the first candidate of the search.
    pub fn allocate_inode(
        &mut self,
        group: GroupIndex,
        preference: Option<InodeNumber>,
        kind: InodeKind,
    ) -> Option<InodeNumber> {
        if !self.group_may_hold_inode(group) {
            return None;
        }
        let per_group = self.superblock.inodes_per_group();
        // Inode 0 as a preference is no preference: it stands for group 0.
        let preference = preference
            .filter(|inode| inode.0 != 0)
            .map(|inode| inode.0 % per_group);
        let index = self.groups[group.0 as usize]
            .allocate_inode(preference, per_group)
            .expect("the summary says that an inode is free");
        let before = self.summaries[group.0 as usize];
        let summary = &mut self.summaries[group.0 as usize];
        summary.free_inode_count -= 1;
        if kind == InodeKind::Directory {
            summary.directory_count += 1;
        }
        self.update_total_summary(group, before);
        let inode = InodeNumber(group.0 * per_group + index);
        self.inodes.insert_inode(inode, kind);
        Some(inode)
    }

    /// Frees an inode without names and without blocks. The map of its cylinder group must be in
    /// core.
    ///
    /// # Panics
    /// Panics if the inode is free, is linked, or still has blocks.
    pub fn free_inode(&mut self, inode: InodeNumber) {
        let record = self.inodes.remove_inode(inode);
        assert!(record.link_count == 0, "a linked inode is freed: {inode:?}");
        assert!(
            !record.has_blocks(),
            "an inode with blocks is freed: {inode:?}"
        );
        let group = self.superblock.group_of_inode(inode);
        let index = inode.0 % self.superblock.inodes_per_group();
        self.groups[group.0 as usize].set_inode_used(index, false);
        let before = self.summaries[group.0 as usize];
        let summary = &mut self.summaries[group.0 as usize];
        summary.free_inode_count += 1;
        if record.inode_kind == InodeKind::Directory {
            summary.directory_count -= 1;
        }
        self.update_total_summary(group, before);
    }
}
