//! Random map of a file: blocks that a pass has already taken, so that each comes once before any
//! repeats.

use crate::load::permutation::Permutation;
use crate::random::RandomDraws;

/// Blocks of a file that a pass has not taken yet.
#[derive(Clone, Debug)]
pub(super) enum RandomMap {
    /// Random map for blocks of one size, in a computed order.
    PermutedBlocks {
        order: Permutation,
        blocks: u64,
        next: u64,
        seed: u64,
    },
    /// Random map for blocks of several sizes, in units. A block ends before a unit that is taken
    /// already. As in fio, a unit is as large as the smallest block of the direction that uses it.
    UnitBitmap(UnitBitmap),
}

/// Units of a file that a pass has taken.
#[derive(Clone, Debug)]
pub(super) struct UnitBitmap {
    /// Bit map with one bit for each taken unit.
    bitmap_words: Vec<u64>,
    unit_count: u64,
    taken_count: u64,
}

impl RandomMap {
    pub(super) fn new_for_one_size(blocks: u64, seed: u64) -> Self {
        Self::PermutedBlocks {
            order: Permutation::new(blocks, seed),
            blocks,
            next: 0,
            seed,
        }
    }

    pub(super) fn new_for_sizes(units: u64) -> Self {
        Self::UnitBitmap(UnitBitmap {
            bitmap_words: vec![0; units.div_ceil(64) as usize],
            unit_count: units,
            taken_count: 0,
        })
    }

    /// Marks all blocks as free again, in another order.
    pub(super) fn clear_map(&mut self) {
        match self {
            Self::PermutedBlocks {
                order,
                blocks,
                next,
                seed,
            } => {
                if *next > 0 {
                    *seed = seed.wrapping_add(1);
                    *order = Permutation::new(*blocks, *seed);
                    *next = 0;
                }
            }
            Self::UnitBitmap(marks) => {
                marks.bitmap_words.fill(0);
                marks.taken_count = 0;
            }
        }
    }

    /// Marks all blocks as free again, in the order of the given seed.
    pub(super) fn clear_with_seed(&mut self, with: u64) {
        self.clear_map();
        if let Self::PermutedBlocks {
            order,
            blocks,
            seed,
            ..
        } = self
        {
            *seed = with;
            *order = Permutation::new(*blocks, with);
        }
    }

    /// Returns a free unit: a random one of the first `drawn` units, or the next free one after it,
    /// which may lie beyond these. Returns `None` if all units are taken.
    pub(super) fn find_next_free_unit(
        &mut self,
        random: &mut RandomDraws,
        drawn: u64,
    ) -> Option<u64> {
        match self {
            Self::PermutedBlocks {
                order,
                blocks,
                next,
                ..
            } => (*next < *blocks).then(|| {
                *next += 1;
                order.permuted_number(*next - 1)
            }),
            Self::UnitBitmap(marks) => marks.find_next_free_unit(random, drawn),
        }
    }

    /// Takes a block in units of `unit_bytes` and returns how many of its bytes, from its start,
    /// were free.
    pub(super) fn take_block(&mut self, at_bytes: u64, bytes: u64, unit_bytes: u64) -> u64 {
        match self {
            Self::PermutedBlocks { .. } => bytes,
            Self::UnitBitmap(marks) => marks.take_block(at_bytes, bytes, unit_bytes),
        }
    }
}

impl UnitBitmap {
    fn find_next_free_unit(&self, random: &mut RandomDraws, drawn: u64) -> Option<u64> {
        if self.taken_count == self.unit_count {
            return None;
        }
        find_free_unit(
            &self.bitmap_words,
            self.unit_count,
            random.draw_below(drawn.max(1)),
        )
    }

    fn take_block(&mut self, at_bytes: u64, bytes: u64, unit_bytes: u64) -> u64 {
        let first = at_bytes / unit_bytes;
        let wanted = bytes.div_ceil(unit_bytes).min(self.unit_count - first);
        let is_free = |unit: &u64| self.bitmap_words[(unit / 64) as usize] >> (unit % 64) & 1 == 0;
        let free = (first..first + wanted).take_while(is_free).count() as u64;
        for unit in first..first + free {
            self.bitmap_words[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        self.taken_count += free;
        bytes.min(free * unit_bytes)
    }
}

/// Returns the first free unit at or after `from`, with wrap-around at the end of the file.
fn find_free_unit(words: &[u64], units: u64, from: u64) -> Option<u64> {
    let word_of = (from / 64) as usize;
    let behind = words[word_of] | ((1 << (from % 64)) - 1);
    let later = (word_of + 1..words.len()).chain(0..=word_of);
    let in_word = |number: usize, word: u64| {
        let unit = number as u64 * 64 + u64::from(word.trailing_ones());
        (word != u64::MAX && unit < units).then_some(unit)
    };
    let mut later = later.map(|number| (number, words[number]));
    in_word(word_of, behind).or_else(|| later.find_map(|(number, word)| in_word(number, word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_unit_is_taken_once_whatever_the_sizes() {
        for units in [1, 63, 64, 65, 1000] {
            let mut map = RandomMap::new_for_sizes(units);
            let mut random = RandomDraws::new(1983, 1);
            let mut seen = BTreeSet::new();
            for size in [512, 1536, 1024].iter().cycle() {
                let Some(unit) = map.find_next_free_unit(&mut random, units) else {
                    break;
                };
                let offset = 512 * unit;
                let bytes = map.take_block(offset, *size, 512);
                assert!(bytes > 0, "seed 1983: {units} {offset}");
                for unit in offset / 512..(offset + bytes) / 512 {
                    assert!(seen.insert(unit), "seed 1983: {units} {unit}");
                }
            }
            assert_eq!(seen.len() as u64, units);
        }
    }
}
