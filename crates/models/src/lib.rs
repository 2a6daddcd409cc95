//! Runs on modelled computers and drives: from an [`Experiment`](diskperf_timeline::Experiment)
//! to plans, repetitions and results, and from results to explanations and better parameters.
//!
//! Nothing here knows a store, a thread, a clock or a file of the host. A plan takes what it
//! needs of files from [`Files`](files::Files); work in pieces goes to a [`Crew`](crew::Crew);
//! points of a search are kept in [`PointMemory`](tune::PointMemory). The crate builds for
//! `wasm32-unknown-unknown`.

pub mod adaptive;
pub mod again;
pub mod crew;
pub mod disk_queue;
mod error;
pub mod expected;
pub mod explain;
pub mod files;
pub mod flash;
pub mod formatting;
pub mod job_file;
pub mod label;
pub mod measured;
pub mod model;
mod observer;
pub mod plan;
pub mod points;
pub mod rig;
pub mod tune;
pub mod two_drives;
pub mod volume;

pub use error::{LaboratoryError, OverBudget, StorageNames};
pub use observer::{EventSource, Observer, ObserverEvent, RecordedEvent, SilentObserver};
