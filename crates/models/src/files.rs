//! What plans take from files of the host, beside the catalogue: job files, logs of I/O and
//! traces.

use crate::error::LaboratoryError;
use diskperf_battery::replay::Trace;
use diskperf_blocktrace::transform::Scale;
use diskperf_timeline::{Experiment, TraceFacts, TraceReplay, Workload};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of the host.
pub trait Files: fmt::Debug + Send + Sync {
    /// Reads the files that the workload of an experiment names: the text of a job file, the
    /// facts of a trace. Returns the experiment with these; nothing where it names none.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that is none of its kind.
    fn named_by(&self, experiment: &Experiment) -> Result<Option<Experiment>, LaboratoryError>;

    /// Opens a log of I/O that a job file repeats.
    ///
    /// # Errors
    ///
    /// Why it cannot be read.
    fn log(&self, path: &str) -> Result<Box<dyn Read + Send>, String>;

    /// Returns the path by which a file is known whatever leads to it.
    fn resolved(&self, path: &Path) -> PathBuf;

    /// Returns the requests of a replay that is planned, with addresses scaled so.
    ///
    /// # Errors
    ///
    /// A replay whose options fit no trace.
    fn trace(
        &self,
        of: (&TraceReplay, &TraceFacts),
        scale: Option<Scale>,
    ) -> Result<Arc<dyn Trace>, LaboratoryError>;
}

/// A host without files: job files are texts, and there are no logs and traces.
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
    ) -> Result<Arc<dyn Trace>, LaboratoryError> {
        Err(LaboratoryError::request(NO_FILES))
    }
}
