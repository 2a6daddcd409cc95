//! Comparison of an adaptive controller with every fixed cache setting. Zachariassen 1987 wished
//! for a controller that chooses its cache bits and its read-ahead itself.
//!
//! A [`Workload`] runs once with each setting that can have an effect ([`Fixed`]) and once with the
//! adaptive controller. The elapsed time of the second of two passes counts, because the text gives
//! minima of several runs. For a workload that changes in mid-run, the first pass counts, which the
//! controller meets without any knowledge.

mod drawn;
mod fixed;
mod rig;
mod set;
mod table;
mod workload;

pub use diskperf_device::Hint;
pub use diskperf_machine::hardware::cache::CacheStatistics;
pub use diskperf_machine::parts::vme::CachePolicy;
pub use drawn::drawn;
pub use fixed::{DISTANCES, Fixed};
pub use rig::Rig;
pub use set::{OverAll, Row, Set};
pub use table::{PREAMBLE, table};
pub use workload::{Part, Workload, changes, of_the_seed};

/// Seeds of the random workloads that the policy was designed with. The last four are the days
/// after the date of Zachariassen's text. They were held out at first and inspected later.
pub const DESIGN_SEEDS: [u64; 7] = [1, 2, 3, 19_870_908, 19_870_909, 19_870_910, 19_870_911];

/// Seed of the random workloads that nobody had inspected when the policy was designed.
pub const HELD_OUT_SEED: u64 = 19_870_912;

/// Cache policies, one for each access class.
pub type Policies = [CachePolicy; 3];

/// Component that chooses the cache policies: the driver or the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// The driver sets these policies once, before the workload.
    Driver(Policies),
    /// The controller adapts the policies itself.
    Controller,
}

/// Elapsed times of a workload, with the statistics of its cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// Elapsed time of each pass in seconds. In the first, the controller has no knowledge; in the
    /// second, it has seen the whole workload.
    pub passes_s: [f64; 2],
    /// Statistics of the cache in both passes, by [`Hint`].
    pub seen: [CacheStatistics; 3],
}

impl Took {
    /// Returns the elapsed time of the pass that counts for a workload, in seconds.
    pub fn counted_s(&self, workload: &Workload) -> f64 {
        match workload.counts_first {
            true => self.passes_s[0],
            false => self.passes_s[1],
        }
    }
}
