//! Searches for better settings on real storage, by interleaved measurements; and the store of
//! points for searches on models.

mod host;
mod kept;

pub use host::{HostSearch, tune_host};
pub use kept::PointStore;
