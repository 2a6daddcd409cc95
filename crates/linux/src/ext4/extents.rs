//! Extents of a file: in the inode, or in one level of tree blocks.

/// Extents that the inode itself holds.
const INODE_EXTENTS: usize = 4;
/// Blocks of the longest written extent.
const WRITTEN_BLOCKS_MAX: u64 = 32768;
/// Blocks of the longest unwritten extent.
const UNWRITTEN_BLOCKS_MAX: u64 = 32767;

/// Contiguous blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileExtent {
    /// First block in the file.
    pub(super) logical: u64,
    /// First block on the device.
    pub(super) physical: u64,
    /// Blocks of the extent.
    pub(super) length: u64,
    /// Whether the blocks are allocated and read as zeroes.
    pub(super) is_unwritten: bool,
}

impl FileExtent {
    pub(super) fn end(&self) -> u64 {
        self.logical + self.length
    }

    pub(super) fn physical_at(&self, logical: u64) -> u64 {
        self.physical + (logical - self.logical)
    }

    fn part(&self, start: u64, end: u64) -> Self {
        Self {
            logical: start,
            physical: self.physical_at(start),
            length: end - start,
            ..*self
        }
    }

    fn continues(&self, next: &Self) -> bool {
        let max = if self.is_unwritten {
            UNWRITTEN_BLOCKS_MAX
        } else {
            WRITTEN_BLOCKS_MAX
        };
        self.is_unwritten == next.is_unwritten
            && self.end() == next.logical
            && self.physical + self.length == next.physical
            && self.length + next.length <= max
    }
}

/// Leaf of the tree: the inode, or a block.
#[derive(Clone, Debug, Default)]
struct Leaf {
    block: Option<u64>,
    extents: Vec<FileExtent>,
}

/// Changes to blocks of the tree, for the journal.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeChange {
    /// Blocks whose content changed.
    pub(super) dirtied: Vec<u64>,
    /// Blocks that the tree no longer has.
    pub(super) freed: Vec<u64>,
}

/// Tree of extents of one or two levels.
#[derive(Clone, Debug)]
pub(super) struct ExtentTree {
    leaves: Vec<Leaf>,
    block_extents: usize,
}

impl ExtentTree {
    pub(super) fn new(block_bytes: u64) -> Self {
        let block_extents = ((block_bytes - 12) / 12) as usize;
        Self {
            leaves: vec![Leaf::default()],
            block_extents,
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &FileExtent> {
        self.leaves.iter().flat_map(|leaf| &leaf.extents)
    }

    pub(super) fn find(&self, logical: u64) -> Option<FileExtent> {
        self.at_or_before(logical)
            .filter(|extent| logical < extent.end())
    }

    /// Last extent that starts at or before a block.
    pub(super) fn at_or_before(&self, logical: u64) -> Option<FileExtent> {
        let extents = &self.leaves[self.leaf_index(logical)].extents;
        let count = extents.partition_point(|extent| extent.logical <= logical);
        count.checked_sub(1).map(|index| extents[index])
    }

    /// First extent that starts after a block.
    pub(super) fn after(&self, logical: u64) -> Option<FileExtent> {
        let leaf = self.leaf_index(logical);
        let extents = &self.leaves[leaf].extents;
        let count = extents.partition_point(|extent| extent.logical <= logical);
        let next_leaf = || self.leaves.get(leaf + 1)?.extents.first();
        extents.get(count).or_else(next_leaf).copied()
    }

    fn leaf_index(&self, logical: u64) -> usize {
        let starts_at_or_before = |leaf: &Leaf| {
            leaf.extents
                .first()
                .is_some_and(|extent| extent.logical <= logical)
        };
        self.leaves
            .iter()
            .rposition(starts_at_or_before)
            .unwrap_or(0)
    }

    /// Inserts an extent into a hole, and merges it with its neighbours if `may_merge`. `allocate`
    /// makes a tree block.
    pub(super) fn insert(
        &mut self,
        extent: FileExtent,
        may_merge: bool,
        change: &mut TreeChange,
        allocate: &mut impl FnMut() -> Option<u64>,
    ) -> Option<()> {
        let index = self.leaf_index(extent.logical);
        let leaf = &mut self.leaves[index];
        let position = leaf
            .extents
            .partition_point(|other| other.logical < extent.logical);
        if may_merge && position > 0 && leaf.extents[position - 1].continues(&extent) {
            leaf.extents[position - 1].length += extent.length;
            change.dirtied.extend(leaf.block);
            self.merge_around(index, position - 1);
            return Some(());
        }
        let continues = |next: &FileExtent| may_merge && extent.continues(next);
        if leaf.extents.get(position).is_some_and(continues) {
            let next = &mut leaf.extents[position];
            *next = FileExtent {
                length: extent.length + next.length,
                ..extent
            };
            change.dirtied.extend(leaf.block);
            return Some(());
        }
        let (index, position) = self.make_room(index, position, change, allocate)?;
        let leaf = &mut self.leaves[index];
        leaf.extents.insert(position, extent);
        change.dirtied.extend(leaf.block);
        Some(())
    }

    fn capacity(&self, index: usize) -> usize {
        if self.leaves[index].block.is_some() {
            self.block_extents
        } else {
            INODE_EXTENTS
        }
    }

    /// Makes room for an extent at a position; returns where it goes.
    fn make_room(
        &mut self,
        index: usize,
        position: usize,
        change: &mut TreeChange,
        allocate: &mut impl FnMut() -> Option<u64>,
    ) -> Option<(usize, usize)> {
        if self.leaves[index].extents.len() < self.capacity(index) {
            return Some((index, position));
        }
        let block = allocate()?;
        change.dirtied.push(block);
        if self.leaves[index].block.is_none() {
            self.leaves[index].block = Some(block);
            return Some((index, position));
        }
        if self.leaves.len() == INODE_EXTENTS {
            return None;
        }
        let moved = self.leaves[index].extents.split_off(position);
        change.dirtied.extend(self.leaves[index].block);
        self.leaves.insert(
            index + 1,
            Leaf {
                block: Some(block),
                extents: moved,
            },
        );
        Some((index + 1, 0))
    }

    fn merge_around(&mut self, index: usize, position: usize) {
        let extents = &mut self.leaves[index].extents;
        if position + 1 < extents.len() && extents[position].continues(&extents[position + 1]) {
            extents[position].length += extents[position + 1].length;
            extents.remove(position + 1);
        }
        if position > 0 && extents[position - 1].continues(&extents[position]) {
            extents[position - 1].length += extents[position].length;
            extents.remove(position);
        }
    }

    /// Splits extents so that one begins at `logical`.
    pub(super) fn split_at(
        &mut self,
        logical: u64,
        change: &mut TreeChange,
        allocate: &mut impl FnMut() -> Option<u64>,
    ) -> Option<()> {
        let Some(extent) = self.find(logical).filter(|extent| extent.logical < logical) else {
            return Some(());
        };
        let index = self.leaf_index(logical);
        let position = self.leaves[index]
            .extents
            .iter()
            .position(|other| other.logical == extent.logical)
            .expect("the leaf holds the extent");
        self.leaves[index].extents[position] = extent.part(extent.logical, logical);
        change.dirtied.extend(self.leaves[index].block);
        let (index, position) = self.make_room(index, position + 1, change, allocate)?;
        let second = extent.part(logical, extent.end());
        self.leaves[index].extents.insert(position, second);
        change.dirtied.extend(self.leaves[index].block);
        Some(())
    }

    /// Marks the blocks of a range as written or unwritten, and merges extents at its ends. The
    /// range was split off before.
    pub(super) fn set_unwritten(
        &mut self,
        start: u64,
        end: u64,
        is_unwritten: bool,
        change: &mut TreeChange,
    ) {
        for index in 0..self.leaves.len() {
            let is_inside = |extent: &FileExtent| extent.logical >= start && extent.end() <= end;
            let leaf = &mut self.leaves[index];
            let mut is_changed = false;
            for extent in leaf.extents.iter_mut().filter(|extent| is_inside(extent)) {
                extent.is_unwritten = is_unwritten;
                is_changed = true;
            }
            if is_changed {
                change.dirtied.extend(leaf.block);
                for position in (0..self.leaves[index].extents.len()).rev() {
                    let touches =
                        |extent: &FileExtent| extent.logical < end && extent.end() > start;
                    if self.leaves[index]
                        .extents
                        .get(position)
                        .is_some_and(touches)
                    {
                        self.merge_around(index, position);
                    }
                }
            }
        }
        self.collapse(change);
    }

    /// Moves the extents of the only tree block back into the inode, where they fit.
    fn collapse(&mut self, change: &mut TreeChange) {
        if self.leaves.len() == 1 && self.leaves[0].extents.len() <= INODE_EXTENTS {
            change.freed.extend(self.leaves[0].block.take());
            change.dirtied.retain(|block| !change.freed.contains(block));
        }
    }

    /// Removes the blocks of a range and returns what was there. An extent that goes on behind the
    /// range was split off before; one that begins before it is shortened.
    pub(super) fn remove(
        &mut self,
        start: u64,
        end: u64,
        change: &mut TreeChange,
    ) -> Vec<FileExtent> {
        let mut removed = Vec::new();
        for leaf in &mut self.leaves {
            let count = removed.len();
            for extent in &mut leaf.extents {
                if extent.logical < start && extent.end() > start {
                    removed.push(extent.part(start, extent.end()));
                    *extent = extent.part(extent.logical, start);
                } else if extent.logical >= start && extent.end() <= end {
                    removed.push(*extent);
                }
            }
            leaf.extents
                .retain(|extent| extent.logical < start || extent.end() > end);
            if removed.len() > count {
                change.dirtied.extend(leaf.block);
            }
        }
        let freed: Vec<u64> = self
            .leaves
            .iter()
            .filter(|leaf| leaf.extents.is_empty())
            .filter_map(|leaf| leaf.block)
            .collect();
        self.leaves.retain(|leaf| !leaf.extents.is_empty());
        if self.leaves.is_empty() {
            self.leaves.push(Leaf::default());
        }
        change.dirtied.retain(|block| !freed.contains(block));
        change.freed.extend(freed);
        removed
    }
}
