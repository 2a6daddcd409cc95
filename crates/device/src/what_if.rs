//! Counterfactual assumptions about drives: each removes one cost to show what it contributes.

use diskperf_spans::Stage;

/// Counterfactual assumptions about a computer's drives, which no catalogue entry can express. Each
/// removes one cost and leaves all others as they are. Costs that are parameters of the catalogue,
/// such as a processor's speed or a bus's rate, are changed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// Whether seeks take no time. The arm is at every cylinder at once, and settled.
    pub no_seek: bool,
    /// Whether rotational latency is 0. When a drive is ready for a sector, its platter turns to
    /// the start of that sector in no time. From there on it rotates at its normal speed, so media
    /// transfer takes as long as before. The result is neither a faster spindle, which would also
    /// transfer faster, nor a drive with all sectors under its heads at once.
    pub no_rotational_latency: bool,
    /// Whether a missed sector is caught after all. When the drive is ready, its platter turns back
    /// to the start of that sector in no time. The ordinary rotational latency of other sectors
    /// stays, and so does the delay of the late command itself. Memory always accepts a sector in
    /// time, and a controller notices a drive that finds its sector while another drive transfers.
    pub meets_deadlines: bool,
    /// Whether garbage collection and folding of a flash drive take no time and occupy no die. Host
    /// data are programmed where they would be otherwise.
    pub no_collection: bool,
    /// Stage of a flash drive in which host requests do not wait: a die, a channel, the controller
    /// or the link. Other stages have no effect. A host read bypasses the work that occupies its
    /// die or channel, commands bypass each other in the controller, and data bypass others on the
    /// link. The bypassed work takes as long as before, and other work still waits for it. A read
    /// that bypasses its die needs neither register nor channel there. Indirect waits remain: of a
    /// page for its register, or of a read behind another one that waits.
    pub bypassed_stage: Option<Stage>,
}
