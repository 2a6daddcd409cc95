//! The modelled drive and the media under check, as files of one mount.

use super::DriveWorkload;
use super::reply::PendingReply;
use crate::LaboratoryError;
use diskperf_crash::{Cut, Log, Overlay, Recording};
use diskperf_device::{Drive, Unit, WriteCache};
use diskperf_serve::{Client, Clock, Completed, ServedDrive, ServedRequest};
use diskperf_sim::RandomStreams;
use diskperf_system::host::fresh::FreshSpec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room for files on a file system whose size nobody chose.
const PAYLOAD_BYTES: u64 = 48 << 20;

/// The recorded drive and the media under check.
pub(super) struct Disks {
    pub(super) size_bytes: u64,
    pub(super) unit_bytes: u32,
    recording: Mutex<Option<Recording>>,
    drive: Option<ServedDrive>,
    /// Whether requests take the time of the drive. Formatting takes none.
    pub(super) is_timed: AtomicBool,
    pending: Mutex<HashMap<u64, PendingRequest>>,
    next_tag: AtomicU64,
    slots: Vec<Mutex<Option<Overlay>>>,
}

/// Request that the drive has not completed.
pub(super) struct PendingRequest {
    /// Index in the recording; `None` for a read.
    pub(super) recorded: Option<usize>,
    pub(super) reply: PendingReply,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disks {
    pub(super) fn of_drive(
        workload: &DriveWorkload,
        filesystem: &FreshSpec,
        seed: u64,
        jobs: usize,
    ) -> Result<Self, LaboratoryError> {
        let drive = &workload.drive;
        let image_bytes = filesystem
            .image_bytes(PAYLOAD_BYTES.min(filesystem.size_bytes.unwrap_or(PAYLOAD_BYTES) / 2));
        let size_bytes = image_bytes.map_err(LaboratoryError::request)?;
        let unit_bytes = drive.sector_bytes();
        let drive_bytes = drive.sectors().unwrap_or(0) * u64::from(unit_bytes);
        if size_bytes > drive_bytes {
            return Err(LaboratoryError::Request(format!(
                "the file system takes {size_bytes} bytes, and the drive has {drive_bytes}: name a larger drive, or make the file system smaller (`--fs {}:size=`)",
                filesystem.filesystem_kind
            )));
        }
        let device = drive.build(&RandomStreams::new(seed), Unit::default());
        let cache = match device.has_volatile_cache() {
            true => WriteCache::Volatile,
            false => WriteCache::Durable,
        };
        let served = ServedDrive::start(Drive::new(device), Clock::start(workload.speed), false)
            .map_err(LaboratoryError::work)?;
        let recording = Recording::new(unit_bytes, size_bytes, cache, workload.lying)
            .with_medium_sector(drive.medium_sector_bytes());
        Ok(Self {
            recording: Mutex::new(Some(recording)),
            drive: Some(served),
            ..Self::new(size_bytes, unit_bytes, jobs)
        })
    }

    pub(super) fn of_log(log: &Log, jobs: usize) -> Self {
        let size_bytes = log.unit_count * u64::from(log.unit_bytes);
        Self::new(size_bytes, log.unit_bytes, jobs)
    }

    fn new(size_bytes: u64, unit_bytes: u32, jobs: usize) -> Self {
        Self {
            size_bytes,
            unit_bytes,
            recording: Mutex::new(None),
            drive: None,
            is_timed: AtomicBool::new(false),
            pending: Mutex::default(),
            next_tag: AtomicU64::new(0),
            slots: (0..jobs).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// Runs an operation of the recording; `None` when there is no recording any more.
    pub(super) fn with_recording<T>(&self, act: impl FnOnce(&mut Recording) -> T) -> Option<T> {
        lock(&self.recording).as_mut().map(act)
    }

    /// Ends the recording, after which the drive has no contents, and returns its log.
    pub(super) fn finish_recording(&self) -> Log {
        let recording = lock(&self.recording).take();
        recording.expect("a drive is recorded once").finish()
    }

    /// Gives a slot the medium of a cut.
    pub(super) fn put_medium(&self, slot: usize, log: &Arc<Log>, cut: Cut) {
        *lock(&self.slots[slot]) = Some(Overlay::new(Arc::clone(log), cut));
    }

    /// Runs an operation on a slot's medium; `None` when the slot is empty.
    pub(super) fn with_medium<T>(
        &self,
        slot: usize,
        act: impl FnOnce(&mut Overlay) -> T,
    ) -> Option<T> {
        lock(self.slots.get(slot)?).as_mut().map(act)
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Submits a request to the drive. Its reply is sent when the drive completes it.
    pub(super) fn submit(self: &Arc<Self>, request: ServedRequest, pending: PendingRequest) {
        let drive = self.drive.as_ref();
        match drive.filter(|_| self.is_timed.load(Ordering::Relaxed)) {
            None => self.finish(pending),
            Some(drive) => {
                let tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
                lock(&self.pending).insert(tag, pending);
                let client: Arc<dyn Client> = Arc::<Self>::clone(self);
                drive.submit(&client, tag, request);
            }
        }
    }

    fn finish(&self, pending: PendingRequest) {
        if let Some(index) = pending.recorded {
            // Recorded before the answer: what is answered is in the log.
            self.with_recording(|recording| recording.complete(index));
        }
        pending.reply.send(|offset, into| {
            self.with_recording(|recording| recording.read(offset, into).is_ok()) == Some(true)
        });
    }
}

impl Client for Disks {
    fn complete(&self, completed: Completed) {
        let pending = lock(&self.pending).remove(&completed.tag);
        if let Some(pending) = pending {
            self.finish(pending);
        }
    }
}
