//! `run --record`: recording of the requests to storage in the timed parts of a run, as a block
//! trace in diskperf's own format. Each repetition is a part of the trace. [`device`] records the
//! requests of all processes to a disk.

pub mod device;

use crate::output::Output;
use crate::plan::Plan;
use diskperf_blocktrace::own::{FLUSH_EVERY, NAME_BYTES_MAX as LONGEST, TraceRecorder};
use diskperf_blocktrace::{DeviceIndex, TraceRecord, TracedOperation};
use diskperf_models::LaboratoryError;
use diskperf_models::{EventSource, Observer, ObserverEvent, RecordedEvent};
use diskperf_timeline::{
    DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep, MeasuredWorld, Nanoseconds,
    Repetition, Run,
};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Destination of a recording. The file is created when there is something to record.
pub struct RecordingDestination {
    path: PathBuf,
    output: Output,
    overwrites: bool,
}

impl RecordingDestination {
    /// Checks that a recording can be written to this path. `force` allows an existing file to be
    /// replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created, if it exists and `force` is not set, or if
    /// the path is standard output, which has the table.
    pub fn open(path: &Path, force: bool) -> Result<Self, LaboratoryError> {
        let output = Output::open_beside_table("--record", path)?;
        Ok(Self {
            output: output.require_new(force, path)?,
            path: path.to_owned(),
            overwrites: force,
        })
    }

    /// Opens the destination for a recording of these plans, which have to form a single run,
    /// because a trace has one clock.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::trace_ids_in_flight`], and an error for several runs.
    pub fn open_for_plans(
        path: &Path,
        force: bool,
        plans: &[Plan],
    ) -> Result<Self, LaboratoryError> {
        if let [first, second, ..] = plans {
            return Err(LaboratoryError::Request(format!(
                "--record takes one target, and this is {} and {}: a trace has one clock; name one with --on, or run several at the same time with --together",
                first.format_title(),
                second.format_title()
            )));
        }
        Self::open(path, force)
    }

    fn open_anywhere(path: &Path, force: bool) -> Result<Self, LaboratoryError> {
        Ok(Self {
            output: Output::open(path)?.require_new(force, path)?,
            path: path.to_owned(),
            overwrites: force,
        })
    }

    fn begin_trace(self) -> Result<TraceWriter, LaboratoryError> {
        let output = self.output.open_writer(self.overwrites)?;
        let recorder =
            TraceRecorder::create(output).map_err(|error| write_error(&self.path, &error))?;
        Ok(TraceWriter::from_recorder(recorder))
    }
}

fn write_error(path: &Path, error: &io::Error) -> LaboratoryError {
    LaboratoryError::Failure(format!("{}: the recording ends: {error}", path.display()))
}

/// Outcome of recording the requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingOutcome {
    /// Path of the recorded trace.
    pub path: PathBuf,
    /// Number of requests that were issued during the recording.
    pub request_count: u64,
    /// Number of parts of the trace: one per repetition.
    pub part_count: u64,
    /// Number of events that the recording lost.
    pub lost_event_count: u64,
    /// Descriptions of the recorded requests and their source, for readers.
    pub descriptions: Vec<String>,
    /// Sources that could not be recorded, with the reasons.
    pub unrecorded_sources: Vec<String>,
    /// Reason why the recording ended before the run did; `None` if it did not.
    pub failure: Option<String>,
}

impl RecordingOutcome {
    /// Describes everything that is missing from the recording; `None` if it is complete.
    pub fn describe_missing(&self) -> Option<String> {
        let mut missing = self.unrecorded_sources.clone();
        missing.extend(self.failure.clone());
        if self.lost_event_count > 0 {
            missing.push(format!(
                "{} events were lost, so requests or completions are missing from the trace",
                self.lost_event_count
            ));
        }
        if self.part_count == 0 {
            missing.push("nothing was recorded, and no file is written".to_owned());
        }
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}

/// Observer that records a run and passes all other events on to an inner observer.
pub struct RecordingObserver<'a> {
    inner_observer: &'a mut dyn Observer,
    path: Option<PathBuf>,
    /// Destination of the recording, until the first request creates the file.
    destination: Option<RecordingDestination>,
    trace_writer: Option<TraceWriter>,
    /// Descriptions of the run that wait until the file exists.
    pending_metadata: Vec<(&'static str, String)>,
    devices: Vec<String>,
    step_title: String,
    repetition_index: Option<u32>,
    outcome: RecordingOutcome,
}

impl<'a> RecordingObserver<'a> {
    /// Creates an observer that records to `place`, if there is one, and passes all other events on
    /// to `inner`.
    pub fn new(place: Option<RecordingDestination>, inner: &'a mut dyn Observer) -> Self {
        Self {
            inner_observer: inner,
            path: place.as_ref().map(|place| place.path.clone()),
            destination: place,
            trace_writer: None,
            pending_metadata: Vec::new(),
            devices: Vec::new(),
            step_title: String::new(),
            repetition_index: None,
            outcome: RecordingOutcome::default(),
        }
    }

    /// Finishes the recording and returns its outcome; `None` if no recording was requested.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn finish_recording(mut self) -> Result<Option<RecordingOutcome>, LaboratoryError> {
        if let Some(trace) = self.trace_writer.take() {
            self.outcome.request_count = trace.request_count;
            self.outcome.part_count = trace.part_count;
            self.outcome.lost_event_count = trace.lost_event_count;
            let ended = trace.recorder.finish();
            ended.map_err(|error| self.write_error(&error))?;
        }
        let path = self.path;
        Ok(path.map(|path| RecordingOutcome {
            path,
            ..self.outcome
        }))
    }

    fn write_error(&self, error: &io::Error) -> LaboratoryError {
        write_error(self.path.as_deref().unwrap_or(Path::new("")), error)
    }

    /// Reports the first failure immediately and ends the recording. The run continues.
    fn note_outcome(&mut self, outcome: Result<(), LaboratoryError>) {
        if let Err(error) = outcome {
            let error = error.to_string();
            self.inner_observer
                .handle_event(ObserverEvent::Warning(&error));
            if let Some(trace) = self.trace_writer.take() {
                self.outcome.request_count = trace.request_count;
                self.outcome.part_count = trace.part_count;
            }
            self.destination = None;
            self.outcome.failure = Some(error);
        }
    }

    fn record_event(&mut self, event: &RecordedEvent<'_>) -> Result<(), LaboratoryError> {
        match event {
            RecordedEvent::SourceOpened(Ok(source)) => self.begin_source(source),
            RecordedEvent::SourceOpened(Err(why)) => {
                self.outcome.unrecorded_sources.push((*why).to_owned())
            }
            RecordedEvent::DevicesNamed(names) => {
                self.devices = names.to_vec();
                if let Some(trace) = &mut self.trace_writer {
                    let named = trace.add_devices(names);
                    return named.map_err(|error| self.write_error(&error));
                }
            }
            RecordedEvent::RecordingStarted(at) => return self.begin_part(*at),
            RecordedEvent::RequestEvents(events) => {
                if let Some(trace) = &mut self.trace_writer {
                    let told = trace.write_events(events);
                    return told.map_err(|error| self.write_error(&error));
                }
            }
            RecordedEvent::RecordingEnded(at) => {
                if let Some(trace) = &mut self.trace_writer {
                    trace.set_part_end(*at);
                }
            }
        }
        Ok(())
    }

    fn begin_source(&mut self, source: &EventSource) {
        self.devices.clone_from(&source.devices);
        if !self.outcome.descriptions.contains(&source.description) {
            self.outcome.descriptions.push(source.description.clone());
        }
        if let Some(trace) = &mut self.trace_writer {
            trace.restart_clock();
        }
    }

    /// Starts the timed part of a repetition. The timed part of a pilot is not recorded.
    fn begin_part(&mut self, at: Nanoseconds) -> Result<(), LaboratoryError> {
        let Some(number) = self.repetition_index else {
            return Ok(());
        };
        if let Some(place) = self.destination.take() {
            self.trace_writer = Some(place.begin_trace()?);
        }
        let Some(trace) = &mut self.trace_writer else {
            return Ok(());
        };
        let title = format!("{}, repetition {}", self.step_title, number + 1);
        let mut write = || {
            for (name, value) in self.pending_metadata.drain(..) {
                trace.recorder.add_information(name, &value)?;
            }
            trace.add_devices(&self.devices)?;
            trace.begin_part(at, &title)
        };
        write().map_err(|error| self.write_error(&error))
    }

    fn note_run_start(&mut self, run: &Run) {
        let of = [
            ("recorded by", format!("diskperf {}", run.program_version)),
            ("experiment", run.suite_name.clone()),
            ("target", run.target_label.clone()),
            ("seed", run.seed.to_string()),
        ];
        self.pending_metadata.extend(of);
        // What a model does again has the same bytes.
        if run.world == MeasuredWorld::Host {
            self.pending_metadata.push(("run", run.run_id.clone()));
        }
        // Cut off it would be none.
        let experiment = serde_json::to_string(&run.experiment);
        if let Some(experiment) = experiment.ok().filter(|text| text.len() <= LONGEST) {
            self.pending_metadata
                .push(("experiment as JSON", experiment));
        }
    }

    fn end_part(&mut self, made: &[Repetition]) -> Result<(), LaboratoryError> {
        self.repetition_index = None;
        let counts = made.iter().any(|one| !one.is_discarded);
        let Some(trace) = &mut self.trace_writer else {
            return Ok(());
        };
        let ended = trace.end_part(counts);
        ended.map_err(|error| self.write_error(&error))
    }
}

impl Observer for RecordingObserver<'_> {
    fn handle_event(&mut self, event: ObserverEvent<'_>) {
        match &event {
            ObserverEvent::RequestsRecorded(recorded) => {
                let outcome = self.record_event(recorded);
                self.note_outcome(outcome);
                return;
            }
            ObserverEvent::RunStarted(run) => self.note_run_start(run),
            ObserverEvent::StepStarted { title, .. } => {
                self.step_title = (*title).to_owned();
                self.repetition_index = None;
            }
            ObserverEvent::RepetitionStarted { number, .. } => {
                self.repetition_index = Some(*number)
            }
            ObserverEvent::RepetitionFinished(made) => {
                let outcome = self.end_part(made);
                self.note_outcome(outcome);
            }
            _ => {}
        }
        self.inner_observer.handle_event(event);
    }
}

struct TraceWriter {
    recorder: TraceRecorder<Box<dyn Write + Send>>,
    index_by_device: BTreeMap<String, DeviceIndex>,
    source_device_indices: Vec<DeviceIndex>,
    /// Requests in flight: from their number at the source to their number in the trace.
    trace_ids_in_flight: BTreeMap<u64, u64>,
    is_part_open: bool,
    /// End of the last part of the trace, until that part is closed.
    part_end_ns: Option<u64>,
    /// Difference that is added to a time of the source to get a time of the trace, in nanoseconds.
    offset_ns: u64,
    last_ns: u64,
    /// Whether the source is new, so that its clock offset is not set yet.
    is_new_source: bool,
    last_flush: Instant,
    request_count: u64,
    part_count: u64,
    lost_event_count: u64,
}

impl TraceWriter {
    fn from_recorder(recorder: TraceRecorder<Box<dyn Write + Send>>) -> Self {
        Self {
            recorder,
            index_by_device: BTreeMap::new(),
            source_device_indices: Vec::new(),
            trace_ids_in_flight: BTreeMap::new(),
            is_part_open: false,
            part_end_ns: None,
            offset_ns: 0,
            last_ns: 0,
            is_new_source: true,
            last_flush: Instant::now(),
            request_count: 0,
            part_count: 0,
            lost_event_count: 0,
        }
    }

    fn restart_clock(&mut self) {
        self.trace_ids_in_flight.clear();
        self.is_new_source = true;
    }

    fn add_devices(&mut self, names: &[String]) -> io::Result<()> {
        self.source_device_indices.clear();
        for name in names {
            let number = match self.index_by_device.get(name) {
                Some(number) => *number,
                None => {
                    let number = self.recorder.add_device(name)?;
                    self.index_by_device.insert(name.clone(), number);
                    number
                }
            };
            self.source_device_indices.push(number);
        }
        Ok(())
    }

    /// Starts a part of the trace. The trace uses the clock of the first source. A later source
    /// whose clock starts before the end of the previous one is shifted to that end.
    fn begin_part(&mut self, at: Nanoseconds, title: &str) -> io::Result<()> {
        if std::mem::take(&mut self.is_new_source) {
            self.offset_ns = self.last_ns.saturating_sub(at.0);
        }
        self.is_part_open = true;
        self.part_count += 1;
        let at_ns = self.convert_trace_time(at);
        self.recorder.begin_part(at_ns, title)
    }

    fn convert_trace_time(&mut self, at: Nanoseconds) -> u64 {
        let at_ns = at.0.saturating_add(self.offset_ns);
        self.last_ns = self.last_ns.max(at_ns);
        at_ns
    }

    fn write_events(&mut self, events: &[DeviceEvent]) -> io::Result<()> {
        for event in events {
            let at_ns = self.convert_trace_time(event.event_time);
            match event.event_step {
                DeviceStep::Issued(request) if self.is_part_open => {
                    let record = build_record(at_ns, &request, &self.source_device_indices);
                    let number = self.recorder.record_issue(&record)?;
                    self.trace_ids_in_flight
                        .insert(request.request_number, number);
                    self.request_count += 1;
                }
                DeviceStep::Completed { number, errno } => {
                    if let Some(number) = self.trace_ids_in_flight.remove(&number) {
                        self.recorder.record_completion(number, at_ns, errno)?;
                    }
                }
                DeviceStep::EventsLost(events) if self.is_part_open => {
                    self.lost_event_count += events;
                    self.recorder.record_lost_events(events)?;
                }
                DeviceStep::Issued(_) | DeviceStep::EventsLost(_) => {}
            }
        }
        self.flush_if_due()
    }

    /// Flushes recorded requests at intervals, so that a crash loses at most the last second.
    fn flush_if_due(&mut self) -> io::Result<()> {
        match self.last_flush.elapsed() >= FLUSH_EVERY {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.last_flush = Instant::now();
        self.recorder.flush()
    }

    fn set_part_end(&mut self, at: Nanoseconds) {
        self.is_part_open = false;
        self.part_end_ns = Some(self.convert_trace_time(at));
    }

    /// Closes the current part and marks whether its repetition counts.
    fn end_part(&mut self, counts: bool) -> io::Result<()> {
        if let Some(at_ns) = self.part_end_ns.take() {
            self.recorder.end_part(at_ns, counts)?;
        }
        self.flush()
    }

    fn write_metadata(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.recorder.add_information(name, value)
    }

    fn finish(self) -> io::Result<()> {
        self.recorder.finish().map(drop)
    }
}

fn build_record(at_ns: u64, of: &DeviceRequest, numbers: &[DeviceIndex]) -> TraceRecord {
    let (operation, fua) = match of.operation {
        DeviceOperation::Read => (TracedOperation::Read, false),
        DeviceOperation::Write { fua } => (TracedOperation::Write, fua),
        DeviceOperation::Flush => (TracedOperation::Flush, false),
        DeviceOperation::Discard => (TracedOperation::Discard, false),
        DeviceOperation::WriteZeroes => (TracedOperation::WriteZeroes, false),
    };
    TraceRecord {
        issued_ns: at_ns,
        completed_ns: None,
        think_ns: None,
        operation,
        fua,
        sync: of.is_awaited,
        device: numbers[of.device_index as usize],
        offset_bytes: of.offset_bytes,
        length_bytes: of.length_bytes,
        errno: 0,
    }
}

#[cfg(test)]
mod tests;
