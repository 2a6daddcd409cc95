//! Why a run took as long as it did: one on a model as [`diskperf_models::explain`] says, one
//! on real storage ([`storage`]) by what the system tells.

pub mod storage;

pub use diskperf_models::explain::*;
