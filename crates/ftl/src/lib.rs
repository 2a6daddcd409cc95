//! Translation layer (FTL) of a flash drive, without time.
//!
//! The [`Ftl`] maps logical units (4 KiB) to physical ones, and decides which units to program,
//! copy and erase. It issues *work*, and the caller reports when that is complete; the duration of
//! die operations is the caller's matter. [`Instant`] performs all work in no time. [`analytic`]
//! has the published formulas of write amplification.

pub mod analytic;
mod anonymous;
mod buckets;
mod cache;
mod collection;
mod conservation;
mod division;
mod entries;
mod features;
mod frontier;
mod ftl;
mod in_order;
mod instant;
mod map_cache;
mod parity;
mod past;
mod recovery;
mod shuffled;
mod skew;
mod small_drive;
mod specification;
mod steady;
mod traffic;

pub use collection::{Copied, Copy, Progress};
pub use conservation::Broken;
pub use features::{Allocation, Features, SlcCache};
pub use frontier::Writer;
pub use ftl::{Ftl, Full, Placement};
pub use instant::Instant;
pub use map_cache::{Lookup, MapCache};
pub use past::Past;
pub use recovery::{Journal, Recovered};
pub use specification::{Geometry, Impossible, Policy, Separation, Specification};
pub use traffic::{Cause, Traffic};
