//! A drive's files and a trace of it together.
//!
//! A drive's files have its geometry, but its skews are rounded to sectors, its speed is the
//! nominal one, and its firmware is told by a few constants. A trace of the drive shows the
//! rest: request by request, it says where the platter was. [`calibrate`] finds that from the
//! first requests of a trace, by one procedure for all drives. It proposes parameters of
//! `diskperf-device`'s disk and steps that disk through the trace in a closed loop; the figures
//! are of the second half, which nothing was fitted to. The result is a disk, and its text is a
//! layer of a catalogue over the imported files ([`layer`]).

mod affine;
pub mod alone;
mod angles;
mod arrival;
pub mod entry;
mod fit;
mod guard;
mod layer;
mod linear;
mod parameter;
mod phase_step;
mod places;
mod proposal;
mod remains;
mod replay;
mod rules;
mod score;

pub use diskperf_device::disk::device::Answer;
pub use fit::{Calibration, CalibrationError, Options, calibrate, score};
pub use guard::Stage;
pub use layer::layer;
pub use parameter::{Interval, Parameter};
pub use phase_step::PhaseStep;
pub use places::Beyond;
pub use remains::{Cause, Off, Remaining, Remains};
pub use replay::Replayed;
pub use score::Score;
