//! Access of plans to files of the host outside of the catalogue: job files, I/O logs and traces.

use crate::error::LaboratoryError;
use diskperf_battery::replay::ReplayTrace;
use diskperf_blocktrace::transform::Scale;
use diskperf_timeline::{Experiment, TraceFacts, TraceReplay, Workload};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Access to files of the host, which plans read through this interface.
pub trait Files: fmt::Debug + Send + Sync {
    /// Reads the files that the workload of an experiment names: the text of a job file, the facts
    /// of a trace. Returns the experiment with their content; `None` if it names no file.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is of the wrong kind.
    fn named_by(&self, experiment: &Experiment) -> Result<Option<Experiment>, LaboratoryError>;

    /// Opens an I/O log that a job file replays.
    ///
    /// # Errors
    ///
    /// Returns the reason why the log cannot be read.
    fn log(&self, path: &str) -> Result<Box<dyn Read + Send>, String>;

    /// Returns the canonical path of a file, the same for all links to it.
    fn resolved(&self, path: &Path) -> PathBuf;

    /// Returns the requests of a planned replay, with the given scale of addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if the options of the replay fit no trace.
    fn trace(
        &self,
        of: (&TraceReplay, &TraceFacts),
        scale: Option<Scale>,
    ) -> Result<Arc<dyn ReplayTrace>, LaboratoryError>;
}

/// Host without files. Job files are given as texts, and there are no logs and traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

const NO_FILES: &str = "there are no files here";

impl Files for NoFiles {
    fn named_by(&self, experiment: &Experiment) -> Result<Option<Experiment>, LaboratoryError> {
        match &experiment.workload {
            Workload::Replay(_) => Err(LaboratoryError::request(NO_FILES)),
            _ => Ok(None),
        }
    }

    fn log(&self, _path: &str) -> Result<Box<dyn Read + Send>, String> {
        Err(NO_FILES.to_owned())
    }

    fn resolved(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn trace(
        &self,
        _of: (&TraceReplay, &TraceFacts),
        _scale: Option<Scale>,
    ) -> Result<Arc<dyn ReplayTrace>, LaboratoryError> {
        Err(LaboratoryError::request(NO_FILES))
    }
}
