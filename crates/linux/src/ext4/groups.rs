//! Block groups, and the choice of inodes in them.

use std::collections::BTreeSet;

use super::bitmap::BlockBitmap;
use super::geometry::{FIRST_INODE, FLEX_GROUPS, Geometry};
use crate::file_system::FileKind;

/// Count whose processors keep changes back until they have a batch (percpu_counter).
#[derive(Clone, Debug)]
pub(super) struct BatchedCounter {
    count: i64,
    pending: i64,
    batch: i64,
}

impl BatchedCounter {
    fn new(count: u64, processors: u32) -> Self {
        // A kernel for one processor counts at once.
        let batch = if processors == 1 {
            1
        } else {
            32.max(2 * i64::from(processors))
        };
        Self {
            count: count as i64,
            pending: 0,
            batch,
        }
    }

    pub(super) fn add(&mut self, amount: i64) {
        self.pending += amount;
        if self.pending.abs() >= self.batch {
            self.count += self.pending;
            self.pending = 0;
        }
    }

    fn read(&self) -> u64 {
        self.count.max(0) as u64
    }
}

/// Block group with its free blocks and inodes.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Blocks that the allocator may not give away.
    pub(super) blocks: BlockBitmap,
    /// Free blocks as the descriptor counts them.
    pub(super) free_blocks: u64,
    /// Whether the block bitmap was never written (BLOCK_UNINIT).
    pub(super) is_bitmap_computed: bool,
    /// Whether the allocator has looked at the bitmap since the mount.
    pub(super) is_loaded: bool,
    /// Whether all free space was discarded and nothing freed since.
    pub(super) is_trimmed: bool,
    used_inodes: BTreeSet<u64>,
    /// Inode below which all of the group are used.
    free_inode_min: u64,
    free_inodes: u64,
    directories: u64,
}

/// Groups of a file system with its counters.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    pub(super) free_blocks: BatchedCounter,
    free_inodes: BatchedCounter,
    directories: BatchedCounter,
}

impl Groups {
    pub(super) fn new(geometry: &Geometry, processors: u32) -> Self {
        let mut groups: Vec<Group> = (0..geometry.groups)
            .map(|group| Group {
                blocks: BlockBitmap::new(geometry.group_blocks(group), geometry.chunk_order_max()),
                free_blocks: 0,
                is_bitmap_computed: geometry.has_computed_bitmap(group),
                is_loaded: false,
                is_trimmed: false,
                used_inodes: BTreeSet::new(),
                free_inode_min: 0,
                free_inodes: geometry.inodes_per_group,
                directories: 0,
            })
            .collect();
        for range in geometry.used_by_mkfs() {
            for block in range {
                let group = geometry.group_of_block(block);
                let offset = block - geometry.group_first(group);
                groups[group as usize].blocks.set_used(offset..offset + 1);
            }
        }
        for group in &mut groups {
            group.free_blocks = group.blocks.free();
        }
        groups[0].used_inodes = (1..=FIRST_INODE).collect();
        groups[0].free_inodes -= FIRST_INODE;
        groups[0].directories = 2;
        let total = |count: fn(&Group) -> u64| groups.iter().map(count).sum::<u64>();
        Self {
            free_blocks: BatchedCounter::new(total(|group| group.free_blocks), processors),
            free_inodes: BatchedCounter::new(total(|group| group.free_inodes), processors),
            directories: BatchedCounter::new(2, processors),
            groups,
        }
    }

    fn has_free_inode(&self, group: u64) -> bool {
        self.groups[group as usize].free_inodes > 0
    }

    /// Sum of a count over the groups of a flex group.
    fn flex_sum(&self, flex: u64, count: impl Fn(&Group) -> u64) -> u64 {
        let groups = self.groups.iter().skip((flex * FLEX_GROUPS) as usize);
        groups.take(FLEX_GROUPS as usize).map(count).sum()
    }

    /// First group of a flex group that has a free inode.
    fn first_in_flex(&self, flex: u64) -> Option<u64> {
        let first = flex * FLEX_GROUPS;
        let end = (first + FLEX_GROUPS).min(self.groups.len() as u64);
        (first..end).find(|group| self.has_free_inode(*group))
    }

    /// Group for a directory (Orlov's allocator). First-level directories are spread over flex
    /// groups that are not below the average; the counters behind the averages lag.
    fn directory_group(
        &self,
        parent_group: u64,
        is_parent_root: bool,
        inodes_per_group: u64,
        name_hash: u64,
    ) -> Option<u64> {
        let count = self.groups.len() as u64;
        let flexes = count.div_ceil(FLEX_GROUPS);
        let average_inodes = self.free_inodes.read() / flexes;
        let average_blocks = self.free_blocks.read() / flexes;
        let inodes = |flex| self.flex_sum(flex, |group| group.free_inodes);
        let blocks = |flex| self.flex_sum(flex, |group| group.free_blocks);
        let directories = |flex| self.flex_sum(flex, |group| group.directories);
        let chosen = if is_parent_root {
            let mut best: Option<(u64, u64)> = None;
            for flex in (0..flexes).map(|index| (name_hash + index) % flexes) {
                let limit = best.map_or(inodes_per_group, |(directories, _)| directories);
                let is_good = inodes(flex) > 0
                    && directories(flex) < limit
                    && inodes(flex) >= average_inodes
                    && blocks(flex) >= average_blocks;
                if is_good {
                    best = Some((directories(flex), flex));
                }
            }
            best.map(|(_, flex)| flex)
        } else {
            let quarter = inodes_per_group * FLEX_GROUPS / 4;
            let inodes_min = average_inodes.saturating_sub(quarter).max(1);
            let directories_max =
                self.directories.read() / flexes + inodes_per_group * FLEX_GROUPS / 16;
            let first = parent_group / FLEX_GROUPS;
            (0..flexes)
                .map(|index| (first + index) % flexes)
                .find(|flex| directories(*flex) < directories_max && inodes(*flex) >= inodes_min)
        };
        chosen
            .and_then(|flex| self.first_in_flex(flex))
            .or_else(|| {
                let average = self.free_inodes.read() / count;
                let groups = || (0..count).map(|index| (parent_group + index) % count);
                let free = |group: u64| self.groups[group as usize].free_inodes;
                groups()
                    .find(|group| free(*group) > 0 && free(*group) >= average)
                    .or_else(|| groups().find(|group| free(*group) > 0))
            })
    }

    /// Group for a file: the first with a free inode in its directory's flex group.
    fn file_group(&self, parent_group: u64) -> Option<u64> {
        let count = self.groups.len() as u64;
        self.first_in_flex(parent_group / FLEX_GROUPS)
            .or_else(|| (0..count).find(|group| self.has_free_inode(*group)))
    }

    /// Chooses and takes an inode. `is_avoided` says which inodes were freed recently and are
    /// taken only when no other is free.
    pub(super) fn take_inode(
        &mut self,
        geometry: &Geometry,
        parent: u64,
        kind: FileKind,
        name_hash: u64,
        is_avoided: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let parent_group = geometry.group_of_inode(parent);
        let is_parent_root = parent == super::geometry::ROOT_INODE;
        let group = match kind {
            FileKind::Directory => self.directory_group(
                parent_group,
                is_parent_root,
                geometry.inodes_per_group,
                name_hash,
            )?,
            FileKind::Regular => self.file_group(parent_group)?,
        };
        let first = group * geometry.inodes_per_group + 1;
        let state = &mut self.groups[group as usize];
        let free = || {
            (first.max(state.free_inode_min)..first + geometry.inodes_per_group)
                .filter(|inode| !state.used_inodes.contains(inode))
        };
        let lowest = free().next()?;
        let inode = free()
            .find(|inode| !is_avoided(*inode))
            .or_else(|| free().next_back())?;
        state.used_inodes.insert(inode);
        if inode == lowest {
            state.free_inode_min = inode + 1;
        }
        state.free_inodes -= 1;
        self.free_inodes.add(-1);
        if kind == FileKind::Directory {
            state.directories += 1;
            self.directories.add(1);
        }
        Some(inode)
    }

    pub(super) fn free_inode(&mut self, geometry: &Geometry, inode: u64, kind: FileKind) {
        let group = &mut self.groups[geometry.group_of_inode(inode) as usize];
        group.used_inodes.remove(&inode);
        group.free_inode_min = group.free_inode_min.min(inode);
        group.free_inodes += 1;
        self.free_inodes.add(1);
        if kind == FileKind::Directory {
            group.directories -= 1;
            self.directories.add(-1);
        }
    }
}
