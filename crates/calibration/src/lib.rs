//! Calibration of a drive model from the drive's parameter files and a trace of the drive.
//!
//! A drive's files contain its geometry, but the skews are rounded to sectors, the speed is the
//! nominal one, and a few constants stand for the firmware. A trace of the drive shows the rest,
//! because each request reveals the position of the platter. [`calibrate`] extracts this from the
//! first requests of a trace, with one procedure for all drives. It proposes parameters of
//! `diskperf-device`'s disk and steps that disk through the trace in a closed loop. The scores
//! cover the second half, which nothing was fitted to. The result is a disk, and its text is a
//! catalogue layer over the imported files ([`mod@layer`]).

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

pub use diskperf_device::disk::device::AnswerSource;
pub use fit::{Calibration, CalibrationError, FitOptions, calibrate, score_disk};
pub use guard::FitStage;
pub use layer::render_layer;
pub use parameter::{FittedParameter, ParameterInterval};
pub use phase_step::PhaseStep;
pub use places::RequestBeyondCapacity;
pub use remains::{CauseTotal, MispredictedRequest, PredictionErrorCause, RemainingErrors};
pub use replay::ReplayedRequest;
pub use score::Score;
