//! Block traces: their summary, and their conversion to other formats.

mod conversion;
pub(crate) mod course;
pub(crate) mod facts;
mod files;

pub use conversion::{ConversionOutcome, convert};
pub use files::list_files;

use diskperf_analysis::trace::TraceReport;
use diskperf_blocktrace::transform::TraceTransform;
pub use diskperf_blocktrace::{CsvColumns, Form, ReadOptions, TimeUnit};
use diskperf_blocktrace::{DeviceIndex, TraceReader, TraceRecord, summary::Summarizer};
use diskperf_models::LaboratoryError;
use files::{NamedReader, STANDARD_INPUT_NAME, open};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Request to read a trace: its files, and the part of interest.
#[derive(Clone, Debug, Default)]
pub struct TraceRequest {
    /// Files of the trace; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Options for reading the trace, such as its format.
    pub read_options: ReadOptions,
    /// Time window in which requests were issued, in nanoseconds from the start of the trace. The
    /// end is excluded.
    pub window_ns: Option<(u64, u64)>,
    /// Number of the part in which requests were issued, from 1, for a trace that has parts.
    pub part_index: Option<usize>,
    /// Name of the device whose requests are kept; `None` for all devices.
    pub device_name: Option<String>,
    /// Size in bytes that the address space of the trace is scaled to; `None` to keep the
    /// addresses.
    pub scale_to_bytes: Option<u64>,
}

/// Progress of reading the files of a trace.
#[derive(Clone, Debug, Default)]
pub struct ReadProgress {
    /// Bytes of the files that have been read.
    pub read_bytes: Arc<AtomicU64>,
}

/// Returns the total size of the files in bytes. A file without a size counts as zero.
pub fn total_file_bytes(files: &[PathBuf]) -> u64 {
    let sizes = files.iter().filter_map(|file| file.metadata().ok());
    sizes.map(|status| status.len()).sum()
}

pub(crate) struct OpenTrace {
    reader: TraceReader,
    transform: TraceTransform,
    device_name: Option<String>,
    devices_compared: usize,
    part_index: Option<usize>,
}

const NO_DEVICE: DeviceIndex = DeviceIndex(u32::MAX);

impl OpenTrace {
    pub(crate) fn open(
        asked: &TraceRequest,
        far: &ReadProgress,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LaboratoryError> {
        let files = asked.files.iter().map(|path| open(path, far, stop));
        let files: Result<Vec<_>, LaboratoryError> = files.collect();
        // The form is told by the first bytes, which may be waited for.
        Self::from_files(asked, files?).map_err(|error| match stop.load(Ordering::Relaxed) {
            true => LaboratoryError::Interrupted,
            false => error,
        })
    }

    fn from_files(asked: &TraceRequest, files: Vec<NamedReader>) -> Result<Self, LaboratoryError> {
        let reader =
            TraceReader::open_all(files, &asked.read_options).map_err(LaboratoryError::request)?;
        Ok(Self {
            reader,
            transform: TraceTransform {
                window_ns: asked.window_ns,
                device: None,
                sector_rounding: None,
                address_scaling: None,
            },
            device_name: asked.device_name.clone(),
            devices_compared: 0,
            part_index: asked.part_index,
        })
    }

    pub(crate) fn for_each_request(
        &mut self,
        stop: &AtomicBool,
        mut tell: impl FnMut(&TraceRecord, &[String]) -> Result<(), LaboratoryError>,
    ) -> Result<(), LaboratoryError> {
        while let Some(record) = self.reader.next() {
            let record = record.map_err(|error| match stop.load(Ordering::Relaxed) {
                true => LaboratoryError::Interrupted,
                false => LaboratoryError::request(error),
            })?;
            if let Some(part) = self.part_index
                && self.reader.find_part_of(&record).map(|number| number + 1) != Some(part)
            {
                continue;
            }
            self.find_device();
            let kept = self.transform.apply(record);
            if let Some(record) = kept.map_err(LaboratoryError::Request)? {
                tell(&record, self.reader.devices())?;
            }
            // Much may come of one piece of the input.
            if stop.load(Ordering::Relaxed) {
                return Err(LaboratoryError::Interrupted);
            }
        }
        if let Some(part) = self.part_index {
            self.check_part(part)?;
        }
        match &self.device_name {
            Some(name) if !self.reader.devices().contains(name) => {
                Err(no_device_error(name, &self.reader))
            }
            _ => Ok(()),
        }
    }
}

impl OpenTrace {
    /// Verifies that a trace that was read has at least one request. A trace without any usually
    /// has another format, or was recorded without the start of requests.
    fn require_requests(&self) -> Result<(), String> {
        let notices = self.reader.notices();
        let lines = notices.line_counts;
        let form = self.reader.form();
        if self.reader.first_issue_ns().is_some() || form == Form::Diskperf {
            return Ok(());
        }
        let dropped = notices.dropped_lines.iter();
        let mut held: Vec<String> = dropped
            .map(|(why, count)| match count {
                1 => format!("1 line of {why}"),
                count => format!("{count} lines of {why}"),
            })
            .collect();
        if notices.unmatched_completions > 0 {
            held.push(format!(
                "{} completions without an issue",
                notices.unmatched_completions
            ));
        }
        if lines.other_lines > 0 {
            let asides = lines.other_lines;
            held.push(format!("{asides} headings, comments or empty lines"));
        }
        let remedy = match form {
            Form::Blktrace | Form::Blkparse if notices.unmatched_completions > 0 => {
                "; record what begins a request too: blktrace -a issue -a complete"
            }
            Form::Ftrace => "; record block:block_rq_issue and block:block_rq_complete",
            _ => "; give --form NAME if it is another form",
        };
        Err(format!(
            "the trace has no request: of the form {form}, it holds {}{remedy}",
            held.join(", ")
        ))
    }

    /// Verifies that the trace has requests; otherwise returns the failure for the user.
    pub(crate) fn check_requests(&self, asked: &TraceRequest) -> Result<(), LaboratoryError> {
        self.require_requests().map_err(|why| {
            let files: Vec<String> = asked.files.iter().map(|file| file_name(file)).collect();
            LaboratoryError::Failure(format!("{}: {why}", files.join(", ")))
        })
    }

    fn find_device(&mut self) {
        let Some(name) = &self.device_name else {
            return;
        };
        let known = self.reader.devices();
        if self.transform.device.is_none() || self.devices_compared < known.len() {
            let new = known[self.devices_compared..]
                .iter()
                .position(|one| one == name);
            if let Some(number) = new {
                let number = self.devices_compared + number;
                self.transform.device = Some(DeviceIndex(number as u32));
            }
            self.devices_compared = known.len();
        }
        self.transform.device.get_or_insert(NO_DEVICE);
    }

    /// Verifies, after the trace was read, that it has the requested part.
    fn check_part(&self, part: usize) -> Result<(), LaboratoryError> {
        let parts = self.reader.parts().len();
        match part {
            _ if parts == 0 => Err(LaboratoryError::Request(format!(
                "--part {part}: a trace of the form {} has no parts; --window takes a time of it",
                self.reader.form()
            ))),
            part if (1..=parts).contains(&part) => Ok(()),
            part => Err(LaboratoryError::Request(format!(
                "--part {part}: the trace has the parts 1 to {parts}"
            ))),
        }
    }
}

fn no_device_error(name: &str, reader: &TraceReader) -> LaboratoryError {
    const DEVICES_LISTED_MAX: usize = 20;
    let known = reader.devices();
    let listed = known[..known.len().min(DEVICES_LISTED_MAX)].join(", ");
    let more = if known.len() > DEVICES_LISTED_MAX {
        ", ..."
    } else {
        ""
    };
    LaboratoryError::Request(format!(
        "--device {name}: the trace has no such device; it has {listed}{more}"
    ))
}

/// Summarizes the content of a trace.
///
/// # Errors
///
/// Returns an error if the trace cannot be read, if it lacks the requested device, or if the user
/// ends the reading.
pub fn summarize(
    asked: &TraceRequest,
    far: &ReadProgress,
    stop: &Arc<AtomicBool>,
) -> Result<TraceReport, LaboratoryError> {
    let mut opened = OpenTrace::open(asked, far, stop)?;
    let mut summarizer = Summarizer::default();
    opened.for_each_request(stop, |record, _| {
        summarizer.add(record);
        Ok(())
    })?;
    opened.check_requests(asked)?;
    let reader = &opened.reader;
    Ok(TraceReport {
        files: asked.files.iter().map(|file| file_name(file)).collect(),
        format_name: reader.form().name(),
        part_name: describe_part(asked),
        metadata: reader.facts().to_vec(),
        parts: reader.parts(),
        notices: reader.notices(),
        summary: summarizer.finish(reader.devices()),
    })
}

fn file_name(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => STANDARD_INPUT_NAME.to_owned(),
        false => file.display().to_string(),
    }
}

fn describe_part(asked: &TraceRequest) -> Option<String> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let window = asked
        .window_ns
        .map(|(from, to)| format!("from {} to {} s", seconds(from), seconds(to)));
    let device = asked
        .device_name
        .as_ref()
        .map(|name| format!("device {name}"));
    let part = asked.part_index.map(|part| format!("part {part}"));
    let parts: Vec<String> = part.into_iter().chain(window).chain(device).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
