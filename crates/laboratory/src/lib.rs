//! From a plan to a run: everything that the command line and Python
//! calls.
//!
//! An [`Experiment`] is what the user asked for. [`plan::plan`] checks it against
//! the machine without changing anything and makes a [`Plan`] for each run, which
//! keeps it, so that [`again`] can make the same plan of a stored run;
//! [`execute::execute`] carries a plan out, tells an [`Observer`] what happens
//! and a [`Recorder`] what was measured. Nothing here prints.

pub mod ab;
pub mod adaptive;
pub mod again;
pub mod catalogue;
pub mod clean;
pub mod disk_queue;
mod drive;
mod error;
pub mod execute;
pub mod expected;
pub mod explain;
pub mod flash;
pub mod formatting;
pub mod import;
pub mod interleave;
pub mod job_file;
mod label;
mod measured;
pub mod model;
mod observer;
pub mod output;
mod overhead;
mod parallel;
mod pilot;
pub mod plan;
pub mod points;
mod preparation;
pub mod recorder;
pub mod recording;
mod repetition;
pub mod report;
pub mod reproduce;
mod rig;
pub mod runs;
mod steady;
mod store_path;
mod target;
pub mod traces;
mod traffic;
pub mod tune;

pub use error::{LaboratoryError, OverBudget};
pub use observer::{Event, Nobody, Observer, Recorded, Source};
pub use output::Output;
pub use plan::Plan;
pub use recorder::Recorder;

pub use diskperf_system::host::limits::{require_clocks, why_not_started};
pub use diskperf_system::{ReadBackProgress, WorkerProgress};
pub use diskperf_timeline::{Experiment, Setting, SizeChoice, Workload};

pub use diskperf_analysis as analysis;
pub use diskperf_battery as battery;
pub use diskperf_machine as machine;
pub use diskperf_store as store;
pub use diskperf_timeline as timeline;
