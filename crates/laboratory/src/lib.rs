//! From a plan to a run: everything that the command line and Python
//! calls.
//!
//! An [`Experiment`] is what the user asked for. [`plan::plan`] checks it against
//! the machine without changing anything and makes a [`Plan`] for each run, which
//! keeps it, so that [`again`] can make the same plan of a stored run;
//! [`execute::execute`] carries a plan out, tells an [`Observer`] what happens
//! and a [`Recorder`] what was measured. Nothing here prints.

pub mod ab;
pub mod catalogue;
pub mod clean;
pub mod crew;
mod drive;
pub mod execute;
pub mod explain;
pub mod files;
pub mod import;
pub mod interleave;
pub mod job_file;
mod limit;
pub mod output;
mod overhead;
mod pilot;
pub mod plan;
mod preparation;
pub mod recorder;
pub mod recording;
mod repetition;
pub mod report;
pub mod reproduce;
pub mod runs;
mod steady;
mod store_path;
mod target;
pub mod traces;
mod traffic;
pub mod tune;

pub use diskperf_models::{Event, Nobody, Observer, Recorded, Source};
pub use diskperf_models::{LaboratoryError, OverBudget};
pub use limit::or_limit;
pub use output::Output;
pub use plan::Plan;
pub use recorder::Recorder;

pub use diskperf_system::host::limits::{require_clocks, why_not_started};
pub use diskperf_system::{ReadBackProgress, WorkerProgress};
pub use diskperf_timeline::{Experiment, Setting, SizeChoice, Workload};
