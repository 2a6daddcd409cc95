//! Explanation of the time that runs on real storage took, from data that the operating system
//! provides.

pub mod storage;
