//! Named random streams. Each component has its own stream, so that draws of one do not change the
//! numbers of another.

use crate::time::Time;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Random streams of one simulation, by name.
#[derive(Clone, Copy, Debug)]
pub struct RandomStreams {
    seed: u64,
}

impl RandomStreams {
    /// Returns the random streams of a simulation with the given seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the random stream with the given name. The same seed and name give the same numbers.
    pub fn named_stream(self, name: &str) -> RandomStream {
        // FNV-1a spreads the name over the 2^127 streams of PCG.
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for byte in name.bytes() {
            hash ^= u128::from(byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        RandomStream {
            generator: Pcg64::new(u128::from(self.seed), hash),
        }
    }
}

/// Stream of random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream {
    generator: Pcg64,
}

impl RandomStream {
    /// Returns a random time from an exponential distribution, as between independent events.
    pub fn draw_exponential(&mut self, mean: Time) -> Time {
        // The logarithm of a library of the platform's differs from one to the next.
        Time((-libm::log(1.0 - self.draw_share()) * mean.0 as f64 + 0.5) as u64)
    }

    /// Returns a random number, uniform over 64 bits.
    #[inline]
    pub fn draw_bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Returns a random number, uniform over `0..bound`.
    ///
    /// # Panics
    ///
    /// If `bound` is zero.
    #[inline]
    pub fn draw_below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below zero was asked for");
        // The bias of a multiplication instead of a rejection is below
        // bound / 2^64.
        ((u128::from(self.draw_bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws a random boolean that is true with the given probability.
    #[inline]
    pub fn draw_with_probability(&mut self, probability: f64) -> bool {
        self.draw_share() < probability
    }

    /// Returns a random number, uniform from 0 (included) to 1 (excluded).
    #[inline]
    pub fn draw_share(&mut self) -> f64 {
        // 53 bits are exact in an f64.
        (self.draw_bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a random time, uniform over the times below `interval`. A zero interval returns zero
    /// without a draw.
    #[inline]
    pub fn draw_within(&mut self, interval: Time) -> Time {
        match interval {
            Time::ZERO => Time::ZERO,
            interval => Time(self.draw_below(interval.0)),
        }
    }

    /// Returns a random time, uniform over `mean - spread * mean ..= mean + spread * mean`.
    #[inline]
    pub fn draw_spread(&mut self, mean: Time, spread: f64) -> Time {
        let half = (mean.0 as f64 * spread) as u64;
        Time(mean.0 - half + self.draw_below(2 * half + 1))
    }
}
