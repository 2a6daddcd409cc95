//! A disk on the DMA port of an Atari ST, and what Minix's disk task tells it.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::DiskTaskConfig;
pub use hardware::{Acsi, AcsiConfig, AcsiEvent};
pub use specification::Specification;
