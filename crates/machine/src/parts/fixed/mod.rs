//! A device without mechanics: a distribution of service times, servers, a queue, and
//! stalls. What queueing theory says of it can be calculated.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::FixedDriverConfig;
pub use hardware::{Fixed, FixedConfig, FixedEvent, Service};
pub use specification::Specification;
