//! Controller for the VMEbus, with drivers like those of Sun.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::{ScanFrom, VmeDriverConfig};
pub use hardware::{
    AHEAD_SECTORS_MAX, Caching, Maintenance, Policy, VerifyPass, Vme, VmeConfig, VmeEvent,
};
pub use specification::Specification;
