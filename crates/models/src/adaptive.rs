//! The author's wish of Zachariassen 1987: a controller that chooses its cache bits and
//! its read-ahead by itself, beside every fixed setting.
//!
//! A [`Workload`] is run once with each setting that can show ([`Fixed`]), and
//! once with the controller that adapts. What counts is how long all of it
//! takes, in the second pass of two (the text gives minima of several runs); of
//! a workload that changes in mid-run, the first, which the controller meets
//! without knowing anything.

mod drawn;
mod fixed;
mod rig;
mod set;
mod table;
mod workload;

pub use diskperf_device::Hint;
pub use diskperf_machine::hardware::cache::CacheStatistics;
pub use diskperf_machine::parts::vme::Policy;
pub use drawn::drawn;
pub use fixed::{DISTANCES, Fixed};
pub use rig::Rig;
pub use set::{OverAll, Row, Set};
pub use table::{PREAMBLE, table};
pub use workload::{Part, Workload, changes, of_the_seed};

/// Of the random workloads that the policy was made with; the last four are those of the
/// days after the text's, which were once held out, and looked at then.
pub const DESIGN_SEEDS: [u64; 7] = [1, 2, 3, 19_870_908, 19_870_909, 19_870_910, 19_870_911];

/// Of those that nobody had looked at when it was made.
pub const HELD_OUT_SEED: u64 = 19_870_912;

/// Policies by access class.
pub type Policies = [Policy; 3];

/// Who chooses what the cache does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// The driver, once for all.
    Driver(Policies),
    /// The controller.
    Controller,
}

/// How long a workload took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Took {
    /// Seconds of each pass: of a controller that knows nothing yet, and of one
    /// that has seen it all.
    pub passes_s: [f64; 2],
    /// What the cache did in both, by [`Hint`].
    pub seen: [CacheStatistics; 3],
}

impl Took {
    /// The seconds that count for a workload.
    pub fn counted_s(&self, workload: &Workload) -> f64 {
        match workload.counts_first {
            true => self.passes_s[0],
            false => self.passes_s[1],
        }
    }
}
