//! Breakdown of request time: stages, the spans that cover a request without gaps, and the activity
//! that drives record.
//!
//! The feature `serde` makes all types serializable for documents.

mod arm;
mod flash;
mod nanoseconds;
mod position;
mod request;
mod stage;
mod traffic;

pub use arm::{ArmWork, TracedArm};
pub use flash::{DieBusyPeriod, FlashBusy, FlashLevelSample, TracedFlash};
pub use nanoseconds::Nanoseconds;
pub use position::{DiskPosition, Position};
pub use request::{RequestTimeline, Span, StageInterval, stage_intervals};
pub use stage::{Deadline, DieBusy, Stage, VolumeLimit};
pub use traffic::FlashTraffic;
