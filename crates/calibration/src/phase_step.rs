//! Jumps of the rotational phase in a trace.

/// Jump of the rotational phase, where lines of the trace were dropped or its clock was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseStep {
    /// Index of the first request after the jump, counted from 1 over the whole trace.
    pub request_index: usize,
    /// Rotation that is missing from the trace's times, in revolutions from -0.5 to 0.5.
    pub phase_shift_rev: f64,
}
