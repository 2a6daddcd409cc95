//! Jumps of a trace's phase.

/// A jump of the phase: lines of the trace were dropped there, or its clock was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseStep {
    /// First request that shows it, counted from 1 over the whole trace.
    pub request: usize,
    /// Turn of the platter that the trace's times lack, in revolutions from -0.5 to 0.5.
    pub turned_rev: f64,
}
