//! A disk of 1990 to 2026: zones, skews and spares, an arm, a spindle with a true period
//! and phase, and the queue that its firmware orders.
//!
//! Angles are in parts of 2^64 of a revolution, moments in whole nanoseconds; where time
//! goes adds up exactly.

pub mod cache;
pub mod closed;
pub mod device;
pub mod layout;
pub mod link;
pub mod mechanism;
pub mod overheads;
pub mod queue;
pub mod seek;
pub mod shingled;
pub mod spindle;
