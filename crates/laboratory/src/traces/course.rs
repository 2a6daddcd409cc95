//! Requests of a trace for a replay. A thread reads them ahead, so that nothing is read or parsed
//! between two requests.

use super::facts::{build_request, parse_round};
use super::{OpenTrace, ReadProgress, TraceRequest};
use diskperf_battery::replay::{ReplayTrace, RequestIterator};
use diskperf_blocktrace::TraceRecord;
use diskperf_blocktrace::transform::{AddressScaling, SectorRounding};
use diskperf_models::LaboratoryError;
use diskperf_timeline::{TraceFacts, TraceReplay};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

const BATCH_LENGTH: usize = 1024;
/// Batches that are held ahead of the issued request: 65,536 requests, a few megabytes.
const BATCHES_AHEAD_MAX: usize = 64;

/// A trace in files, as a source of requests for a replay.
#[derive(Clone, Debug)]
pub(crate) struct TraceFiles {
    request: TraceRequest,
    round: Option<SectorRounding>,
    scale: Option<AddressScaling>,
    expected_facts: Arc<TraceFacts>,
}

impl TraceFiles {
    /// Creates the source of requests for a planned replay, with the given scale of addresses.
    pub(crate) fn from_replay(
        (replay, held): (&TraceReplay, &TraceFacts),
        scale: Option<AddressScaling>,
    ) -> Result<Self, LaboratoryError> {
        Ok(Self {
            request: build_request(replay)?,
            round: parse_round(replay)?,
            scale,
            expected_facts: Arc::new(held.clone()),
        })
    }

    /// Reads the whole trace and sends it. An error is sent last.
    fn read_requests(&self, handing: &mut BatchSender) {
        let done = self.send_requests(handing);
        handing.flush();
        if let Err(error) = done {
            handing.send_batch(Err(error.to_string()));
        }
    }

    fn send_requests(&self, handing: &mut BatchSender) -> Result<(), LaboratoryError> {
        for file in &self.expected_facts.files {
            let now = file.path.metadata();
            let bytes = now.map_or(0, |status| status.len());
            if bytes != file.size_bytes {
                return Err(LaboratoryError::Request(format!(
                    "{}: it had {} bytes when the replay was planned, and has {bytes} now",
                    file.path.display(),
                    file.size_bytes
                )));
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut opened = OpenTrace::open(&self.request, &ReadProgress::default(), &stop)?;
        opened.transform.sector_rounding = self.round;
        opened.transform.address_scaling = self.scale;
        opened.for_each_request(&stop, |record, _| match handing.add_record(*record) {
            true => Ok(()),
            false => Err(LaboratoryError::Interrupted),
        })
    }
}

impl ReplayTrace for TraceFiles {
    fn read_requests(&self) -> RequestIterator {
        let (sender, receiver) = sync_channel(BATCHES_AHEAD_MAX);
        let (full, is_full) = channel();
        let files = self.clone();
        let mut handing = BatchSender {
            batch: Vec::with_capacity(BATCH_LENGTH),
            sender,
            queue_full_sender: Some(full),
            is_wanted: true,
        };
        let reading = std::thread::Builder::new().name("trace".to_owned());
        let started = reading.spawn(move || files.read_requests(&mut handing));
        let failed = started
            .err()
            .map(|error| format!("cannot start a thread to read the trace: {error}"));
        // As much as is held ahead is there before the first is taken; an error is the end
        // of the trace.
        is_full.recv().unwrap_or(());
        Box::new(BatchReader {
            receiver,
            batch: Vec::new().into_iter(),
            failure: failed,
        })
    }
}

struct BatchSender {
    batch: Vec<TraceRecord>,
    sender: SyncSender<Result<Vec<TraceRecord>, String>>,
    /// Sender that reports once that the queue is full. It is dropped at the end.
    queue_full_sender: Option<Sender<()>>,
    is_wanted: bool,
}

impl BatchSender {
    /// Adds a request to the batch. Returns whether more requests are wanted.
    fn add_record(&mut self, record: TraceRecord) -> bool {
        self.batch.push(record);
        if self.batch.len() == BATCH_LENGTH {
            self.flush();
        }
        self.is_wanted
    }

    fn flush(&mut self) {
        let some = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_LENGTH));
        if !some.is_empty() {
            self.send_batch(Ok(some));
        }
    }

    fn send_batch(&mut self, some: Result<Vec<TraceRecord>, String>) {
        match self.sender.try_send(some) {
            Ok(()) => {}
            Err(TrySendError::Full(some)) => {
                if let Some(full) = self.queue_full_sender.take() {
                    self.is_wanted &= full.send(()).is_ok();
                }
                self.is_wanted &= self.sender.send(some).is_ok();
            }
            Err(TrySendError::Disconnected(_)) => self.is_wanted = false,
        }
    }
}

struct BatchReader {
    receiver: Receiver<Result<Vec<TraceRecord>, String>>,
    batch: std::vec::IntoIter<TraceRecord>,
    failure: Option<String>,
}

impl Iterator for BatchReader {
    type Item = Result<TraceRecord, String>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.batch.next() {
            return Some(Ok(record));
        }
        if let Some(failed) = self.failure.take() {
            return Some(Err(failed));
        }
        match self.receiver.recv().ok()? {
            Ok(some) => {
                self.batch = some.into_iter();
                self.batch.next().map(Ok)
            }
            Err(failed) => Some(Err(failed)),
        }
    }
}
