//! Blocks that mke2fs has allocated, as ranges that do not touch.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of allocated blocks by their first block, with their ends.
#[derive(Clone, Debug, Default)]
pub(super) struct UsedBlocks {
    ends: BTreeMap<u64, u64>,
}

impl UsedBlocks {
    /// Ranges in ascending order of their first blocks, with no two that touch.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(start, end)| *start..*end)
    }

    /// Adds a range of free blocks.
    pub(super) fn mark(&mut self, range: Range<u64>) {
        let free = self.first_run(range.clone());
        assert_eq!(free.as_ref(), Some(&range), "a block is allocated once");
        let Range { mut start, mut end } = range;
        if let Some((before, before_end)) = self.ends.range(..start).next_back()
            && *before_end == start
        {
            start = *before;
        }
        if let Some(after_end) = self.ends.remove(&end) {
            end = after_end;
        }
        self.ends.insert(start, end);
    }

    /// First run of free blocks in a range.
    pub(super) fn first_run(&self, range: Range<u64>) -> Option<Range<u64>> {
        let before = self.ends.range(..=range.start).next_back();
        let start = before.map_or(range.start, |(_, end)| range.start.max(*end));
        let next = self.ends.range(start..).next();
        let end = next.map_or(range.end, |(start, _)| range.end.min(*start));
        (start < end).then_some(start..end)
    }

    /// First place of `length` free blocks together in a range.
    pub(super) fn find(&self, mut range: Range<u64>, length: u64) -> Option<u64> {
        loop {
            let run = self.first_run(range.clone())?;
            if run.end - run.start >= length {
                return Some(run.start);
            }
            range.start = run.end;
        }
    }

    /// Free blocks of a range.
    pub(super) fn free_in(&self, mut range: Range<u64>) -> u64 {
        let mut free = 0;
        while let Some(run) = self.first_run(range.clone()) {
            free += run.end - run.start;
            range.start = run.end;
        }
        free
    }
}
