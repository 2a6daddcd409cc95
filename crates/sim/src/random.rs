//! Named random streams: one per component, so that what one draws does not
//! move what another gets.

use crate::time::Time;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// The streams of one simulation, by name.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// All streams of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of this name; the same name gives the same numbers.
    pub fn stream(self, name: &str) -> Stream {
        // FNV-1a spreads the name over the 2^127 streams of PCG.
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for byte in name.bytes() {
            hash ^= u128::from(byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Stream {
            generator: Pcg64::new(u128::from(self.seed), hash),
        }
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Pcg64,
}

impl Stream {
    /// A time from an exponential distribution, as that between events that happen
    /// independently of each other.
    pub fn exponential(&mut self, mean: Time) -> Time {
        // The logarithm of a library of the platform's differs from one to the next.
        Time((-libm::log(1.0 - self.share()) * mean.0 as f64 + 0.5) as u64)
    }

    /// Uniform over all of 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform over `0..bound`.
    ///
    /// # Panics
    ///
    /// When `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below zero was asked for");
        // The bias of a multiplication instead of a rejection is below
        // bound / 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Uniform over 0 to 1, which does not occur.
    #[inline]
    pub fn share(&mut self) -> f64 {
        // 53 bits are exact in an f64.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform over the times shorter than this; no time, and no draw, if this
    /// is none.
    #[inline]
    pub fn within(&mut self, interval: Time) -> Time {
        match interval {
            Time::ZERO => Time::ZERO,
            interval => Time(self.below(interval.0)),
        }
    }

    /// Uniform over `mean - spread * mean ..= mean + spread * mean`.
    #[inline]
    pub fn spread(&mut self, mean: Time, spread: f64) -> Time {
        let half = (mean.0 as f64 * spread) as u64;
        Time(mean.0 - half + self.below(2 * half + 1))
    }
}
