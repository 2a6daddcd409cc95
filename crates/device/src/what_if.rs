//! Costs that are taken away to see what they are worth.

use diskperf_spans::Stage;

/// What is supposed of a computer that no catalogue has: each takes one cost of
/// its drives away and leaves all others as they are. Costs that are numbers of
/// the catalogue (a processor's speed, a bus's rate) are changed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// The arm is at every cylinder at once, and at rest.
    pub no_seek: bool,
    /// Nothing is waited for on a track: when a drive is ready for a sector, its
    /// platter is turned to where that sector begins. It turns as fast as before
    /// from there on, so that sectors take as long to pass, and what follows
    /// later is where it would be after that. This is not a faster spindle,
    /// which would also transfer faster, nor a drive with all sectors under its
    /// heads at once.
    pub no_rotational_latency: bool,
    /// A sector whose deadline was missed is caught all the same: when the drive
    /// is ready, its platter is turned back to where that sector begins. The
    /// ordinary wait for a sector that was not missed stays, and so does by how
    /// much a command was late: that is time which has passed. No sector is late
    /// for memory, and a drive that finds its sector while another transfers is
    /// noticed.
    pub deadlines_met: bool,
    /// A flash drive collects and folds in no time, beside its dies. What it programs for
    /// the host is where it would be.
    pub no_collection: bool,
    /// The host's requests do not wait in this stage in a flash drive: its reads are sensed
    /// beside what keeps a die, cross beside what a channel carries, its commands are worked
    /// on beside others, and its data cross the link beside others'. All these go on for as
    /// long as before, and are waited for by all else; but a read that was sensed beside its
    /// die needs neither register nor channel there. What only follows from a wait stays: of
    /// a page for its register, of a read behind another that waits. Other stages than a wait
    /// for a die, a channel, the controller or the link stay.
    pub passes: Option<Stage>,
}
