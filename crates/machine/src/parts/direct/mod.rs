//! Direct attachment of devices without a modelled controller: the driver submits as many requests
//! as the device accepts, and the device interrupts at each completion.

mod driver;
mod hardware;
mod specification;

pub use driver::DirectDriverConfig;
pub use hardware::{Direct, DirectEvent};
pub use specification::DirectSpecification;
