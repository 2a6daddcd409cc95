//! TraceRecord of a served drive's requests, as a trace that other commands read.

use crate::{DriveEvent, RequestKind, ServedRequest, TakenEvents};
use diskperf_blocktrace::own::TraceRecorder;
use diskperf_blocktrace::{DeviceIndex, TraceRecord, TracedOperation};
use std::collections::HashMap;
use std::io::{self, Write};

/// Error number of a request that a fault made fail: EIO.
const EIO: u16 = 5;

/// Trace of the requests of a served drive, in virtual time since the drive was started.
pub struct ServedTraceRecorder {
    recorder: TraceRecorder<Box<dyn Write + Send>>,
    device: DeviceIndex,
    /// Numbers in the trace of the requests in flight, by their numbers at the drive.
    in_flight: HashMap<u64, u64>,
    requests: u64,
    lost_events: u64,
}

impl ServedTraceRecorder {
    /// Begins a trace of a drive with a name, of which clients see a number of bytes.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn create(output: Box<dyn Write + Send>, drive: &str, size_bytes: u64) -> io::Result<Self> {
        let mut recorder = TraceRecorder::create(output)?;
        recorder.add_information("recorded by", "diskperf serve")?;
        recorder.add_information("target", drive)?;
        recorder.add_information("size in bytes", &size_bytes.to_string())?;
        let device = recorder.add_device(drive)?;
        Ok(Self {
            recorder,
            device,
            in_flight: HashMap::new(),
            requests: 0,
            lost_events: 0,
        })
    }

    /// Adds events of the drive, and passes them to the output.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn add(&mut self, taken: &TakenEvents) -> io::Result<()> {
        for event in &taken.events {
            match *event {
                DriveEvent::Arrived {
                    number,
                    request,
                    time,
                } => {
                    let record = self.record(request, time.0);
                    let in_trace = self.recorder.record_issue(&record)?;
                    self.in_flight.insert(number, in_trace);
                    self.requests += 1;
                }
                DriveEvent::Completed {
                    number,
                    time,
                    fails,
                } => {
                    let errno = if fails { EIO } else { 0 };
                    // The arrival may be among the events that were lost.
                    if let Some(in_trace) = self.in_flight.remove(&number) {
                        self.recorder.record_completion(in_trace, time.0, errno)?;
                    }
                }
            }
        }
        if taken.lost > 0 {
            self.lost_events += taken.lost;
            self.recorder.record_lost_events(taken.lost)?;
        }
        self.recorder.flush()
    }

    /// Ends the trace.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.recorder.finish().map(drop)
    }

    /// Number of requests in the trace.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Number of arrivals and completions that are missing, because they came faster than they
    /// were taken.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    fn record(&self, request: ServedRequest, issued_ns: u64) -> TraceRecord {
        let operation = match request.kind {
            RequestKind::Read | RequestKind::Cache => TracedOperation::Read,
            RequestKind::Write => TracedOperation::Write,
            RequestKind::Flush => TracedOperation::Flush,
            RequestKind::Trim => TracedOperation::Discard,
            RequestKind::WriteZeroes => TracedOperation::WriteZeroes,
        };
        let has_range = operation != TracedOperation::Flush;
        TraceRecord {
            issued_ns,
            completed_ns: None,
            think_ns: None,
            operation,
            fua: request.fua && operation == TracedOperation::Write,
            sync: false,
            device: self.device,
            offset_bytes: if has_range { request.offset } else { 0 },
            length_bytes: if has_range { request.bytes } else { 0 },
            errno: 0,
        }
    }
}
