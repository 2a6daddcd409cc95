//! Calls of a program on a rig: open, read, write, flush and synchronization with other programs.

use super::ring::RigRing;
use super::{Rig, RigWorker};
use crate::books::StageAccount;
use crate::calls::{OpenFlags, ProcessAccount, SeekOrigin};
use crate::errno::{Errno, Result};
use crate::rendezvous::{Waiter, WorkerRendezvous};
use crate::written::WriteData;
use diskperf_device::Operation;
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// Program on a rig (drives without a computer), with its open devices.
pub struct RigSession {
    pub(super) rig: Rc<Rig>,
    pub(super) worker: Rc<RigWorker>,
    open_devices: Vec<Option<OpenDevice>>,
    rendezvous: Rc<WorkerRendezvous>,
    pub(super) ring: Option<Rc<RigRing>>,
}

/// Open device of a program, with the current offset.
#[derive(Clone, Copy)]
pub(super) struct OpenDevice {
    pub(super) target: DeviceTarget,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    file_offset: u64,
}

/// Device behind an open file number.
#[derive(Clone, Copy)]
pub(super) enum DeviceTarget {
    /// Device `/dev/null`, which drops written data.
    Null,
    /// Device `/dev/zero`, a source of zeroes.
    Zero,
    /// Partition of a drive, as a raw device.
    Volume(RigVolume),
}

/// Open volume, with the flags that it was opened with.
#[derive(Clone, Copy)]
pub(super) struct RigVolume {
    pub(super) number: u32,
    /// Whether a write is durable when it completes (force unit access).
    pub(super) is_dsync: bool,
}

impl RigVolume {
    pub(super) fn write_operation(self) -> Operation {
        Operation::Write { fua: self.is_dsync }
    }
}

impl Rig {
    /// Returns the device with the given path. A rig has no files.
    fn find_device(&self, path: &str, dsync: bool) -> Result<DeviceTarget> {
        match path {
            "/dev/null" => return Ok(DeviceTarget::Null),
            "/dev/zero" => return Ok(DeviceTarget::Zero),
            _ => {}
        }
        let number = path.strip_prefix("/dev/drive").ok_or(Errno::NoSuchEntry)?;
        let number: u32 = number.parse().map_err(|_| Errno::NoSuchEntry)?;
        match self.volumes.has_volume(number) {
            true => Ok(DeviceTarget::Volume(RigVolume {
                number,
                is_dsync: dsync,
            })),
            false => Err(Errno::NoSuchEntry),
        }
    }

    /// Returns the range of bytes that a call at an offset transfers: whole sectors, and fewer than
    /// wanted at the end of the volume.
    pub(super) fn transfer_range(
        &self,
        volume: RigVolume,
        offset: u64,
        wanted: usize,
        changes: bool,
    ) -> Result<Range<u64>> {
        let partition = self.volumes.partition(volume.number);
        let (sector_bytes, wanted) = (u64::from(partition.sector_bytes), wanted as u64);
        if !offset.is_multiple_of(sector_bytes) || !wanted.is_multiple_of(sector_bytes) {
            return Err(Errno::InvalidArgument);
        }
        if changes && wanted > 0 && offset >= partition.size_bytes() {
            return Err(Errno::NoSpace);
        }
        let left = partition.size_bytes().saturating_sub(offset);
        Ok(offset..offset + left.min(wanted))
    }
}

impl RigSession {
    /// Begins a program in the current task.
    pub fn begin_session(rig: &Rc<Rig>, number: usize, meeting: &Rc<WorkerRendezvous>) -> Self {
        let worker = Rc::new(RigWorker {
            worker_index: number,
            task_id: rig.simulation.expect_current_task(),
            stage_account: StageAccount::new(),
            completed_spans: RefCell::default(),
            is_woken: Cell::new(false),
        });
        let is_traced = rig.records.active_tracing.is_some();
        worker
            .stage_account
            .begin_timed_part(rig.simulation.now(), is_traced);
        rig.workers.borrow_mut().push(Rc::clone(&worker));
        Self {
            rig: Rc::clone(rig),
            worker,
            open_devices: Vec::new(),
            rendezvous: Rc::clone(meeting),
            ring: None,
        }
    }

    /// Ends the program after its requests in flight are complete.
    pub async fn end_session(mut self) {
        self.close_ring().await;
        let mut workers = self.rig.workers.borrow_mut();
        workers.retain(|other| !Rc::ptr_eq(other, &self.worker));
    }

    /// Current virtual time of the rig.
    pub fn current_time(&self) -> Time {
        self.rig.simulation.now()
    }

    /// Opens the time account of the program.
    pub fn open_account(&self) {
        self.worker.stage_account.start_account(self.current_time());
        self.rig.trace_busy_times();
    }

    /// Returns the time account since [`Self::open_account`].
    pub fn current_account(&self) -> ProcessAccount {
        let books = &self.worker.stage_account;
        let ledger = books.ledger_until(self.current_time());
        self.rig.trace_busy_times();
        let records = &self.rig.records;
        records.trace_program(self.worker.worker_index, books, Vec::new());
        ProcessAccount {
            ledger,
            user_cpu_time: books.stage_time(Stage::User),
            system_cpu_time: Time::ZERO,
            storage_read_bytes: books.storage_read_bytes(),
        }
    }

    pub(super) fn open_device(&self, number: usize) -> Result<OpenDevice> {
        let file = self.open_devices.get(number).copied().flatten();
        file.ok_or(Errno::BadFileDescriptor)
    }
}

impl RigSession {
    /// Opens a device and returns its number.
    pub fn open_path(&mut self, path: &str, how: OpenFlags) -> Result<usize> {
        let file = OpenDevice {
            target: self.rig.find_device(path, how.dsync)?,
            is_readable: how.read,
            is_writable: how.write,
            file_offset: 0,
        };
        let free = self.open_devices.iter().position(Option::is_none);
        let place = free.unwrap_or(self.open_devices.len());
        if place == self.open_devices.len() {
            self.open_devices.push(None);
        }
        self.open_devices[place] = Some(file);
        Ok(place)
    }

    /// Reads from the offset of an open device. Returns the number of bytes read.
    pub async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        let file = self.open_device(number)?;
        if !file.is_readable {
            return Err(Errno::BadFileDescriptor);
        }
        let volume = match file.target {
            DeviceTarget::Null => return Ok(0),
            DeviceTarget::Zero => {
                into.fill(0);
                return Ok(into.len());
            }
            DeviceTarget::Volume(volume) => volume,
        };
        let range = self
            .rig
            .transfer_range(volume, file.file_offset, into.len(), false)?;
        let moved = (range.end - range.start) as usize;
        self.transfer_range_of_volume(volume, Operation::Read, range.clone())
            .await;
        self.rig.volumes.with_contents(volume.number, |medium| {
            medium.read_bytes(range.start, &mut into[..moved]);
        });
        self.advance_offset(number, moved)
    }

    /// Writes at the offset of an open device. Returns the number of bytes written.
    pub async fn write(&mut self, number: usize, data: WriteData<'_>) -> Result<usize> {
        let file = self.open_device(number)?;
        if !file.is_writable {
            return Err(Errno::BadFileDescriptor);
        }
        let DeviceTarget::Volume(volume) = file.target else {
            return Ok(data.len());
        };
        let range = self
            .rig
            .transfer_range(volume, file.file_offset, data.len(), true)?;
        let moved = (range.end - range.start) as usize;
        self.transfer_range_of_volume(volume, volume.write_operation(), range.clone())
            .await;
        self.rig.volumes.with_contents(volume.number, |medium| {
            medium.write_bytes(range.start, &data[..moved]);
        });
        self.advance_offset(number, moved)
    }

    async fn transfer_range_of_volume(
        &self,
        volume: RigVolume,
        operation: Operation,
        range: Range<u64>,
    ) {
        let Some(mut transfer) = self.rig.begin_transfer(volume, operation, range) else {
            return;
        };
        loop {
            self.rig.perform_transfer(&self.worker, &transfer).await;
            if !self.rig.next_part(&mut transfer) {
                return;
            }
        }
    }

    fn advance_offset(&mut self, number: usize, moved: usize) -> Result<usize> {
        if let Some(Some(file)) = self.open_devices.get_mut(number) {
            file.file_offset += moved as u64;
        }
        Ok(moved)
    }

    /// Moves the offset of an open device.
    pub fn lseek(&mut self, number: usize, offset: i64, from: SeekOrigin) -> Result<u64> {
        let file = self.open_device(number)?;
        let base = match (from, file.target) {
            // A device that is a stream has no place in it.
            (_, DeviceTarget::Null | DeviceTarget::Zero) => return Ok(0),
            (SeekOrigin::FileStart, DeviceTarget::Volume(_)) => 0,
            (SeekOrigin::CurrentPosition, DeviceTarget::Volume(_)) => file.file_offset,
            (SeekOrigin::FileEnd, DeviceTarget::Volume(_)) => self.device_length(number)?,
        };
        let to = i128::from(base) + i128::from(offset);
        let to = i64::try_from(to).ok().and_then(|to| u64::try_from(to).ok());
        let to = to.ok_or(Errno::InvalidArgument)?;
        if let Some(Some(file)) = self.open_devices.get_mut(number) {
            file.file_offset = to;
        }
        Ok(to)
    }

    /// Flushes the write-back cache of a drive, so that all written data are durable.
    pub async fn fsync(&mut self, number: usize) -> Result<()> {
        let DeviceTarget::Volume(volume) = self.open_device(number)?.target else {
            return Err(Errno::InvalidArgument);
        };
        self.transfer_range_of_volume(volume, Operation::Flush, 0..0)
            .await;
        Ok(())
    }

    /// Closes an open device.
    pub fn close(&mut self, number: usize) -> Result<()> {
        let open = self.open_devices.get_mut(number).and_then(Option::take);
        open.map(|_| ()).ok_or(Errno::BadFileDescriptor)
    }

    /// Closes all open devices.
    pub fn close_all(&mut self) {
        self.open_devices.clear();
    }

    /// Returns the length of an open device, in bytes. Zero for `/dev/null` and `/dev/zero`.
    pub fn device_length(&self, number: usize) -> Result<u64> {
        Ok(match self.open_device(number)?.target {
            DeviceTarget::Null | DeviceTarget::Zero => 0,
            DeviceTarget::Volume(volume) => self.rig.volumes.partition(volume.number).size_bytes(),
        })
    }

    /// Refuses a change of an open device's length or attributes with [`Errno::InvalidArgument`].
    pub fn refuse_change<T>(&self, number: usize) -> Result<T> {
        self.open_device(number).and(Err(Errno::InvalidArgument))
    }

    /// Returns the number of bytes of a device in a cache: always zero, because a rig has no cache.
    pub fn resident_bytes(&self, path: &str) -> Result<u64> {
        match self.rig.find_device(path, false)? {
            DeviceTarget::Volume(_) => Ok(0),
            DeviceTarget::Null | DeviceTarget::Zero => Err(Errno::InvalidArgument),
        }
    }

    /// Reports whether the rig has a volume with the given number.
    pub fn has_volume(&self, volume: u32) -> bool {
        self.rig.volumes.has_volume(volume)
    }
}

impl RigSession {
    /// Waits until a given time, and books the wait to a stage.
    pub async fn wait_until(&self, at: Time, stage: Stage) {
        let from = self.current_time();
        self.rig.simulation.sleep_until(at).await;
        self.worker.book_since(stage, from, self.current_time());
    }

    /// Waits for all other workers. Returns the time of the last arrival, or None if a worker has
    /// failed.
    pub async fn barrier(&self) -> Option<Time> {
        self.rendezvous.attend_meeting(self).await
    }

    /// Number of notices that workers have given each other so far.
    pub fn notice_count(&self) -> u64 {
        self.rendezvous.notice_count()
    }

    /// Gives a notice: wakes the workers that wait for one.
    pub fn give_notice(&self) {
        self.rendezvous.give_notice(self);
    }

    /// Waits until more than `seen` notices were given, at most until a deadline.
    pub async fn await_notice(&self, seen: u64, until: Option<Time>) {
        self.rendezvous.await_notice(self, (seen, until)).await;
    }

    /// Announces that this worker will never come to a barrier, so that the others need not wait.
    pub fn abandon_meeting(&self) {
        self.rendezvous.abandon_meeting(self);
    }
}

impl Waiter for RigSession {
    fn task(&self) -> TaskId {
        self.worker.task_id
    }

    fn now(&self) -> Time {
        self.rig.simulation.now()
    }

    async fn sleep(&self, until: Option<Time>, give_up: impl Fn() -> bool) {
        let wait = (until, give_up);
        self.rig
            .sleep_until_woken(&self.worker, "the other workers", wait)
            .await;
    }

    fn book_think(&self, from: Time) {
        self.worker
            .book_since(Stage::Think, from, self.rig.simulation.now());
    }

    fn wake_all(&self, tasks: &[TaskId]) {
        // In the order in which they came: requests that are issued at one instant have it too.
        let workers = self.rig.workers.borrow();
        for task in tasks {
            let worker = workers.iter().find(|worker| worker.task_id == *task);
            self.rig
                .wake_worker(worker.expect("a waiting task belongs to a worker"));
        }
    }
}
