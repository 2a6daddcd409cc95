//! Extents of a file, in units of blocks.

use std::ops::Range;

/// Place of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtentPlace {
    /// Reserved, without a place on the device.
    Delayed,
    /// Blocks of the device from `block` on. Unwritten ones read as zeroes.
    Allocated {
        /// First block on the device.
        block: u64,
        /// Whether nothing was written there yet.
        is_unwritten: bool,
    },
}

/// Run of blocks of a file with one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct XfsExtent {
    /// First block in the file.
    pub(super) first: u64,
    /// Length in blocks, at least 1.
    pub(super) length: u64,
    /// Place on the device.
    pub(super) place: ExtentPlace,
}

impl XfsExtent {
    /// First block of the file after the extent.
    pub(super) fn end(self) -> u64 {
        self.first + self.length
    }

    /// Whether the extent has no place on the device.
    pub(super) fn is_delayed(self) -> bool {
        self.place == ExtentPlace::Delayed
    }

    /// Whether the extent holds data.
    pub(super) fn is_written(self) -> bool {
        matches!(
            self.place,
            ExtentPlace::Allocated {
                is_unwritten: false,
                ..
            }
        )
    }

    /// First block on the device.
    pub(super) fn block(self) -> Option<u64> {
        match self.place {
            ExtentPlace::Delayed => None,
            ExtentPlace::Allocated { block, .. } => Some(block),
        }
    }

    /// Part of the extent inside `blocks` of the file, if any.
    pub(super) fn trim(self, blocks: &Range<u64>) -> Option<Self> {
        let first = self.first.max(blocks.start);
        let end = self.end().min(blocks.end);
        if first >= end {
            return None;
        }
        let place = match self.place {
            ExtentPlace::Delayed => ExtentPlace::Delayed,
            ExtentPlace::Allocated {
                block,
                is_unwritten,
            } => ExtentPlace::Allocated {
                block: block + first - self.first,
                is_unwritten,
            },
        };
        Some(Self {
            first,
            length: end - first,
            place,
        })
    }

    /// Whether `next` continues the extent in the file and on the device, in one state.
    fn continues_with(self, next: Self) -> bool {
        let is_adjacent = self.end() == next.first;
        is_adjacent
            && match (self.place, next.place) {
                (ExtentPlace::Delayed, ExtentPlace::Delayed) => true,
                (
                    ExtentPlace::Allocated {
                        block,
                        is_unwritten,
                    },
                    ExtentPlace::Allocated {
                        block: next_block,
                        is_unwritten: is_next_unwritten,
                    },
                ) => block + self.length == next_block && is_unwritten == is_next_unwritten,
                _ => false,
            }
    }
}

/// Extents of a file, ascending and joined where they can be.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtentList {
    extents: Vec<XfsExtent>,
    delayed_blocks: u64,
}

impl ExtentList {
    /// Extents in ascending order.
    pub(super) fn as_slice(&self) -> &[XfsExtent] {
        &self.extents
    }

    /// Number of extents with a place on the device, which is the number that the inode holds.
    pub(super) fn allocated_count(&self) -> u64 {
        self.extents
            .iter()
            .filter(|extent| !extent.is_delayed())
            .count() as u64
    }

    /// Number of blocks that are reserved without a place.
    pub(super) fn delayed_blocks(&self) -> u64 {
        self.delayed_blocks
    }

    /// Whether any block is reserved without a place.
    pub(super) fn has_delayed(&self) -> bool {
        self.delayed_blocks > 0
    }

    /// Extent that holds a block of the file, or the first one behind it.
    pub(super) fn at_or_after(&self, block: u64) -> Option<XfsExtent> {
        let index = self.extents.partition_point(|extent| extent.end() <= block);
        self.extents.get(index).copied()
    }

    /// Extent that holds a block of the file.
    pub(super) fn at(&self, block: u64) -> Option<XfsExtent> {
        self.at_or_after(block)
            .filter(|extent| extent.first <= block)
    }

    /// Last extent that ends at or before a block of the file.
    pub(super) fn before(&self, block: u64) -> Option<XfsExtent> {
        let index = self.extents.partition_point(|extent| extent.end() <= block);
        index.checked_sub(1).map(|index| self.extents[index])
    }

    /// Parts of extents inside `blocks`, ascending.
    pub(super) fn within(&self, blocks: &Range<u64>) -> Vec<XfsExtent> {
        let start = self
            .extents
            .partition_point(|extent| extent.end() <= blocks.start);
        let rest = self.extents[start..].iter();
        rest.take_while(|extent| extent.first < blocks.end)
            .filter_map(|extent| extent.trim(blocks))
            .collect()
    }

    /// Removes `blocks` and returns what was there.
    pub(super) fn remove(&mut self, blocks: &Range<u64>) -> Vec<XfsExtent> {
        let removed = self.within(blocks);
        if removed.is_empty() {
            return removed;
        }
        let delayed = removed.iter().filter(|extent| extent.is_delayed());
        self.delayed_blocks -= delayed.map(|extent| extent.length).sum::<u64>();
        let mut kept = Vec::with_capacity(self.extents.len() + 1);
        for extent in &self.extents {
            kept.extend(extent.trim(&(0..blocks.start)));
            kept.extend(extent.trim(&(blocks.end..u64::MAX)));
        }
        self.extents = kept;
        removed
    }

    /// Puts an extent in place of what its blocks had.
    pub(super) fn insert(&mut self, extent: XfsExtent) {
        self.remove(&(extent.first..extent.end()));
        if extent.is_delayed() {
            self.delayed_blocks += extent.length;
        }
        let index = self
            .extents
            .partition_point(|other| other.first < extent.first);
        self.extents.insert(index, extent);
        self.join_around(index);
    }

    fn join_around(&mut self, index: usize) {
        if index + 1 < self.extents.len() {
            self.join_pair(index);
        }
        if index > 0 {
            self.join_pair(index - 1);
        }
    }

    fn join_pair(&mut self, index: usize) {
        let (left, right) = (self.extents[index], self.extents[index + 1]);
        if left.continues_with(right) {
            self.extents[index].length += right.length;
            self.extents.remove(index + 1);
        }
    }

    /// Marks unwritten blocks as written. Returns whether any was unwritten.
    pub(super) fn mark_written(&mut self, blocks: &Range<u64>) -> bool {
        let mut has_changed = false;
        for extent in self.within(blocks) {
            if let ExtentPlace::Allocated {
                block,
                is_unwritten: true,
            } = extent.place
            {
                has_changed = true;
                let place = ExtentPlace::Allocated {
                    block,
                    is_unwritten: false,
                };
                self.insert(XfsExtent { place, ..extent });
            }
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocated(first: u64, length: u64, block: u64, is_unwritten: bool) -> XfsExtent {
        XfsExtent {
            first,
            length,
            place: ExtentPlace::Allocated {
                block,
                is_unwritten,
            },
        }
    }

    #[test]
    fn neighbours_in_one_state_are_one_extent() {
        let mut extents = ExtentList::default();
        extents.insert(allocated(0, 4, 100, false));
        extents.insert(allocated(8, 4, 108, false));
        extents.insert(allocated(4, 4, 104, true));
        assert_eq!(extents.allocated_count(), 3);
        assert!(extents.mark_written(&(4..8)));
        assert_eq!(extents.as_slice(), [allocated(0, 12, 100, false)]);
    }

    #[test]
    fn removal_splits_an_extent_and_returns_the_part() {
        let mut extents = ExtentList::default();
        extents.insert(allocated(0, 10, 100, false));
        assert_eq!(extents.remove(&(3..5)), [allocated(3, 2, 103, false)]);
        assert_eq!(
            extents.as_slice(),
            [allocated(0, 3, 100, false), allocated(5, 5, 105, false)]
        );
    }
}
