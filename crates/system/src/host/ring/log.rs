//! What rings submit and take, written down for a recording.

use super::super::clock::monotonic;
use super::files::RingFiles;
use crate::{Errno, File, Operation, Submission};
use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep, Nanoseconds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where the rings of several workers write down what they submit and take. Its clones are
/// the same.
#[derive(Clone, Debug, Default)]
pub struct RingLog {
    logged: Arc<Mutex<Logged>>,
}

#[derive(Debug, Default)]
struct Logged {
    is_on: bool,
    issued: u64,
    events: Vec<DeviceEvent>,
    files: Vec<String>,
}

impl RingLog {
    fn logged(&self) -> MutexGuard<'_, Logged> {
        // Who panicked had written an event down, or not.
        self.logged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down from now on.
    pub fn begin(&self) -> Nanoseconds {
        let mut logged = self.logged();
        logged.is_on = true;
        logged.events.clear();
        monotonic()
    }

    /// Tells what was written down since, in the order of time.
    pub fn poll(&self, events: &mut Vec<DeviceEvent>) {
        let taken = std::mem::take(&mut self.logged().events);
        events.extend(taken);
        events.sort_by_key(|event| event.at);
    }

    /// Writes down no more, and tells what is left.
    pub fn end(&self, events: &mut Vec<DeviceEvent>) -> Nanoseconds {
        self.logged().is_on = false;
        self.poll(events);
        monotonic()
    }

    /// The files that requests are of, by number.
    pub fn files(&self) -> Vec<String> {
        self.logged().files.clone()
    }
}

/// What one ring writes down.
pub(in super::super) struct RingRecord {
    log: RingLog,
    /// The number of the request that each slot has, if that was written down.
    numbers: Vec<Option<u64>>,
    /// The log's numbers of the ring's files.
    files: Vec<(File, u32)>,
}

impl RingRecord {
    pub(super) fn of(log: &RingLog, depth: u32, files: &RingFiles) -> Self {
        let mut logged = log.logged();
        let number = |(file, name): (File, String)| {
            let known = logged.files.iter().position(|known| *known == name);
            let number = known.unwrap_or_else(|| {
                logged.files.push(name);
                logged.files.len() - 1
            });
            (file, number as u32)
        };
        let files = files.names().map(number).collect();
        drop(logged);
        Self {
            log: log.clone(),
            numbers: vec![None; depth as usize],
            files,
        }
    }

    /// Requests are submitted now.
    pub(in super::super) fn submitted(&mut self, submissions: &[Submission]) {
        let at = monotonic();
        let mut logged = self.log.logged();
        for submission in submissions {
            let number = &mut self.numbers[submission.slot as usize];
            *number = None;
            if !logged.is_on {
                continue;
            }
            let file = self.files.iter().find(|(file, _)| *file == submission.file);
            let Some((_, device)) = file else { continue };
            *number = Some(logged.issued);
            let step = DeviceStep::Issued(request(logged.issued, *device, submission));
            logged.issued += 1;
            logged.events.push(DeviceEvent { at, step });
        }
    }

    /// A completion is taken.
    pub(in super::super) fn taken(
        &mut self,
        slot: u32,
        result: Result<u32, Errno>,
        at: Nanoseconds,
    ) {
        if let Some(number) = self.numbers[slot as usize].take() {
            let errno = result.err().map_or(0, |errno| errno.number() as u16);
            let step = DeviceStep::Completed { number, errno };
            self.log.logged().events.push(DeviceEvent { at, step });
        }
    }
}

fn request(number: u64, device: u32, of: &Submission) -> DeviceRequest {
    let (operation, has_range) = match of.operation {
        Operation::Read => (DeviceOperation::Read, true),
        Operation::Write => (DeviceOperation::Write { fua: false }, true),
        Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => {
            (DeviceOperation::Flush, false)
        }
        Operation::Discard => (DeviceOperation::Discard, true),
    };
    DeviceRequest {
        number,
        device,
        operation,
        is_awaited: true,
        offset_bytes: if has_range { of.offset_bytes } else { 0 },
        length_bytes: if has_range { u64::from(of.bytes) } else { 0 },
    }
}
