//! Controller for the VMEbus, with drivers like those of Sun.

mod driver;
mod hardware;
mod specification;
#[cfg(test)]
mod tests;

pub use driver::{ScanOrigin, VmeDriverConfig};
pub use hardware::{
    CachePolicy, CachingScheme, MaintenanceCommands, READ_AHEAD_SECTORS_MAX, VerifyPass, Vme,
    VmeConfig, VmeEvent,
};
pub use specification::VmeSpecification;
