//! Requests of a trace for a replay. A thread reads them ahead, so that nothing is read or parsed
//! between two requests.

use super::facts::{asked, round};
use super::{Asked, Far, Opened};
use diskperf_battery::replay::{ReplayTrace, RequestIterator};
use diskperf_blocktrace::Record;
use diskperf_blocktrace::transform::{Round, Scale};
use diskperf_models::LaboratoryError;
use diskperf_timeline::{TraceFacts, TraceReplay};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};

const TOGETHER: usize = 1024;
/// Batches that are held ahead of the issued request: 65,536 requests, a few megabytes.
const HELD_AHEAD: usize = 64;

/// A trace in files, as a source of requests for a replay.
#[derive(Clone, Debug)]
pub(crate) struct TraceFiles {
    asked: Asked,
    round: Option<Round>,
    scale: Option<Scale>,
    held: Arc<TraceFacts>,
}

impl TraceFiles {
    /// Creates the source of requests for a planned replay, with the given scale of addresses.
    pub(crate) fn of(
        (replay, held): (&TraceReplay, &TraceFacts),
        scale: Option<Scale>,
    ) -> Result<Self, LaboratoryError> {
        Ok(Self {
            asked: asked(replay)?,
            round: round(replay)?,
            scale,
            held: Arc::new(held.clone()),
        })
    }

    /// Reads the whole trace and sends it. An error is sent last.
    fn read(&self, handing: &mut Handing) {
        let done = self.hand_over(handing);
        handing.flush();
        if let Err(error) = done {
            handing.send(Err(error.to_string()));
        }
    }

    fn hand_over(&self, handing: &mut Handing) -> Result<(), LaboratoryError> {
        for file in &self.held.files {
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
        let mut opened = Opened::new(&self.asked, &Far::default(), &stop)?;
        opened.transform.round = self.round;
        opened.transform.scale = self.scale;
        opened.each(&stop, |record, _| match handing.take(*record) {
            true => Ok(()),
            false => Err(LaboratoryError::Interrupted),
        })
    }
}

impl ReplayTrace for TraceFiles {
    fn read_requests(&self) -> RequestIterator {
        let (sender, receiver) = sync_channel(HELD_AHEAD);
        let (full, is_full) = channel();
        let files = self.clone();
        let mut handing = Handing {
            some: Vec::with_capacity(TOGETHER),
            sender,
            full: Some(full),
            is_wanted: true,
        };
        let reading = std::thread::Builder::new().name("trace".to_owned());
        let started = reading.spawn(move || files.read(&mut handing));
        let failed = started
            .err()
            .map(|error| format!("cannot start a thread to read the trace: {error}"));
        // As much as is held ahead is there before the first is taken; an error is the end
        // of the trace.
        is_full.recv().unwrap_or(());
        Box::new(Ahead {
            receiver,
            some: Vec::new().into_iter(),
            failed,
        })
    }
}

struct Handing {
    some: Vec<Record>,
    sender: SyncSender<Result<Vec<Record>, String>>,
    /// Sender that reports once that the queue is full. It is dropped at the end.
    full: Option<Sender<()>>,
    is_wanted: bool,
}

impl Handing {
    /// Adds a request to the batch. Returns whether more requests are wanted.
    fn take(&mut self, record: Record) -> bool {
        self.some.push(record);
        if self.some.len() == TOGETHER {
            self.flush();
        }
        self.is_wanted
    }

    fn flush(&mut self) {
        let some = std::mem::replace(&mut self.some, Vec::with_capacity(TOGETHER));
        if !some.is_empty() {
            self.send(Ok(some));
        }
    }

    fn send(&mut self, some: Result<Vec<Record>, String>) {
        match self.sender.try_send(some) {
            Ok(()) => {}
            Err(TrySendError::Full(some)) => {
                if let Some(full) = self.full.take() {
                    self.is_wanted &= full.send(()).is_ok();
                }
                self.is_wanted &= self.sender.send(some).is_ok();
            }
            Err(TrySendError::Disconnected(_)) => self.is_wanted = false,
        }
    }
}

struct Ahead {
    receiver: Receiver<Result<Vec<Record>, String>>,
    some: std::vec::IntoIter<Record>,
    failed: Option<String>,
}

impl Iterator for Ahead {
    type Item = Result<Record, String>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.some.next() {
            return Some(Ok(record));
        }
        if let Some(failed) = self.failed.take() {
            return Some(Err(failed));
        }
        match self.receiver.recv().ok()? {
            Ok(some) => {
                self.some = some.into_iter();
                self.some.next().map(Ok)
            }
            Err(failed) => Some(Err(failed)),
        }
    }
}
