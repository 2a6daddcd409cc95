//! Why a run on real storage took as long as it did, by what the system tells.

pub mod storage;
