//! Calls of a program on a rig: open, read, write, flush and synchronization with other programs.

use super::ring::RigRing;
use super::{Rig, Worker};
use crate::books::StageAccount;
use crate::calls::{Account, From, How};
use crate::errno::{Errno, Result};
use crate::rendezvous::{Rendezvous, Waiter};
use crate::written::Written;
use diskperf_device::Operation;
use diskperf_sim::{TaskId, Time};
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// Program on a rig (drives without a computer), with its open devices.
pub struct RigSession {
    pub(super) rig: Rc<Rig>,
    pub(super) worker: Rc<Worker>,
    files: Vec<Option<OpenDevice>>,
    rendezvous: Rc<Rendezvous>,
    pub(super) ring: Option<Rc<RigRing>>,
}

/// Open device of a program, with the current offset.
#[derive(Clone, Copy)]
pub(super) struct OpenDevice {
    pub(super) target: DeviceTarget,
    pub(super) can_read: bool,
    pub(super) can_write: bool,
    offset: u64,
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
    pub(super) dsync: bool,
}

impl RigVolume {
    /// Returns the operation of a write to the volume.
    pub(super) fn write_operation(self) -> Operation {
        Operation::Write { fua: self.dsync }
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
        let number = path.strip_prefix("/dev/drive").ok_or(Errno::NoEntry)?;
        let number: u32 = number.parse().map_err(|_| Errno::NoEntry)?;
        match self.volumes.has_volume(number) {
            true => Ok(DeviceTarget::Volume(RigVolume { number, dsync })),
            false => Err(Errno::NoEntry),
        }
    }

    /// Returns the range of bytes that a call at an offset transfers: whole sectors, and fewer than
    /// wanted at the end of the volume.
    pub(super) fn transfer_range(
        &self,
        volume: RigVolume,
        (offset, wanted, changes): (u64, usize, bool),
    ) -> Result<Range<u64>> {
        let partition = self.volumes.partition(volume.number);
        let (sector_bytes, wanted) = (u64::from(partition.sector_bytes), wanted as u64);
        if !offset.is_multiple_of(sector_bytes) || !wanted.is_multiple_of(sector_bytes) {
            return Err(Errno::Invalid);
        }
        if changes && wanted > 0 && offset >= partition.bytes() {
            return Err(Errno::NoSpace);
        }
        let left = partition.bytes().saturating_sub(offset);
        Ok(offset..offset + left.min(wanted))
    }
}

impl RigSession {
    /// Begins a program in the current task.
    pub fn begin(rig: &Rc<Rig>, number: usize, meeting: &Rc<Rendezvous>) -> Self {
        let worker = Rc::new(Worker {
            number,
            task: rig.sim.current(),
            stage_account: StageAccount::new(),
            completed_spans: RefCell::default(),
            is_woken: Cell::new(false),
        });
        let is_traced = rig.records.tracing.is_some();
        worker.stage_account.begin(rig.sim.now(), is_traced);
        rig.workers.borrow_mut().push(Rc::clone(&worker));
        Self {
            rig: Rc::clone(rig),
            worker,
            files: Vec::new(),
            rendezvous: Rc::clone(meeting),
            ring: None,
        }
    }

    /// Ends the program after its requests in flight are complete.
    pub async fn end(mut self) {
        self.close_ring().await;
        let mut workers = self.rig.workers.borrow_mut();
        workers.retain(|other| !Rc::ptr_eq(other, &self.worker));
    }

    /// Current virtual time of the rig.
    pub fn now(&self) -> Time {
        self.rig.sim.now()
    }

    /// Opens the time account of the program.
    pub fn open_account(&self) {
        self.worker.stage_account.open(self.now());
        self.rig.trace_busy();
    }

    /// Returns the time account since [`Self::open_account`].
    pub fn account(&self) -> Account {
        let books = &self.worker.stage_account;
        let ledger = books.ledger(self.now());
        self.rig.trace_busy();
        let records = &self.rig.records;
        records.trace_program(self.worker.number, books, Vec::new());
        Account {
            ledger,
            user: books.booked_time(Stage::User),
            system: Time::ZERO,
            storage_read_bytes: books.storage_read_bytes(),
        }
    }

    pub(super) fn open_device(&self, number: usize) -> Result<OpenDevice> {
        let file = self.files.get(number).copied().flatten();
        file.ok_or(Errno::BadFile)
    }
}

impl RigSession {
    /// Opens a device and returns its number.
    pub fn open(&mut self, path: &str, how: How) -> Result<usize> {
        let file = OpenDevice {
            target: self.rig.find_device(path, how.dsync)?,
            can_read: how.read,
            can_write: how.write,
            offset: 0,
        };
        let free = self.files.iter().position(Option::is_none);
        let place = free.unwrap_or(self.files.len());
        if place == self.files.len() {
            self.files.push(None);
        }
        self.files[place] = Some(file);
        Ok(place)
    }

    /// Reads from the offset of an open device. Returns the number of bytes read.
    pub async fn read(&mut self, number: usize, into: &mut [u8]) -> Result<usize> {
        let file = self.open_device(number)?;
        if !file.can_read {
            return Err(Errno::BadFile);
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
            .transfer_range(volume, (file.offset, into.len(), false))?;
        let moved = (range.end - range.start) as usize;
        self.transfer(volume, Operation::Read, range.clone()).await;
        self.rig.volumes.with_medium(volume.number, |medium| {
            medium.read_bytes(range.start, &mut into[..moved]);
        });
        self.advance_offset(number, moved)
    }

    /// Writes at the offset of an open device. Returns the number of bytes written.
    pub async fn write(&mut self, number: usize, data: Written<'_>) -> Result<usize> {
        let file = self.open_device(number)?;
        if !file.can_write {
            return Err(Errno::BadFile);
        }
        let DeviceTarget::Volume(volume) = file.target else {
            return Ok(data.len());
        };
        let range = self
            .rig
            .transfer_range(volume, (file.offset, data.len(), true))?;
        let moved = (range.end - range.start) as usize;
        self.transfer(volume, volume.write_operation(), range.clone())
            .await;
        self.rig.volumes.with_medium(volume.number, |medium| {
            medium.write_bytes(range.start, &data[..moved]);
        });
        self.advance_offset(number, moved)
    }

    async fn transfer(&self, volume: RigVolume, operation: Operation, range: Range<u64>) {
        let Some(mut transfer) = self.rig.begin_transfer(volume, operation, range) else {
            return;
        };
        loop {
            self.rig.request(&self.worker, &transfer).await;
            if !self.rig.next_part(&mut transfer) {
                return;
            }
        }
    }

    fn advance_offset(&mut self, number: usize, moved: usize) -> Result<usize> {
        if let Some(Some(file)) = self.files.get_mut(number) {
            file.offset += moved as u64;
        }
        Ok(moved)
    }

    /// Moves the offset of an open device.
    pub fn lseek(&mut self, number: usize, offset: i64, from: From) -> Result<u64> {
        let file = self.open_device(number)?;
        let base = match (from, file.target) {
            // A device that is a stream has no place in it.
            (_, DeviceTarget::Null | DeviceTarget::Zero) => return Ok(0),
            (From::Start, DeviceTarget::Volume(_)) => 0,
            (From::Current, DeviceTarget::Volume(_)) => file.offset,
            (From::End, DeviceTarget::Volume(_)) => self.length(number)?,
        };
        let to = i128::from(base) + i128::from(offset);
        let to = i64::try_from(to).ok().and_then(|to| u64::try_from(to).ok());
        let to = to.ok_or(Errno::Invalid)?;
        if let Some(Some(file)) = self.files.get_mut(number) {
            file.offset = to;
        }
        Ok(to)
    }

    /// Flushes the write-back cache of a drive, so that all written data are durable.
    pub async fn fsync(&mut self, number: usize) -> Result<()> {
        let DeviceTarget::Volume(volume) = self.open_device(number)?.target else {
            return Err(Errno::Invalid);
        };
        self.transfer(volume, Operation::Flush, 0..0).await;
        Ok(())
    }

    /// Closes an open device.
    pub fn close(&mut self, number: usize) -> Result<()> {
        let open = self.files.get_mut(number).and_then(Option::take);
        open.map(|_| ()).ok_or(Errno::BadFile)
    }

    /// Closes all open devices.
    pub fn close_all(&mut self) {
        self.files.clear();
    }

    /// Returns the length of an open device, in bytes. Zero for `/dev/null` and `/dev/zero`.
    pub fn length(&self, number: usize) -> Result<u64> {
        Ok(match self.open_device(number)?.target {
            DeviceTarget::Null | DeviceTarget::Zero => 0,
            DeviceTarget::Volume(volume) => self.rig.volumes.partition(volume.number).bytes(),
        })
    }

    /// Refuses a change of an open device's length or attributes with [`Errno::Invalid`].
    pub fn change_open<T>(&self, number: usize) -> Result<T> {
        self.open_device(number).and(Err(Errno::Invalid))
    }

    /// Returns the number of bytes of a device in a cache: always zero, because a rig has no cache.
    pub fn resident_bytes(&self, path: &str) -> Result<u64> {
        match self.rig.find_device(path, false)? {
            DeviceTarget::Volume(_) => Ok(0),
            DeviceTarget::Null | DeviceTarget::Zero => Err(Errno::Invalid),
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
        let from = self.now();
        self.rig.sim.sleep_until(at).await;
        self.worker.book_since(stage, from, self.now());
    }

    /// Waits for all other workers. Returns the time of the last arrival, or None if a worker has
    /// failed.
    pub async fn barrier(&self) -> Option<Time> {
        self.rendezvous.meet(self).await
    }

    /// Number of notices that workers have given each other so far.
    pub fn notices(&self) -> u64 {
        self.rendezvous.notices()
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
    pub fn give_up_meeting(&self) {
        self.rendezvous.give_up(self);
    }
}

impl Waiter for RigSession {
    fn task(&self) -> TaskId {
        self.worker.task
    }

    fn now(&self) -> Time {
        self.rig.sim.now()
    }

    async fn sleep(&self, until: Option<Time>, give_up: impl Fn() -> bool) {
        let wait = (until, give_up);
        self.rig
            .sleep_until_woken(&self.worker, "the other workers", wait)
            .await;
    }

    fn book_think(&self, from: Time) {
        self.worker
            .book_since(Stage::Think, from, self.rig.sim.now());
    }

    fn wake_all(&self, tasks: &[TaskId]) {
        // In the order in which they came: requests that are issued at one instant have it too.
        let workers = self.rig.workers.borrow();
        for task in tasks {
            let worker = workers.iter().find(|worker| worker.task == *task);
            self.rig
                .wake(worker.expect("a waiting task belongs to a worker"));
        }
    }
}
