//! Access of plans to files of the host outside of the catalogue: job files, I/O logs and traces.

use crate::error::LaboratoryError;
use diskperf_battery::replay::ReplayTrace;
use diskperf_blocktrace::transform::AddressScaling;
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
    fn read_named(&self, experiment: &Experiment) -> Result<Option<Experiment>, LaboratoryError>;

    /// Opens an I/O log that a job file replays.
    ///
    /// # Errors
    ///
    /// Returns the reason why the log cannot be read.
    fn open_log(&self, path: &str) -> Result<Box<dyn Read + Send>, String>;

    /// Returns the canonical path of a file, the same for all links to it.
    fn resolve_path(&self, path: &Path) -> PathBuf;

    /// Returns the requests of a planned replay, with the given scale of addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if the options of the replay fit no trace.
    fn open_trace(
        &self,
        of: (&TraceReplay, &TraceFacts),
        scale: Option<AddressScaling>,
    ) -> Result<Arc<dyn ReplayTrace>, LaboratoryError>;
}

/// Host without files. Job files are given as texts, and there are no logs and traces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

const NO_FILES_MESSAGE: &str = "there are no files here";

impl Files for NoFiles {
    fn read_named(&self, experiment: &Experiment) -> Result<Option<Experiment>, LaboratoryError> {
        match &experiment.workload {
            Workload::Replay(_) => Err(LaboratoryError::request(NO_FILES_MESSAGE)),
            _ => Ok(None),
        }
    }

    fn open_log(&self, _path: &str) -> Result<Box<dyn Read + Send>, String> {
        Err(NO_FILES_MESSAGE.to_owned())
    }

    fn resolve_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn open_trace(
        &self,
        _of: (&TraceReplay, &TraceFacts),
        _scale: Option<AddressScaling>,
    ) -> Result<Arc<dyn ReplayTrace>, LaboratoryError> {
        Err(LaboratoryError::request(NO_FILES_MESSAGE))
    }
}
