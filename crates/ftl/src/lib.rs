//! Translation layer (FTL) of a flash drive, without time.
//!
//! The [`Ftl`] maps logical units (4 KiB) to physical ones, and decides which units to program,
//! copy and erase. It issues *work*, and the caller reports when that is complete; the duration of
//! die operations is the caller's matter. [`UntimedFtl`] performs all work in no time. [`analytic`]
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

pub use collection::{CollectionStep, CopyOutcome, UnitCopy};
pub use conservation::BrokenInvariant;
pub use features::{DieAllocation, Features, SlcCache};
pub use frontier::Writer;
pub use ftl::{Ftl, NoFreeSuperblock, Placement};
pub use instant::UntimedFtl;
pub use map_cache::{Lookup, MapCache, MapCacheCounts};
pub use past::PreconditionState;
pub use recovery::{JournalWrite, PowerCutRecovery};
pub use specification::{
    DataSeparation, Geometry, ImpossibleSpecification, Specification, VictimPolicy,
};
pub use traffic::{ProgramCause, ProgrammedUnits};
