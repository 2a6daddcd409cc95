//! A drive's files and a trace of it together.
//!
//! A drive's files have its geometry, but its skews are rounded to sectors, its speed is the
//! nominal one, and its firmware is told by a few constants. A trace of the drive shows the
//! rest: request by request, it says where the platter was. [`calibrate`] finds that from the
//! first requests of a trace, by one procedure for all drives, and replays the whole trace in
//! a closed loop; its figures are of the second half, which nothing was fitted to.

mod affine;
pub mod alone;
mod angles;
mod arrival;
mod cache;
mod filed;
mod fit;
mod linear;
mod model;
mod parameter;
mod places;
mod remains;
mod replay;
mod rules;
mod score;

pub use arrival::{SEEK_NAMES, added_to_seek_us};
pub use fit::{Calibration, Options, calibrate};
pub use model::Answer;
pub use parameter::{Interval, Parameter};
pub use places::Beyond;
pub use remains::{Cause, Off, Remaining, Remains};
pub use replay::Replayed;
pub use score::Score;
