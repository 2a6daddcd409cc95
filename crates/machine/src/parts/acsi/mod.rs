//! Disk on the DMA port of an Atari ST (ACSI), with Minix's disk task as its driver.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::DiskTaskConfig;
pub use hardware::{Acsi, AcsiConfig, AcsiEvent};
pub use specification::AcsiSpecification;
