//! Log of the requests that rings submit and reap, for a recording.

use super::super::clock::monotonic_now;
use super::files::RingFiles;
use crate::{Errno, File, IoOperation, Submission};
use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep, Nanoseconds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Log of the requests of several workers' rings. Its clones share one log.
#[derive(Clone, Debug, Default)]
pub struct RingRequestLog {
    state: Arc<Mutex<LogState>>,
}

#[derive(Debug, Default)]
struct LogState {
    is_recording: bool,
    issued_count: u64,
    recorded_events: Vec<DeviceEvent>,
    file_paths: Vec<String>,
}

impl RingRequestLog {
    fn lock_state(&self) -> MutexGuard<'_, LogState> {
        // Who panicked had written an event down, or not.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts logging the requests of rings, and returns the start time.
    pub fn begin_recording(&self) -> Nanoseconds {
        let mut state = self.lock_state();
        state.is_recording = true;
        state.recorded_events.clear();
        monotonic_now()
    }

    /// Moves the logged events to `events`, sorted by time.
    pub fn take_events(&self, events: &mut Vec<DeviceEvent>) {
        let taken = std::mem::take(&mut self.lock_state().recorded_events);
        events.extend(taken);
        events.sort_by_key(|event| event.event_time);
    }

    /// Stops logging, moves the remaining events to `events` and returns the end time.
    pub fn end_recording(&self, events: &mut Vec<DeviceEvent>) -> Nanoseconds {
        self.lock_state().is_recording = false;
        self.take_events(events);
        monotonic_now()
    }

    /// Returns the names of the files that the requests access, by file number.
    pub fn file_paths(&self) -> Vec<String> {
        self.lock_state().file_paths.clone()
    }
}

/// Writer of one ring's requests to the log.
pub(in super::super) struct RingRequestRecorder {
    request_log: RingRequestLog,
    /// Request number of each slot; `None` if its request was not logged.
    request_numbers: Vec<Option<u64>>,
    /// Numbers that the log assigns to the ring's files.
    file_indices: Vec<(File, u32)>,
}

impl RingRequestRecorder {
    pub(super) fn new(log: &RingRequestLog, depth: u32, files: &RingFiles) -> Self {
        let mut state = log.lock_state();
        let number = |(file, name): (File, String)| {
            let known = state.file_paths.iter().position(|known| *known == name);
            let number = known.unwrap_or_else(|| {
                state.file_paths.push(name);
                state.file_paths.len() - 1
            });
            (file, number as u32)
        };
        let files = files.real_paths().map(number).collect();
        drop(state);
        Self {
            request_log: log.clone(),
            request_numbers: vec![None; depth as usize],
            file_indices: files,
        }
    }

    /// Logs the submission of requests at the current time.
    pub(in super::super) fn record_submissions(&mut self, submissions: &[Submission]) {
        let at = monotonic_now();
        let mut state = self.request_log.lock_state();
        for submission in submissions {
            let number = &mut self.request_numbers[submission.slot as usize];
            *number = None;
            if !state.is_recording {
                continue;
            }
            let file = self
                .file_indices
                .iter()
                .find(|(file, _)| *file == submission.file);
            let Some((_, device)) = file else { continue };
            *number = Some(state.issued_count);
            let step = DeviceStep::Issued(device_request(state.issued_count, *device, submission));
            state.issued_count += 1;
            state.recorded_events.push(DeviceEvent {
                event_time: at,
                event_step: step,
            });
        }
    }

    pub(in super::super) fn record_completion(
        &mut self,
        slot: u32,
        result: Result<u32, Errno>,
        at: Nanoseconds,
    ) {
        if let Some(number) = self.request_numbers[slot as usize].take() {
            let errno = result.err().map_or(0, |errno| errno.number() as u16);
            let step = DeviceStep::Completed { number, errno };
            self.request_log
                .lock_state()
                .recorded_events
                .push(DeviceEvent {
                    event_time: at,
                    event_step: step,
                });
        }
    }
}

fn device_request(number: u64, device: u32, submission: &Submission) -> DeviceRequest {
    let (operation, has_range) = match submission.operation {
        IoOperation::Read => (DeviceOperation::Read, true),
        IoOperation::Write => (DeviceOperation::Write { fua: false }, true),
        IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => {
            (DeviceOperation::Flush, false)
        }
        IoOperation::DiscardRange => (DeviceOperation::Discard, true),
    };
    DeviceRequest {
        request_number: number,
        device_index: device,
        operation,
        is_awaited: true,
        offset_bytes: if has_range {
            submission.offset_bytes
        } else {
            0
        },
        length_bytes: if has_range {
            u64::from(submission.bytes)
        } else {
            0
        },
    }
}
