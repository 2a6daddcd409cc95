//! Comparison of an adaptive controller with every fixed cache setting. Zachariassen 1987 wished
//! for a controller that chooses its cache bits and its read-ahead itself.
//!
//! A [`AdaptiveWorkload`] runs once with each setting that can have an effect ([`FixedPolicyRuns`]) and once with the
//! adaptive controller. The elapsed time of the second of two passes counts, because the text gives
//! minima of several runs. For a workload that changes in mid-run, the first pass counts, which the
//! controller meets without any knowledge.

mod drawn;
mod fixed;
mod rig;
mod set;
mod table;
mod workload;

pub use diskperf_device::AccessHint;
pub use diskperf_machine::hardware::cache::CacheStatistics;
pub use diskperf_machine::parts::vme::CachePolicy;
pub use drawn::draw_workloads;
pub use fixed::{FixedPolicyRuns, LOOK_DISTANCES};
pub use rig::AdaptiveRig;
pub use set::{BestOverAll, SetRow, WorkloadSet};
pub use table::{TABLE_PREAMBLE, render_table};
pub use workload::{AdaptiveWorkload, WorkloadPart, changing_workloads, design_workloads};

/// Seeds of the random workloads that the policy was designed with. The last four are the days
/// after the date of Zachariassen's text. They were held out at first and inspected later.
pub const DESIGN_SEEDS: [u64; 7] = [1, 2, 3, 19_870_908, 19_870_909, 19_870_910, 19_870_911];

/// Seed of the random workloads that nobody had inspected when the policy was designed.
pub const HELD_OUT_SEED: u64 = 19_870_912;

/// Cache policies, one for each access class.
pub type PolicyByClass = [CachePolicy; 3];

/// Component that chooses the cache policies: the driver or the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyChooser {
    /// The driver sets these policies once, before the workload.
    Driver(PolicyByClass),
    /// The controller adapts the policies itself.
    Controller,
}

/// Elapsed times of a workload, with the statistics of its cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadTimes {
    /// Elapsed time of each pass in seconds. In the first, the controller has no knowledge; in the
    /// second, it has seen the whole workload.
    pub passes_s: [f64; 2],
    /// Statistics of the cache in both passes, by [`AccessHint`].
    pub seen: [CacheStatistics; 3],
}

impl WorkloadTimes {
    /// Returns the elapsed time of the pass that counts for a workload, in seconds.
    pub fn counted_seconds(&self, workload: &AdaptiveWorkload) -> f64 {
        match workload.counts_first_phase {
            true => self.passes_s[0],
            false => self.passes_s[1],
        }
    }
}
