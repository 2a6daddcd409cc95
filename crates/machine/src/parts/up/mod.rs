//! SMD controller on a UNIBUS that software accesses like a MASSBUS disk (Emulex SC21 and
//! compatible), with the up driver of 4.2BSD.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::{UpDriverConfig, UpSearchLead};
pub use hardware::{Up, UpCompletion, UpEvent, UpHardwareConfig};
pub use specification::UpSpecification;
