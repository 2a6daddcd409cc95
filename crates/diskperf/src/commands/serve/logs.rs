//! Files that serving writes as requests come: the log of faults, and the trace.

use crate::arguments::ServeArguments;
use crate::output::print_message;
use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_serve::{FaultLog, Served, ServedTraceRecorder};
use std::io;
use std::path::{Path, PathBuf};

/// Files that serving writes as requests come. They have their names from the start, and can be
/// followed.
pub(super) struct Logs {
    faults: Option<(FaultLog, PathBuf)>,
    trace: Option<(ServedTraceRecorder, PathBuf)>,
}

impl Logs {
    /// Creates the files that the arguments name.
    ///
    /// # Errors
    ///
    /// A file that cannot be written, or a trace that exists.
    pub(super) fn open(
        arguments: &ServeArguments,
        served: &Served,
    ) -> Result<Self, LaboratoryError> {
        let faults = match &arguments.fault_log {
            Some(path) => {
                let output = Output::open_beside_table("--fault-log", path)?.open_writer(true)?;
                Some((FaultLog::new(output), path.clone()))
            }
            None => None,
        };
        let trace = match &arguments.record {
            Some(path) => {
                let output = Output::open_beside_table("--record", path)?;
                let output = output.require_new(arguments.force, path)?;
                let output = output.open_writer(arguments.force)?;
                let recorder =
                    ServedTraceRecorder::create(output, &arguments.drive, served.size_bytes);
                let recorder = recorder.map_err(|error| failed("--record", path, &error))?;
                served.drive.keep_events();
                Some((recorder, path.clone()))
            }
            None => None,
        };
        Ok(Self { faults, trace })
    }

    /// Adds what has happened since the last call.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub(super) fn add(&mut self, served: &Served) -> Result<(), LaboratoryError> {
        let strikes = served.drive.take_strikes();
        if let Some((log, path)) = &mut self.faults {
            let added = log.add(&strikes, &served.drive.fault_states());
            added.map_err(|error| failed("--fault-log", path, &error))?;
        }
        if let Some((trace, path)) = &mut self.trace {
            let added = trace.add(&served.drive.take_events());
            added.map_err(|error| failed("--record", path, &error))?;
        }
        Ok(())
    }

    /// Ends the files, and says how much was recorded.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub(super) fn finish(self) -> Result<(), LaboratoryError> {
        let Some((trace, path)) = self.trace else {
            return Ok(());
        };
        let requests = match trace.requests() {
            1 => "1 request".to_owned(),
            requests => format!("{requests} requests"),
        };
        let lost = match trace.lost_events() {
            0 => String::new(),
            lost => format!(", and lost {lost} events that came too fast"),
        };
        trace
            .finish()
            .map_err(|error| failed("--record", &path, &error))?;
        let path = path.display();
        print_message(&format!("recorded {requests} in {path}{lost}"));
        Ok(())
    }
}

fn failed(option: &str, path: &Path, error: &io::Error) -> LaboratoryError {
    let path = path.display();
    LaboratoryError::Workload(format!("{option} {path}: cannot be written: {error}"))
}
