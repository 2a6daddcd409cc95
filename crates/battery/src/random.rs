//! Draws from a random stream that are the same on every machine, because they use no functions of
//! the platform.

use rand_core::Rng;
use rand_pcg::Pcg64;
use std::collections::BTreeSet;

/// Stream of random numbers that is the same on every machine for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct RandomDraws(Pcg64);

impl RandomDraws {
    pub(crate) fn new(seed: u64, stream: u128) -> Self {
        Self(Pcg64::new(u128::from(seed), stream))
    }

    /// Draws a number below `bound`. All numbers are equally likely up to one part in 2^64.
    pub(crate) fn draw_below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn draw_with_probability(&mut self, share: f64) -> bool {
        // 53 bits: every f64 in [0, 1) that has them is equally likely.
        ((self.0.next_u64() >> 11) as f64) < share * (1_u64 << 53) as f64
    }

    /// Draws a number above 0 and at most 1, uniformly.
    pub(crate) fn draw_unit_interval(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a normally distributed number with mean 0 and standard deviation 1 (Box and Muller).
    pub(crate) fn draw_normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.draw_unit_interval())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.draw_unit_interval())
    }

    /// Draws an exponentially distributed number with mean 1.
    pub(crate) fn draw_exponential(&mut self) -> f64 {
        -libm::log(self.draw_unit_interval())
    }

    /// Draws an index with a probability in proportion to its weight.
    pub(crate) fn draw_weighted(&mut self, weights: &[f64]) -> usize {
        let mut point = self.draw_unit_interval() * weights.iter().sum::<f64>();
        for (number, weight) in weights.iter().enumerate() {
            point -= weight;
            if point <= 0.0 {
                return number;
            }
        }
        weights.len() - 1
    }

    /// Draws a name of two to four syllables that is not in `taken`, and adds it to `taken`.
    pub(crate) fn draw_name(&mut self, taken: &mut BTreeSet<String>, endings: &[&str]) -> String {
        const CONSONANTS: &[u8] = b"bcdfghklmnprstvw";
        const VOWELS: &[u8] = b"aeiou";
        loop {
            let mut name = String::new();
            for _ in 0..2 + self.draw_below(3) {
                for letters in [CONSONANTS, VOWELS] {
                    name.push(char::from(
                        letters[self.draw_below(letters.len() as u64) as usize],
                    ));
                }
            }
            name += endings[self.draw_below(endings.len() as u64) as usize];
            if taken.insert(name.clone()) {
                return name;
            }
        }
    }
}
