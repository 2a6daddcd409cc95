//! UDA50 controller of DEC, with the uda driver of 4.2BSD.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::UdaDriverConfig;
pub use hardware::{CommandOrder, Uda50, Uda50Config, Uda50Event};
pub use specification::Uda50Specification;
