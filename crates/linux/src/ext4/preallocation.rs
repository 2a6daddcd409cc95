//! Blocks that files have in reserve.

use std::ops::Range;

use super::allocator::{BlockRun, DataRequest};

/// Blocks that a file has in reserve for a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preallocation {
    pub(super) logical: u64,
    physical: u64,
    length: u64,
    /// Offsets in the reserve that were used, in order of use.
    used: Vec<Range<u64>>,
}

impl Preallocation {
    pub(super) fn new(logical: u64, run: BlockRun) -> Self {
        Self {
            logical,
            physical: run.physical,
            length: run.length,
            used: Vec::new(),
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.logical + self.length
    }

    fn is_used_up(&self) -> bool {
        self.used
            .iter()
            .map(|range| range.end - range.start)
            .sum::<u64>()
            >= self.length
    }

    /// Runs of the reserve that were not used.
    pub(super) fn unused(&self) -> Vec<BlockRun> {
        let mut used = self.used.clone();
        used.sort_by_key(|range| range.start);
        let mut runs = Vec::new();
        let mut start = 0;
        used.push(self.length..self.length);
        for range in used {
            if range.start > start {
                runs.push(BlockRun {
                    physical: self.physical + start,
                    length: range.start - start,
                });
            }
            start = range.end;
        }
        runs
    }
}

/// Takes blocks from a file's reserve that covers the request's first block.
pub(super) fn use_own(request: &DataRequest, own: &mut Vec<Preallocation>) -> Option<BlockRun> {
    let covers = |reserve: &Preallocation| {
        reserve.logical <= request.logical && request.logical < reserve.end()
    };
    let index = own.iter().position(covers)?;
    let reserve = &mut own[index];
    let physical = reserve.physical + (request.logical - reserve.logical);
    let length = request.length.min(reserve.end() - request.logical);
    let offset = request.logical - reserve.logical;
    reserve.used.push(offset..offset + length);
    if reserve.is_used_up() {
        own.remove(index);
    }
    Some(BlockRun { physical, length })
}

/// Cuts a window at the file's reserves on both sides of a block.
pub(super) fn trim_to_own(logical: u64, start: u64, end: u64, own: &[Preallocation]) -> (u64, u64) {
    let left = own
        .iter()
        .filter(|reserve| reserve.logical <= logical)
        .map(Preallocation::end);
    let right = own
        .iter()
        .filter(|reserve| reserve.logical > logical)
        .map(|right| right.logical);
    let start = left.filter(|left| *left > start).max().unwrap_or(start);
    let end = right.filter(|right| *right < end).min().unwrap_or(end);
    (start, end)
}
