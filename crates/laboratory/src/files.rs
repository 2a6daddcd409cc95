//! Files of this machine that plans are made from.

use crate::job_file::read_experiment_file;
use crate::traces::course::TraceFiles;
use crate::traces::facts;
use diskperf_battery::replay::ReplayTrace;
use diskperf_blocktrace::transform::AddressScaling;
use diskperf_diagnostics::input;
use diskperf_models::LaboratoryError;
use diskperf_models::files::Files;
use diskperf_models::plan::replay::check_options;
use diskperf_timeline::{Experiment, TraceFacts, TraceReplay, Workload};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Source of files for plans that reads this machine's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostFiles;

impl Files for HostFiles {
    fn read_named(&self, experiment: &Experiment) -> Result<Option<Experiment>, LaboratoryError> {
        let Workload::Replay(replay) = &experiment.workload else {
            return read_experiment_file(experiment);
        };
        check_options(experiment)?;
        let replay = facts::plan_replay(replay)?;
        Ok(Some(Experiment {
            workload: Workload::Replay(Box::new(replay)),
            ..experiment.clone()
        }))
    }

    fn open_log(&self, path: &str) -> Result<Box<dyn Read + Send>, String> {
        let file = input::open(Path::new(path)).map_err(|error| error.to_string())?;
        Ok(Box::new(file))
    }

    fn resolve_path(&self, path: &Path) -> PathBuf {
        if let Ok(resolved) = path.canonicalize() {
            return resolved;
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        match (folder.canonicalize(), path.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => path.to_owned(),
        }
    }

    fn open_trace(
        &self,
        of: (&TraceReplay, &TraceFacts),
        scale: Option<AddressScaling>,
    ) -> Result<Arc<dyn ReplayTrace>, LaboratoryError> {
        Ok(Arc::new(TraceFiles::from_replay(of, scale)?))
    }
}
