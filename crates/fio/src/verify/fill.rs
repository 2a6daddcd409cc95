//! Generated data of verified blocks, and the seeds of the data.

/// Generator of the data seeds of a job, one for each write, as in fio. A seed is the product of
/// two numbers from L'Ecuyer's combined Tausworthe generator (taus88).
#[derive(Clone, Debug)]
pub struct SeedSequence {
    state: [u32; 3],
}

const HASH_MULTIPLIER: u64 = 0x9e37_0001;
const HASH_MULTIPLIER_64: u64 = 0x61c8_8646_80b5_83eb;
/// Number of hash multiplications of `randseed` before the seed of the first random stream.
const INITIAL_HASHES: usize = 4;
/// Index of the random stream for verified blocks among the streams of a job.
const RANDOM_STREAM: u64 = 3;
/// Numbers that the generator discards after seeding.
const GENERATOR_WARM_UP_DRAWS: usize = 6;

/// Words of generated data that are computed in parallel, and the factor of each word.
const FILL_LANES: usize = 4;
const LANE_FACTORS: [u64; FILL_LANES] = [1, 2, 3, 5];
const WORD_BYTES: usize = 8;

impl SeedSequence {
    /// Creates the seeds of a job for a `randseed`. `thread` is the index of the worker in the job
    /// file, clones counted, from 1.
    pub fn new(randseed: u64, thread: u32) -> Self {
        let hash = |seed: u64| seed.wrapping_mul(HASH_MULTIPLIER);
        let times = INITIAL_HASHES + RANDOM_STREAM as usize;
        let seed = (0..times).fold(randseed, |seed, _| hash(seed));
        let seed = seed
            .wrapping_mul(u64::from(thread))
            .wrapping_add(RANDOM_STREAM);
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
        for _ in 0..GENERATOR_WARM_UP_DRAWS {
            seeds.draw_word();
        }
        seeds
    }

    fn draw_word(&mut self) -> u32 {
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

    /// Draws the data seed of the next write.
    pub fn next_seed(&mut self) -> u64 {
        let first = u64::from(self.draw_word());
        first.wrapping_mul(u64::from(self.draw_word()))
    }
}

/// Fills a block with data as fio does: random words from the seed, followed by zeroes for the
/// compressible share.
pub(super) fn fill_random(block: &mut [u8], seed: u64, compressible_percent: u8) {
    let percent = 100 - usize::from(compressible_percent.min(100));
    let (random, zeroes) = block.split_at_mut(block.len() * percent / 100);
    zeroes.fill(0);
    let next = |word: u64| word.wrapping_mul(HASH_MULTIPLIER_64);
    let mut lanes = LANE_FACTORS.map(|factor| seed.wrapping_mul(factor));
    let (groups, rest) = random.as_chunks_mut::<{ FILL_LANES * WORD_BYTES }>();
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
