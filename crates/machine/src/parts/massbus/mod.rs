//! MASSBUS adaptor, or a controller compatible with one, with the hp driver of 4.2BSD.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::{HpDriverConfig, PositionTest, SearchLead};
pub use hardware::{AttentionTiming, Massbus, MassbusCompletion, MassbusConfig, MassbusEvent};
pub use specification::MassbusSpecification;
