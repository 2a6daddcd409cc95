//! Source of the requests that this machine's storage receives while programs run. It uses events
//! of the block layer if they are available, otherwise the submissions of the programs' rings.

use diskperf_battery::{Program, Suite};
use diskperf_models::{EventSource, Observer, ObserverEvent, RecordedEvent};
use diskperf_system::host::RingRequestLog;
use diskperf_system::host::block_events::{
    BlockEventsError, BlockRequestStream, POLL_INTERVAL, RecordedDisk,
};
use diskperf_system::host::device::BlockDevice;
use diskperf_timeline::DeviceEvent;
use std::time::Instant;

/// Recorder that reports the requests to storage to an observer.
pub(crate) struct TrafficLog {
    source: TrafficSource,
    is_recording: bool,
    last_poll: Instant,
    events: Vec<DeviceEvent>,
}

enum TrafficSource {
    BlockLayer(Box<BlockRequestStream>),
    EngineRings(RingRequestLog),
}

impl TrafficLog {
    /// Creates a recorder for these disks. If their events are not available, it records the rings
    /// of the suite's programs, if any program has one. A missing source is reported to the
    /// observer.
    pub(crate) fn open(
        disks: &[BlockDevice],
        suite: &Suite,
        observer: &mut dyn Observer,
    ) -> Option<Self> {
        let listened = disks.iter().map(|disk| RecordedDisk {
            disk: disk.clone(),
            partition_sectors: None,
        });
        let listened: Vec<RecordedDisk> = listened.collect();
        let names: Vec<String> = disks.iter().map(|disk| disk.name().to_owned()).collect();
        let (of, source) = match BlockRequestStream::record_disks(&listened) {
            Ok(stream) => {
                let what = format!(
                    "requests of all programs to {}, from the driver to their completion (block-layer events)",
                    names.join(" and ")
                );
                let source = EventSource {
                    devices: names,
                    description: what,
                };
                (TrafficSource::BlockLayer(Box::new(stream)), source)
            }
            Err(error) if suite.iter_programs().any(Program::keeps_requests_in_flight) => {
                let what = format!(
                    "requests of the programs' rings, from submission until the program saw the completion, because there are no block-layer events ({error})"
                );
                let devices = Vec::new();
                (
                    TrafficSource::EngineRings(RingRequestLog::default()),
                    EventSource {
                        devices,
                        description: what,
                    },
                )
            }
            Err(error) => {
                let why = format!(
                    "there are no block-layer events ({error}), and programs that keep no requests in flight show no other traffic"
                );
                observer.handle_event(ObserverEvent::RequestsRecorded(
                    RecordedEvent::SourceOpened(Err(&why)),
                ));
                return None;
            }
        };
        observer.handle_event(ObserverEvent::RequestsRecorded(
            RecordedEvent::SourceOpened(Ok(&source)),
        ));
        Some(Self {
            source: of,
            is_recording: false,
            last_poll: Instant::now(),
            events: Vec::new(),
        })
    }

    /// Returns the log in which the programs' rings record their submissions, if they are the
    /// source.
    pub(crate) fn ring_log(&self) -> Option<RingRequestLog> {
        match &self.source {
            TrafficSource::BlockLayer(_) => None,
            TrafficSource::EngineRings(log) => Some(log.clone()),
        }
    }

    /// Starts to record the requests of a timed part.
    pub(crate) fn begin_recording(&mut self, observer: &mut dyn Observer) {
        let begun = match &mut self.source {
            TrafficSource::BlockLayer(stream) => stream.begin_recording(),
            TrafficSource::EngineRings(log) => Ok(log.begin_recording()),
        };
        if let Some(at) = self.warn_on_error(begun, observer) {
            self.is_recording = true;
            self.last_poll = Instant::now();
            observer.handle_event(ObserverEvent::RequestsRecorded(
                RecordedEvent::RecordingStarted(at),
            ));
        }
    }

    /// Reports new requests to the observer if a report is due. Returns whether it was.
    pub(crate) fn poll_events(&mut self, observer: &mut dyn Observer) -> bool {
        if !self.is_recording || self.last_poll.elapsed() < POLL_INTERVAL {
            return false;
        }
        self.last_poll = Instant::now();
        let polled = match &mut self.source {
            TrafficSource::BlockLayer(stream) => stream.poll_events(&mut self.events),
            TrafficSource::EngineRings(log) => {
                log.take_events(&mut self.events);
                Ok(())
            }
        };
        self.report_events(observer);
        self.warn_on_error(polled, observer);
        true
    }

    /// Ends the recording of a timed part.
    pub(crate) fn end_recording(&mut self, observer: &mut dyn Observer) {
        if !std::mem::take(&mut self.is_recording) {
            return;
        }
        let ended = match &mut self.source {
            TrafficSource::BlockLayer(stream) => stream.end_recording(&mut self.events),
            TrafficSource::EngineRings(log) => Ok(log.end_recording(&mut self.events)),
        };
        self.report_events(observer);
        if let Some(at) = self.warn_on_error(ended, observer) {
            observer.handle_event(ObserverEvent::RequestsRecorded(
                RecordedEvent::RecordingEnded(at),
            ));
        }
    }

    fn report_events(&mut self, observer: &mut dyn Observer) {
        if let TrafficSource::EngineRings(log) = &self.source {
            let names = log.file_paths();
            observer.handle_event(ObserverEvent::RequestsRecorded(
                RecordedEvent::DevicesNamed(&names),
            ));
        }
        observer.handle_event(ObserverEvent::RequestsRecorded(
            RecordedEvent::RequestEvents(&self.events),
        ));
        self.events.clear();
    }

    /// Reports an error to the observer and stops recording this timed part.
    fn warn_on_error<T>(
        &mut self,
        outcome: Result<T, BlockEventsError>,
        observer: &mut dyn Observer,
    ) -> Option<T> {
        outcome
            .inspect_err(|error| {
                self.is_recording = false;
                observer.handle_event(ObserverEvent::RequestsRecorded(
                    RecordedEvent::SourceOpened(Err(&error.to_string())),
                ));
            })
            .ok()
    }

    /// Removes the trace buffers of this recorder.
    ///
    /// # Errors
    ///
    /// Returns an error if a buffer cannot be removed. `diskperf clean` then finds it.
    pub(crate) fn close(self) -> Result<(), BlockEventsError> {
        match self.source {
            TrafficSource::BlockLayer(stream) => stream.remove_instance(),
            TrafficSource::EngineRings(_) => Ok(()),
        }
    }
}
