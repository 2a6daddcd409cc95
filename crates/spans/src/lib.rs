//! Where the time of a request went: stages, the spans that tile a request, and what drives
//! record of themselves.
//!
//! The feature `serde` makes all of it data of documents.

mod arm;
mod flash;
mod nanoseconds;
mod position;
mod request;
mod stage;
mod traffic;

pub use arm::{ArmWork, TracedArm};
pub use flash::{FlashBusy, FlashLevels, TracedDie, TracedFlash};
pub use nanoseconds::Nanoseconds;
pub use position::{DiskPosition, Position};
pub use request::{Request, Span, with_starts};
pub use stage::{Deadline, DieBusy, Stage};
pub use traffic::FlashTraffic;
