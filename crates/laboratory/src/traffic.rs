//! Source of the requests that this machine's storage receives while programs run. It uses events
//! of the block layer if they are available, otherwise the submissions of the programs' rings.

use diskperf_battery::{Program, Suite};
use diskperf_models::{Event, Observer, Recorded, Source};
use diskperf_system::host::RingRequestLog;
use diskperf_system::host::block_events::{
    BlockEventsError, BlockRequestStream, POLL_INTERVAL, RecordedDisk,
};
use diskperf_system::host::device::BlockDevice;
use diskperf_timeline::DeviceEvent;
use std::time::Instant;

/// Recorder that reports the requests to storage to an observer.
pub(crate) struct Traffic {
    of: Of,
    is_on: bool,
    polled: Instant,
    events: Vec<DeviceEvent>,
}

enum Of {
    Disks(Box<BlockRequestStream>),
    Rings(RingRequestLog),
}

impl Traffic {
    /// Creates a recorder for these disks. If their events are not available, it records the rings
    /// of the suite's programs, if any program has one. A missing source is reported to the
    /// observer.
    pub(crate) fn of(
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
                let source = Source {
                    devices: names,
                    what,
                };
                (Of::Disks(Box::new(stream)), source)
            }
            Err(error) if suite.iter_programs().any(Program::keeps_requests_in_flight) => {
                let what = format!(
                    "requests of the programs' rings, from submission until the program saw the completion, because there are no block-layer events ({error})"
                );
                let devices = Vec::new();
                (
                    Of::Rings(RingRequestLog::default()),
                    Source { devices, what },
                )
            }
            Err(error) => {
                let why = format!(
                    "there are no block-layer events ({error}), and programs that keep no requests in flight show no other traffic"
                );
                observer.event(Event::Recorded(Recorded::From(Err(&why))));
                return None;
            }
        };
        observer.event(Event::Recorded(Recorded::From(Ok(&source))));
        Some(Self {
            of,
            is_on: false,
            polled: Instant::now(),
            events: Vec::new(),
        })
    }

    /// Returns the log in which the programs' rings record their submissions, if they are the
    /// source.
    pub(crate) fn ring_log(&self) -> Option<RingRequestLog> {
        match &self.of {
            Of::Disks(_) => None,
            Of::Rings(log) => Some(log.clone()),
        }
    }

    /// Starts to record the requests of a timed part.
    pub(crate) fn begin(&mut self, observer: &mut dyn Observer) {
        let begun = match &mut self.of {
            Of::Disks(stream) => stream.begin_recording(),
            Of::Rings(log) => Ok(log.begin_recording()),
        };
        if let Some(at) = self.or_say(begun, observer) {
            self.is_on = true;
            self.polled = Instant::now();
            observer.event(Event::Recorded(Recorded::Begins(at)));
        }
    }

    /// Reports new requests to the observer if a report is due. Returns whether it was.
    pub(crate) fn poll(&mut self, observer: &mut dyn Observer) -> bool {
        if !self.is_on || self.polled.elapsed() < POLL_INTERVAL {
            return false;
        }
        self.polled = Instant::now();
        let polled = match &mut self.of {
            Of::Disks(stream) => stream.poll_events(&mut self.events),
            Of::Rings(log) => {
                log.take_events(&mut self.events);
                Ok(())
            }
        };
        self.tell(observer);
        self.or_say(polled, observer);
        true
    }

    /// Ends the recording of a timed part.
    pub(crate) fn end(&mut self, observer: &mut dyn Observer) {
        if !std::mem::take(&mut self.is_on) {
            return;
        }
        let ended = match &mut self.of {
            Of::Disks(stream) => stream.end_recording(&mut self.events),
            Of::Rings(log) => Ok(log.end_recording(&mut self.events)),
        };
        self.tell(observer);
        if let Some(at) = self.or_say(ended, observer) {
            observer.event(Event::Recorded(Recorded::Ends(at)));
        }
    }

    fn tell(&mut self, observer: &mut dyn Observer) {
        if let Of::Rings(log) = &self.of {
            let names = log.file_paths();
            observer.event(Event::Recorded(Recorded::Devices(&names)));
        }
        observer.event(Event::Recorded(Recorded::Events(&self.events)));
        self.events.clear();
    }

    /// Reports an error to the observer and stops recording this timed part.
    fn or_say<T>(
        &mut self,
        outcome: Result<T, BlockEventsError>,
        observer: &mut dyn Observer,
    ) -> Option<T> {
        outcome
            .inspect_err(|error| {
                self.is_on = false;
                observer.event(Event::Recorded(Recorded::From(Err(&error.to_string()))));
            })
            .ok()
    }

    /// Removes the trace buffers of this recorder.
    ///
    /// # Errors
    ///
    /// Returns an error if a buffer cannot be removed. `diskperf clean` then finds it.
    pub(crate) fn close(self) -> Result<(), BlockEventsError> {
        match self.of {
            Of::Disks(stream) => stream.remove_instance(),
            Of::Rings(_) => Ok(()),
        }
    }
}
