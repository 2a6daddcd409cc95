//! Nothing between software and a device: a driver gives the device all that it takes,
//! and is interrupted for what is done.

mod driver;
mod hardware;
mod specification;

pub use driver::DirectDriverConfig;
pub use hardware::{Direct, DirectEvent};
pub use specification::Specification;
