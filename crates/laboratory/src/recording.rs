//! `run --record`: recording of the requests to storage in the timed parts of a run, as a block
//! trace in diskperf's own format. Each repetition is a part of the trace. [`device`] records the
//! requests of all processes to a disk.

pub mod device;

use crate::output::Output;
use crate::plan::Plan;
use diskperf_blocktrace::own::{FLUSH_EVERY, LONGEST_NAME as LONGEST, Recorder};
use diskperf_blocktrace::{DeviceIndex, Operation, Record};
use diskperf_models::LaboratoryError;
use diskperf_models::{Event, Observer, Recorded, Source};
use diskperf_timeline::{
    DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep, MeasuredWorld, Nanoseconds,
    Repetition, Run,
};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Destination of a recording. The file is created when there is something to record.
pub struct Place {
    path: PathBuf,
    output: Output,
    force: bool,
}

impl Place {
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
            output: output.new_unless(force, path)?,
            path: path.to_owned(),
            force,
        })
    }

    /// Opens the destination for a recording of these plans, which have to form a single run,
    /// because a trace has one clock.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::open`], and an error for several runs.
    pub fn of_plans(path: &Path, force: bool, plans: &[Plan]) -> Result<Self, LaboratoryError> {
        if let [first, second, ..] = plans {
            return Err(LaboratoryError::Request(format!(
                "--record takes one target, and this is {} and {}: a trace has one clock; name one with --on, or run several at the same time with --together",
                first.title(),
                second.title()
            )));
        }
        Self::open(path, force)
    }

    fn open_anywhere(path: &Path, force: bool) -> Result<Self, LaboratoryError> {
        Ok(Self {
            output: Output::open(path)?.new_unless(force, path)?,
            path: path.to_owned(),
            force,
        })
    }

    fn begin(self) -> Result<Trace, LaboratoryError> {
        let output = self.output.begin(self.force)?;
        let recorder = Recorder::create(output).map_err(|error| failed(&self.path, &error))?;
        Ok(Trace::of(recorder))
    }
}

fn failed(path: &Path, error: &io::Error) -> LaboratoryError {
    LaboratoryError::Work(format!("{}: the recording ends: {error}", path.display()))
}

/// Outcome of recording the requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Path of the recorded trace.
    pub path: PathBuf,
    /// Number of requests that were issued during the recording.
    pub requests: u64,
    /// Number of parts of the trace: one per repetition.
    pub parts: u64,
    /// Number of events that the recording lost.
    pub lost: u64,
    /// Descriptions of the recorded requests and their source, for readers.
    pub what: Vec<String>,
    /// Sources that could not be recorded, with the reasons.
    pub unrecorded: Vec<String>,
    /// Reason why the recording ended before the run did; `None` if it did not.
    pub failure: Option<String>,
}

impl Came {
    /// Describes everything that is missing from the recording; `None` if it is complete.
    pub fn missing(&self) -> Option<String> {
        let mut missing = self.unrecorded.clone();
        missing.extend(self.failure.clone());
        if self.lost > 0 {
            missing.push(format!(
                "{} events were lost, so requests or completions are missing from the trace",
                self.lost
            ));
        }
        if self.parts == 0 {
            missing.push("nothing was recorded, and no file is written".to_owned());
        }
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}

/// Observer that records a run and passes all other events on to an inner observer.
pub struct Recording<'a> {
    inner: &'a mut dyn Observer,
    path: Option<PathBuf>,
    /// Destination of the recording, until the first request creates the file.
    place: Option<Place>,
    trace: Option<Trace>,
    /// Descriptions of the run that wait until the file exists.
    about: Vec<(&'static str, String)>,
    devices: Vec<String>,
    step: String,
    repetition: Option<u32>,
    came: Came,
}

impl<'a> Recording<'a> {
    /// Creates an observer that records to `place`, if there is one, and passes all other events on
    /// to `inner`.
    pub fn new(place: Option<Place>, inner: &'a mut dyn Observer) -> Self {
        Self {
            inner,
            path: place.as_ref().map(|place| place.path.clone()),
            place,
            trace: None,
            about: Vec::new(),
            devices: Vec::new(),
            step: String::new(),
            repetition: None,
            came: Came::default(),
        }
    }

    /// Finishes the recording and returns its outcome; `None` if no recording was requested.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn finish(mut self) -> Result<Option<Came>, LaboratoryError> {
        if let Some(trace) = self.trace.take() {
            self.came.requests = trace.requests;
            self.came.parts = trace.parts;
            self.came.lost = trace.lost;
            let ended = trace.recorder.finish();
            ended.map_err(|error| self.failed(&error))?;
        }
        let path = self.path;
        Ok(path.map(|path| Came { path, ..self.came }))
    }

    fn failed(&self, error: &io::Error) -> LaboratoryError {
        failed(self.path.as_deref().unwrap_or(Path::new("")), error)
    }

    /// Reports the first failure immediately and ends the recording. The run continues.
    fn note(&mut self, outcome: Result<(), LaboratoryError>) {
        if let Err(error) = outcome {
            let error = error.to_string();
            self.inner.event(Event::Warning(&error));
            if let Some(trace) = self.trace.take() {
                self.came.requests = trace.requests;
                self.came.parts = trace.parts;
            }
            self.place = None;
            self.came.failure = Some(error);
        }
    }

    fn recorded(&mut self, event: &Recorded<'_>) -> Result<(), LaboratoryError> {
        match event {
            Recorded::From(Ok(source)) => self.begin_source(source),
            Recorded::From(Err(why)) => self.came.unrecorded.push((*why).to_owned()),
            Recorded::Devices(names) => {
                self.devices = names.to_vec();
                if let Some(trace) = &mut self.trace {
                    let named = trace.devices(names);
                    return named.map_err(|error| self.failed(&error));
                }
            }
            Recorded::Begins(at) => return self.begins(*at),
            Recorded::Events(events) => {
                if let Some(trace) = &mut self.trace {
                    let told = trace.tell(events);
                    return told.map_err(|error| self.failed(&error));
                }
            }
            Recorded::Ends(at) => {
                if let Some(trace) = &mut self.trace {
                    trace.ends(*at);
                }
            }
        }
        Ok(())
    }

    fn begin_source(&mut self, source: &Source) {
        self.devices.clone_from(&source.devices);
        if !self.came.what.contains(&source.what) {
            self.came.what.push(source.what.clone());
        }
        if let Some(trace) = &mut self.trace {
            trace.restart();
        }
    }

    /// Starts the timed part of a repetition. The timed part of a pilot is not recorded.
    fn begins(&mut self, at: Nanoseconds) -> Result<(), LaboratoryError> {
        let Some(number) = self.repetition else {
            return Ok(());
        };
        if let Some(place) = self.place.take() {
            self.trace = Some(place.begin()?);
        }
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        let title = format!("{}, repetition {}", self.step, number + 1);
        let mut write = || {
            for (name, value) in self.about.drain(..) {
                trace.recorder.about(name, &value)?;
            }
            trace.devices(&self.devices)?;
            trace.begins(at, &title)
        };
        write().map_err(|error| self.failed(&error))
    }

    fn run_started(&mut self, run: &Run) {
        let of = [
            ("recorded by", format!("diskperf {}", run.program_version)),
            ("experiment", run.suite_name.clone()),
            ("target", run.target_label.clone()),
            ("seed", run.seed.to_string()),
        ];
        self.about.extend(of);
        // What a model does again has the same bytes.
        if run.world == MeasuredWorld::Host {
            self.about.push(("run", run.run_id.clone()));
        }
        // Cut off it would be none.
        let experiment = serde_json::to_string(&run.experiment);
        if let Some(experiment) = experiment.ok().filter(|text| text.len() <= LONGEST) {
            self.about.push(("experiment as JSON", experiment));
        }
    }

    fn repetition_finished(&mut self, made: &[Repetition]) -> Result<(), LaboratoryError> {
        self.repetition = None;
        let counts = made.iter().any(|one| !one.is_discarded);
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        let ended = trace.ended(counts);
        ended.map_err(|error| self.failed(&error))
    }
}

impl Observer for Recording<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Recorded(recorded) => {
                let outcome = self.recorded(recorded);
                self.note(outcome);
                return;
            }
            Event::RunStarted(run) => self.run_started(run),
            Event::StepStarted { title, .. } => {
                self.step = (*title).to_owned();
                self.repetition = None;
            }
            Event::RepetitionStarted { number, .. } => self.repetition = Some(*number),
            Event::RepetitionFinished(made) => {
                let outcome = self.repetition_finished(made);
                self.note(outcome);
            }
            _ => {}
        }
        self.inner.event(event);
    }
}

struct Trace {
    recorder: Recorder<Box<dyn Write + Send>>,
    /// Devices that the trace has named, with their index in the trace.
    named: BTreeMap<String, DeviceIndex>,
    numbers: Vec<DeviceIndex>,
    /// Requests in flight: from their number at the source to their number in the trace.
    open: BTreeMap<u64, u64>,
    is_on: bool,
    /// End of the last part of the trace, until that part is closed.
    ends_ns: Option<u64>,
    /// Difference that is added to a time of the source to get a time of the trace, in nanoseconds.
    offset_ns: u64,
    last_ns: u64,
    /// Whether the source is new, so that its clock offset is not set yet.
    is_new: bool,
    flushed: Instant,
    requests: u64,
    parts: u64,
    lost: u64,
}

impl Trace {
    fn of(recorder: Recorder<Box<dyn Write + Send>>) -> Self {
        Self {
            recorder,
            named: BTreeMap::new(),
            numbers: Vec::new(),
            open: BTreeMap::new(),
            is_on: false,
            ends_ns: None,
            offset_ns: 0,
            last_ns: 0,
            is_new: true,
            flushed: Instant::now(),
            requests: 0,
            parts: 0,
            lost: 0,
        }
    }

    fn restart(&mut self) {
        self.open.clear();
        self.is_new = true;
    }

    fn devices(&mut self, names: &[String]) -> io::Result<()> {
        self.numbers.clear();
        for name in names {
            let number = match self.named.get(name) {
                Some(number) => *number,
                None => {
                    let number = self.recorder.device(name)?;
                    self.named.insert(name.clone(), number);
                    number
                }
            };
            self.numbers.push(number);
        }
        Ok(())
    }

    /// Starts a part of the trace. The trace uses the clock of the first source. A later source
    /// whose clock starts before the end of the previous one is shifted to that end.
    fn begins(&mut self, at: Nanoseconds, title: &str) -> io::Result<()> {
        if std::mem::take(&mut self.is_new) {
            self.offset_ns = self.last_ns.saturating_sub(at.0);
        }
        self.is_on = true;
        self.parts += 1;
        let at_ns = self.on_own_clock(at);
        self.recorder.begin_part(at_ns, title)
    }

    fn on_own_clock(&mut self, at: Nanoseconds) -> u64 {
        let at_ns = at.0.saturating_add(self.offset_ns);
        self.last_ns = self.last_ns.max(at_ns);
        at_ns
    }

    fn tell(&mut self, events: &[DeviceEvent]) -> io::Result<()> {
        for event in events {
            let at_ns = self.on_own_clock(event.event_time);
            match event.event_step {
                DeviceStep::Issued(request) if self.is_on => {
                    let record = record(at_ns, &request, &self.numbers);
                    let number = self.recorder.issue(&record)?;
                    self.open.insert(request.request_number, number);
                    self.requests += 1;
                }
                DeviceStep::Completed { number, errno } => {
                    if let Some(number) = self.open.remove(&number) {
                        self.recorder.complete(number, at_ns, errno)?;
                    }
                }
                DeviceStep::EventsLost(events) if self.is_on => {
                    self.lost += events;
                    self.recorder.lost(events)?;
                }
                DeviceStep::Issued(_) | DeviceStep::EventsLost(_) => {}
            }
        }
        self.flush_if_due()
    }

    /// Flushes recorded requests at intervals, so that a crash loses at most the last second.
    fn flush_if_due(&mut self) -> io::Result<()> {
        match self.flushed.elapsed() >= FLUSH_EVERY {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed = Instant::now();
        self.recorder.flush()
    }

    fn ends(&mut self, at: Nanoseconds) {
        self.is_on = false;
        self.ends_ns = Some(self.on_own_clock(at));
    }

    /// Closes the current part and marks whether its repetition counts.
    fn ended(&mut self, counts: bool) -> io::Result<()> {
        if let Some(at_ns) = self.ends_ns.take() {
            self.recorder.end_part(at_ns, counts)?;
        }
        self.flush()
    }

    fn about(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.recorder.about(name, value)
    }

    fn finish(self) -> io::Result<()> {
        self.recorder.finish().map(drop)
    }
}

fn record(at_ns: u64, of: &DeviceRequest, numbers: &[DeviceIndex]) -> Record {
    let (operation, fua) = match of.operation {
        DeviceOperation::Read => (Operation::Read, false),
        DeviceOperation::Write { fua } => (Operation::Write, fua),
        DeviceOperation::Flush => (Operation::Flush, false),
        DeviceOperation::Discard => (Operation::Discard, false),
        DeviceOperation::WriteZeroes => (Operation::WriteZeroes, false),
    };
    Record {
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
