//! Free blocks of one group, with the questions that a buddy allocator asks.

use std::ops::Range;

/// Blocks of one group: allocated on the device, preallocated, or freed and not yet committed.
#[derive(Clone, Debug)]
pub(super) struct BlockBitmap {
    words: Vec<u64>,
    blocks: u64,
    free: u64,
    /// Largest order of a chunk that buddies make.
    order_max: u32,
}

/// Run of free blocks in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeRun {
    pub(super) start: u64,
    pub(super) length: u64,
}

impl BlockBitmap {
    pub(super) fn new(blocks: u64, order_max: u32) -> Self {
        let words = vec![0; blocks.div_ceil(64) as usize];
        Self {
            words,
            blocks,
            free: blocks,
            order_max,
        }
    }

    pub(super) fn free(&self) -> u64 {
        self.free
    }

    pub(super) fn is_used(&self, block: u64) -> bool {
        self.words[(block / 64) as usize] & (1 << (block % 64)) != 0
    }

    pub(super) fn set_used(&mut self, range: Range<u64>) {
        for block in range {
            assert!(!self.is_used(block), "a block is allocated once");
            self.words[(block / 64) as usize] |= 1 << (block % 64);
            self.free -= 1;
        }
    }

    pub(super) fn set_free(&mut self, range: Range<u64>) {
        for block in range {
            assert!(self.is_used(block), "a block is freed once");
            self.words[(block / 64) as usize] &= !(1 << (block % 64));
            self.free += 1;
        }
    }

    /// First block at or after `from` that is used or free. The end if there is none.
    fn next(&self, from: u64, is_used: bool) -> u64 {
        let mut block = from;
        while block < self.blocks {
            let word = self.words[(block / 64) as usize];
            let word = if is_used { word } else { !word } >> (block % 64);
            if word != 0 {
                return (block + u64::from(word.trailing_zeros())).min(self.blocks);
            }
            block = (block / 64 + 1) * 64;
        }
        self.blocks
    }

    /// First run of free blocks at or after `from`.
    pub(super) fn next_run(&self, from: u64) -> Option<FreeRun> {
        let start = self.next(from, false);
        (start < self.blocks).then(|| FreeRun {
            start,
            length: self.next(start, true) - start,
        })
    }

    /// Runs of free blocks, ascending.
    pub(super) fn runs(&self) -> impl Iterator<Item = FreeRun> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let run = self.next_run(from)?;
            from = run.start + run.length;
            Some(run)
        })
    }

    fn is_free_range(&self, range: Range<u64>) -> bool {
        range.end <= self.blocks && self.next(range.start, true) >= range.end
    }

    /// Order of the largest aligned free chunk that holds a free block.
    fn chunk_order(&self, block: u64) -> u32 {
        let mut order = 0;
        loop {
            let length = 1 << (order + 1);
            let start = block / length * length;
            if order == self.order_max || !self.is_free_range(start..start + length) {
                return order;
            }
            order += 1;
        }
    }

    /// Free blocks from `block` on, as whole chunks, until `needed` are there. `None`: it is used.
    pub(super) fn find_extent(&self, block: u64, needed: u64) -> Option<FreeRun> {
        if self.is_used(block) {
            return None;
        }
        let mut next = block;
        loop {
            let chunk = 1_u64 << self.chunk_order(next);
            next = (next / chunk + 1) * chunk;
            if next - block >= needed || next >= self.blocks || self.is_used(next) {
                return Some(FreeRun {
                    start: block,
                    length: next - block,
                });
            }
        }
    }

    /// First chunk of the smallest order from `order` on that the group has.
    pub(super) fn first_chunk(&self, order: u32) -> Option<u64> {
        let mut best: Option<(u32, u64)> = None;
        for run in self.runs().filter(|run| run.length >= 1 << order) {
            let mut block = run.start;
            while block < run.start + run.length {
                let chunk_order = self.chunk_order(block);
                if chunk_order >= order && best.is_none_or(|(least, _)| chunk_order < least) {
                    best = Some((chunk_order, block));
                }
                block += 1 << chunk_order;
            }
        }
        best.map(|(_, block)| block)
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockBitmap, FreeRun};

    #[test]
    fn chunks_are_aligned_and_the_smallest_is_taken() {
        let mut bitmap = BlockBitmap::new(1024, 13);
        bitmap.set_used(0..65);
        assert_eq!(bitmap.first_chunk(9), Some(512));
        assert_eq!(bitmap.first_chunk(4), Some(80));
        assert_eq!(
            bitmap.find_extent(65, 4),
            Some(FreeRun {
                start: 65,
                length: 7
            })
        );
        assert_eq!(bitmap.find_extent(3, 4), None);
        bitmap.set_free(0..65);
        assert_eq!(bitmap.runs().count(), 1);
    }
}
