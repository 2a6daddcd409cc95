//! Random map of a file: blocks that a pass has already taken, so that each comes once before any
//! repeats.

use crate::load::permutation::Permutation;
use crate::random::Draws;

/// Blocks of a file that a pass has not taken yet.
#[derive(Clone, Debug)]
pub(super) enum Map {
    /// Random map for blocks of one size, in a computed order.
    Ordered {
        order: Permutation,
        blocks: u64,
        next: u64,
        seed: u64,
    },
    /// Random map for blocks of several sizes, in units. A block ends before a unit that is taken
    /// already. As in fio, a unit is as large as the smallest block of the direction that uses it.
    Marked(Marks),
}

/// Units of a file that a pass has taken.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// Bit map with one bit for each taken unit.
    words: Vec<u64>,
    units: u64,
    taken: u64,
}

impl Map {
    pub(super) fn of_one_size(blocks: u64, seed: u64) -> Self {
        Self::Ordered {
            order: Permutation::new(blocks, seed),
            blocks,
            next: 0,
            seed,
        }
    }

    pub(super) fn of_sizes(units: u64) -> Self {
        Self::Marked(Marks {
            words: vec![0; units.div_ceil(64) as usize],
            units,
            taken: 0,
        })
    }

    /// Marks all blocks as free again, in another order.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Ordered {
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
            Self::Marked(marks) => {
                marks.words.fill(0);
                marks.taken = 0;
            }
        }
    }

    /// Marks all blocks as free again, in the order of the given seed.
    pub(super) fn repeat(&mut self, with: u64) {
        self.clear();
        if let Self::Ordered {
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
    pub(super) fn next(&mut self, random: &mut Draws, drawn: u64) -> Option<u64> {
        match self {
            Self::Ordered {
                order,
                blocks,
                next,
                ..
            } => (*next < *blocks).then(|| {
                *next += 1;
                order.at(*next - 1)
            }),
            Self::Marked(marks) => marks.next(random, drawn),
        }
    }

    /// Takes a block in units of `unit_bytes` and returns how many of its bytes, from its start,
    /// were free.
    pub(super) fn take(&mut self, at_bytes: u64, bytes: u64, unit_bytes: u64) -> u64 {
        match self {
            Self::Ordered { .. } => bytes,
            Self::Marked(marks) => marks.take(at_bytes, bytes, unit_bytes),
        }
    }
}

impl Marks {
    fn next(&self, random: &mut Draws, drawn: u64) -> Option<u64> {
        if self.taken == self.units {
            return None;
        }
        next_free(&self.words, self.units, random.below(drawn.max(1)))
    }

    fn take(&mut self, at_bytes: u64, bytes: u64, unit_bytes: u64) -> u64 {
        let first = at_bytes / unit_bytes;
        let wanted = bytes.div_ceil(unit_bytes).min(self.units - first);
        let is_free = |unit: &u64| self.words[(unit / 64) as usize] >> (unit % 64) & 1 == 0;
        let free = (first..first + wanted).take_while(is_free).count() as u64;
        for unit in first..first + free {
            self.words[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        self.taken += free;
        bytes.min(free * unit_bytes)
    }
}

/// Returns the first free unit at or after `from`, with wrap-around at the end of the file.
fn next_free(words: &[u64], units: u64, from: u64) -> Option<u64> {
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
            let mut map = Map::of_sizes(units);
            let mut random = Draws::new(1983, 1);
            let mut seen = BTreeSet::new();
            for size in [512, 1536, 1024].iter().cycle() {
                let Some(unit) = map.next(&mut random, units) else {
                    break;
                };
                let offset = 512 * unit;
                let bytes = map.take(offset, *size, 512);
                assert!(bytes > 0, "seed 1983: {units} {offset}");
                for unit in offset / 512..(offset + bytes) / 512 {
                    assert!(seen.insert(unit), "seed 1983: {units} {unit}");
                }
            }
            assert_eq!(seen.len() as u64, units);
        }
    }
}
