//! Searches for better settings on real storage, by measurements in turns; and the store as the
//! memory of searches on models.

mod host;
mod kept;

pub use host::{HostSearch, tune_host};
pub use kept::Kept;
