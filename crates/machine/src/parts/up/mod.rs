//! An SMD controller on a UNIBUS that looks like a MASSBUS disk to software (Emulex SC21
//! and its like), and the up driver of 4.2BSD.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::{Lead, UpConfig};
pub use hardware::{Done, Up, UpEvent, UpHardwareConfig};
pub use specification::Specification;
