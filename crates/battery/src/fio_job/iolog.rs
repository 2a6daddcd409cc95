//! Log of a clone's I/O that fio can repeat: an iolog of version 3.

use crate::program::ProgramError;
use diskperf_fio::JobDefinition;
use diskperf_system::{IoOperation, Submission, create_log_file};
use diskperf_timeline::Nanoseconds;
use std::io::{BufWriter, Write};

const IOLOG_HEADER: &str = "fio version 3 iolog\n";

/// Beginning of the first line of an iolog of any version.
const IOLOG_HEADER_PREFIX: &str = "fio version ";

/// I/O log that is being written.
pub(super) struct IologWriter {
    log_path: String,
    log_output: BufWriter<Box<dyn Write + Send>>,
    start_time: Nanoseconds,
    /// Names of the clone's files as the job file gives them.
    file_names: Vec<String>,
}

impl IologWriter {
    /// Begins the I/O log of a clone. Returns `None` if the job writes no log.
    pub(super) fn begin_log(
        job: &JobDefinition,
        (clone, names): (u32, Vec<String>),
        start: Nanoseconds,
    ) -> Result<Option<Self>, ProgramError> {
        let Some(path) = job.iolog.clone_log_path(clone) else {
            return Ok(None);
        };
        let out = create_log_file(&path, IOLOG_HEADER_PREFIX.as_bytes());
        let out = out.map_err(|why| ProgramError::TraceFailed(format!("write_iolog: {why}")))?;
        let mut log = Self {
            log_path: path,
            log_output: BufWriter::new(out),
            start_time: start,
            file_names: names,
        };
        log.write_line(format_args!("{IOLOG_HEADER}"))?;
        for action in ["add", "open"] {
            log.write_file_actions(start, action)?;
        }
        Ok(Some(log))
    }

    /// Records an issued request to one of the clone's files.
    pub(super) fn record_issue(
        &mut self,
        now: Nanoseconds,
        file: usize,
        request: &Submission,
    ) -> Result<(), ProgramError> {
        let action = match request.operation {
            IoOperation::Read => "read",
            IoOperation::Write => "write",
            IoOperation::Fsync => "sync",
            IoOperation::Fdatasync => "datasync",
            IoOperation::SyncRange(_) => "sync_file_range",
            IoOperation::DiscardRange => "trim",
        };
        let at_us = self.timestamp_us(now);
        let Submission {
            offset_bytes,
            bytes,
            ..
        } = request;
        let name = &self.file_names[file];
        let written = writeln!(
            self.log_output,
            "{at_us} {name} {action} {offset_bytes} {bytes}"
        );
        written.map_err(|error| self.write_error(&error))
    }

    /// Ends the I/O log when the clone has ended.
    pub(super) fn finish_log(mut self, now: Nanoseconds) -> Result<(), ProgramError> {
        self.write_file_actions(now, "close")?;
        self.log_output
            .flush()
            .map_err(|error| self.write_error(&error))
    }

    fn write_file_actions(&mut self, now: Nanoseconds, action: &str) -> Result<(), ProgramError> {
        let at_us = self.timestamp_us(now);
        for number in 0..self.file_names.len() {
            let name = &self.file_names[number];
            let written = writeln!(self.log_output, "{at_us} {name} {action}");
            written.map_err(|error| self.write_error(&error))?;
        }
        Ok(())
    }

    fn write_line(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), ProgramError> {
        let written = self.log_output.write_fmt(text);
        written.map_err(|error| self.write_error(&error))
    }

    fn timestamp_us(&self, now: Nanoseconds) -> u64 {
        now.since(self.start_time).0 / 1000
    }

    fn write_error(&self, error: &std::io::Error) -> ProgramError {
        ProgramError::TraceFailed(format!("write_iolog: {}: {error}", self.log_path))
    }
}
