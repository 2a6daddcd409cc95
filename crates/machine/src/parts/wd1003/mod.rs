//! Disk controller of a PC-AT (WD1003), with the hd driver.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::HdDriverConfig;
pub use hardware::{ProcessorAction, Wd1003, Wd1003Config, Wd1003Event};
pub use specification::Wd1003Specification;
