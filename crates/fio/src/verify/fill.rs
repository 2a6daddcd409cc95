//! Data that fio fills verified blocks with, and the seeds that it is made from.

/// Seeds that fio draws for the blocks of a job, one for each write: products of two numbers
/// of L'Ecuyer's combined Tausworthe generator (taus88).
#[derive(Clone, Debug)]
pub struct Seeds {
    state: [u32; 3],
}

/// Multiplier of fio's hash of 32 bits.
const HASH_MULTIPLIER: u64 = 0x9e37_0001;
/// Multiplier of fio's hash of 64 bits.
const HASH_MULTIPLIER_64: u64 = 0x61c8_8646_80b5_83eb;
/// Multiplications of `randseed` before the first stream's seed.
const HASHES_BEFORE: usize = 4;
/// Index of the stream of verified blocks among the streams of a job.
const STREAM: u64 = 3;
/// Numbers of a generator that are thrown away.
const CRANKS: usize = 6;

/// Words of a filling that are made side by side, and the factor of each.
const LANES: usize = 4;
const LANE_FACTORS: [u64; LANES] = [1, 2, 3, 5];
const WORD_BYTES: usize = 8;

impl Seeds {
    /// Seeds of a job with this `randseed`; `thread` is its number in its file, clones
    /// counted, from 1.
    pub fn new(randseed: u64, thread: u32) -> Self {
        let hash = |seed: u64| seed.wrapping_mul(HASH_MULTIPLIER);
        let times = HASHES_BEFORE + STREAM as usize;
        let seed = (0..times).fold(randseed, |seed, _| hash(seed));
        let seed = seed.wrapping_mul(u64::from(thread)).wrapping_add(STREAM);
        Self::from_state_seed(seed as u32)
    }

    fn from_state_seed(seed: u32) -> Self {
        let step = |from: u32| from.wrapping_mul(69_069) ^ seed;
        let at_least = |value: u32, least: u32| match value < least {
            true => value.wrapping_add(least),
            false => value,
        };
        // fio writes `(2^31) + (2^17) + (2^7)` for powers, and C reads exclusive ors.
        let first = at_least(step((2 ^ 31) + (2 ^ 17) + (2 ^ 7)), 1);
        let second = at_least(step(first), 7);
        let third = at_least(step(second), 15);
        let mut seeds = Self {
            state: [first, second, third],
        };
        for _ in 0..CRANKS {
            seeds.draw();
        }
        seeds
    }

    fn draw(&mut self) -> u32 {
        let step = |state: u32, [left, right, shift]: [u32; 3], mask: u32| {
            ((state & mask) << shift) ^ (((state << left) ^ state) >> right)
        };
        let [first, second, third] = self.state;
        self.state = [
            step(first, [13, 19, 12], 0xffff_fffe),
            step(second, [2, 25, 4], 0xffff_fff8),
            step(third, [3, 11, 17], 0xffff_fff0),
        ];
        self.state[0] ^ self.state[1] ^ self.state[2]
    }

    /// Draws the seed of the next write.
    pub fn next_seed(&mut self) -> u64 {
        let first = u64::from(self.draw());
        first.wrapping_mul(u64::from(self.draw()))
    }
}

/// Fills an I/O as fio does: random words from its seed, and zeroes behind them where a share
/// of it is to compress.
pub(super) fn fill(block: &mut [u8], seed: u64, compressible_percent: u8) {
    let percent = 100 - usize::from(compressible_percent.min(100));
    let (random, zeroes) = block.split_at_mut(block.len() * percent / 100);
    zeroes.fill(0);
    let next = |word: u64| word.wrapping_mul(HASH_MULTIPLIER_64);
    let mut lanes = LANE_FACTORS.map(|factor| seed.wrapping_mul(factor));
    let (groups, rest) = random.as_chunks_mut::<{ LANES * WORD_BYTES }>();
    for group in groups {
        let (words, _) = group.as_chunks_mut::<WORD_BYTES>();
        for (word, lane) in words.iter_mut().zip(&mut lanes) {
            *word = lane.to_le_bytes();
            *lane = next(*lane);
        }
    }
    let mut last = lanes[0];
    for word in rest.chunks_mut(WORD_BYTES) {
        word.copy_from_slice(&last.to_le_bytes()[..word.len()]);
        last = next(last);
    }
}
