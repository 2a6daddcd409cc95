//! Searching a modelled system for better settings as [`diskperf_models::tune`] does, and a
//! real one by measurements in turns; what points came to is kept in the store.

mod host;
mod kept;

pub use diskperf_models::tune::*;
pub use host::{HostSearch, tune_host};
pub use kept::Kept;
