//! Orchestration of runs, from the plan to the stored result. The command line and Python call this
//! crate.
//!
//! An [`Experiment`] is the user's request. [`plan::plan`] validates it against the machine without
//! changing anything and makes a [`Plan`] for each run. The plan keeps the experiment, so that
//! `models::again` can make the same plan from a stored run. [`execute::execute`] executes a plan,
//! reports events to an [`Observer`] and passes results to a [`RunRecorder`]. Nothing here prints.

pub mod ab;
pub mod catalogue;
pub mod clean;
pub mod crash;
pub mod crew;
mod drive;
mod event_recorder;
pub mod execute;
pub mod explain;
pub mod files;
pub mod import;
pub mod interleave;
pub mod job_file;
mod known_limits;
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
pub mod request_lists;
pub mod runs;
pub mod served_disk;
mod steady;
mod store_path;
mod target;
pub mod traces;
mod traffic;
pub mod tune;
pub mod volume;

pub use diskperf_models::{EventSource, Observer, ObserverEvent, RecordedEvent, SilentObserver};
pub use diskperf_models::{LaboratoryError, OverBudget};
pub use limit::explain_open_file_limit;
pub use output::Output;
pub use plan::Plan;
pub use recorder::RunRecorder;

pub use diskperf_system::host::limits::{explain_thread_start_failure, require_clocks};
pub use diskperf_system::{ReadBackProgress, WorkerProgress};
pub use diskperf_timeline::{Experiment, Setting, SizeChoice, Workload};
