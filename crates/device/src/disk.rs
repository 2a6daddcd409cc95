//! Hard disk of 1990 to 2026: zones, skews and spares, an actuator, a spindle with exact period and
//! phase, and a queue that the firmware orders.
//!
//! Angles are in parts of 2^64 of a revolution, times in whole nanoseconds. The time components of
//! a request add up exactly.

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
